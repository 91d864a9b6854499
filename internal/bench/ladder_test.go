package bench

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/endpoint"
	"github.com/weirgate/weir/internal/saturation"
	"github.com/weirgate/weir/internal/sim"
	"github.com/weirgate/weir/internal/workload"
)

// ladderCost has sequences that hardly slow each other down, so that throughput
// grows with concurrency until the slots are taken.
var ladderCost = func() sim.Config {
	c := cost
	c.DecodePerSequence, c.PrefillPerToken = 100*time.Microsecond, 10*time.Microsecond
	return c
}()

// TestLadder: an engine of eight slots saturates at a concurrency of eight.
func TestLadder(t *testing.T) {
	onEngine(t, ladderCost, func(t *testing.T, _ *sim.Engine, cfg Config) {
		var loads []Load
		for _, n := range []int{1, 2, 4, 8, 16, 32} {
			loads = append(loads, Load{Arrivals: atOnce(n), Input: fixed(64), Output: fixed(40), Calls: 8 * n})
		}
		runs, l, err := start(t, cfg).Ladder(t.Context(), loads, saturation.Options{})
		if err != nil || len(runs) != 6 || len(l.Steps) != 6 {
			t.Fatalf("%d runs, %d steps: %v", len(runs), len(l.Steps), err)
		}
		for i, s := range l.Steps[:4] {
			n := 1 << i
			_, tpot, e2e := analytic(ladderCost, n, runs[i].Median.Input.Mean, 40)
			near(t, "TPOT", *s.TPOTP95, tpot, exactly)
			near(t, "TPM", *s.TPM, float64(n)*(runs[i].Median.Input.Mean+40)/e2e*60e3, 0.02)
		}
		k := l.Knee
		if !k.Saturated || k.Unit != saturation.Concurrency || k.After != 8 || k.Before != 16 || k.LastGood != 8 || k.Recommended != 6 {
			t.Errorf("knee %+v", k)
		}
	})
}

// TestRateLadder: the same engine carries as many calls a second as its slots
// allow, and no more.
func TestRateLadder(t *testing.T) {
	onEngine(t, ladderCost, func(t *testing.T, _ *sim.Engine, cfg Config) {
		_, _, e2e := analytic(ladderCost, 8, 64, 40)
		// Steps beyond capacity; calls come one by one, so prompts are read one by one
		// and each holds the others up, which takes a good part of it.
		capacity := 8 / e2e * 1e3
		var loads []Load
		for _, share := range []float64{0.25, 0.3, 0.4, 0.5, 1, 1.5} {
			loads = append(loads, Load{Arrivals: atRate(workload.Constant, share*capacity), Input: fixed(64), Output: fixed(40), Duration: 15 * time.Second, Repeats: 1})
		}
		_, l, err := start(t, cfg).Ladder(t.Context(), loads, saturation.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range l.Steps[:4] {
			near(t, "achieved", s.Achieved, s.Load, 0.03)
		}
		for _, s := range l.Steps[5:] {
			if s.Achieved > 0.8*s.Load {
				t.Errorf("%.1f of %.1f calls/s achieved beyond capacity", s.Achieved, s.Load)
			}
		}
		if k := l.Knee; !k.Saturated || k.After < 0.3*capacity || k.After > capacity || k.Unit != saturation.Rate {
			t.Errorf("capacity %.1f: knee %+v", capacity, k)
		}
	})
}

// TestLadderRefuses loads that make no ladder.
func TestLadderRefuses(t *testing.T) {
	r := start(t, config(&fake{}))
	for hint, loads := range map[string][]Load{
		"no steps":        nil,
		"cannot be compa": {{Arrivals: atOnce(1)}, {Arrivals: atRate(workload.Poisson, 1)}},
		"replay":          {{Arrivals: workload.Arrivals{Shape: workload.Replay}}},
	} {
		if _, _, err := r.Ladder(t.Context(), loads, saturation.Options{}); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("%v does not say %q", err, hint)
		}
	}
}

// TestStaircase climbs until TTFT passes its allowance, and no further.
func TestStaircase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// TTFT rises with the calls in flight: at six it passes 80 ms.
		f := &fake{}
		f.answer = func(int, time.Duration) script {
			return script{ttft: time.Duration(f.inFlight) * 15 * time.Millisecond, tpot: 10 * time.Millisecond, tokens: 31}
		}
		cfg := config(f)
		cfg.Objectives.TTFT = 100 * time.Millisecond
		s := Stairs{Load: Load{Arrivals: workload.Arrivals{Shape: workload.Constant}, Input: fixed(20), Output: fixed(31)}, Target: 10}
		runs, all, err := start(t, cfg).Staircase(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		last := all.Windows[len(all.Windows)-1]
		if len(runs) != len(all.Windows) || *last.TTFTP99 <= 80 || last.Rate > 40 {
			t.Errorf("%d runs, last stair %+v", len(runs), last)
		}
		for _, w := range all.Windows[:len(all.Windows)-1] {
			if *w.TTFTP99 > 80 {
				t.Errorf("climbed on from %+v", w)
			}
			near(t, "achieved", *w.Achieved, w.Rate, 0.01)
		}
		v := all.Verdict
		if !v.Reached || v.Safe != all.Windows[len(all.Windows)-2].Rate || v.Target != 10 {
			t.Errorf("verdict %+v", v)
		}
		for i, run := range runs {
			if run.Arrivals.Rate != 5+2*float64(i) || len(run.Repeats) != 1 || run.Discard != stairDiscard {
				t.Errorf("stair %d: %+v", i, run.Arrivals)
			}
		}
	})
}

// TestStaircaseEnds: two stairs in a row that show nothing end the climb, one does
// not.
func TestStaircaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Ten calls at a time of half a second each are 20/s, and TTFT is kept for ever.
		f := &fake{answer: even(script{ttft: 50 * time.Millisecond, tpot: 45 * time.Millisecond, tokens: 11})}
		cfg := config(f)
		cfg.Objectives.TTFT = time.Second
		s := Stairs{Load: Load{Arrivals: workload.Arrivals{Shape: workload.Constant, Concurrency: 10}, Input: fixed(20), Output: fixed(11)}, Target: 15, Top: 90}
		_, all, err := start(t, cfg).Staircase(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		// 7.5, 10.5, 13.5, 16.5, 19.5 are carried, 22.5 and 25.5 are not.
		if n := len(all.Windows); n != 7 || all.Verdict.Safe != 19.5 || all.Verdict.Say != saturation.Enough || all.Verdict.Reached ||
			!strings.Contains(strings.Join(all.Verdict.Reasons, " "), "Two stairs in a row showed nothing") {
			t.Errorf("%d stairs, %+v", n, all.Verdict)
		}
	})
}

// TestDistortedSteps: a client's delay spoils a step by its share of what is measured
// there.
func TestDistortedSteps(t *testing.T) {
	run := Run{Arrivals: atRate(workload.Constant, 10)}
	run.Median = Figures{Calls: 10, Good: 10, Seconds: 2, CallsPerSecond: 5, TTFT: &Quantiles{P95: 300, P99: 400}, E2E: &Quantiles{P95: 3000},
		Client: Client{Distorted: true, Delay: &Quantiles{P99: 20}}}
	if s, w := StepOf(&run), WindowOf(&run, time.Second); s.Distorted || *s.Delay != 20 || w.Distorted || *w.Delay != 20 {
		t.Errorf("%+v, %+v", s, w)
	}
	if s := StepOf(&run); s.Achieved != 5 || !s.AtLeast || s.Offered != nil {
		t.Errorf("%+v", s)
	}
	if w := WindowOf(&run, 100*time.Millisecond); !w.Distorted || w.Achieved != nil || w.PerSecond != 5 {
		t.Errorf("%+v", w)
	}
	run.Median.Client.Delay.P99 = 31
	if !StepOf(&run).Distorted {
		t.Error("31 ms of 300")
	}
	if run.Median.TTFT = nil; StepOf(&run).Distorted {
		t.Error("31 ms of 3000, where TTFT is not known")
	}
	if run.Median.E2E = nil; !StepOf(&run).Distorted {
		t.Error("31 ms of who knows what")
	}
	offered, achieved := 9.5, 9.0
	run.Median.Offered, run.Median.Achieved = &offered, &achieved
	if s, w := StepOf(&run), WindowOf(&run, time.Second); s.Load != 10 || *s.Offered != 9.5 || s.AtLeast || s.Achieved != 9 || w.Rate != 10 || *w.Offered != 9.5 || *w.Achieved != 9 || w.PerSecond != 5 {
		t.Errorf("%+v, %+v", s, w)
	}
}

// TestStaircaseRefuses what could not be judged.
func TestStaircaseRefuses(t *testing.T) {
	cfg := config(&fake{})
	for hint, s := range map[string]Stairs{"target": {Objective: time.Second}, "objective": {Target: 1}} {
		if _, _, err := start(t, cfg).Staircase(t.Context(), s); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("%v does not say %q", err, hint)
		}
	}
	cfg.Ask.Stream = false
	if _, _, err := start(t, cfg).Staircase(t.Context(), Stairs{Target: 1, Objective: 1}); err == nil || !strings.Contains(err.Error(), "stream") {
		t.Errorf("%v", err)
	}
}

// TestInterrupted: what was measured until the context was done is kept, what was
// in flight is left out, and nothing runs on.
func TestInterrupted(t *testing.T) {
	for _, arrivals := range []workload.Arrivals{atOnce(4), atRate(workload.Constant, 8), {Shape: workload.Constant, Rate: 100, Concurrency: 4}} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{answer: even(script{ttft: 300 * time.Millisecond, tpot: 20 * time.Millisecond, tokens: 11})}
			var samples []Sample
			cfg := config(f)
			cfg.Sink = func(s Sample) { samples = append(samples, s) }
			ctx, cancel := context.WithTimeout(t.Context(), 2250*time.Millisecond)
			defer cancel()
			l := Load{Arrivals: arrivals, Input: fixed(20), Output: fixed(11), Calls: 1000, Warmup: None}
			run, err := start(t, cfg).Run(ctx, l)
			if err != nil || !run.Interrupted || len(run.Repeats) != 1 {
				t.Fatalf("%v: %+v", err, run)
			}
			m := run.Median
			if m.Calls != len(samples) || m.Good != m.Calls || m.Calls == 0 || len(m.Failures) > 0 || m.Calls >= f.calls {
				t.Errorf("%+v: %d of %d calls, %d samples, failures %v", arrivals, m.Calls, f.calls, len(samples), m.Failures)
			}
			near(t, "TTFT", m.TTFT.Max, 300, 1e-9)
		})
	}
	// A ladder is judged by its whole steps, and keeps the run of the last as well.
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: even(script{ttft: 500 * time.Millisecond, tpot: 50 * time.Millisecond, tokens: 11})}
		ctx, cancel := context.WithTimeout(t.Context(), 15500*time.Millisecond)
		defer cancel()
		load := func(n int) Load {
			return Load{Arrivals: atOnce(n), Input: fixed(20), Output: fixed(11), Duration: 10 * time.Second, Warmup: None, Repeats: 1}
		}
		runs, l, err := start(t, config(f)).Ladder(ctx, []Load{load(1), load(2), load(4)}, saturation.Options{})
		if err != nil || len(runs) != 2 || len(l.Steps) != 1 || !runs[1].Interrupted || l.Knee.Saturated || len(l.Knee.Reasons) == 0 {
			t.Errorf("%v: %d runs, %+v", err, len(runs), l)
		}
	})
	// Before anything was measured there is nothing to keep, and no error.
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: even(script{ttft: time.Hour, tokens: 1})}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		run, err := start(t, config(f)).Run(ctx, Load{Arrivals: atOnce(2), Input: fixed(20), Calls: 10})
		if err != nil || !run.Interrupted || len(run.Repeats) != 0 {
			t.Errorf("%v: %+v", err, run)
		}
	})
}

// TestHopeless: a warm-up in which nothing succeeds for a reason that lasts ends
// the run, one that may pass does not.
func TestHopeless(t *testing.T) {
	for kind, ends := range map[endpoint.Kind]bool{
		endpoint.FailedAuth: true, endpoint.FailedConnect: true, endpoint.FailedNotFound: true,
		endpoint.FailedLimit: false, endpoint.FailedServer: false, endpoint.FailedTimeout: false,
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{answer: even(script{ttft: time.Millisecond, tokens: 1, failed: kind})}
			run, err := start(t, config(f)).Run(t.Context(), Load{Arrivals: atOnce(2), Input: fixed(20), Calls: 10, Repeats: 2})
			if ends {
				if !errors.Is(err, errNothing) || !strings.Contains(err.Error(), string(kind)) || f.calls != 5 {
					t.Errorf("%s: %v after %d calls", kind, err, f.calls)
				}
				return
			}
			m := run.Median
			if err != nil || m.Good != 0 || m.Failures[kind] != 10 || run.Failures[kind] != 20 || m.TTFT != nil || m.OutputPerSecond != nil || m.CallsPerSecond != 0 {
				t.Errorf("%s: %v, %+v", kind, err, m)
			}
		})
	}
}
