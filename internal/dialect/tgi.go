package dialect

import "github.com/weirgate/weir/internal/jsonscan"

const (
	tgiToken = own + iota
	tgiText
	tgiSpecial
	tgiWhole
	tgiFinish
	tgiInput
	tgiOutput
)

var tgiAnswer = []string{
	tgiToken - own:   "token.id",
	tgiText - own:    "token.text",
	tgiSpecial - own: "token.special",
	tgiWhole - own:   under(tgiRoots, "generated_text"),
	tgiFinish - own:  under(tgiRoots, "details.finish_reason"),
	tgiInput - own:   under(tgiRoots, "details.input_length"),
	tgiOutput - own:  under(tgiRoots, "details.generated_tokens"),
}

// tgiRoots: some servers put a single result in an array.
var tgiRoots = []string{"", "[]."}

var tgiRequest = asked{maxTokens: "parameters.max_new_tokens"}

// tgi.generate: text-generation-inference's native API, not streamed; its
// counts and times are in the header.
var _ = register(&Dialect{
	Name:       "tgi.generate",
	Operation:  "text_completion",
	paths:      []string{"generate", "invocations"},
	keys:       []string{"inputs"},
	request:    tgiRequest,
	answer:     tgiAnswer,
	value:      tgiValue,
	settle:     tgiSettle,
	alwaysRead: true,
	refusal:    textRefusal("error", "error_type"),
})

// tgi.generate_stream: the same, streamed. Each event is exactly one token.
var _ = register(&Dialect{
	Name:       "tgi.generate_stream",
	Operation:  "text_completion",
	paths:      []string{"generate_stream"},
	keys:       []string{"inputs"},
	request:    tgiRequest,
	answer:     tgiAnswer,
	value:      tgiValue,
	settle:     tgiSettle,
	alwaysRead: true,
	refusal:    textRefusal("error", "error_type"),
})

func tgiValue(r *Response, v jsonscan.Value) {
	e := &r.ev
	switch v.Field {
	case tgiToken:
		e.token = true
	case tgiText:
		e.part.text = r.text(&v)
	case tgiSpecial:
		e.part.special = v.Kind == jsonscan.True
	case tgiWhole:
		if v.Kind == jsonscan.String {
			e.terminal = true
			e.whole = v.Len > 0
		}
	case tgiFinish:
		if v.Text() {
			r.finished(0, r.keep(v.Raw))
		}
	case tgiInput:
		r.rare().figures.take(figInput, &v)
	case tgiOutput:
		r.rare().figures.take(figOutput, &v)
	}
}

func tgiSettle(r *Response) {
	e := &r.ev
	if r.inBody {
		e.visible = e.whole
		return
	}
	e.visible = e.part.text && !e.part.special
	if e.token {
		r.counted++
	}
}
