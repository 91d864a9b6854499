package sim

import (
	"encoding/json"
	"fmt"
)

var responsesAPI = api{prefix: "resp_", parse: parseResponses, fail: openAIFailure, leads: leadWhenAccepted,
	reply: func(x *exchange) reply { return &responsesReply{x: x, item: -1} }}

func parseResponses(cfg *Config, body []byte) (*ask, error) {
	var in struct {
		Model           string          `json:"model"`
		Stream          bool            `json:"stream"`
		Input           json.RawMessage `json:"input"`
		Instructions    string          `json:"instructions"`
		MaxOutputTokens int             `json:"max_output_tokens"`
		Tools           json.RawMessage `json:"tools"`
		ToolChoice      toolChoice      `json:"tool_choice"`
		Reasoning       *struct {
			Effort string `json:"effort"`
		} `json:"reasoning"`
	}
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	a := &ask{model: in.Model, stream: in.Stream, maxTokens: in.MaxOutputTokens, includeUsage: true}
	p := newPrompt(cfg)
	p.text(in.Instructions)
	p.text(string(in.Tools))
	answered := false
	var text string
	var items []struct {
		Type    string  `json:"type"`
		Role    string  `json:"role"`
		Content content `json:"content"`
		Output  content `json:"output"` // of a function
	}
	switch {
	case len(in.Input) == 0:
		return a, nil // check says that there is no prompt
	case json.Unmarshal(in.Input, &text) == nil:
		p.message("user", content{texts: []string{text}})
	default:
		if err := decode(in.Input, &items); err != nil {
			return nil, err
		}
		for _, item := range items {
			item.Content.texts = append(item.Content.texts, item.Output.texts...)
			p.message(item.Role+item.Type, item.Content)
			answered = item.Type == "function_call_output"
		}
	}
	p.text("<assistant")
	a.prompts = [][]token{p.tokens}
	a.reasoning = cfg.Reasoning || in.Reasoning != nil && in.Reasoning.Effort != "none"
	var offered []struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	}
	if len(in.Tools) > 0 {
		if err := decode(in.Tools, &offered); err != nil {
			return nil, err
		}
	}
	var tools []tool
	for _, t := range offered {
		if t.Name != "" {
			tools = append(tools, tool{t.Name, t.Parameters})
		}
	}
	a.tool = in.ToolChoice.pick(tools, answered)
	return a, nil
}

// responsesReply writes the Responses API.
type responsesReply struct {
	x        *exchange
	sequence int       // of the next event
	item     int       // the open output item; -1 before the first
	kind     pieceKind // of the open item
	open     bool
	finished string
}

// emit writes one event; members are those beside type and sequence_number.
func (o *responsesReply) emit(kind, members string) []byte {
	b := fmt.Appendf(nil, `{"type":"%s","sequence_number":%d,%s}`, kind, o.sequence, members)
	o.sequence++
	return event(kind, b)
}

// response writes the response object; more are members to append.
func (o *responsesReply) response(status string, output []byte, more []byte) []byte {
	return fmt.Appendf(nil, `{"id":%s,"object":"response","created_at":%d,"status":"%s","model":%s,"output":[%s]%s}`,
		quote(o.x.id), o.x.created, status, quote(o.x.ask.model), output, more)
}

func (o *responsesReply) lead(int) [][]byte {
	r := fmt.Sprintf(`"response":%s`, o.response("in_progress", nil, []byte(`,"usage":null`)))
	return [][]byte{append(o.emit("response.created", r), o.emit("response.in_progress", r)...)}
}

// itemKind folds the pieces of a tool call into one kind.
func itemKind(k pieceKind) pieceKind {
	if k == pieceToolArguments {
		return pieceToolName
	}
	return k
}

func (o *responsesReply) itemID(item int) string {
	return fmt.Sprintf("item_%016x", mix(hashText(uint64(item), o.x.id)))
}

func (o *responsesReply) delta(_ int, tokens []piece, finish string) [][]byte {
	var writes [][]byte
	for _, t := range tokens {
		if t.text == "" {
			continue
		}
		var b []byte
		if !o.open || itemKind(t.kind) != o.kind {
			b = append(o.closeItem(), o.openItem(t)...)
		}
		at := fmt.Sprintf(`"item_id":"%s","output_index":%d`, o.itemID(o.item), o.item)
		switch t.kind {
		case pieceText:
			b = append(b, o.emit("response.output_text.delta", fmt.Sprintf(`%s,"content_index":0,"delta":%s,"logprobs":[]`, at, quote(t.text)))...)
		case pieceReasoning:
			b = append(b, o.emit("response.reasoning_text.delta", fmt.Sprintf(`%s,"content_index":0,"delta":%s`, at, quote(t.text)))...)
		case pieceToolArguments:
			b = append(b, o.emit("response.function_call_arguments.delta", fmt.Sprintf(`%s,"delta":%s`, at, quote(t.text)))...)
		}
		writes = append(writes, b)
	}
	if finish != "" {
		o.finished = finish
	}
	return writes
}

func (o *responsesReply) openItem(t piece) []byte {
	o.item++
	o.kind, o.open = itemKind(t.kind), true
	b := o.emit("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":%s`, o.item, o.itemBody(o.item, o.kind, "in_progress", "", t.text)))
	if o.kind == pieceText {
		b = append(b, o.emit("response.content_part.added", fmt.Sprintf(
			`"item_id":"%s","output_index":%d,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}`, o.itemID(o.item), o.item))...)
	}
	return b
}

// itemBody writes an output item. A function call's name is known from its first token.
func (o *responsesReply) itemBody(item int, kind pieceKind, status, text, name string) []byte {
	id := o.itemID(item)
	switch kind {
	case pieceReasoning:
		part := ""
		if text != "" {
			part = fmt.Sprintf(`{"type":"reasoning_text","text":%s}`, quote(text))
		}
		return fmt.Appendf(nil, `{"id":"%s","type":"reasoning","summary":[],"status":"%s","content":[%s]}`, id, status, part)
	case pieceToolName:
		return fmt.Appendf(nil, `{"id":"%s","type":"function_call","status":"%s","call_id":"%s","name":%s,"arguments":%s}`,
			id, status, o.x.plans[0].toolID, quote(name), quote(text))
	}
	part := ""
	if text != "" {
		part = fmt.Sprintf(`{"type":"output_text","text":%s,"annotations":[]}`, quote(text))
	}
	return fmt.Appendf(nil, `{"id":"%s","type":"message","status":"%s","role":"assistant","content":[%s]}`, id, status, part)
}

// sentText is what has been sent of the answer's pieces of one kind.
func (o *responsesReply) sentText(kind pieceKind) string {
	return o.x.plans[0].visible(o.x.sent[0], kind)
}

func (o *responsesReply) finishedItem(item int, kind pieceKind) []byte {
	if kind == pieceToolName {
		return o.itemBody(item, kind, "completed", o.sentText(pieceToolArguments), o.sentText(pieceToolName))
	}
	return o.itemBody(item, kind, "completed", o.sentText(kind), "")
}

func (o *responsesReply) closeItem() []byte {
	if !o.open {
		return nil
	}
	o.open = false
	at := fmt.Sprintf(`"item_id":"%s","output_index":%d`, o.itemID(o.item), o.item)
	var b []byte
	switch o.kind {
	case pieceText:
		text := quote(o.sentText(pieceText))
		b = o.emit("response.output_text.done", fmt.Sprintf(`%s,"content_index":0,"text":%s,"logprobs":[]`, at, text))
		b = append(b, o.emit("response.content_part.done", fmt.Sprintf(
			`%s,"content_index":0,"part":{"type":"output_text","text":%s,"annotations":[]}`, at, text))...)
	case pieceReasoning:
		b = o.emit("response.reasoning_text.done", fmt.Sprintf(`%s,"content_index":0,"text":%s`, at, quote(o.sentText(pieceReasoning))))
	case pieceToolName:
		b = o.emit("response.function_call_arguments.done", fmt.Sprintf(`%s,"arguments":%s`, at, quote(o.sentText(pieceToolArguments))))
	}
	return append(b, o.emit("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, o.item, o.finishedItem(o.item, o.kind)))...)
}

// output writes all items of the finished answer.
func (o *responsesReply) output() []byte {
	var b []byte
	item := 0
	for _, kind := range []pieceKind{pieceReasoning, pieceText, pieceToolName} {
		if o.sentText(kind) == "" {
			continue
		}
		if item > 0 {
			b = append(b, ',')
		}
		b = append(b, o.finishedItem(item, kind)...)
		item++
	}
	return b
}

// outcome writes the finished response and names its status; figures are
// members to append.
func (o *responsesReply) outcome(t Truth, finish string, figures []byte) (status string, response []byte) {
	var more []byte
	if !o.x.faults.noUsage {
		more = fmt.Appendf(nil, `,"usage":{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}`,
			t.Input, t.Cached, t.Output, t.Reasoning, t.Input+t.Output)
	}
	status = "completed"
	if finish == "length" {
		status = "incomplete"
		more = append(more, `,"incomplete_details":{"reason":"max_output_tokens"}`...)
	}
	return status, o.response(status, o.output(), append(more, figures...))
}

func (o *responsesReply) end() [][]byte {
	b := o.closeItem()
	t := o.x.facts()
	inside, beside := o.x.figures(t), []byte(nil)
	if o.x.cfg.Quirks == LlamaCPP { // its timings stand beside the response
		inside, beside = nil, inside
	}
	status, response := o.outcome(t, o.finished, inside)
	return [][]byte{append(b, o.emit("response."+status, fmt.Sprintf(`"response":%s%s`, response, beside))...)}
}

func (o *responsesReply) failed() []byte {
	r := o.response("failed", nil, fmt.Appendf(nil, `,"usage":null,"error":{"code":"server_error","message":%s}`, quote(faultMessage)))
	return o.emit("response.failed", fmt.Sprintf(`"response":%s`, r))
}

func (o *responsesReply) done() []byte { return doneEvent }

func (o *responsesReply) whole() []byte {
	t := o.x.facts()
	_, response := o.outcome(t, o.x.plans[0].finish, o.x.figures(t))
	return response
}
