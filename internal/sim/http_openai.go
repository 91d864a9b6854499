package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
)

var (
	chatAPI = api{prefix: "chatcmpl-", parse: parseChat, fail: openAIFailure,
		reply: func(x *exchange) reply { return &openAIReply{x: x, chat: true} }}
	completionsAPI = api{prefix: "cmpl-", parse: parseCompletions, fail: openAIFailure,
		reply: func(x *exchange) reply { return &openAIReply{x: x} }}
)

// openAICommon are the fields that chat and completions share.
type openAICommon struct {
	Model         string     `json:"model"`
	Stream        bool       `json:"stream"`
	N             int        `json:"n"`
	MaxTokens     int        `json:"max_tokens"`
	MinTokens     int        `json:"min_tokens"`
	IgnoreEOS     bool       `json:"ignore_eos"`
	Stop          stringList `json:"stop"`
	StreamOptions struct {
		IncludeUsage    bool `json:"include_usage"`
		ContinuousUsage bool `json:"continuous_usage_stats"`
	} `json:"stream_options"`
}

func (c *openAICommon) ask() *ask {
	return &ask{
		model: c.Model, stream: c.Stream, n: c.N, maxTokens: c.MaxTokens, minTokens: c.MinTokens,
		ignoreEOS: c.IgnoreEOS, stop: c.Stop,
		includeUsage: c.StreamOptions.IncludeUsage, continuousUsage: c.StreamOptions.ContinuousUsage,
	}
}

func decode(body []byte, to any) error {
	if err := json.Unmarshal(body, to); err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	return nil
}

func parseChat(cfg *Config, body []byte) (*ask, error) {
	var in struct {
		openAICommon
		Messages []struct {
			Role      string          `json:"role"`
			Content   content         `json:"content"`
			ToolCalls json.RawMessage `json:"tool_calls"`
		} `json:"messages"`
		MaxCompletionTokens int             `json:"max_completion_tokens"`
		Tools               json.RawMessage `json:"tools"`
		ToolChoice          toolChoice      `json:"tool_choice"`
		ReasoningEffort     string          `json:"reasoning_effort"`
		ChatTemplate        struct {
			EnableThinking *bool `json:"enable_thinking"`
		} `json:"chat_template_kwargs"`
	}
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	a := in.ask()
	if in.MaxCompletionTokens != 0 {
		a.maxTokens = in.MaxCompletionTokens
	}
	if len(in.Messages) == 0 {
		return a, nil // check says that there is no prompt
	}
	p := newPrompt(cfg)
	p.text(string(in.Tools))
	for _, m := range in.Messages {
		p.message(m.Role, m.Content)
		p.text(string(m.ToolCalls))
	}
	p.text("<assistant")
	a.prompts = [][]token{p.tokens}
	a.reasoning = cfg.Reasoning || in.ReasoningEffort != "" && in.ReasoningEffort != "none"
	if think := in.ChatTemplate.EnableThinking; think != nil {
		a.reasoning = *think
	}
	var offered []struct {
		Function struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	}
	if len(in.Tools) > 0 {
		if err := decode(in.Tools, &offered); err != nil {
			return nil, err
		}
	}
	var tools []tool
	for _, t := range offered {
		tools = append(tools, tool{t.Function.Name, t.Function.Parameters})
	}
	a.tool = in.ToolChoice.pick(tools, in.Messages[len(in.Messages)-1].Role == "tool")
	return a, nil
}

func parseCompletions(cfg *Config, body []byte) (*ask, error) {
	var in struct {
		openAICommon
		Prompt promptList `json:"prompt"`
		Echo   bool       `json:"echo"`
	}
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	a := in.ask()
	a.prompts = in.Prompt.prompts(cfg)
	if a.maxTokens == 0 {
		a.maxTokens = 16 // the API's own default
	}
	if in.Echo {
		a.echo = in.Prompt.texts
	}
	return a, nil
}

// openAIFailure writes an error as the imitated engine does.
func openAIFailure(e *Engine, f failure) []byte {
	switch e.config().Quirks {
	case SGLang:
		return fmt.Appendf(nil, `{"object":"error","message":%s,"type":%s,"param":null,"code":%d}`, quote(f.message), quote(f.kind), f.status)
	case LlamaCPP:
		return fmt.Appendf(nil, `{"error":{"code":%d,"message":%s,"type":%s}}`, f.status, quote(f.message), quote(f.kind))
	}
	return fmt.Appendf(nil, `{"error":{"message":%s,"type":%s,"param":null,"code":%d}}`, quote(f.message), quote(f.kind), f.status)
}

// openAIReply writes chat completions and completions.
type openAIReply struct {
	x    *exchange
	chat bool
	// held is llama.cpp's finish chunk, which it sends together with what follows.
	held []byte
}

func (o *openAIReply) object() string {
	switch {
	case !o.chat:
		return "text_completion"
	case o.x.ask.stream:
		return "chat.completion.chunk"
	}
	return "chat.completion"
}

// envelope writes a chunk or an answer around its choices; more are members to append.
func (o *openAIReply) envelope(choices []byte, more []byte) []byte {
	x := o.x
	if x.cfg.Quirks == LlamaCPP {
		return fmt.Appendf(nil, `{"choices":[%s],"created":%d,"id":%s,"model":%s,"system_fingerprint":"b0-sim","object":%q%s}`,
			choices, x.created, quote(x.id), quote(x.ask.model), o.object(), more)
	}
	return fmt.Appendf(nil, `{"id":%s,"object":%q,"created":%d,"model":%s,"choices":[%s]%s}`,
		quote(x.id), o.object(), x.created, quote(x.ask.model), choices, more)
}

// chunk writes one event about one choice.
func (o *openAIReply) chunk(choice int, delta []byte, finish string) []byte {
	x := o.x
	reason := []byte("null")
	if finish != "" {
		reason = quote(finish)
	}
	var body []byte
	switch {
	case !o.chat:
		body = fmt.Appendf(nil, `{"index":%d,"text":%s,"logprobs":null,"finish_reason":%s%s}`, choice, delta, reason, o.stopReason(choice, finish))
	case x.cfg.Quirks == LlamaCPP:
		body = fmt.Appendf(nil, `{"finish_reason":%s,"index":%d,"delta":%s}`, reason, choice, delta)
	default:
		body = fmt.Appendf(nil, `{"index":%d,"delta":%s,"logprobs":null,"finish_reason":%s%s}`, choice, delta, reason, o.stopReason(choice, finish))
	}
	return event("", o.envelope(body, o.running(choice)))
}

// stopReason says which stop string ended a choice, where the engine does.
func (o *openAIReply) stopReason(choice int, finish string) []byte {
	name := "stop_reason"
	if o.x.cfg.Quirks == SGLang {
		name = "matched_stop"
	} else if o.x.cfg.Quirks != VLLM || finish == "" {
		return nil
	}
	if finish == "" || o.x.plans[choice].stopped == "" {
		return fmt.Appendf(nil, `,%q:null`, name)
	}
	return fmt.Appendf(nil, `,%q:%s`, name, quote(o.x.plans[choice].stopped))
}

// running is the usage so far of a choice, where chunks carry it.
func (o *openAIReply) running(choice int) []byte {
	x := o.x
	if !x.faults.noUsage && (x.cfg.ContinuousUsage || x.ask.continuousUsage && x.ask.includeUsage) {
		input := len(x.ask.prompts[choice/x.ask.n])
		return fmt.Appendf(nil, `,"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d}`,
			input, input+x.sent[choice], x.sent[choice])
	}
	if x.cfg.Quirks == SGLang {
		return []byte(`,"usage":null`)
	}
	return nil
}

func (o *openAIReply) lead(choice int) [][]byte {
	x := o.x
	if !o.chat {
		if p := choice / x.ask.n; p < len(x.ask.echo) {
			return [][]byte{o.chunk(choice, quote(x.ask.echo[p]), "")}
		}
		return nil
	}
	delta := `{"role":"assistant","content":""}`
	switch x.cfg.Quirks {
	case SGLang:
		delta = `{"role":"assistant","content":"","reasoning_content":null,"tool_calls":null}`
	case LlamaCPP:
		delta = `{"role":"assistant","content":null}`
	}
	return [][]byte{o.chunk(choice, []byte(delta), "")}
}

func (o *openAIReply) delta(choice int, tokens []piece, finish string) [][]byte {
	var writes [][]byte
	for len(tokens) > 0 { // one chunk for each run of one kind
		n := 1
		for n < len(tokens) && tokens[n].kind == tokens[0].kind {
			n++
		}
		text := ""
		for _, t := range tokens[:n] {
			text += t.text
		}
		kind := tokens[0].kind
		tokens = tokens[n:]
		last := ""
		if len(tokens) == 0 && o.x.cfg.Quirks == VLLM {
			last = finish // vLLM ends with its last token; the others apart
		}
		if text != "" || last != "" {
			writes = append(writes, o.chunk(choice, o.deltaOf(choice, kind, text), last))
		}
	}
	if finish != "" && o.x.cfg.Quirks != VLLM {
		none := []byte("{}")
		if !o.chat {
			none = []byte(`""`)
		} else if o.x.cfg.Quirks == SGLang {
			none = []byte(`{"role":null,"content":null,"reasoning_content":null,"tool_calls":null}`)
		}
		end := o.chunk(choice, none, finish)
		if o.x.cfg.Quirks == LlamaCPP {
			o.held = append(o.held, end...)
		} else {
			writes = append(writes, end)
		}
	}
	return writes
}

func (o *openAIReply) deltaOf(choice int, kind pieceKind, text string) []byte {
	x := o.x
	if !o.chat {
		return quote(text)
	}
	switch kind {
	case pieceToolName:
		return fmt.Appendf(nil, `{"tool_calls":[{"index":0,"id":"%s","type":"function","function":{"name":%s,"arguments":""}}]}`,
			x.plans[choice].toolID, quote(text))
	case pieceToolArguments:
		return fmt.Appendf(nil, `{"tool_calls":[{"index":0,"function":{"arguments":%s}}]}`, quote(text))
	}
	name, other := "content", x.cfg.ReasoningField
	if kind == pieceReasoning {
		name, other = other, name
	}
	if x.cfg.Quirks == SGLang {
		return fmt.Appendf(nil, `{"role":null,%s:%s,%s:null,"tool_calls":null}`, quote(name), quote(text), quote(other))
	}
	return fmt.Appendf(nil, `{%s:%s}`, quote(name), quote(text))
}

func (o *openAIReply) end() [][]byte {
	x := o.x
	t := x.facts()
	var last []byte
	if (x.ask.includeUsage || x.cfg.ForceUsage || x.cfg.ContinuousUsage) && !x.faults.noUsage {
		more := append([]byte(`,"usage":`), openAIUsage(t)...)
		last = event("", o.envelope(nil, append(more, x.figures(t)...)))
	} else if x.cfg.Quirks == LlamaCPP && len(o.held) > 0 {
		// Without a usage chunk the timings stand on the finish chunk.
		o.held = append(bytes.TrimSuffix(o.held, []byte("}\n\n")), append(x.figures(t), "}\n\n"...)...)
	}
	return [][]byte{append(o.held, last...), doneEvent}
}

func (o *openAIReply) failed() []byte {
	return event("", openAIFailure(o.x.e, failure{500, "internal_server_error", faultMessage, 0}))
}

func (o *openAIReply) done() []byte { return doneEvent }

func (o *openAIReply) whole() []byte {
	x := o.x
	var choices []byte
	for i := range x.plans {
		p := &x.plans[i]
		if i > 0 {
			choices = append(choices, ',')
		}
		text := p.visible(p.length, pieceText)
		if !o.chat {
			if q := i / x.ask.n; q < len(x.ask.echo) {
				text = x.ask.echo[q] + text
			}
			choices = fmt.Appendf(choices, `{"index":%d,"text":%s,"logprobs":null,"finish_reason":%s}`, i, quote(text), quote(p.finish))
			continue
		}
		message := fmt.Appendf(nil, `"role":"assistant","content":%s`, quote(text))
		if name := p.visible(p.length, pieceToolName); name != "" {
			message = fmt.Appendf(nil, `"role":"assistant","content":null,"tool_calls":[{"id":"%s","type":"function","function":{"name":%s,"arguments":%s}}]`,
				p.toolID, quote(name), quote(p.visible(p.length, pieceToolArguments)))
		}
		if p.reasoning > 0 {
			message = fmt.Appendf(message, `,%s:%s`, quote(x.cfg.ReasoningField), quote(p.visible(p.length, pieceReasoning)))
		}
		choices = fmt.Appendf(choices, `{"index":%d,"message":{%s},"logprobs":null,"finish_reason":%s}`, i, message, quote(p.finish))
	}
	t := x.facts()
	var more []byte
	if !x.faults.noUsage {
		more = append([]byte(`,"usage":`), openAIUsage(t)...)
	}
	return o.envelope(choices, append(more, x.figures(t)...))
}
