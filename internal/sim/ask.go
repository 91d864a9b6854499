package sim

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ask is what a request asks for, whichever API it came by.
type ask struct {
	model   string
	stream  bool
	prompts [][]token // each at least one token
	n       int       // choices for each prompt
	// maxTokens is the client's cap on output; 0 when it named none.
	maxTokens int
	minTokens int
	ignoreEOS bool
	stop      []string
	// includeUsage asks for usage at the end of a stream, continuousUsage for
	// running figures on each chunk.
	includeUsage    bool
	continuousUsage bool
	reasoning       bool
	tool            *tool // to call instead of answering in words
	echo            []string
	embed           bool // the prompts are only read
}

const (
	maxBody    = 32 << 20
	maxChoices = 128
	maxPrompts = 256
	// imageTokens is what a picture or a sound in a prompt counts.
	imageTokens = 256
)

// check refuses what no engine could do.
func (a *ask) check(cfg *Config) error {
	if a.model == "" {
		a.model = cfg.Model
	}
	switch {
	case a.n < 0 || a.n > maxChoices:
		return fmt.Errorf("n is %d: give 1 to %d", a.n, maxChoices)
	case a.maxTokens < 0:
		return fmt.Errorf("max_tokens is %d: give at least 1", a.maxTokens)
	case a.minTokens < 0:
		return fmt.Errorf("min_tokens is %d: give at least 0", a.minTokens)
	case len(a.prompts) == 0:
		return errors.New("there is no prompt")
	case len(a.prompts) > maxPrompts || len(a.prompts)*max(a.n, 1) > maxPrompts:
		return fmt.Errorf("%d prompts with %d choices each are more than %d answers", len(a.prompts), max(a.n, 1), maxPrompts)
	}
	a.n = max(a.n, 1)
	for _, p := range a.prompts {
		room := cfg.ModelLen - len(p)
		if room < 1 && !a.embed || room < 0 {
			return fmt.Errorf("the prompt has at least %d tokens, and the model's context is %d: shorten it", len(p), cfg.ModelLen)
		}
	}
	return nil
}

// firstToken begins every prompt, so that none is empty.
const firstToken token = 1

// promptReader turns text into the tokens of one prompt.
type promptReader struct {
	tokens []token
	limit  int
}

func newPrompt(cfg *Config) *promptReader {
	return &promptReader{tokens: []token{firstToken}, limit: cfg.ModelLen}
}

func (p *promptReader) text(text string) { p.tokens = appendTokens(p.tokens, text, p.limit) }

// message adds one turn of a conversation with the marks around it.
func (p *promptReader) message(role string, content content) {
	p.text("<")
	p.text(role)
	for _, text := range content.texts {
		p.text(text)
	}
	for _, m := range content.media {
		for i := 0; i < imageTokens && len(p.tokens) <= p.limit; i++ {
			p.tokens = append(p.tokens, token(mix(hashText(0, m)+uint64(i))))
		}
	}
	p.text(">")
}

// content is the content of a message: a string, or parts of which some are
// text and the rest pictures, sounds or files.
type content struct {
	texts  []string
	media  []string
	answer bool // a tool's answer is among the parts
}

func (c *content) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		if text != "" {
			c.texts = append(c.texts, text)
		}
		return nil
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		return errors.New("content is neither a string nor a list of parts")
	}
	for _, raw := range parts {
		var part struct {
			Type    string          `json:"type"`
			Text    *string         `json:"text"`
			Content json.RawMessage `json:"content"` // what a tool answered
		}
		if err := json.Unmarshal(raw, &part); err != nil {
			return errors.New("a part of content is not an object with a type")
		}
		switch {
		case part.Text != nil:
			c.texts = append(c.texts, *part.Text)
		case part.Content != nil:
			c.texts = append(c.texts, string(part.Content))
			c.answer = c.answer || part.Type == "tool_result"
		case part.Type == "tool_use" || part.Type == "thinking":
			c.texts = append(c.texts, string(raw))
		default:
			c.media = append(c.media, string(raw))
		}
	}
	return nil
}

// stringList is a string or a list of strings.
type stringList []string

func (l *stringList) UnmarshalJSON(b []byte) error {
	var one *string
	if json.Unmarshal(b, &one) == nil {
		if one != nil {
			*l = stringList{*one}
		}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(l))
}

// promptList is a prompt as the completions APIs take it: text, tokens, or a
// list of either.
type promptList struct {
	texts  []string
	tokens [][]uint32
}

func (l *promptList) UnmarshalJSON(b []byte) error {
	var texts stringList
	if json.Unmarshal(b, &texts) == nil {
		l.texts = texts
		return nil
	}
	var one []uint32
	if json.Unmarshal(b, &one) == nil {
		l.tokens = [][]uint32{one}
		return nil
	}
	if json.Unmarshal(b, &l.tokens) != nil {
		return errors.New("prompt is neither text nor tokens nor a list of either")
	}
	return nil
}

// prompts reads each prompt of the list.
func (l *promptList) prompts(cfg *Config) [][]token {
	var all [][]token
	for _, text := range l.texts {
		p := newPrompt(cfg)
		p.text(text)
		all = append(all, p.tokens)
	}
	for _, ids := range l.tokens {
		p := []token{firstToken}
		for _, id := range ids[:min(len(ids), cfg.ModelLen+1)] {
			p = append(p, token(id))
		}
		all = append(all, p)
	}
	return all
}

// toolChoice is "none", "auto", "required", or a tool by name. In Anthropic's
// messages the words stand in an object's type.
type toolChoice struct{ word, name string }

func (t *toolChoice) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &t.word) == nil {
		return nil
	}
	var object struct {
		Type     string `json:"type"`
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if err := json.Unmarshal(b, &object); err != nil {
		return errors.New("tool_choice is neither a word nor an object")
	}
	t.word, t.name = object.Type, object.Name
	if object.Function.Name != "" {
		t.name = object.Function.Name
	}
	return nil
}

// pick chooses the tool to call: the one named, else the first; none when the
// client said so, or when the last turn already brought a tool's answer.
func (t toolChoice) pick(offered []tool, answered bool) *tool {
	if t.word == "none" || answered || len(offered) == 0 {
		return nil
	}
	for i := range offered {
		if offered[i].name == t.name {
			return &offered[i]
		}
	}
	return &offered[0]
}
