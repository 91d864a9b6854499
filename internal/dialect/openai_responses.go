package dialect

import (
	"bytes"

	"github.com/weirgate/weir/internal/jsonscan"
)

const (
	responsesDelta = own + iota
	responsesItemName
	responsesStatus
	responsesReason
	responsesOutput
	responsesOutputType
	responsesOutputText
	responsesOutputThinking
)

// openai.responses: OpenAI's Responses API.
var _ = register(&Dialect{
	Name:      "openai.responses",
	Operation: "chat",
	paths:     []string{"responses"},
	keys:      []string{"input", "instructions", "previous_response_id"},
	request:   asked{maxTokens: "max_output_tokens"},
	answer: []string{
		responsesDelta - own:    "delta",
		responsesItemName - own: "item.name",
		responsesStatus - own:   "status|response.status",
		responsesReason - own:   "incomplete_details.reason|response.incomplete_details.reason",
		// A body's output; that of a terminal event repeats what has streamed.
		responsesOutput - own:         "output[]",
		responsesOutputType - own:     "output[].type",
		responsesOutputText - own:     under([]string{"output[]."}, "content[].text", "content[].refusal", "name", "arguments", "input"),
		responsesOutputThinking - own: under([]string{"output[]."}, "summary[].text", "encrypted_content"),
	},
	usage:   []string{"usage.", "response.usage."},
	value:   responsesValue,
	settle:  responsesSettle,
	refusal: openAIRefusal,
})

func responsesValue(r *Response, v jsonscan.Value) {
	e := &r.ev
	switch v.Field {
	case responsesDelta:
		e.part.text = r.text(&v)
	case responsesItemName:
		if r.text(&v) {
			e.part.special = true // a call of a tool, by its name
		}
	case responsesStatus:
		if v.Text() {
			r.rare().status = r.keep(v.Raw)
		}
	case responsesReason:
		if v.Text() {
			e.finish = r.keep(v.Raw)
		}
	case responsesOutput:
		if v.Kind == jsonscan.BeginObject {
			e.part = part{}
			return
		}
		e.visible = e.visible || e.part.text && !e.part.thought
		e.reasoning = e.reasoning || e.part.text && e.part.thought || e.part.special
		e.part = part{}
	case responsesOutputType:
		e.part.thought = is(&v, "reasoning")
	case responsesOutputText:
		e.part.text = r.text(&v) || e.part.text
	case responsesOutputThinking:
		e.part.special = r.text(&v) || e.part.special
	}
}

func responsesSettle(r *Response) {
	e := &r.ev
	kind, ofStream := bytes.CutPrefix(e.kind, []byte("response."))
	if !ofStream {
		if string(e.kind) == "error" {
			r.fail()
		} else if e.isRare {
			r.responseFinished(r.scarce.status) // a body
		}
		return
	}
	e.own = true
	if bytes.HasSuffix(kind, []byte("delta")) {
		if e.part.text {
			e.reasoning = reasoningKind(kind)
			e.visible = !e.reasoning
		}
		return
	}
	switch string(kind) {
	case "output_item.added":
		e.visible = e.part.special
	case "completed", "incomplete", "failed", "cancelled":
		e.terminal = true
		r.responseFinished(kind)
	}
}

// responseFinished notes how a response ended by its status: the reason it
// gives, where it gives one.
func (r *Response) responseFinished(status []byte) {
	switch string(status) {
	case "incomplete":
		if r.ev.finish != nil {
			status = r.ev.finish
		}
	case "failed":
		r.fail()
	case "completed", "cancelled":
	default:
		return // still under way
	}
	r.finished(0, status)
}
