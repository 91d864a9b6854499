package endpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// defaultMessagesTokens is max_tokens of a Messages request that names none.
const defaultMessagesTokens = 1024

// Body returns the request's JSON. The same Ask gives the same bytes.
//
// MaxTokens goes out as max_tokens, and as max_output_tokens to the Responses
// API. Many engines know no other name; models of OpenAI that want
// max_completion_tokens get it through Extra, with max_tokens set to null.
// IgnoreEOS goes out as ignore_eos alone, which is what vLLM, SGLang and
// llama.cpp read; min_tokens is not sent beside it, since llama.cpp does not
// know it and the others do not need it. A System goes before a Completions
// prompt as a paragraph of its own, since that API has no other place for it.
//
// A member of Extra replaces the one of that name; null leaves it out.
func (a Ask) Body() ([]byte, error) {
	if err := a.check(); err != nil {
		return nil, fmt.Errorf("write the request: %w", err)
	}
	members := map[string]any{"stream": a.Stream}
	if a.Model != "" {
		members["model"] = a.Model
	}
	if a.Temperature != nil {
		members["temperature"] = *a.Temperature
	}
	if a.IgnoreEOS {
		members["ignore_eos"] = true
	}
	a.prompt(members)
	for name, value := range a.Extra {
		switch trimmed := bytes.TrimSpace(value); {
		case len(trimmed) == 0 || string(trimmed) == "null":
			delete(members, name)
		case !json.Valid(value):
			return nil, fmt.Errorf("write the request: the extra member %q is not JSON: quote a text, as in \"high\"", name)
		default:
			members[name] = value
		}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out) // sorts the members
	enc.SetEscapeHTML(false)
	if err := enc.Encode(members); err != nil {
		return nil, fmt.Errorf("write the request: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

func (a *Ask) check() error {
	switch {
	case Path(a.API) == "":
		return unknownAPI(a.API)
	case a.MaxTokens < 0:
		return fmt.Errorf("max_tokens is %d: it must be 1 or more, or 0 to say nothing of it", a.MaxTokens)
	case a.IgnoreEOS && a.MaxTokens == 0:
		return errors.New("ignore_eos needs max_tokens: without it the engine writes until its context is full")
	case a.Temperature != nil && (math.IsNaN(*a.Temperature) || math.IsInf(*a.Temperature, 0) || *a.Temperature < 0):
		return fmt.Errorf("the temperature is %v: it must be 0 or more", *a.Temperature)
	}
	return nil
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// prompt adds what each API has in a form of its own.
func (a *Ask) prompt(members map[string]any) {
	limit := "max_tokens"
	switch a.API {
	case Chat:
		var messages []message
		if a.System != "" {
			messages = append(messages, message{"system", a.System})
		}
		members["messages"] = append(messages, message{"user", a.Prompt})
	case Completions:
		text := a.Prompt
		if a.System != "" {
			text = a.System + "\n\n" + text
		}
		members["prompt"] = text
	case Responses:
		limit = "max_output_tokens"
		members["input"] = a.Prompt
		if a.System != "" {
			members["instructions"] = a.System
		}
	case Messages:
		members[limit] = defaultMessagesTokens
		members["messages"] = []message{{"user", a.Prompt}}
		if a.System != "" {
			members["system"] = a.System
		}
	}
	if a.MaxTokens > 0 {
		members[limit] = a.MaxTokens
	}
	if a.Usage && a.Stream && (a.API == Chat || a.API == Completions) {
		members["stream_options"] = map[string]bool{"include_usage": true}
	}
}
