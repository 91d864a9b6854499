package diagnose

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

const ms = time.Millisecond

var lasting, known, figureOf = call.Lasting, call.Known, call.Figure

// healthy is a streamed call in which nothing is at fault: 500 tokens in, 101
// out, all phases known, an engine that reports them, gauges and a GPU watched.
func healthy() *call.Record {
	r := new(call.Record)
	r.ID, r.Time = "call-1", time.Date(2026, 8, 1, 3, 0, 0, 0, time.UTC)
	r.Model, r.Key, r.Upstream, r.Dialect = "m", "team", "10.0.0.1:8000", "openai.chat"
	r.Stream, r.Terminated, r.Status, r.Outcome = true, true, 200, call.Completed
	r.Input, r.Cached, r.Output, r.UsageSource = known(500), known(0), known(101), call.UsageReported
	r.ContentEvents, r.BytesIn, r.BytesOut, r.Attempts = known(101), known(3000), 20_000, 1
	r.ClientRTT, r.UpstreamRTT = lasting(2*ms), lasting(ms)
	r.Engine = call.Engine{Queue: lasting(5 * ms), Prefill: lasting(120 * ms), Decode: lasting(2 * time.Second)}
	r.Phases = call.Phases{Upload: lasting(ms), QueueGateway: lasting(0), Connect: lasting(ms), UpstreamRTT: lasting(ms), QueueEngine: lasting(5 * ms),
		Frontend: lasting(3 * ms), Prefill: lasting(120 * ms), Decode: lasting(2 * time.Second), Tail: lasting(ms), Delivery: lasting(ms)}
	r.PhaseSources = call.PhaseSources{Upload: call.Measured, QueueGateway: call.Measured, Connect: call.Measured, UpstreamRTT: call.Measured, QueueEngine: call.FromEngine,
		Frontend: call.Inferred, Prefill: call.FromEngine, Decode: call.Measured, Tail: call.Measured, Delivery: call.Measured}
	r.AtDispatch = call.EngineLoad{Running: known(6), Waiting: known(0), KVUse: figureOf(0.4), Age: lasting(300 * ms)}
	r.AtFirstToken = call.EngineLoad{Running: known(7), Waiting: known(0), KVUse: figureOf(0.41), Age: lasting(420 * ms)}
	r.GPU = call.GPUWindow{GPUs: 1, Samples: 3, Utilization: figureOf(0.93), MemoryBandwidth: figureOf(0.5), ClockRatio: figureOf(0.99)}
	return settle(r)
}

// settle computes the call's numbers from its phases.
func settle(r *call.Record) *call.Record {
	r.TTFT, r.TTFTUpstream, r.TTFB, r.TPOT, r.E2E = call.Duration{}, call.Duration{}, call.Duration{}, call.Duration{}, call.Duration{}
	p := &r.Phases
	before := time.Duration(0)
	for _, d := range []call.Duration{p.Upload, p.QueueGateway, p.Connect, p.UpstreamRTT, p.QueueEngine, p.Frontend, p.Prefill} {
		before += d.Or(0)
	}
	if p.Tail.IsKnown() {
		r.TTFB = lasting(before + p.Engine.Or(0))
	}
	if r.Stream && p.Decode.IsKnown() {
		r.TTFT = lasting(before)
		if n, counted := r.Output.Get(); counted && n > 1 {
			r.TPOT = lasting(p.Decode.Or(0) / time.Duration(n-1))
		}
	}
	if r.Outcome != call.ClientGone {
		r.E2E = lasting(p.Sum())
	}
	return r
}

// with changes a healthy call.
func with(change func(*call.Record)) *call.Record {
	r := healthy()
	change(r)
	return settle(r)
}

// unsplitBy makes the engine silent: all until the first token is prefill,
// which nobody can split.
func unsplitBy(r *call.Record, d time.Duration) {
	r.Engine = call.Engine{}
	r.Phases.QueueEngine, r.Phases.Frontend, r.Phases.Prefill = call.Duration{}, call.Duration{}, lasting(d)
	r.PhaseSources.QueueEngine, r.PhaseSources.Frontend, r.PhaseSources.Prefill = "", "", call.Unattributed
}

// whole makes the call one that is not streamed, and that nothing splits.
func whole(r *call.Record, d time.Duration) {
	unsplitBy(r, 0)
	r.Stream = false
	r.Phases.Prefill, r.Phases.Decode, r.Phases.Engine = call.Duration{}, call.Duration{}, lasting(d)
	r.PhaseSources.Prefill, r.PhaseSources.Decode, r.PhaseSources.Engine = "", "", call.Unattributed
}

// unanswered makes the call one of which no byte came back.
func unanswered(r *call.Record, o call.Outcome, code string) {
	r.Outcome, r.Error, r.Status, r.Terminated = o, code, 502, false
	r.Phases.Decode, r.Phases.Tail, r.Phases.Delivery = call.Duration{}, call.Duration{}, call.Duration{}
	r.PhaseSources.Decode, r.PhaseSources.Tail, r.PhaseSources.Delivery = "", "", ""
	r.Output, r.ContentEvents = call.Count{}, call.Count{}
}

// unsent makes the call one that broke off in connect.
func unsent(r *call.Record, o call.Outcome, code string) {
	unanswered(r, o, code)
	unsplitBy(r, 0)
	r.Phases.Prefill, r.Phases.UpstreamRTT = call.Duration{}, call.Duration{}
	r.PhaseSources.Prefill, r.PhaseSources.UpstreamRTT = "", ""
	r.AtDispatch, r.AtFirstToken, r.GPU = call.EngineLoad{}, call.EngineLoad{}, call.GPUWindow{}
}

// codes writes findings as the tests compare them.
func codes(list []Finding) []string {
	out := []string{}
	for _, f := range list {
		code := string(f.Code)
		if f.Source == call.Unattributed {
			code += "?"
		}
		out = append(out, code)
	}
	return out
}

func wantCodes(t *testing.T, got []Finding, want ...string) {
	t.Helper()
	if !slices.Equal(codes(got), want) {
		t.Errorf("found %v, want %v", codes(got), want)
		for _, f := range got {
			t.Logf("%s", f.Summary)
		}
	}
}

// find returns the finding of a code, which must be there.
func find(t *testing.T, list []Finding, code Code) Finding {
	t.Helper()
	for _, f := range list {
		if f.Code == code {
			return f
		}
	}
	t.Fatalf("no %s among %v", code, codes(list))
	return Finding{}
}

// many repeats records, with ids and times of their own.
func many(n int, make func(i int) *call.Record) []*call.Record {
	list := []*call.Record{}
	for i := range n {
		r := make(i)
		r.ID, r.Time = fmt.Sprintf("call-%04d", len(list)), r.Time.Add(time.Duration(i)*100*ms)
		list = append(list, r)
	}
	return list
}
