package dialect

import (
	"encoding/json"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/jsonscan"
)

const (
	anthropicText = own + iota
	anthropicThinking
	anthropicStop
)

// anthropic.messages: Anthropic's Messages API, also as Vertex serves it.
var _ = register(&Dialect{
	Name:      "anthropic.messages",
	Operation: "chat",
	paths:     []string{"v1/messages", "anthropic/messages", "/messages", "invocations", ":rawPredict", ":streamRawPredict"},
	keys:      []string{"messages", "anthropic_version"},
	request:   asked{maxTokens: "max_tokens"},
	answer: []string{
		// Of a stream: the delta, or the block that a delta is of. Of a body: the
		// blocks. A block's name is that of a tool; its data is redacted thinking.
		anthropicText - own: under([]string{"delta."}, "text", "partial_json") + "|" +
			under([]string{"content_block.", "content[]."}, "text", "name"),
		anthropicThinking - own: "delta.thinking|" + under([]string{"content_block.", "content[]."}, "thinking", "data"),
		anthropicStop - own:     "delta.stop_reason|stop_reason|message.stop_reason",
	},
	usage:   []string{"usage.", "message.usage."},
	value:   anthropicValue,
	settle:  anthropicSettle,
	tokens:  anthropicTokens,
	refusal: anthropicRefusal,
	limits:  anthropicLimits,
})

func anthropicValue(r *Response, v jsonscan.Value) {
	switch v.Field {
	case anthropicText:
		r.output(&v)
	case anthropicThinking:
		r.thinking(&v)
	case anthropicStop:
		if v.Text() {
			r.finished(0, r.keep(v.Raw))
		}
	}
}

func anthropicSettle(r *Response) {
	e := &r.ev
	switch string(e.kind) {
	case "message_start", "content_block_start", "content_block_delta", "message_delta", "message":
		e.own = true
	case "message_stop":
		e.own, e.terminal = true, true
	case "error":
		r.fail()
	}
}

// anthropicTokens reads figures in Anthropic's sense: the input leaves out what
// was read from the cache or written to it.
func anthropicTokens(f *figures) tokens {
	t := tokens{Usage: call.Usage{
		Input:      f.either(figInput, figPrompt),
		Output:     f.either(figOutput, figCompletion),
		Cached:     f.n[figCached],
		CacheWrite: f.n[figCacheWrite],
		Reasoning:  f.n[figReasoning],
	}}
	if t.Input.IsKnown() {
		t.Input = t.Input.Plus(t.Cached).Plus(t.CacheWrite)
	}
	if t.Input.IsKnown() || t.Output.IsKnown() {
		return t
	}
	t.fromTimings(f)
	if t.timings {
		t.Cached = f.n[figCacheN]
	}
	return t
}

func anthropicRefusal(r Refusal) []byte {
	type inner struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	kind := errorType(r.Status)
	if r.Status == 503 || r.Status == 529 {
		kind = "overloaded_error"
	} else if r.Status >= 500 {
		kind = "api_error"
	}
	b, _ := json.Marshal(struct {
		Type  string `json:"type"`
		Error inner  `json:"error"`
	}{"error", inner{kind, r.Message}})
	return b
}
