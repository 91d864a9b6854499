package bench

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/sim"
	"github.com/weirgate/weir/internal/workload"
)

// prompts returns the user's message of each body.
func prompts(t *testing.T, bodies []string) []string {
	t.Helper()
	var all []string
	for _, b := range bodies {
		var ask struct{ Messages []struct{ Content string } }
		if err := json.Unmarshal([]byte(b), &ask); err != nil || len(ask.Messages) != 1 {
			t.Fatalf("%v: %s", err, b)
		}
		all = append(all, ask.Messages[0].Content)
	}
	return all
}

// TestIDs: ids are unique over loads, repeats and warm-up, and fit a header.
func TestIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: even(script{ttft: at(10), tokens: 1})}
		cfg := config(f)
		cfg.Run = strings.Repeat("r", maxRun)
		r := start(t, cfg)
		for range 2 {
			for _, label := range []string{"", "Größe: " + strings.Repeat("long ", 50), "世界"} {
				measure(t, r, Load{Label: label, Arrivals: atOnce(3), Input: fixed(20), Calls: 7})
			}
		}
		seen := map[string]bool{}
		for _, id := range f.ids {
			if seen[id] || len(id) > 128 || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" {
				t.Fatalf("id %q", id)
			}
			seen[id] = true
		}
		if len(seen) != 6*3*(7+5) {
			t.Errorf("%d calls", len(seen))
		}
	})
}

// TestPrompts: no two calls of a test share a prompt's beginning, not even over
// repeats and warm-ups, unless they are to; then all of a load do.
func TestPrompts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := func(run string, sharing workload.Sharing) (first []string) {
			f := &fake{answer: even(script{ttft: at(10), tokens: 1})}
			cfg := config(f)
			cfg.Run = run
			measure(t, start(t, cfg), Load{Arrivals: atOnce(3), Input: fixed(100), Calls: 20, Sharing: sharing})
			for _, p := range prompts(t, f.bodies) {
				first = append(first, strings.Join(strings.Fields(p)[:4], " "))
			}
			return first
		}
		seen := map[string]int{}
		for _, run := range []string{"a", "b"} {
			for _, p := range begin(run, workload.Sharing{}) {
				seen[p]++
			}
		}
		if len(seen) != 2*3*(20+5) {
			t.Errorf("%d beginnings of %d prompts", len(seen), 2*3*25)
		}
		clear(seen)
		for _, p := range begin("a", workload.Sharing{Tokens: 50, Groups: 2}) {
			seen[p]++
		}
		if len(seen) != 2 {
			t.Errorf("%d beginnings in two groups: %v", len(seen), seen)
		}
	})
}

// TestSharedPrefixIsWarm: with a common beginning the measured calls find it in
// the engine's cache, the first one too; without it they find nothing.
func TestSharedPrefixIsWarm(t *testing.T) {
	engine := cost
	engine.NoPrefixCache = false
	for _, c := range []struct {
		sharing     workload.Sharing
		least, most int64
	}{{workload.Sharing{Tokens: 512}, 448, 512}, {workload.Sharing{}, 0, 16}} {
		onEngine(t, engine, func(t *testing.T, _ *sim.Engine, cfg Config) {
			cfg.Sink = func(s Sample) {
				if cached := s.Cached.Or(0); !s.Warmup && (cached < c.least || cached > c.most) {
					t.Errorf("%+v: %s found %d tokens in the cache", c.sharing, s.ID, cached)
				}
			}
			measure(t, start(t, cfg), Load{Arrivals: atOnce(4), Input: fixed(1024), Output: fixed(4), Sharing: c.sharing, Calls: 12})
		})
	}
}

// TestWarmup: warm-up and discarded calls go to the sink, marked, and are in no
// figure.
func TestWarmup(t *testing.T) {
	for _, c := range []struct {
		load                   Load
		warm, discarded, count int
	}{
		{Load{Arrivals: atOnce(8), Calls: 40}, 8, 0, 40},
		{Load{Arrivals: atOnce(2), Calls: 40, Discard: MatrixDiscard, Warmup: MatrixWarmup}, 30, 4, 36},
		{Load{Arrivals: atOnce(2), Calls: 40, Warmup: None}, 0, 0, 40},
		{Load{Arrivals: atRate(workload.Constant, 10), Duration: 10 * time.Second, Discard: 0.25}, 5, 25, 75},
		{Load{Arrivals: atOnce(1), Duration: 10 * time.Second, Discard: 0.25, Warmup: 1}, 1, 25, 75},
	} {
		synctest.Test(t, func(t *testing.T) {
			// Warm-up calls take long; they must not show.
			slow := 0
			f := &fake{answer: func(n int, _ time.Duration) script {
				if n < slow {
					return script{ttft: time.Minute, tokens: 1}
				}
				return script{ttft: at(100), tokens: 1}
			}}
			slow = c.warm
			warm, all := 0, 0
			cfg := config(f)
			cfg.Sink = func(s Sample) {
				all++
				if s.Warmup {
					warm++
				}
			}
			c.load.Input, c.load.Repeats = fixed(20), 1
			m := measure(t, start(t, cfg), c.load).Median
			if m.Calls != c.count || warm != c.warm+c.discarded || all != m.Calls+warm || m.TTFT.Max != 100 {
				t.Errorf("%+v: %d measured, %d left out, TTFT up to %v", c.load, m.Calls, warm, m.TTFT.Max)
			}
		})
	}
}

// TestProgress is called a few times a second, however many calls end.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: even(script{ttft: at(10), tokens: 1})}
		cfg := config(f)
		var all []Progress
		var before time.Time
		cfg.Progress = func(p Progress) {
			if now := time.Now(); now.Sub(before) < 250*time.Millisecond {
				t.Errorf("%v after the last", now.Sub(before))
			} else {
				before = now
			}
			all = append(all, p)
		}
		measure(t, start(t, cfg), Load{Arrivals: atOnce(2), Input: fixed(20), Calls: 400, Repeats: 1, Warmup: None})
		if len(all) < 6 || len(all) > 9 {
			t.Fatalf("%d calls in 2 s", len(all))
		}
		last := all[len(all)-1]
		if last.Ended < 300 || last.InFlight > 2 || last.Calls != 400 || last.Repeats != 1 || last.OutputTokens != int64(last.Ended) || last.Load != "concurrency 2" {
			t.Errorf("%+v", last)
		}
	})
}

// TestDeterministic: the same seed and run send the same at the same instants,
// another run other prompts of the same lengths.
func TestDeterministic(t *testing.T) {
	sent := func(run string, seed uint64) (bodies, plan string) {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{answer: even(script{ttft: at(10), tokens: 1})}
			cfg := config(f)
			cfg.Run, cfg.Seed = run, seed
			var b strings.Builder
			cfg.Sink = func(s Sample) { fmt.Fprintln(&b, s.Index, s.At, s.InputAsked, s.OutputAsked) }
			measure(t, start(t, cfg), Load{Arrivals: atRate(workload.Poisson, 20), Input: workload.Length{Kind: workload.KindUniform, Min: 10, Max: 90},
				Output: workload.Length{Kind: workload.KindUniform, Min: 1, Max: 9}, Calls: 30, Repeats: 2})
			bodies, plan = strings.Join(f.bodies, "\n"), b.String()
		})
		return bodies, plan
	}
	b1, p1 := sent("a", 1)
	b2, p2 := sent("a", 1)
	b3, p3 := sent("b", 1)
	b4, p4 := sent("a", 2)
	if b1 != b2 || p1 != p2 || p1 != p3 || b1 == b3 || p1 == p4 || b1 == b4 {
		t.Error("what is sent does not follow from seed and run")
	}
}

// TestSamples: samples come in the order of their ends, from one goroutine,
// and say what they should.
func TestSamples(t *testing.T) {
	onEngine(t, cost, func(t *testing.T, e *sim.Engine, cfg Config) {
		cfg.Profile = AIPerf
		var end time.Time
		cfg.Sink = func(s Sample) {
			whole, ok := s.own().E2E.Get()
			if ended := s.Start.Add(whole); !ok || ended.Before(end) {
				t.Errorf("%s ended before the one before it", s.ID)
			} else {
				end = ended
			}
			if s.Run != "run" || s.Load != "concurrency 3" || s.Status != 200 || s.InFlight < 1 || s.InFlight > 3 || s.Outcome != "completed" ||
				s.OutputAsked != 12 || s.Output.Or(0) != 12 || s.UsageSource != "reported" || s.TPOT.IsKnown() || !s.ITL.IsKnown() || !s.own().TPOT.IsKnown() {
				t.Errorf("%+v", s)
			}
			if truth, ok := e.Truth(s.ID); !ok || int64(truth.Input) != s.Input.Or(0) {
				t.Errorf("%s: the engine counted %d tokens, the client %d", s.ID, truth.Input, s.Input.Or(0))
			}
		}
		measure(t, start(t, cfg), Load{Arrivals: atOnce(3), Input: fixed(50), Output: fixed(12), Calls: 9, Repeats: 2})
	})
}

// TestNothingDue: a plan in which no call comes is an error, not a figure.
func TestNothingDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: even(script{ttft: at(10), tokens: 1})}
		_, err := start(t, config(f)).Run(t.Context(), Load{Arrivals: atRate(workload.Poisson, 0.001), Input: fixed(20), Duration: time.Second, Warmup: None})
		if err == nil || !strings.Contains(err.Error(), "longer") {
			t.Errorf("%v", err)
		}
	})
}

// TestThermal: a service that slows down as it warms up is found out.
func TestThermal(t *testing.T) {
	for _, c := range []struct {
		slows  float64 // over the half hour
		slower bool
	}{{0, false}, {0.02, false}, {0.1, true}} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{answer: func(_ int, now time.Duration) script {
				tpot := 20 * (1 + c.slows*min(now.Minutes()/30, 1))
				return script{ttft: 200 * time.Millisecond, tpot: time.Duration(tpot * float64(time.Millisecond)), tokens: 101}
			}}
			run := measure(t, start(t, config(f)), Load{Arrivals: atOnce(2), Input: fixed(20), Output: fixed(101), Thermal: true})
			th := run.Thermal
			if th == nil || len(run.Repeats) != 1 || th.Window != ThermalWindow || th.Slower != c.slower || th.Verdict == "" {
				t.Fatalf("%+v", th)
			}
			near(t, "first", th.First.TPOT.P50, 20*(1+c.slows/12), 0.002)
			near(t, "last", th.Last.TPOT.P50, 20*(1+c.slows*11/12), 0.002)
			near(t, "concurrency", th.Last.Concurrency, 2, 0.001)
			near(t, "calls/s", th.First.CallsPerSecond, 2/(0.2+2*(1+c.slows/12)), 0.01)
		})
	}
}
