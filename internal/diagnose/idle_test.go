package diagnose

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// burst is a stock engine under a burst: five calls that met it idle, and twenty
// that came together, so that the reading before them shows nothing.
func burst(change func(i int, r *call.Record)) []*call.Record {
	list := many(25, func(i int) *call.Record {
		return with(func(r *call.Record) {
			r.Cached = call.Count{}
			unsplitBy(r, 57*ms)
			r.AtDispatch = call.EngineLoad{Running: known(0), Waiting: known(0), KVUse: figureOf(0.01), Age: lasting(300 * ms)}
			r.AtFirstToken = call.EngineLoad{Running: known(1), Waiting: known(0), KVUse: figureOf(0.02), Age: lasting(350 * ms)}
			if i >= 5 {
				unsplitBy(r, 4*time.Second)
				r.AtFirstToken = call.EngineLoad{Running: known(4), Waiting: known(int64(4 + i%5)), KVUse: figureOf(0.04), Age: lasting(400 * ms)}
			}
		})
	})
	for i, r := range list {
		r.Time = r.Time.Truncate(time.Minute).Add(time.Duration(min(i, 5)) * time.Second)
		if i >= 5 {
			r.Time = r.Time.Add(time.Duration(i) * ms)
		}
		change(i, r)
		settle(r)
	}
	return list
}

// TestIdle: what calls took that met an idle engine tells a queue from prefill,
// where calls waited; else the same is only possible, or cannot be told.
func TestIdle(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(i int, r *call.Record)
		want    []string
		verdict Verdict
	}{
		"as it is": {func(int, *call.Record) {}, []string{"engine_queue"}, Found},
		"busy when they were sent": {func(i int, r *call.Record) {
			if i >= 5 {
				r.AtDispatch.Running, r.AtDispatch.Waiting = known(4), known(6)
			}
		}, []string{"engine_queue"}, Found},
		"no gauges":         {func(_ int, r *call.Record) { r.AtDispatch, r.AtFirstToken = call.EngineLoad{}, call.EngineLoad{} }, []string{"unattributed?"}, Undetermined},
		"nobody waited":     {func(_ int, r *call.Record) { r.AtFirstToken.Waiting = known(0) }, []string{"unattributed?"}, Undetermined},
		"hardly one waited": {func(i int, r *call.Record) { r.AtFirstToken.Waiting = known(int64(max(0, i-20) / 4)) }, []string{"unattributed?"}, Undetermined},
		"the idle ones are as slow": {func(i int, r *call.Record) {
			if i < 5 {
				unsplitBy(r, 4*time.Second)
			}
		}, []string{"unattributed?"}, Undetermined},
		"the idle ones are of another model": {func(i int, r *call.Record) {
			if i < 5 {
				r.Model = "other"
			}
		}, []string{"unattributed?"}, Undetermined},
		"the idle ones are of another size": {func(i int, r *call.Record) {
			if i < 5 {
				r.Input = known(40)
			}
		}, []string{"unattributed?"}, Undetermined},
		"tokens not known, like bodies": {func(_ int, r *call.Record) { r.Input = call.Count{} }, []string{"engine_queue"}, Found},
		"tokens not known, other bodies": {func(i int, r *call.Record) {
			if r.Input = (call.Count{}); i < 5 {
				r.BytesIn = known(100)
			}
		}, []string{"unattributed?"}, Undetermined},
		"size not known": {func(_ int, r *call.Record) { r.Input, r.BytesIn = call.Count{}, call.Count{} }, []string{"unattributed?"}, Undetermined},
		"waited at dispatch, no idle ones": {func(i int, r *call.Record) {
			r.AtDispatch.Waiting = known(3)
			if i < 5 {
				unsplitBy(r, 4*time.Second)
			}
		}, []string{"engine_queue?"}, Undetermined},
		"the engine tells": {func(_ int, r *call.Record) {
			r.Phases.QueueEngine, r.PhaseSources.QueueEngine = lasting(5*ms), call.FromEngine
			r.PhaseSources.Prefill = call.FromEngine
		}, []string{"prefill_long"}, Found},
	} {
		t.Run(name, func(t *testing.T) {
			r := Window(burst(c.change), Options{})
			if r.Verdict != c.verdict {
				t.Errorf("%s: %q", r.Verdict, r.Reasons)
			}
			wantCodes(t, r.Findings, c.want...)
		})
	}
}

// TestIdleWords: the queue is called likely, with what it is inferred from.
func TestIdleWords(t *testing.T) {
	list := burst(func(int, *call.Record) {})
	f := find(t, Window(list, Options{}).Findings, CodeEngineQueue)
	if f.Source != call.Inferred || f.Calls != 20 || f.Time != lasting(20*(4*time.Second-57*ms)) ||
		f.Summary != "The engine's queue likely took 3.94 s of 4 s TTFT on average in 20 of 25 calls: 98 % of all TTFT." {
		t.Errorf("%+v", f)
	}
	for text, among := range map[string][]Evidence{
		"met an idle engine took to the first token: 57 ms on average":                           f.For,
		"it took, from when it was sent: 4 s on average":                                         f.For,
		"waiting in the engine at its first token: 6 calls on average":                           f.For,
		"the reading that shows nothing waiting was taken before it was sent: 300 ms on average": f.Against,
		"tells neither queue nor prefill":                                                        f.Against,
		"what came from the prefix cache is not known":                                           f.Against,
	} {
		if !slices.ContainsFunc(among, func(e Evidence) bool { return strings.Contains(e.Text, text) }) {
			t.Errorf("no %q in %+v", text, among)
		}
	}
	if !strings.Contains(f.Next, "The cache has room") || strings.Contains(f.Next, "option") {
		t.Errorf("next %q", f.Next)
	}
	// One quick call stands for the rest where it is so by far.
	f = find(t, Window(list[4:], Options{}).Findings, CodeEngineQueue)
	if !slices.ContainsFunc(f.For, func(e Evidence) bool { return strings.HasPrefix(e.Text, "the quickest call of its model and size") }) {
		t.Errorf("the quickest call is not named: %+v", f.For)
	}
	// A single call is compared with nothing.
	wantCodes(t, Call(list[20]), "unattributed?")
}

// TestIdleSure: in windows of random calls that nobody split, a queue is inferred
// only where calls waited and the share of it leaves the idle time out, and shares
// of one whole never add up to more than 1.
func TestIdleSure(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	inferred := 0
	for range 300 {
		waits := rng.IntN(2) == 0
		list := many(30, func(int) *call.Record {
			r := anyRecord(rng)
			r.Stream, r.Outcome, r.Error, r.QueueBound = true, call.Completed, "", call.Duration{}
			r.Phases.Engine, r.PhaseSources.Engine = call.Duration{}, ""
			if !r.Phases.Decode.IsKnown() {
				r.Phases.Decode, r.PhaseSources.Decode = lasting(time.Second), call.Measured
			}
			unsplitBy(r, []time.Duration{40 * ms, 6 * time.Second}[rng.IntN(2)])
			if rng.IntN(4) == 0 {
				r.PhaseSources.Prefill, r.QueueBound = call.Inferred, lasting(5900*ms)
			}
			r.Input = known(500)
			if !waits {
				r.AtDispatch.Waiting, r.AtFirstToken.Waiting = known(0), known(0)
			}
			return settle(r)
		})
		report := Window(list, Options{MinCalls: 1})
		sums := map[Whole]float64{}
		for _, f := range report.Findings {
			x, _ := f.Share.Get()
			sums[f.Of] += x
			if f.Code != CodeEngineQueue || f.Source != call.Inferred {
				continue
			}
			inferred++
			if !waits {
				t.Fatalf("nothing waited: %s %+v", f.Summary, f.For)
			}
			if !strings.Contains(f.Summary, "likely") || f.Time.Or(0) > time.Duration(f.Calls)*5960*ms {
				t.Fatalf("%s", f.Summary)
			}
		}
		for of, sum := range sums {
			if sum > 1+1e-9 {
				t.Fatalf("shares of %s add up to %v: %v", of, sum, codes(report.Findings))
			}
		}
	}
	if inferred < 20 {
		t.Errorf("a queue was inferred in %d windows", inferred)
	}
}

// TestNoneThen: a reading that shows nothing waiting speaks against a queue, unless
// another call was sent since, and calls waited at the first token.
func TestNoneThen(t *testing.T) {
	evidence := func(apart time.Duration, later int64) string {
		list := many(30, func(int) *call.Record {
			return with(func(r *call.Record) {
				unsplitBy(r, 4*time.Second)
				r.AtDispatch.Age, r.AtFirstToken.Waiting = lasting(900*ms), known(later)
			})
		})
		for i, r := range list {
			r.Time = r.Time.Truncate(time.Minute).Add(time.Duration(i) * apart)
		}
		f := find(t, Window(list, Options{}).Findings, CodeUnattributed)
		for _, e := range f.For {
			if strings.Contains(e.Text, "against") {
				t.Errorf("for it: %q", e.Text)
			}
		}
		text := ""
		for _, e := range f.Against {
			if e.Calls >= 29 {
				text += e.Figure + " "
			}
		}
		return strings.TrimSpace(text)
	}
	for _, c := range []struct {
		apart time.Duration
		later int64
		want  string
	}{
		{100 * ms, 8, "engine_at_dispatch.age_ms"}, {0, 8, "engine_at_dispatch.age_ms"},
		{100 * ms, 0, "engine_at_dispatch.waiting"}, {time.Second, 8, "engine_at_dispatch.waiting"},
	} {
		if got := evidence(c.apart, c.later); got != c.want {
			t.Errorf("%v apart, %d waiting later: %q, want %q", c.apart, c.later, got, c.want)
		}
	}
}
