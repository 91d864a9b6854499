package capacity

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// made are records of calls that never met an engine: n calls as many a second as rate tells, each
// with so many output tokens and a pace that grows with the calls beside it.
func made(n int, rate func(i int) float64, change func(i int, r *call.Record)) []*call.Record {
	rng := rand.New(rand.NewPCG(1, 9))
	records := make([]*call.Record, n)
	at := time.Unix(1e9, 0)
	for i := range records {
		at = at.Add(time.Duration(rng.ExpFloat64() / rate(i) * 1e9))
		output := 20 + rng.IntN(60)
		pace := time.Duration((15 + 0.4*rate(i)) * float64(time.Millisecond))
		input := 100 + rng.IntN(400)
		ttft := 30*time.Millisecond + time.Duration(input)*50*time.Microsecond + time.Duration(rng.IntN(15))*time.Millisecond
		decode := time.Duration(output-1) * pace
		r := &call.Record{}
		r.ID, r.Time, r.Upstream, r.Model, r.Stream, r.Outcome, r.Status = fmt.Sprint(i), at, upstream, "m", true, call.Completed, 200
		r.Input, r.Output, r.Cached, r.UsageSource = call.Known(int64(input)), call.Known(int64(output)), call.Known(0), call.UsageReported
		r.TTFT, r.TTFTUpstream, r.TPOT, r.E2E = call.Lasting(ttft), call.Lasting(ttft), call.Lasting(pace), call.Lasting(ttft+decode)
		r.Phases = call.Phases{Upload: call.Lasting(0), QueueGateway: call.Lasting(0), Connect: call.Lasting(0), Prefill: call.Lasting(ttft), Decode: call.Lasting(decode), Tail: call.Lasting(0)}
		r.PhaseSources = call.PhaseSources{Prefill: call.Unattributed, Decode: call.Measured}
		if change != nil {
			change(i, r)
		}
		records[i] = r
	}
	return records
}

func steady(perSecond float64) func(int) float64 { return func(int) float64 { return perSecond } }

func rising(n int) func(int) float64 {
	return func(i int) float64 { return 2 + 8*float64(i)/float64(n) }
}

// TestRefused: what the records cannot carry is refused, with the reason and what to do.
func TestRefused(t *testing.T) {
	o := Options{TTFT: Objective{Limit: 2 * time.Second}, Engines: map[string]Limits{"": {MaxNumSeqs: call.Known(16), KVTokens: call.Known(100000)}}, Rounds: 20}
	for name, c := range map[string]struct {
		records []*call.Record
		change  func(o *Options)
		reason  string
		advice  string
	}{
		"no objective": {made(1000, rising(1000), nil), func(o *Options) { o.TTFT.Limit = 0 }, "no TTFT objective", "Give"},
		"few calls":    {made(298, rising(298), nil), nil, "298 calls are too few", "longer"},
		"not streamed": {made(1000, rising(1000), func(i int, r *call.Record) {
			r.Stream, r.TTFT, r.TPOT, r.TTFB, r.Phases.Prefill, r.Phases.Decode, r.Phases.Engine = false, call.Duration{}, call.Duration{}, r.E2E, call.Duration{}, call.Duration{}, r.E2E
		}), nil, "0 were streamed", "stream"},
		"no usage": {made(1000, rising(1000), func(i int, r *call.Record) {
			r.Usage, r.TPOT = call.Usage{}, call.Duration{}
		}), nil, "0 tell their tokens", "include_usage"},
		"one token": {made(1000, rising(1000), func(i int, r *call.Record) {
			r.Output, r.TPOT, r.E2E, r.Phases.Decode = call.Known(1), call.Duration{}, r.TTFT, call.Lasting(0)
		}), nil, "0 calls have a time per output token", "one token"},
		"other class": {made(1000, rising(1000), func(i int, r *call.Record) { r.Class = "batch" }), func(o *Options) { o.Class = "interactive" }, "0 are of class interactive", "class"},
		"others' engine": {made(1000, rising(1000), func(i int, r *call.Record) {
			r.AtDispatch = call.EngineLoad{Running: call.Known(90), Waiting: call.Known(0), Age: call.Lasting(time.Millisecond)}
		}), nil, "of its load comes through here", "through the gateway"},
		"far beyond":    {made(1000, rising(1000), nil), func(o *Options) { o.Engines[""] = Limits{MaxNumSeqs: call.Known(2000), KVTokens: call.Known(1 << 30)} }, "times the highest load seen", "There is room"},
		"hopeless":      {made(1000, rising(1000), nil), func(o *Options) { o.TTFT.Limit = 40 * time.Millisecond }, "calls that meet nobody", "Shorten prompts"},
		"hopeless pace": {made(1000, rising(1000), nil), func(o *Options) { o.TPOT.Limit = 10 * time.Millisecond }, "for a token", "hardware"},
	} {
		t.Run(name, func(t *testing.T) {
			o := o
			o.Engines = map[string]Limits{"": o.Engines[""]}
			if c.change != nil {
				c.change(&o)
			}
			u := estimate(t, c.records, o)
			if u.Label != Refused || u.Bound != "" || !says(u.Reasons, c.reason) || !says(u.Advice, c.advice) {
				t.Errorf("%s, bound %q, reasons %q, advice %q", u.Label, u.Bound, u.Reasons, u.Advice)
			}
			if u.Knee.IsKnown() || u.KneeLow.IsKnown() || u.Sustainable.IsKnown() || u.Headroom.IsKnown() || u.KneeConcurrency.IsKnown() {
				t.Errorf("figures are claimed all the same: %+v", u)
			}
		})
	}
}

// TestNoVariation: calls that come one after another, so that always as many decode together.
func TestNoVariation(t *testing.T) {
	records := made(1000, steady(1), nil)
	for i, r := range records {
		start := time.Unix(1e9, 0).Add(time.Duration(i) * 5 * time.Second)
		r.Time = start // one at a time, whole
	}
	u := estimate(t, records, Options{TTFT: Objective{Limit: time.Second}})
	if u.Label != Refused || !says(u.Reasons, "hardly varied") || !says(u.Advice, "weir bench") {
		t.Errorf("%s: %q, %q", u.Label, u.Reasons, u.Advice)
	}
}

// TestWhatDoesNotCount: refused calls, failures, embeddings, odd records and others' upstreams.
func TestWhatDoesNotCount(t *testing.T) {
	records := made(1000, rising(1000), func(i int, r *call.Record) {
		switch {
		case i%100 == 0: // refused by our limits
			r.Outcome, r.Upstream, r.Phases, r.TTFT, r.TPOT, r.E2E = call.Refused, "", call.Phases{Upload: call.Lasting(0)}, call.Duration{}, call.Duration{}, call.Duration{}
		case i%100 == 1:
			r.Outcome, r.Status, r.TTFT, r.TPOT, r.Usage = call.UpstreamError, 500, call.Duration{}, call.Duration{}, call.Usage{}
		case i%100 == 2:
			r.Stream, r.TTFT, r.TPOT, r.Output = false, call.Duration{}, call.Duration{}, call.Known(0)
		case i%100 == 3:
			r.TTFT = call.Lasting(-time.Second)
		case i%100 == 4:
			r.Upstream = "other:1"
		case i%100 == 5:
			r.Phases.QueueGateway = call.Lasting(30 * time.Millisecond)
		}
	})
	res, err := Estimate(append(records, nil), Options{TTFT: Objective{Limit: 2 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	if res.Calls != 1000 || len(res.Upstreams) != 2 || res.Upstreams[0].Upstream != upstream || res.Upstreams[1].Upstream != "other:1" {
		t.Fatalf("%d calls, %d upstreams", res.Calls, len(res.Upstreams))
	}
	u := res.Upstreams[0]
	if u.Calls != 950 || u.Usable != 950 || !says(u.Notes, "10 calls failed") || !says(u.Notes, "10 calls completed without output") || !says(u.Notes, "Records left out, for their figures cannot be true: 10.") {
		t.Errorf("%d calls, %d usable: %q", u.Calls, u.Usable, u.Notes)
	}
	if other := res.Upstreams[1]; other.Calls != 10 || other.Label != Refused {
		t.Errorf("%+v", other)
	}
}

// TestModels: each model of an upstream has an engine of its own, unless told otherwise.
func TestModels(t *testing.T) {
	records := made(1000, rising(1000), func(i int, r *call.Record) { r.Model = []string{"a", "b"}[i%2] })
	o := Options{TTFT: Objective{Limit: 2 * time.Second}, Rounds: 20}
	r, err := Estimate(records, o)
	if err != nil || len(r.Upstreams) != 2 || len(r.Fleets) != 2 || !says(r.Upstreams[0].Notes, "(b)") {
		t.Fatalf("%v: %+v", err, r.Upstreams)
	}
	o.SharedEngine = true
	r, err = Estimate(records, o)
	if err != nil || len(r.Upstreams) != 1 || r.Upstreams[0].Calls != 1000 || !says(r.Upstreams[0].Notes, "2 models are taken to share one engine") {
		t.Fatalf("%v: %+v", err, r.Upstreams)
	}
}

// TestLabels: a knee within the loads seen is interpolated, and observed once calls missed
// the watermark there.
func TestLabels(t *testing.T) {
	s := shapes()[0]
	for _, c := range []struct {
		parts []float64
		want  Label
	}{
		{[]float64{0.3, 0.6, 0.75}, Extrapolated},
		{[]float64{0.5, 0.8, 1.1}, Interpolated},
		{[]float64{0.5, 0.8, 1.5}, Observed},
		{[]float64{0.1, 0.2, 0.3}, Refused},
	} {
		rates := make([]float64, len(c.parts))
		for i, p := range c.parts {
			rates[i] = p * s.knee
		}
		u := estimate(t, s.observe(t, rates, 300, 12), s.options(12))
		if u.Label != c.want || len(u.Reasons) == 0 {
			t.Errorf("from %v of the knee it is %s (knee %v, highest %v): %v", c.parts, u.Label, u.Knee, u.Highest, u.Reasons)
		}
		if knee, ok := u.Knee.Get(); ok && math.Abs(knee/s.knee-1) > 0.15 {
			t.Errorf("from %v of the knee it is %.2f calls/s, not %.2f", c.parts, knee, s.knee)
		}
	}
}

func TestOptions(t *testing.T) {
	for want, o := range map[string]Options{
		"TTFT quantile":  {TTFT: Objective{Quantile: 99}},
		"TPOT quantile":  {TPOT: Objective{Quantile: -1}},
		"TTFT objective": {TTFT: Objective{Limit: -1}},
		"headroom":       {Headroom: 0.1},
		"target rate":    {TargetCallsPerSecond: math.Inf(1)},
		"rounds":         {Rounds: 3},
		"max_num_seqs":   {Engines: map[string]Limits{"x": {MaxNumSeqs: call.Known(0)}}},
	} {
		if _, err := Estimate(nil, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	r, err := Estimate(nil, Options{})
	if err != nil || r.Calls != 0 || len(r.Upstreams) != 0 || len(r.Fleets) != 0 || !r.From.IsZero() {
		t.Errorf("of nothing: %+v, %v", r, err)
	}
	if r, err := Estimate(made(1, steady(1), nil), Options{TTFT: Objective{Limit: time.Second}}); err != nil || r.Upstreams[0].Label != Refused || r.Upstreams[0].Rate.IsKnown() {
		t.Errorf("of one call: %+v, %v", r, err)
	}
}
