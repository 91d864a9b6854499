package sim

import (
	"encoding/json"
	"fmt"
)

var messagesAPI = api{prefix: "msg_", parse: parseMessages, fail: anthropicFailure, leads: leadWhenScheduled,
	reply: func(x *exchange) reply { return &messagesReply{x: x} }}

func parseMessages(cfg *Config, body []byte) (*ask, error) {
	var in struct {
		Model         string     `json:"model"`
		Stream        bool       `json:"stream"`
		MaxTokens     int        `json:"max_tokens"`
		StopSequences stringList `json:"stop_sequences"`
		System        content    `json:"system"`
		Messages      []struct {
			Role    string  `json:"role"`
			Content content `json:"content"`
		} `json:"messages"`
		Tools      json.RawMessage `json:"tools"`
		ToolChoice toolChoice      `json:"tool_choice"`
		Thinking   struct {
			Type string `json:"type"`
		} `json:"thinking"`
	}
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	a := &ask{model: in.Model, stream: in.Stream, maxTokens: in.MaxTokens, stop: in.StopSequences}
	if len(in.Messages) == 0 {
		return a, nil // check says that there is no prompt
	}
	p := newPrompt(cfg)
	p.text(string(in.Tools))
	p.message("system", in.System)
	for _, m := range in.Messages {
		p.message(m.Role, m.Content)
	}
	p.text("<assistant")
	a.prompts = [][]token{p.tokens}
	a.reasoning = cfg.Reasoning && in.Thinking.Type != "disabled" || in.Thinking.Type == "enabled"
	var offered []struct {
		Name        string          `json:"name"`
		InputSchema json.RawMessage `json:"input_schema"`
	}
	if len(in.Tools) > 0 {
		if err := decode(in.Tools, &offered); err != nil {
			return nil, err
		}
	}
	var tools []tool
	for _, t := range offered {
		tools = append(tools, tool{t.Name, t.InputSchema})
	}
	a.tool = in.ToolChoice.pick(tools, in.Messages[len(in.Messages)-1].Content.answer)
	return a, nil
}

func anthropicFailure(_ *Engine, f failure) []byte {
	kind := map[int]string{429: "rate_limit_error", 503: "overloaded_error", 529: "overloaded_error"}[f.status]
	switch {
	case kind != "":
	case f.status < 500:
		kind = "invalid_request_error"
	default:
		kind = "api_error"
	}
	return fmt.Appendf(nil, `{"type":"error","error":{"type":"%s","message":%s}}`, kind, quote(f.message))
}

// messagesReply writes Anthropic's messages. No engine adds figures of its own to them.
type messagesReply struct {
	x        *exchange
	block    int // the open content block, or the next when none is open
	kind     pieceKind
	open     bool
	finished string
}

// inputUsage is the usage of the prompt. Its input_tokens leave out what came
// from the cache.
func (o *messagesReply) inputUsage(t Truth) string {
	return fmt.Sprintf(`"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":%d`, t.Input-t.Cached, t.Cached)
}

func (o *messagesReply) lead(int) [][]byte {
	usage := ""
	if !o.x.faults.noUsage {
		usage = fmt.Sprintf(`,"usage":{%s,"output_tokens":0}`, o.inputUsage(o.x.facts()))
	}
	return [][]byte{event("message_start", fmt.Appendf(nil,
		`{"type":"message_start","message":{"id":%s,"type":"message","role":"assistant","model":%s,"content":[],"stop_reason":null,"stop_sequence":null%s}}`,
		quote(o.x.id), quote(o.x.ask.model), usage))}
}

func (o *messagesReply) delta(_ int, tokens []piece, finish string) [][]byte {
	var writes [][]byte
	for _, t := range tokens {
		if t.text == "" {
			continue
		}
		var b []byte
		if !o.open || itemKind(t.kind) != o.kind {
			b = append(o.closeBlock(), o.openBlock(t)...)
		}
		body := ""
		switch t.kind {
		case pieceText:
			body = fmt.Sprintf(`{"type":"text_delta","text":%s}`, quote(t.text))
		case pieceReasoning:
			body = fmt.Sprintf(`{"type":"thinking_delta","thinking":%s}`, quote(t.text))
		case pieceToolArguments:
			body = fmt.Sprintf(`{"type":"input_json_delta","partial_json":%s}`, quote(t.text))
		}
		if body != "" {
			b = append(b, o.blockDelta(body)...)
		}
		writes = append(writes, b)
	}
	if finish != "" {
		o.finished = finish
	}
	return writes
}

func (o *messagesReply) blockDelta(body string) []byte {
	return event("content_block_delta", fmt.Appendf(nil, `{"type":"content_block_delta","index":%d,"delta":%s}`, o.block, body))
}

func (o *messagesReply) openBlock(t piece) []byte {
	o.kind, o.open = itemKind(t.kind), true
	body := `{"type":"text","text":""}`
	switch o.kind {
	case pieceReasoning:
		body = `{"type":"thinking","thinking":"","signature":""}`
	case pieceToolName:
		body = fmt.Sprintf(`{"type":"tool_use","id":"%s","name":%s,"input":{}}`, o.x.plans[0].toolID, quote(t.text))
	}
	return event("content_block_start", fmt.Appendf(nil, `{"type":"content_block_start","index":%d,"content_block":%s}`, o.block, body))
}

func (o *messagesReply) closeBlock() []byte {
	if !o.open {
		return nil
	}
	var b []byte
	if o.kind == pieceReasoning {
		b = o.blockDelta(fmt.Sprintf(`{"type":"signature_delta","signature":"%016x"}`, mix(o.x.order)))
	}
	b = append(b, event("content_block_stop", fmt.Appendf(nil, `{"type":"content_block_stop","index":%d}`, o.block))...)
	o.open = false
	o.block++
	return b
}

// stop names why the answer ended, and the stop string if one did it.
func (o *messagesReply) stop(finish string) string {
	sequence := "null"
	reason := map[string]string{"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}[finish]
	if s := o.x.plans[0].stopped; s != "" {
		reason, sequence = "stop_sequence", string(quote(s))
	}
	return fmt.Sprintf(`"stop_reason":"%s","stop_sequence":%s`, reason, sequence)
}

func (o *messagesReply) end() [][]byte {
	t := o.x.facts()
	usage := ""
	if !o.x.faults.noUsage {
		usage = fmt.Sprintf(`,"usage":{%s,"output_tokens":%d}`, o.inputUsage(t), t.Output)
	}
	b := append(o.closeBlock(), event("message_delta", fmt.Appendf(nil,
		`{"type":"message_delta","delta":{%s}%s}`, o.stop(o.finished), usage))...)
	return [][]byte{append(b, event("message_stop", []byte(`{"type":"message_stop"}`))...)}
}

func (o *messagesReply) failed() []byte {
	return event("error", anthropicFailure(o.x.e, failure{status: 503, message: faultMessage}))
}

// done ends a stream after an error as OpenAI's APIs do; this one has no such end.
func (o *messagesReply) done() []byte { return doneEvent }

func (o *messagesReply) whole() []byte {
	p := &o.x.plans[0]
	var blocks []byte
	add := func(format string, args ...any) {
		if len(blocks) > 0 {
			blocks = append(blocks, ',')
		}
		blocks = fmt.Appendf(blocks, format, args...)
	}
	if text := p.visible(p.length, pieceReasoning); text != "" {
		add(`{"type":"thinking","thinking":%s,"signature":"%016x"}`, quote(text), mix(o.x.order))
	}
	if text := p.visible(p.length, pieceText); text != "" {
		add(`{"type":"text","text":%s}`, quote(text))
	}
	if name := p.visible(p.length, pieceToolName); name != "" {
		input := p.visible(p.length, pieceToolArguments)
		if !json.Valid([]byte(input)) { // max_tokens cut it
			input = "{}"
		}
		add(`{"type":"tool_use","id":"%s","name":%s,"input":%s}`, p.toolID, quote(name), input)
	}
	t := o.x.facts()
	usage := ""
	if !o.x.faults.noUsage {
		usage = fmt.Sprintf(`,"usage":{%s,"output_tokens":%d}`, o.inputUsage(t), t.Output)
	}
	return fmt.Appendf(nil, `{"id":%s,"type":"message","role":"assistant","model":%s,"content":[%s],%s%s}`,
		quote(o.x.id), quote(o.x.ask.model), blocks, o.stop(p.finish), usage)
}
