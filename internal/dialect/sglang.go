package dialect

import (
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/jsonscan"
)

const (
	sglangOne = own + iota
	sglangText
	sglangIndex
	sglangFinish
	sglangPrompt
	sglangCompletion
	sglangCached
	sglangQueue
	sglangE2E
	sglangReceived
	sglangScheduled
	sglangPrefilled
)

// Indices of event stamps: seconds on the engine's own clock, 0 unknown.
const (
	stampReceived = iota
	stampScheduled
	stampPrefilled
)

// sglang.generate: SGLang's native API. Its texts are cumulative, and so are
// its counts, by choice. A batch is answered with an array.
var _ = register(&Dialect{
	Name:      "sglang.generate",
	Operation: "text_completion",
	paths:     []string{"generate", "invocations"},
	keys:      []string{"text", "input_ids", "input_embeds", "sampling_params"},
	request:   asked{maxTokens: "sampling_params.max_new_tokens", n: "sampling_params.n"},
	answer: []string{
		sglangOne - own:        "$|[]",
		sglangText - own:       "text|[].text",
		sglangIndex - own:      "index|[].index",
		sglangFinish - own:     under(sglangMeta, "finish_reason", "finish_reason.type"),
		sglangPrompt - own:     under(sglangMeta, "prompt_tokens"),
		sglangCompletion - own: under(sglangMeta, "completion_tokens"),
		sglangCached - own:     under(sglangMeta, "cached_tokens"),
		sglangQueue - own:      under(sglangMeta, "queue_time"),
		sglangE2E - own:        under(sglangMeta, "e2e_latency"),
		sglangReceived - own:   under(sglangMeta, "request_received_ts"),
		sglangScheduled - own:  under(sglangMeta, "forward_entry_time"),
		sglangPrefilled - own:  under(sglangMeta, "prefill_finished_time"),
	},
	value:      sglangValue,
	settle:     sglangSettle,
	alwaysRead: true,
	refusal:    openAIRefusal,
})

var sglangMeta = []string{"meta_info.", "[].meta_info."}

func sglangValue(r *Response, v jsonscan.Value) {
	e := &r.ev
	switch v.Field {
	case sglangOne:
		r.sglangResult(v.Kind)
	case sglangText:
		if v.Text() {
			c := r.rare()
			c.head, c.size = r.keep(v.Raw[:min(len(v.Raw), headBytes)]), v.Len
		}
	case sglangIndex:
		if n, ok := v.Count(); ok {
			e.index = int(n)
		}
	case sglangFinish:
		if v.Text() {
			e.finish = r.keep(v.Raw)
		}
	case sglangPrompt:
		r.rare().figures.take(figPrompt, &v)
	case sglangCached:
		r.rare().figures.take(figCached, &v)
	case sglangCompletion:
		r.rare().figures.take(figCompletion, &v)
	case sglangQueue:
		last(&r.rare().engine.Queue, &v, 1000)
	case sglangE2E:
		last(&r.rare().engine.E2E, &v, 1000)
	case sglangReceived, sglangScheduled, sglangPrefilled:
		if f, ok := v.Float(); ok {
			r.rare().stamps[v.Field-sglangReceived] = f
		}
	}
}

// sglangResult begins or ends one result: an event, a body, or one of a batch.
func (r *Response) sglangResult(k jsonscan.Kind) {
	e, c := &r.ev, r.rare()
	switch k {
	case jsonscan.BeginObject:
		e.index, e.finish = e.choices, nil
		c.size, c.figures.n[figCompletion], c.figures.n[figPrompt] = 0, call.Count{}, call.Count{}
	case jsonscan.EndObject:
		e.choices++
		r.finished(e.index, e.finish)
		if r.inBody {
			r.outputs.set(e.index, c.figures.n[figCompletion])
			c.prompts += c.figures.n[figPrompt].Or(0)
		}
		if c.size > 0 && r.texts.grew(e.index, c.head, c.size) {
			e.choice.visible = true
			r.wroteIn()
		}
	}
}

func sglangSettle(r *Response) {
	e, c := &r.ev, r.rare()
	if e.choices > 1 && c.prompts > 0 {
		// Several choices of one prompt all report that prompt.
		c.figures.n[figPrompt] = call.Known(c.prompts / max(r.n, 1))
	}
	if string(e.kind) == "error" {
		r.fail()
	}
	// Prefill runs from the scheduling to the first token. Servers that do not
	// say when they scheduled leave what precedes it in the remainder.
	from := c.stamps[stampScheduled]
	if queue, ok := c.engine.Queue.Get(); from == 0 && ok && c.stamps[stampReceived] > 0 {
		from = c.stamps[stampReceived] + queue.Seconds()
	}
	if to := c.stamps[stampPrefilled]; from > 0 && to >= from {
		c.engine.Prefill = call.Lasting(time.Duration((to - from) * float64(time.Second)).Round(time.Microsecond))
	}
}
