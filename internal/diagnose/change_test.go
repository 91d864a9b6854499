package diagnose

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// anyWindow is n random calls.
func anyWindow(rng *rand.Rand, n int) []*call.Record {
	return many(n, func(int) *call.Record { return anyRecord(rng) })
}

// TestChangeIsExact: over random windows the changes of the parts add up to that
// of the whole to the nanosecond, each is within one of the fraction that it
// stands for, totals are those of the calls, and what equal cells make of a
// change adds up to it.
func TestChangeIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	compared, mixed := 0, 0
	for round := range 60 {
		before, after := anyWindow(rng, 1+rng.IntN(300)), anyWindow(rng, 1+rng.IntN(300))
		c := Compare(before, after, CompareOptions{})
		for name, ch := range map[string]*Change{"ttft": &c.TTFT, "tpot": &c.TPOT, "e2e": &c.E2E} {
			whole, known := ch.Change.Get()
			if !known {
				continue
			}
			compared++
			var sum, totalBefore, totalAfter time.Duration
			nb, na := big.NewInt(int64(ch.Before.Calls)), big.NewInt(int64(ch.After.Calls))
			fraction := func(b, a time.Duration) *big.Rat {
				x := new(big.Rat).SetFrac(big.NewInt(int64(a)), na)
				return x.Sub(x, new(big.Rat).SetFrac(big.NewInt(int64(b)), nb))
			}
			near := func(what string, d time.Duration, exact *big.Rat) {
				off := new(big.Rat).Sub(new(big.Rat).SetInt64(int64(d)), exact)
				if off.Abs(off).Cmp(big.NewRat(1, 1)) >= 0 {
					t.Errorf("round %d: %s %s is %v, exactly %v ns", round, name, what, int64(d), exact.FloatString(3))
				}
			}
			for _, p := range ch.Parts {
				d := p.Change.Or(0)
				sum += d
				totalBefore += p.Before.Or(-1)
				totalAfter += p.After.Or(-1)
				near(p.Phase, d, fraction(p.Before.Or(0), p.After.Or(0)))
			}
			if sum != whole || totalBefore != ch.Before.Total.Or(-1) || totalAfter != ch.After.Total.Or(-1) {
				t.Fatalf("round %d: %s: parts change by %v, the whole by %v; totals %v and %v, want %v and %v", round, name, sum, whole,
					totalBefore, totalAfter, ch.Before.Total.Or(-1), ch.After.Total.Or(-1))
			}
			near("whole", whole, fraction(ch.Before.Total.Or(0), ch.After.Total.Or(0)))
			for _, s := range ch.Mix {
				if s.Cells == 0 {
					continue
				}
				mixed++
				if s.Mix.Or(0)+s.Equal.Or(0)+s.Other.Or(0) != whole {
					t.Fatalf("round %d: %s on %v: %v + %v + %v is not %v", round, name, s.By, s.Mix.Or(0), s.Equal.Or(0), s.Other.Or(0), whole)
				}
			}
		}
		if ttft := wholeOf(before, func(r *call.Record) call.Duration {
			var l look
			if l.at(r) && l.split {
				return r.TTFT
			}
			return call.Duration{}
		}); ttft != c.TTFT.Before.Total.Or(0) {
			t.Fatalf("round %d: TTFT of %v before, the calls' own is %v", round, c.TTFT.Before.Total.Or(0), ttft)
		}
	}
	if compared < 120 || mixed < 60 {
		t.Errorf("only %d changes and %d standardisations were compared", compared, mixed)
	}
}

func wholeOf(list []*call.Record, of func(*call.Record) call.Duration) (sum time.Duration) {
	for _, r := range list {
		sum += of(r).Or(0)
	}
	return sum
}

// TestApportionLarge: totals as large as they can be do not overflow.
func TestApportionLarge(t *testing.T) {
	var b, a sumOf
	b.calls, a.calls = 100_003, 99_991
	for p := range phases {
		b.parts[p] = time.Duration(1<<55 + int64(p)*7919)
		a.parts[p] = time.Duration(1<<56 + int64(p)*104_729)
		b.total += b.parts[p]
		a.total += a.parts[p]
	}
	whole, parts := apportion(&b, &a)
	sum := time.Duration(0)
	for _, d := range parts {
		sum += d
	}
	exact := float64(a.total)/float64(a.calls) - float64(b.total)/float64(b.calls)
	if sum != whole || math.Abs(float64(whole)-exact) > math.Abs(exact)*1e-12+1 {
		t.Errorf("parts %d, whole %d, exactly %f", sum, whole, exact)
	}
}

// TestStandardByHand: two kinds of calls, whose times and numbers are plain.
func TestStandardByHand(t *testing.T) {
	window := func(short, long int, shortTook, longTook time.Duration) []*call.Record {
		return many(short+long, func(i int) *call.Record {
			return with(func(r *call.Record) {
				r.Input, r.Phases.Prefill = known(100), lasting(shortTook)
				if i >= short {
					r.Input, r.Phases.Prefill = known(1000), lasting(longTook)
				}
			})
		})
	}
	const rest = 11 * ms // the other phases up to the first token
	for name, c := range map[string]struct {
		after      []*call.Record
		mix, equal time.Duration
		verdict    Verdict
		code       Code
	}{
		// Before: half 100 ms, half 500 ms, a mean of 300. With 10 and 90 of 100:
		// 460.
		"other mix":       {window(10, 90, 100*ms, 500*ms), 160 * ms, 0, NotAFault, CodeTrafficMix},
		"mix and slower":  {window(10, 90, 200*ms, 600*ms), 160 * ms, 100 * ms, NotAFault, CodeTrafficMix},
		"the same mix":    {window(50, 50, 100*ms, 500*ms), 0, 0, NothingFound, ""},
		"slower, no more": {window(50, 50, 300*ms, 700*ms), 0, 200 * ms, Undetermined, ""},
		"quicker":         {window(90, 10, 100*ms, 500*ms), -160 * ms, 0, NothingFound, ""},
	} {
		got := Compare(window(50, 50, 100*ms, 500*ms), c.after, CompareOptions{})
		if got.TTFT.Before.Mean != lasting(300*ms+rest) {
			t.Fatalf("%s: before %v", name, got.TTFT.Before.Mean)
		}
		s := got.TTFT.Mix[0]
		if s.Cells != 2 || !s.Determined || s.Mix != lasting(c.mix) || s.Equal != lasting(c.equal) || s.Other != lasting(0) || s.Overlap != figureOf(1) {
			t.Errorf("%s: %+v", name, s)
		}
		if got.Verdict != c.verdict || got.Code != c.code {
			t.Errorf("%s: %s %s %q", name, got.Verdict, got.Code, got.Reasons)
		}
	}
	// Calls of which the healthy window has none: undetermined, and said so.
	got := Compare(window(50, 50, 100*ms, 500*ms), many(100, func(int) *call.Record {
		return with(func(r *call.Record) {
			r.Input, r.Output, r.Phases.Prefill = known(1000), known(3000), lasting(900*ms)
			r.Phases.Decode = lasting(60 * time.Second)
		})
	}), CompareOptions{})
	if s := got.TTFT.Mix[0]; s.Determined || s.Cells != 0 || s.Overlap != figureOf(0) || s.Mix.IsKnown() {
		t.Errorf("nothing in common: %+v", s)
	}
}

// TestSizes: cells are powers of √2.
func TestSizes(t *testing.T) {
	for n := int64(1); n < 1<<20; n = n*5/4 + 1 {
		got := size2(n)
		if lower := size2(max(n-1, 1)); lower > got {
			t.Fatalf("size of %d is %d, of %d %d", n-1, lower, n, got)
		}
		if want := int16(math.Floor(2*math.Log2(float64(n))+1e-9)) + 2; got != want {
			t.Errorf("size of %d is %d, want %d", n, got, want)
		}
		if size2(2*n) != got+2 {
			t.Errorf("twice %d is %d steps more", n, size2(2*n)-got)
		}
	}
}

// TestCompareOrder: neither the order of the records nor that of maps changes a
// thing.
func TestCompareOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	for round := range 15 {
		before, after := anyWindow(rng, 150), anyWindow(rng, 150)
		for i, r := range after {
			r.Upstream, r.Key = []string{"a:1", "b:1", "c:1"}[i%3], []string{"k", "l"}[i%2]
		}
		var one, other bytes.Buffer
		if err := JSONComparison(&one, Compare(before, after, CompareOptions{})); err != nil {
			t.Fatal(err)
		}
		rng.Shuffle(len(before), func(i, j int) { before[i], before[j] = before[j], before[i] })
		rng.Shuffle(len(after), func(i, j int) { after[i], after[j] = after[j], after[i] })
		if err := JSONComparison(&other, Compare(before, after, CompareOptions{})); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(one.Bytes(), other.Bytes()) {
			t.Fatalf("round %d: another order, another comparison:\n%s\n%s", round, &one, &other)
		}
		if !json.Valid(one.Bytes()) {
			t.Fatal("no JSON")
		}
	}
}
