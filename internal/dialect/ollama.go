package dialect

import (
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/jsonscan"
)

const (
	ollamaText = own + iota
	ollamaThinking
	ollamaDone
	ollamaReason
	ollamaInput
	ollamaOutput
	ollamaLoad
	ollamaPrefill
	ollamaDecode
	ollamaTotal
	ollamaEmbedding
)

// Ollama's native API: newline-delimited JSON, the last line with counts and
// with durations in nanoseconds.
var ollamaAnswer = []string{
	ollamaText - own:      "message.content|response|message.tool_calls[].function.name",
	ollamaThinking - own:  "message.thinking|thinking",
	ollamaDone - own:      "done",
	ollamaReason - own:    "done_reason",
	ollamaInput - own:     "prompt_eval_count",
	ollamaOutput - own:    "eval_count",
	ollamaLoad - own:      "load_duration",
	ollamaPrefill - own:   "prompt_eval_duration",
	ollamaDecode - own:    "eval_duration",
	ollamaTotal - own:     "total_duration",
	ollamaEmbedding - own: "embeddings|embedding",
}

var ollamaRequest = asked{maxTokens: "options.num_predict", streams: true}

var _ = register(&Dialect{
	Name:      "ollama.chat",
	Operation: "chat",
	paths:     []string{"api/chat"},
	keys:      []string{"messages"},
	request:   ollamaRequest,
	answer:    ollamaAnswer,
	value:     ollamaValue,
	lines:     true,
	refusal:   textRefusal("error", ""),
})

var _ = register(&Dialect{
	Name:      "ollama.generate",
	Operation: "text_completion",
	paths:     []string{"api/generate"},
	keys:      []string{"prompt"},
	request:   ollamaRequest,
	answer:    ollamaAnswer,
	value:     ollamaValue,
	lines:     true,
	refusal:   textRefusal("error", ""),
})

var _ = register(&Dialect{
	Name:      "ollama.embed",
	Operation: "embeddings",
	paths:     []string{"api/embed", "api/embeddings"},
	keys:      []string{"model", "prompt"},
	answer:    ollamaAnswer,
	value:     ollamaValue,
	tokens:    embeddingTokens,
	refusal:   textRefusal("error", ""),
})

func ollamaValue(r *Response, v jsonscan.Value) {
	switch v.Field {
	case ollamaText:
		r.output(&v)
	case ollamaThinking:
		r.thinking(&v)
	case ollamaDone:
		r.ev.terminal = v.Kind == jsonscan.True
	case ollamaReason:
		if v.Text() {
			r.finished(0, r.keep(v.Raw))
		}
	case ollamaInput:
		r.rare().figures.take(figInput, &v)
	case ollamaOutput:
		r.rare().figures.take(figOutput, &v)
	case ollamaLoad:
		nanoseconds(&r.rare().engine.Load, &v)
	case ollamaPrefill:
		nanoseconds(&r.rare().engine.Prefill, &v)
	case ollamaDecode:
		nanoseconds(&r.rare().engine.Decode, &v)
	case ollamaTotal:
		nanoseconds(&r.rare().engine.Total, &v)
	}
}

func nanoseconds(d *call.Duration, v *jsonscan.Value) {
	if n, ok := v.Count(); ok {
		*d = call.Lasting(time.Duration(n))
	}
}
