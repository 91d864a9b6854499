package bench

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/endpoint"
	"github.com/weirgate/weir/internal/workload"
)

// taken is a take of points, with all that figures need.
func taken(points ...point) *take {
	return &take{
		arrivals: workload.Arrivals{Shape: workload.Closed, Concurrency: 1}, points: points,
		id:    func(i int) string { return fmt.Sprint("call-", i) },
		token: newPool(10, 1), chunk: newPool(10, 1), delay: newPool(10, 1),
	}
}

// one is a call from begin to end in milliseconds, with figures of its own.
func one(begin, end int) point {
	return point{sent: at(begin), end: at(end), ttft: span(at(10)), tpot: span(at(2)), itl: unknown, e2e: span(at(end - begin)),
		whole: span(at(end - begin)), tail: 0, input: 100, output: 50}
}

func failed(begin, end int) point {
	p := one(begin, end)
	p.failed = endpoint.FailedServer
	p.ttft, p.e2e, p.input, p.output = span(at(9999)), span(at(9999)), -1, -1
	return p
}

// TestFigures: sums, rates and times counted by hand.
func TestFigures(t *testing.T) {
	left := one(0, 400)
	left.discarded = true
	f := taken(left, one(100, 600), failed(100, 300), one(500, 1100)).figures()
	if f.Calls != 3 || f.Good != 2 || f.Failures[endpoint.FailedServer] != 1 || f.WithoutUsage != 0 {
		t.Fatalf("%+v", f)
	}
	near(t, "seconds", f.Seconds, 1, 1e-12)
	near(t, "calls/s", f.CallsPerSecond, 2, 1e-12)
	near(t, "sent/s", f.Sent, 3, 1e-12)
	near(t, "input/s", *f.InputPerSecond, 200, 1e-12)
	near(t, "output/s", *f.OutputPerSecond, 100, 1e-12)
	near(t, "total/min", *f.TotalPerMinute, 18000, 1e-12)
	near(t, "E2E mean", f.E2E.Mean, 550, 1e-12)
	near(t, "TTFT max", f.TTFT.Max, 10, 1e-12)
	// In flight between 100 and 1100 ms: 300 of the discarded, 500, 200 and 600.
	near(t, "concurrency", f.Concurrency, 1.6, 1e-12)
	if f.Peak != 3 {
		t.Errorf("peak %d", f.Peak)
	}

	silent := one(100, 200)
	silent.output = -1
	f = taken(one(0, 100), silent).figures()
	if f.WithoutUsage != 1 || f.InputPerSecond != nil || f.OutputPerSecond != nil || f.TotalPerSecond != nil || f.TotalPerMinute != nil || f.CallsPerSecond == 0 {
		t.Errorf("a call without usage leaves token figures: %+v", f)
	}
	if f = taken(failed(0, 0)).figures(); f.CallsPerSecond != 0 || f.TTFT != nil || f.Seconds != 0 || f.Concurrency != 0 {
		t.Errorf("a call of no time: %+v", f)
	}
	if f = taken().figures(); f.Calls != 0 || f.OutputPerSecond != nil {
		t.Errorf("no call: %+v", f)
	}
}

// TestConcurrency holds the count against a plain one, at every instant.
func TestConcurrency(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var points []point
		for range random.IntN(30) {
			from := random.IntN(100)
			points = append(points, one(from, from+random.IntN(40)))
		}
		tk := taken(points...)
		begin, end := at(random.IntN(50)), at(60+random.IntN(60))
		mean, peak := tk.concurrency(begin, end)
		sum, most := 0, 0
		for now := begin; now < end; now += time.Millisecond {
			n := 0
			for _, p := range points {
				if p.sent <= now && now < p.end {
					n++
				}
			}
			sum, most = sum+n, max(most, n)
		}
		want := float64(sum) / float64((end-begin)/time.Millisecond)
		if diff := mean - want; diff > 1e-9 || diff < -1e-9 {
			t.Errorf("mean %v, want %v", mean, want)
		}
		// Calls of no length count while they last, which the plain count misses.
		if peak < most || peak > most+1 {
			t.Errorf("peak %d, want %d", peak, most)
		}
	}
}

func TestGoodput(t *testing.T) {
	slow, unsaid, short, shortUnsaid := one(0, 10), one(0, 10), one(0, 10), one(0, 10)
	slow.tpot = span(at(50))
	unsaid.tpot = unknown
	short.tpot, short.output = unknown, 1
	shortUnsaid.tpot, shortUnsaid.ttft, shortUnsaid.output = unknown, unknown, 1
	late := unsaid
	late.ttft = span(at(5000))
	for _, c := range []struct {
		name string
		o    Objectives
		p    point
		want verdict
	}{
		{"kept", Objectives{TTFT: at(10), TPOT: at(2), E2E: at(10)}, one(0, 10), kept},
		{"TTFT missed", Objectives{TTFT: at(9)}, one(0, 10), missed},
		{"TPOT missed", Objectives{TPOT: at(49)}, slow, missed},
		{"E2E missed", Objectives{E2E: at(9)}, one(0, 10), missed},
		{"failed", Objectives{E2E: time.Hour}, failed(0, 10), missed},
		{"TPOT unknown", Objectives{TPOT: at(2)}, unsaid, undecided},
		{"TPOT unknown, TTFT missed", Objectives{TTFT: at(10), TPOT: at(2)}, late, missed},
		{"TPOT unknown, no objective for it", Objectives{TTFT: at(10)}, unsaid, kept},
		{"one token has no TPOT", Objectives{TTFT: at(10), TPOT: at(2)}, short, kept},
		{"one token, TTFT unknown", Objectives{TTFT: at(10), TPOT: at(2)}, shortUnsaid, undecided},
	} {
		if got := c.o.judge(&c.p); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	tk := taken(one(0, 10), slow, unsaid, failed(0, 10))
	tk.objectives = Objectives{TPOT: at(2)}
	f := tk.figures()
	near(t, "goodput", *f.Goodput, 1./3, 1e-12)
	if f.Undecided != 1 || len(tk.notes(&f)) != 1 {
		t.Errorf("%d undecided, notes %q", f.Undecided, tk.notes(&f))
	}
	tk = taken(unsaid)
	tk.objectives = Objectives{TPOT: at(2)}
	if f := tk.figures(); f.Goodput != nil || f.Undecided != 1 {
		t.Errorf("nothing can be said, and goodput is %v", *f.Goodput)
	}
	if f := taken(one(0, 10)).figures(); f.Goodput != nil {
		t.Error("goodput without objectives")
	}
}

// TestIdentity: calls that do not add up are counted, the worst are named.
func TestIdentity(t *testing.T) {
	var points []point
	for i := range 30 {
		p := one(0, 1000)
		p.index = int32(i)
		p.tail = span(at(i)) // 10 ms is 1 % of 1 s
		if i%2 == 1 {
			p.tail = -p.tail
		}
		points = append(points, p)
	}
	short, open := one(0, 100), one(0, 1000)
	short.tail, short.index = span(at(5)), 100 // 5 ms are allowed
	open.tail = unknown
	id := taken(append(points, short, open)...).figures().Identity
	if id.Checked != 31 || id.Within != 12 || len(id.Outliers) != maxOutliers {
		t.Fatalf("%+v", id)
	}
	if w := id.Outliers[0]; w.ID != "call-29" || w.Left != -29 || w.E2E != 1000 || w.Sum != 1029 {
		t.Errorf("the worst is %+v", w)
	}
}

// TestGapsOfOneKind: gaps between tokens and between chunks are not mixed.
func TestGapsOfOneKind(t *testing.T) {
	tk := taken(one(0, 1))
	tk.token.addAll([]float32{1, 2})
	if q, of := tk.gaps(); of != Tokens || q.N != 2 {
		t.Errorf("%v of %q", q, of)
	}
	tk.chunk.add(9)
	f := tk.figures()
	if f.Gaps != nil || f.GapsOf != "" || len(tk.notes(&f)) != 1 {
		t.Errorf("mixed gaps: %+v, notes %q", f.Gaps, tk.notes(&f))
	}
}

// TestClientDistorted: a delay beyond 2 ms at p99 marks the result. Lateness beyond 2 ms
// is remarked on, and marks it only when it is more than 5 % of TTFT p50 as well;
// calls that waited for the bound do neither.
func TestClientDistorted(t *testing.T) {
	late := func(d time.Duration, held bool, ttft int) point {
		p := one(0, 2*ttft)
		p.ttft = span(at(ttft))
		p.timed, p.late, p.held = true, d, held
		return p
	}
	for _, c := range []struct {
		delay  float32
		call   point
		want   bool
		uneven bool
	}{
		{1.9, late(0, false, 10), false, false},
		{2.1, late(0, false, 10), true, false},
		{0, late(3*time.Millisecond, false, 10), true, true},
		{0, late(3*time.Millisecond, false, 400), false, true},
		{0, late(1900*time.Microsecond, false, 10), false, false},
		{0, late(time.Second, true, 10), false, false},
		{5, late(time.Second, false, 10), true, true},
	} {
		tk := taken(c.call)
		tk.arrivals.Shape = workload.Constant
		for range 10 {
			tk.delay.add(c.delay)
		}
		if f := tk.figures(); f.Client.Distorted != c.want || (f.Client.Reason != "") != c.want || (f.Client.Uneven != "") != c.uneven {
			t.Errorf("delay %v, late %v: %+v", c.delay, c.call.late, f.Client)
		} else if c.uneven && (strings.Contains(f.Client.Uneven, "p99") || !strings.Contains(f.Client.Uneven, "the most of 1 calls") || !slices.Contains(tk.notes(&f), f.Client.Uneven)) {
			t.Errorf("of one call: %q", f.Client.Uneven)
		}
	}
}
