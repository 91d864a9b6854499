package dialect

import "github.com/weirgate/weir/internal/jsonscan"

const (
	llamaOne = own + iota
	llamaText
	llamaThinking
	llamaStop
	llamaStopType
	llamaIndex
	llamaInput
	llamaOutput
)

// llamacpp.completion: the native API of llama.cpp's server. Its tokens_cached
// is the state of a slot, not a count of cache hits, and is not read.
var _ = register(&Dialect{
	Name:      "llamacpp.completion",
	Operation: "text_completion",
	paths:     []string{"completion", "infill", "completions"},
	keys:      []string{"prompt", "n_predict", "cache_prompt", "id_slot", "n_probs", "input_prefix", "return_tokens", "timings_per_token"},
	request:   asked{maxTokens: "n_predict"},
	answer: []string{
		llamaOne - own:      "$|[]",
		llamaText - own:     under(llamaRoots, "content"),
		llamaThinking - own: under(llamaRoots, "reasoning_content"),
		llamaStop - own:     under(llamaRoots, "stop"),
		llamaStopType - own: under(llamaRoots, "stop_type"),
		llamaIndex - own:    under(llamaRoots, "index"),
		llamaInput - own:    under(llamaRoots, "tokens_evaluated"),
		llamaOutput - own:   under(llamaRoots, "tokens_predicted"),
	},
	value:   llamaValue,
	lasting: true, // a batch of prompts has one end for each
	refusal: llamaRefusal,
})

var llamaRoots = []string{"", "[]."} // an array answers a batch of prompts

var llamaRefusal = statusRefusal("type", func(status int, _ string) string { return errorType(status) })

// llamacpp.embedding: llama.cpp's native embeddings.
var _ = register(&Dialect{
	Name:      "llamacpp.embedding",
	Operation: "embeddings",
	paths:     []string{"embedding"},
	keys:      []string{"content"},
	answer:    []string{"embedding|[].embedding"},
	value:     func(*Response, jsonscan.Value) {},
	tokens:    embeddingTokens,
	refusal:   llamaRefusal,
})

func llamaValue(r *Response, v jsonscan.Value) {
	e := &r.ev
	switch v.Field {
	case llamaOne:
		r.llamaResult(v.Kind)
	case llamaText:
		if r.text(&v) {
			e.choice.visible = true
		}
	case llamaThinking:
		if r.text(&v) {
			e.choice.reasoning = true
		}
	case llamaStop:
		e.part.special = v.Kind == jsonscan.True
	case llamaStopType:
		if v.Text() {
			e.finish = r.keep(v.Raw)
		}
	case llamaIndex:
		if n, ok := v.Count(); ok {
			e.index = int(n)
		}
	case llamaInput:
		r.rare().figures.take(figPrompt, &v)
	case llamaOutput:
		r.rare().figures.take(figCompletion, &v)
	}
}

// llamaResult begins or ends one result: an event, a body, or one of a batch.
func (r *Response) llamaResult(k jsonscan.Kind) {
	e := &r.ev
	switch k {
	case jsonscan.BeginObject:
		e.index, e.finish, e.choice, e.part = e.choices, nil, content{}, part{}
	case jsonscan.EndObject:
		e.choices++
		if e.part.special {
			e.terminal = true
			r.finished(e.index, e.finish)
		}
		if r.inBody && e.isRare {
			r.outputs.set(e.index, r.scarce.figures.n[figCompletion])
		}
		if e.choice != (content{}) {
			r.wroteIn()
		}
	}
}
