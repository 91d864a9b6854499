package diagnose

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

func queued(r *call.Record) {
	r.Phases.QueueEngine, r.AtDispatch.Waiting = lasting(3900*ms), known(12)
}

// TestVerdict: what a window comes to, and that too little evidence says so.
func TestVerdict(t *testing.T) {
	second := time.Second
	for name, c := range map[string]struct {
		calls   int
		change  func(i int, r *call.Record)
		want    Verdict
		reason  string // part of the first or second
		found   []string
		rare    []Tally
		options Options
	}{
		"healthy":            {100, func(int, *call.Record) {}, NothingFound, "Nothing stands out in 100 calls.", nil, nil, Options{}},
		"none":               {0, nil, TooFewCalls, "There are no calls to look at.", nil, nil, Options{}},
		"too few":            {19, func(int, *call.Record) {}, TooFewCalls, "19 calls in all: too few to speak for the service (at least 20 are needed).", nil, nil, Options{}},
		"enough, as told":    {5, func(int, *call.Record) {}, NothingFound, "", nil, nil, Options{MinCalls: 5}},
		"too few, yet queue": {3, func(_ int, r *call.Record) { queued(r) }, TooFewCalls, "What was found holds for these calls: The engine's queue took 3.9 s", []string{"engine_queue"}, nil, Options{}},
		"queue": {100, func(i int, r *call.Record) {
			if i%2 == 0 {
				queued(r)
			}
		}, Found, "The engine's queue took 3.9 s of 4.03 s TTFT on average in 50 of 100 calls: 94 % of all TTFT.", []string{"engine_queue"}, nil, Options{}},
		"one slow reader": {100, func(i int, r *call.Record) {
			if i == 7 {
				r.Phases.Delivery = lasting(2 * second)
			}
		}, NothingFound, "", nil, []Tally{{"slow_reader", 1}}, Options{}},
		"one very slow reader": {100, func(i int, r *call.Record) {
			if i == 7 {
				r.Phases.Delivery = lasting(60 * second)
			}
		}, Found, "Writes blocked by the client took 60 s of 62.1 s for the whole call on average in 1 of 100 calls: 22 % of the time of all calls.", []string{"slow_reader"}, nil, Options{}},
		"one failure": {100, func(i int, r *call.Record) {
			if i == 7 {
				unanswered(r, call.UpstreamError, "status_500")
			}
		}, NothingFound, "", []string{"upstream_failed"}, nil, Options{}},
		"many failures": {100, func(i int, r *call.Record) {
			if i%3 == 0 {
				unsent(r, call.UpstreamError, "connection_refused")
			}
		}, Found, "The upstream did not get the request in 34 of 100 calls (connection_refused).", []string{"upstream_unreachable"}, nil, Options{}},
		"unattributed":           {100, func(_ int, r *call.Record) { unsplitBy(r, 130*ms) }, Undetermined, "130 ms of the 133 ms to the first token or the whole answer cannot be split, on average.", nil, nil, Options{}},
		"unattributed and quick": {100, func(_ int, r *call.Record) { unsplitBy(r, 90*ms) }, NothingFound, "", nil, nil, Options{}},
		"unattributed and slow":  {100, func(_ int, r *call.Record) { unsplitBy(r, 3*second) }, Undetermined, "Nothing is certain: 3 s of 3 s TTFT on average in 100 of 100 calls cannot be told apart", []string{"unattributed?"}, nil, Options{}},
		"queue, possibly": {100, func(_ int, r *call.Record) { unsplitBy(r, 3*second); r.AtDispatch.Waiting = known(9) }, Undetermined,
			"Nothing is certain: The engine's queue may have taken up to 3 s of 3 s TTFT", []string{"engine_queue?"}, nil, Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := Window(many(c.calls, func(i int) *call.Record { return with(func(r *call.Record) { c.change(i, r) }) }), c.options)
			if r.Verdict != c.want || !strings.Contains(strings.Join(r.Reasons, "\n"), c.reason) || len(r.Reasons) == 0 {
				t.Errorf("%s: %q", r.Verdict, r.Reasons)
			}
			if r.Calls != c.calls || !slices.Equal(r.Rare, c.rare) {
				t.Errorf("%d calls, rare %v", r.Calls, r.Rare)
			}
			wantCodes(t, r.Findings, c.found...)
		})
	}
}

// TestWindowOfCalls: what a window says is the sum of what its calls say, to the
// nanosecond, whatever the calls are and in whatever order they come.
func TestWindowOfCalls(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for round := range 20 {
		list := many(200, func(i int) *call.Record {
			r := anyRecord(rng)
			r.Model = fmt.Sprint("model ", i) // no two calls are of one size
			return r
		})
		report := Window(list, Options{})
		type key struct {
			code   Code
			of     Whole
			source call.Source
		}
		calls, times := map[key]int{}, map[key]time.Duration{}
		var ttft, e2e, elapsed time.Duration
		streams, done := 0, 0
		for _, r := range list {
			for _, f := range Call(r) {
				k := key{f.Code, f.Of, f.Source}
				calls[k]++
				times[k] += f.Time.Or(0)
			}
			if d, known := r.TTFT.Get(); known {
				ttft += d
				streams++
			}
			if d, known := r.E2E.Get(); known && r.Outcome == call.Completed {
				e2e += d
				done++
			}
			elapsed += r.Phases.Sum()
		}
		for _, b := range []struct {
			Breakdown
			want  time.Duration
			calls int
		}{{report.TTFT, ttft, streams}, {report.E2E, e2e, done}} {
			parts := time.Duration(0)
			shares := 0.0
			for _, p := range b.Parts {
				parts += p.Total.Or(-1)
				x, _ := p.Share.Get()
				shares += x
			}
			if parts != b.want || b.Total != lasting(b.want) || b.Calls != b.calls || math.Abs(shares-1) > 1e-9 {
				t.Fatalf("round %d: parts make %v, total %v of %d calls; want %v of %d, shares make %v", round, parts, b.Total, b.Calls, b.want, b.calls, shares)
			}
		}
		sums := map[Whole]float64{}
		for _, f := range report.Findings {
			k := key{f.Code, f.Of, f.Source}
			if f.Calls != calls[k] || f.Time.Or(0) != times[k] {
				t.Fatalf("%v: %d calls and %v; they say %d and %v", k, f.Calls, f.Time.Or(0), calls[k], times[k])
			}
			if x, known := f.Share.Get(); known {
				sums[f.Of] += x
				if whole := map[Whole]time.Duration{OfTTFT: ttft, OfElapsed: elapsed}[f.Of]; whole > 0 && math.Abs(x*float64(whole)-float64(times[k])) > 1000 {
					t.Fatalf("%v: share %v of %v is not %v", k, x, whole, times[k])
				}
			}
			for _, e := range f.Examples {
				i := slices.IndexFunc(list, func(r *call.Record) bool { return r.ID == e.ID })
				if i < 0 || f.Of != "" && !slices.ContainsFunc(Call(list[i]), func(g Finding) bool { return g.Code == f.Code && g.Time == e.Time }) {
					t.Fatalf("%v: example %+v", k, e)
				}
			}
		}
		for of, sum := range sums {
			if sum > 1+1e-9 {
				t.Fatalf("shares of %s add up to %v", of, sum)
			}
		}
		var one, other bytes.Buffer
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		if err := Text(&one, report); err != nil {
			t.Fatal(err)
		}
		if err := Text(&other, Window(list, Options{})); err != nil {
			t.Fatal(err)
		}
		if one.String() != other.String() {
			lines := strings.Split(other.String(), "\n")
			for i, line := range strings.Split(one.String(), "\n") {
				if i >= len(lines) || line != lines[i] {
					t.Fatalf("another order, another report: line %d was %q, is %q", i, line, lines[min(i, len(lines)-1)])
				}
			}
		}
	}
}

// TestPeers: a prefill that is three times the median of calls of its size, while
// hardly anything ran beside it, is slow beside them; one that ran in a crowd, or
// among too few of its size, is not said to be.
func TestPeers(t *testing.T) {
	window := func(n int, change func(*call.Record)) []string {
		list := many(n, func(i int) *call.Record {
			return with(func(r *call.Record) {
				r.Input = known(int64(300 + 5*(i%40))) // one size: 256 to 511 tokens
				if i == n-1 {
					r.Phases.Prefill = lasting(400 * ms)
					running(r, 1, 2)
					change(r)
				}
			})
		})
		r := Window(list, Options{MinCalls: 1})
		names := codes(r.Findings)
		for _, rare := range r.Rare {
			names = append(names, rare.Name)
		}
		return names
	}
	for name, c := range map[string]struct {
		calls  int
		change func(*call.Record)
		want   []string
	}{
		"slow":              {8, func(*call.Record) {}, []string{"prefill_slow"}},
		"in a crowd":        {8, func(r *call.Record) { running(r, 9, 9) }, []string{}},
		"crowd not known":   {8, func(r *call.Record) { r.AtDispatch = call.EngineLoad{} }, []string{}},
		"among few":         {7, func(*call.Record) {}, []string{}},
		"twice the median":  {8, func(r *call.Record) { r.Phases.Prefill = lasting(350 * ms) }, []string{}},
		"of another size":   {8, func(r *call.Record) { r.Input = known(513) }, []string{}},
		"of another model":  {8, func(r *call.Record) { r.Model = "other" }, []string{}},
		"size is not known": {8, func(r *call.Record) { r.Input = call.Count{} }, []string{}},
	} {
		if got := window(c.calls, c.change); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestFocus: what happens at one of several upstreams says so; what happens at
// all of them, or at the only one, or too seldom, does not.
func TestFocus(t *testing.T) {
	focus := func(n int, upstream func(i int) string, bad func(i int) bool) string {
		r := Window(many(n, func(i int) *call.Record {
			return with(func(r *call.Record) {
				r.Upstream, r.Key, r.Model = upstream(i), fmt.Sprint("key ", i), fmt.Sprint("model ", i)
				if bad(i) {
					queued(r)
				}
			})
		}), Options{})
		for _, f := range r.Findings {
			for _, e := range f.For {
				if e.Figure == "upstream" {
					return e.Text
				}
			}
		}
		return ""
	}
	byTurns := func(i int) string { return []string{"a:1", "b:1", "c:1"}[i%3] }
	if got, want := focus(90, byTurns, func(i int) bool { return i%3 == 1 }), "upstream b:1 has 30 of these 30 calls, and 30 of all 90"; got != want {
		t.Errorf("one bad upstream: %q, want %q", got, want)
	}
	for name, got := range map[string]string{
		"all upstreams":     focus(90, byTurns, func(int) bool { return true }),
		"the only upstream": focus(90, func(int) string { return "a:1" }, func(i int) bool { return i%3 == 1 }),
		"seven calls":       focus(90, byTurns, func(i int) bool { return i%3 == 1 && i < 21 }),
	} {
		if got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestExamples: as many as asked for, worst first, with a trace only where it leads somewhere.
func TestExamples(t *testing.T) {
	list := many(30, func(i int) *call.Record {
		return with(func(r *call.Record) {
			queued(r)
			r.Phases.QueueEngine = lasting(time.Duration(1000+i) * ms)
			r.TraceID, r.Sampled = "abc", i == 29
		})
	})
	for ask, want := range map[int]int{0: 3, 1: 1, -1: 0, 5: 5, 99: 10} {
		got := Window(list, Options{Examples: ask}).Findings[0].Examples
		if len(got) != want {
			t.Errorf("asked for %d, got %d", ask, len(got))
		}
		for i, e := range got {
			if e.ID != fmt.Sprintf("call-%04d", 29-i) || e.Time != lasting(time.Duration(1029-i)*ms) || (e.TraceID != "") != (i == 0) {
				t.Errorf("example %d is %+v", i, e)
			}
		}
	}
}

// TestLeftOut: records that are none, or cannot be true, count for nothing.
func TestLeftOut(t *testing.T) {
	list := many(30, func(int) *call.Record { return healthy() })
	list = append(list, nil, with(func(r *call.Record) { r.Phases.Decode = lasting(-1) }), with(func(r *call.Record) { r.Phases.Tail = lasting(25 * time.Hour) }))
	r := Window(list, Options{})
	if r.Calls != 30 || r.Odd != 2 || r.Verdict != NothingFound || r.TTFT.Calls != 30 {
		t.Errorf("%+v", r)
	}
	contradiction := healthy()
	contradiction.TTFT = lasting(ms) // its phases say 131 ms
	if r := Window([]*call.Record{contradiction}, Options{}); r.TTFT.Calls != 0 || r.E2E.Calls != 1 {
		t.Errorf("a TTFT that its phases do not make: %+v", r)
	}
}
