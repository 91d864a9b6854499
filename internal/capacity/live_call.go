package capacity

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// liveCall is what the estimate needs of one call that was sent upstream. Instants are
// seconds since the first record was received; NaN is one that did not happen or is not
// known. Tokens are NaN where they are not known.
type liveCall struct {
	received, sent, first, last, ended float64
	input, uncached, output            float64

	before  float64 // from received to sent without the gateway's own queue, s
	ttft    float64 // from received, s
	tpot    float64 // s
	prefill float64 // from scheduling to the first token, by the engine's own figure, s
	front   float64 // upstream and before prefill, but no queue: front end and round trip, s
	noQueue bool    // the gauges told that the engine's queue was empty

	queued     float64 // in the gateway's own queue, s
	judged     bool    // the objective is for its class
	cacheKnown bool    // cached tokens were reported
	guessed    bool    // first and last are estimates: the answer was not streamed

	// What the engine did beside it, filled by liveLoad.
	batch   float64 // mean sequences that decoded while this one did, itself among them
	at      float64 // sequences that decoded when it was sent
	ahead   int     // calls in flight without first token when it was sent, or sent before its first token came
	prompts float64 // steps with prompts of others between its first and last token
	others  float64 // uncached tokens of those

	load call.EngineLoad // the gauges at dispatch
	read float64         // when they were read, s
}

// usable tells whether the call can stand in the recorded mix.
func (c *liveCall) usable() bool {
	return !c.guessed && !math.IsNaN(c.first) && !math.IsNaN(c.input) && !math.IsNaN(c.output) && c.output >= 1
}

// whole tells whether what it cost in tokens is known, whether or not it was streamed.
func (c *liveCall) whole() bool {
	return !math.IsNaN(c.input) && c.output >= 1
}

// decodes tells whether its TPOT can be fitted.
func (c *liveCall) decodes() bool {
	return c.usable() && c.output >= 2 && c.tpot > 0 && c.last > c.first
}

// longestCall is the longest call that is believed.
const longestCall = 24 * time.Hour

// liveRead reads the record of a call that was sent; false when its figures cannot be true.
func liveRead(rec *call.Record, epoch time.Time) (c liveCall, ok bool) {
	p := &rec.Phases
	for _, d := range []call.Duration{p.Upload, p.QueueGateway, p.Connect, rec.TTFT, rec.TPOT, rec.E2E, rec.TTFB} {
		if v, known := d.Get(); known && (v < 0 || v > longestCall) {
			return c, false
		}
	}
	total := p.Sum()
	if total < 0 || total > longestCall {
		return c, false
	}
	nan := math.NaN()
	c = liveCall{received: rec.Time.Sub(epoch).Seconds(), first: nan, last: nan, ttft: nan, tpot: nan, prefill: nan, front: nan, read: nan}
	c.before, c.queued = (p.Upload.Or(0) + p.Connect.Or(0)).Seconds(), p.QueueGateway.Or(0).Seconds()
	c.sent = c.received + c.before + c.queued
	c.ended = c.received + rec.E2E.Or(total).Seconds()
	if c.ended < c.sent {
		return c, false
	}
	c.input, c.output, c.uncached = liveCount(rec.Input), liveCount(rec.Output), liveCount(rec.Input)
	if cached, known := rec.Cached.Get(); known {
		c.cacheKnown = true
		c.uncached = max(c.input-float64(max(cached, 0)), 1) // the next token comes of the last one
	}
	if ttft, known := rec.TTFT.Get(); known {
		c.ttft = ttft.Seconds()
		c.first = max(c.received+c.ttft, c.sent)
		c.last = c.first + p.Decode.Or(0).Seconds()
		if tpot, known := rec.TPOT.Get(); known && c.output >= 2 {
			c.tpot = tpot.Seconds()
			c.last = c.first + c.tpot*(c.output-1)
		}
		c.last = max(c.first, min(c.last, c.ended))
	}
	if rec.PhaseSources.Prefill == call.FromEngine {
		c.prefill = p.Prefill.Or(0).Seconds()
		c.front = (p.Frontend.Or(0) + p.UpstreamRTT.Or(0)).Seconds()
	}
	c.noQueue = rec.PhaseSources.Prefill == call.Inferred
	if !rec.Stream && math.IsNaN(c.first) && rec.Outcome == call.Completed && c.output >= 1 {
		c.guessed = true
		c.last = min(c.received+rec.TTFB.Or(total).Seconds(), c.ended)
	}
	c.load = rec.AtDispatch
	if !c.load.IsZero() {
		c.read = c.sent - c.load.Age.Or(0).Seconds()
	}
	return c, true
}

// maxTokens is more than any model reads or writes in one call.
const maxTokens = 1 << 26

// liveCount reads a number of tokens; NaN is one that is unknown, or cannot be true.
func liveCount(n call.Count) float64 {
	v, known := n.Get()
	if !known || v < 0 || v > maxTokens {
		return math.NaN()
	}
	return float64(v)
}

// liveGroup is the calls of one engine.
type liveGroup struct {
	upstream, model string
	calls           []liveCall // by the time of arrival
	names           map[string]bool
	odd             int // records left out because their figures cannot be true
	failed          int // calls that failed before the engine worked on them
	wordless        int // calls that completed without a token that can be counted: embeddings and the like
}

// liveWaited tells whether a call without a token was in the engine all the same until it ended.
func liveWaited(o call.Outcome) bool {
	switch o {
	case call.ClientGone, call.Timeout, call.StreamError, call.Truncated, call.ReaderStalled, call.GatewayShutdown:
		return true
	}
	return false
}

// liveGroups sorts records by engine. Load tests count: the engine did that work too.
func liveGroups(records []*call.Record, o *Options) (groups []*liveGroup, from, to time.Time, n int) {
	for _, rec := range records {
		if rec == nil {
			continue
		}
		n++
		if from.IsZero() || rec.Time.Before(from) {
			from = rec.Time
		}
		if rec.Time.After(to) {
			to = rec.Time
		}
	}
	type place struct{ upstream, model string }
	at := make(map[place]*liveGroup)
	for _, rec := range records {
		if rec == nil || !rec.Phases.Connect.IsKnown() {
			continue // refused, or it broke off before it was sent
		}
		model := cmp.Or(rec.ResponseModel, rec.Model)
		where := place{rec.Upstream, model}
		if o.SharedEngine {
			where.model = ""
		}
		g := at[where]
		if g == nil {
			g = &liveGroup{upstream: where.upstream, model: where.model, names: make(map[string]bool)}
			at[where] = g
			groups = append(groups, g)
		}
		c, ok := liveRead(rec, from)
		if !ok {
			g.odd++
			continue
		}
		if math.IsNaN(c.first) && !c.guessed && !liveWaited(rec.Outcome) {
			if rec.Outcome == call.Completed {
				g.wordless++
			} else {
				g.failed++
			}
			continue
		}
		c.judged = o.Class == "" || rec.Class == o.Class
		g.names[model] = true
		g.calls = append(g.calls, c)
	}
	for _, g := range groups {
		slices.SortStableFunc(g.calls, func(a, b liveCall) int { return cmp.Compare(a.received, b.received) })
	}
	slices.SortFunc(groups, func(a, b *liveGroup) int {
		return cmp.Or(cmp.Compare(a.upstream, b.upstream), cmp.Compare(a.model, b.model))
	})
	return groups, from, to, n
}
