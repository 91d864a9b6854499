package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/weirgate/weir/internal/endpoint"
)

// checkShape says whether the body of the answer is one of the API: whether a
// client finds what it reads.
func checkShape(ctx context.Context, v *visit) Finding {
	r := v.plain(ctx)
	api := string(v.API)
	got := shapeOf(r.Body)
	if r.Record.Stream {
		got = "stream" // whatever its Content-Type says
	} else if r.Failed == "" || got == shapeOwn[v.API] && r.Failed != endpoint.FailedStream && r.Failed != endpoint.FailedShape {
		return green("the answer has the shape of the " + api + " API")
	}
	member := memberOf[v.API]
	fails := "A client fails when it reads " + member + " of it."
	wrong := "the answer has not the shape of the " + api + " API: "
	switch got {
	case "":
		return red(wrong+"it is empty", fails, "see the log of the engine and of what stands before it")
	case "html":
		return red(wrong+"it is a web page", fails, "use the address of the API, not that of the web page: often a name or path of its own (api.…, /api/v1)")
	case "stream":
		return red(wrong+"it is a stream, though none was asked for", fails, "have whatever stands before the engine leave the member stream of requests alone")
	case "error":
		code := ""
		if c := v.foreign(codeOf(r.Body)); c != "" {
			code = "Its code is " + c + "."
		}
		return red("the status is 200, but the answer is an error", sentences(code, fails), "see the engine's log; what stands before it should pass the engine's status on")
	case "array":
		return red(wrong+"it is an array", fails, "have whatever stands before the engine pass its answers as they are")
	case "wrapped":
		return red(wrong+"it is wrapped in another object", fails, "use the provider's address for this API: this one is of an API of its own")
	case "json":
		return red(wrong+"it is JSON of another kind", fails, "check that the address is that of an inference API")
	case "text":
		return red(wrong+"it is no JSON", fails, "check the address, and what stands before the engine")
	}
	next := "check --api and the base URL: " + got + " has a path of its own"
	if got == shapeOwn[v.API] {
		next = "see the engine's log: the answer has no output where the API has it"
		return red(wrong+"what it should hold is missing", fails, next)
	}
	if strings.HasPrefix(got, "Ollama") {
		next = "use Ollama's /v1 address, such as http://127.0.0.1:11434/v1: its own API is below /api"
	}
	return red(wrong+"it is one of "+got, fails, next)
}

// shapeOwn is the shape of each API's own answers.
var shapeOwn = map[endpoint.API]string{
	endpoint.Chat: "the chat API", endpoint.Completions: "the completions API", endpoint.Responses: "the Responses API", endpoint.Messages: "Anthropic's Messages API",
}

// memberOf is what a client of each API reads first, as its error names it.
var memberOf = map[endpoint.API]string{
	endpoint.Chat: `"choices" (in JavaScript: "reading 'choices'" or "reading '0'")`, endpoint.Completions: `"choices"`,
	endpoint.Responses: `"output"`, endpoint.Messages: `"content"`,
}

// shapeOf tells whose answer a body is: "" is empty, "html", "text" no JSON,
// "stream", "array", "error", "wrapped", "json" unknown JSON; else the API.
func shapeOf(body []byte) string {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\ufeff")))
	switch {
	case len(body) == 0:
		return ""
	case body[0] == '<':
		return "html"
	case body[0] == '[':
		return "array"
	case bytes.HasPrefix(body, []byte("data:")), bytes.HasPrefix(body, []byte("event:")), body[0] == ':':
		return "stream"
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(firstValue(body), &m) != nil || m == nil {
		return "text"
	}
	has := func(names ...string) bool {
		for _, name := range names {
			if _, ok := m[name]; !ok {
				return false
			}
		}
		return true
	}
	said := func(name string) string {
		var s string
		_ = json.Unmarshal(m[name], &s) // what is no text says nothing
		return s
	}
	switch {
	case has("error") && string(m["error"]) != "null":
		return "error"
	case has("choices"):
		if said("object") == "text_completion" || said("object") == "" && bytes.Contains(m["choices"], []byte(`"text"`)) && !bytes.Contains(m["choices"], []byte(`"message"`)) {
			return "the completions API"
		}
		return "the chat API"
	case said("type") == "error":
		return "error"
	case has("content", "role") && said("type") == "message":
		return "Anthropic's Messages API"
	case has("output") && said("object") == "response":
		return "the Responses API"
	case has("done") && (has("message") || has("response")):
		return "Ollama's own API"
	case has("candidates"):
		return "Gemini's own API"
	case has("meta_info"):
		return "SGLang's own API"
	case has("generated_text"):
		return "TGI's own API"
	case has("content", "stop"):
		return "llama.cpp's own API"
	case has("message", "finish_reason"):
		return "Cohere's API"
	}
	if inner := m["data"]; len(inner) > 0 && inner[0] == '{' {
		if shape := shapeOf(inner); shape != "json" && shape != "text" {
			return "wrapped"
		}
	}
	for _, sign := range []string{"errors", "error_code", "error_msg", "detail", "msg"} {
		if has(sign) && string(m[sign]) != "null" {
			return "error"
		}
	}
	return "json"
}

// firstValue is the first of several lines of JSON, as a stream of Ollama has
// them, and anything else whole.
func firstValue(body []byte) []byte {
	var first json.RawMessage
	if json.NewDecoder(bytes.NewReader(body)).Decode(&first) == nil {
		return first
	}
	return body
}
