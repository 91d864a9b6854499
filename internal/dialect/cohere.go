package dialect

import "github.com/weirgate/weir/internal/jsonscan"

const (
	cohereText = own + iota
	cohereThinking
	cohereFinish
	cohereError
)

const (
	rerankResults = own + iota
	rerankError
)

// cohere.v2.chat: Cohere's chat API, second version. Its billed units are a
// price, not a count, and are not read.
var _ = register(&Dialect{
	Name:      "cohere.v2.chat",
	Operation: "chat",
	paths:     []string{"v2/chat"},
	keys:      []string{"messages"},
	request:   asked{maxTokens: "max_tokens"},
	answer: []string{
		cohereText - own: under([]string{"delta.message."}, "content.text", "tool_calls.function.name", "tool_calls.function.arguments") +
			"|" + under([]string{"message."}, "content[].text", "tool_calls[].function.name"),
		// A tool plan is what the model thinks before it calls tools.
		cohereThinking - own: under([]string{"delta.message.", "message."}, "tool_plan") +
			"|delta.message.content.thinking|message.content[].thinking",
		cohereFinish - own: "delta.finish_reason|finish_reason",
		// A message that is a text is an error: answers have an object there.
		cohereError - own: "delta.error|message",
	},
	usage:   []string{"delta.usage.tokens.", "usage.tokens.", "delta.usage.", "usage."},
	value:   cohereValue,
	settle:  cohereSettle,
	refusal: textRefusal("message", ""),
})

// cohere.rerank: reranking, also as Jina, vLLM and others serve it. Nothing is
// generated, and some count no tokens at all.
var _ = register(&Dialect{
	Name:      "cohere.rerank",
	Operation: "rerank",
	paths:     []string{"rerank", "invocations"},
	keys:      []string{"query", "documents"},
	answer:    []string{rerankResults - own: "results|data|[].score", rerankError - own: "message"},
	usage:     []string{"usage.", "meta.tokens."},
	value: func(r *Response, v jsonscan.Value) {
		if v.Field == rerankError && v.Text() {
			r.fail()
		}
	},
	tokens:  inputTokens,
	refusal: textRefusal("message", ""),
})

func cohereValue(r *Response, v jsonscan.Value) {
	switch v.Field {
	case cohereText:
		r.output(&v)
	case cohereThinking:
		r.thinking(&v)
	case cohereFinish:
		if v.Text() {
			r.finished(0, r.keep(v.Raw))
			if is(&v, "ERROR") {
				r.fail()
			}
		}
	case cohereError:
		if v.Text() {
			r.fail()
		}
	}
}

func cohereSettle(r *Response) {
	e := &r.ev
	switch string(e.kind) {
	case "message-start", "content-start", "content-delta":
		e.own = true
	case "message-end":
		e.own, e.terminal = true, true
	}
}
