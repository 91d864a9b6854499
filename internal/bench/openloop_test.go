package bench

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/workload"
)

// TestRates: each shape of arrivals is sent as planned.
func TestRates(t *testing.T) {
	for _, c := range []struct {
		arrivals workload.Arrivals
		within   float64
	}{
		{atRate(workload.Constant, 50), 1e-6},
		{atRate(workload.Poisson, 50), 4 / math.Sqrt(2000)}, // four standard deviations
		{workload.Arrivals{Shape: workload.Burst, Rate: 50, Group: 10}, 1e-6},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{answer: even(script{ttft: 20 * time.Millisecond, tpot: time.Millisecond, tokens: 11})}
			m := measure(t, start(t, config(f)), Load{Arrivals: c.arrivals, Input: fixed(20), Output: fixed(11), Calls: 2000, Repeats: 1}).Median
			shape := string(c.arrivals.Shape)
			near(t, shape+" offered", *m.Offered, 50, c.within)
			near(t, shape+" sent", m.Sent, *m.Offered, 1e-6)
			near(t, shape+" achieved", *m.Achieved, *m.Offered, 0.02)
			near(t, shape+" concurrency", m.Concurrency, *m.Offered*0.03, 0.01) // Little's law
			if m.Late.Max != 0 || m.Client.Distorted {
				t.Errorf("%s: %+v late in virtual time", shape, m.Late)
			}
		})
	}
}

// TestUnluckyRate: where chance draws a rate far from the one asked for, that is
// said, and only there.
func TestUnluckyRate(t *testing.T) {
	for _, c := range []struct {
		arrivals workload.Arrivals
		offered  float64
		want     bool
	}{
		{atRate(workload.Poisson, 10), 7.9, true}, {atRate(workload.Poisson, 10), 12.1, true}, {atRate(workload.Poisson, 10), 11.9, false},
		{atRate(workload.Constant, 10), 5, false}, {atRate(workload.Poisson, 10), 0, false},
	} {
		f := Figures{Calls: 9}
		if c.offered > 0 {
			f.Offered = &c.offered
		}
		tk := taken()
		tk.arrivals = c.arrivals
		if got := tk.drawn(&f); (got != "") != c.want || c.want && !strings.Contains(got, "9 calls are too few") {
			t.Errorf("%+v, %v: %q", c.arrivals, c.offered, got)
		}
	}
}

// TestNoCoordinatedOmission: an open loop goes on sending while the service
// stands still, so that the stall shows in every call that came in it. A closed loop
// of one stands still too, and sees one slow call.
func TestNoCoordinatedOmission(t *testing.T) {
	const stalls, goesOn = 2 * time.Second, 3 * time.Second
	stall := func(_ int, at time.Duration) script {
		s := script{ttft: 5 * time.Millisecond, tokens: 1}
		if at >= stalls && at < goesOn {
			s.ttft += goesOn - at
		}
		return s
	}
	synctest.Test(t, func(t *testing.T) {
		l := Load{Arrivals: atRate(workload.Constant, 100), Input: fixed(20), Output: fixed(1), Duration: 5 * time.Second, Warmup: None, Repeats: 1}
		m := measure(t, start(t, config(&fake{answer: stall})), l).Median
		// A fifth of the calls came in the stall, and waited for from 10 ms to 1 s.
		near(t, "calls", float64(m.Calls), 500, 0)
		near(t, "open p50", m.TTFT.P50, 5, 1e-9)
		near(t, "open p90", m.TTFT.P90, 505, 0.02)
		near(t, "open p99", m.TTFT.P99, 955, 0.02)
		near(t, "open max", m.TTFT.Max, 1005, 1e-9)
		near(t, "peak", float64(m.Peak), 100, 0.02)
	})
	synctest.Test(t, func(t *testing.T) {
		l := Load{Arrivals: atOnce(1), Input: fixed(20), Output: fixed(1), Duration: 5 * time.Second, Warmup: None, Repeats: 1}
		m := measure(t, start(t, config(&fake{answer: stall})), l).Median
		near(t, "closed p99", m.TTFT.P99, 5, 1e-9)
	})
}

// TestBoundInFlight: calls beyond the bound go out late, and that is said.
func TestBoundInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: even(script{ttft: time.Second, tokens: 1})}
		l := Load{Arrivals: workload.Arrivals{Shape: workload.Constant, Rate: 10, Concurrency: 5}, Input: fixed(20), Output: fixed(1), Duration: 10 * time.Second, Warmup: None, Repeats: 1}
		run := measure(t, start(t, config(f)), l)
		m := run.Median
		// 10/s are offered, 5 at a time of a second each are sent: 50 in 10 s.
		if m.Calls != 50 || f.most != 5 || m.Peak != 5 || m.Held != 45 {
			t.Errorf("%d calls, %d and %d in flight, %d held", m.Calls, f.most, m.Peak, m.Held)
		}
		near(t, "offered", *m.Offered, 10, 1e-6)
		near(t, "achieved", *m.Achieved, 5, 0.15)
		near(t, "late", m.Late.Max, 4500, 1e-9) // the 50th was due at 4.9 s, and sent at 9.4 s
		if m.Client.Distorted {
			t.Errorf("the bound is no fault of the client: %s", m.Client.Reason)
		}
		if len(run.Notes) != 2 {
			t.Errorf("notes %q", run.Notes)
		}
	})
}

// TestReplay: a trace decides when calls are sent and how long they are.
func TestReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: even(script{ttft: 10 * time.Millisecond, tokens: 1})}
		var samples []Sample
		cfg := config(f)
		cfg.Sink = func(s Sample) { samples = append(samples, s) }
		l := Load{
			Arrivals: workload.Arrivals{Shape: workload.Replay, Rate: 2}, Input: workload.Length{Kind: workload.KindTrace}, Output: workload.Length{Kind: workload.KindTrace},
			Trace: []workload.Row{{At: time.Hour, Input: 30, Output: 3}, {At: time.Hour + time.Second, Input: 40, Output: 4}, {At: time.Hour + 5*time.Second, Input: 50, Output: 5}}, Repeats: 1,
		}
		for i := range l.Trace {
			l.Trace[i].At -= time.Hour
		}
		run := measure(t, start(t, cfg), l)
		if run.Median.Calls != 3 {
			t.Fatalf("%d calls", run.Median.Calls)
		}
		var at []time.Duration
		for _, s := range samples {
			if !s.Warmup {
				at = append(at, s.At.Or(-1))
				if s.InputAsked != 10*(len(at)+2) || s.OutputAsked != len(at)+2 {
					t.Errorf("call %d: %d and %d tokens asked", len(at), s.InputAsked, s.OutputAsked)
				}
			}
		}
		if at[0] != 0 || at[1] != 500*time.Millisecond || at[2] != 2500*time.Millisecond {
			t.Errorf("sent at %v", at)
		}
	})
}

// TestAchieved: a service that keeps up achieves what is offered, however long its
// calls; one that does not achieves what it can, though the early calls are fast.
func TestAchieved(t *testing.T) {
	for _, c := range []struct {
		name    string
		service func(n int, at time.Duration) time.Duration
		want    float64 // of 20 calls a second; 0 is not known
	}{
		{"short calls", func(int, time.Duration) time.Duration { return 10 * time.Millisecond }, 20},
		{"long calls", func(int, time.Duration) time.Duration { return 12 * time.Second }, 20},
		{"calls of all lengths", func(n int, _ time.Duration) time.Duration { return time.Duration(n*37%101) * 80 * time.Millisecond }, 20},
		{"calls as long as the load", func(int, time.Duration) time.Duration { return 20 * time.Second }, 0},
		// One server of 10/s: the nth call ends n tenths of a second after the first.
		{"half of what is offered", func(n int, now time.Duration) time.Duration { return time.Duration(n+1)*100*time.Millisecond - now }, 10},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{answer: func(n int, now time.Duration) script { return script{ttft: c.service(n, now), tokens: 1} }}
			run := measure(t, start(t, config(f)), Load{Arrivals: atRate(workload.Constant, 20), Input: fixed(20), Output: fixed(1), Duration: 30 * time.Second, Warmup: None, Repeats: 1})
			got := run.Median.Achieved
			if c.want == 0 {
				if got != nil || len(run.Notes) != 1 {
					t.Errorf("%s: %v, notes %q", c.name, *got, run.Notes)
				}
				return
			}
			if got == nil {
				t.Fatalf("%s: not known", c.name)
			}
			near(t, c.name, *got, c.want, 0.03)
		})
	}
}
