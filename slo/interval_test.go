package slo

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// chanceOf returns the chance of k or fewer of n, given p and q = 1 − p, from sums in 160
// bits of the terms' ratios to that of k; what is left out is below 1e-20 of it all.
func chanceOf(k, n int64, p, q float64) float64 {
	const precision = 160
	number := func(f float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(f) }
	odds := number(p)
	odds.Quo(odds, number(q))
	sum := func(term *big.Float, next func(j int64) (num, den int64), until func(j int64) bool, step int64) *big.Float {
		all, edge := number(0), number(0)
		ratio := number(0)
		for j := k; !until(j); j += step {
			num, den := next(j)
			ratio.SetInt64(num)
			if step > 0 {
				ratio.Mul(ratio, odds)
			} else {
				ratio.Quo(ratio, odds)
			}
			term.Mul(term, ratio.Quo(ratio, number(0).SetInt64(den)))
			all.Add(all, term)
			if j&15 == 0 && term.Cmp(edge.Mul(all, number(1e-28))) < 0 {
				break
			}
		}
		return all
	}
	below := sum(number(1), func(j int64) (int64, int64) { return j, n - j + 1 }, func(j int64) bool { return j == 0 }, -1)
	above := sum(number(1), func(j int64) (int64, int64) { return n - j, j + 1 }, func(j int64) bool { return j == n }, 1)
	below.Add(below, number(1))
	above.Add(above, below)
	chance, _ := below.Quo(below, above).Float64()
	return chance
}

// TestUpperLimitExactly recomputes, in exact enough arithmetic, the chance that makes a
// limit one.
func TestUpperLimitExactly(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	worst := 0.0
	check := func(k, n int64, tail float64) {
		p, q := upperLimit(k, n, tail)
		if !(0 < p && p < 1 && p > float64(k)/float64(n)-0.5/float64(n) || tail > 0.3) || math.Abs(p+q-1) > 1e-15 {
			t.Fatalf("%d of %d at %v: %v and %v", k, n, tail, p, q)
		}
		off := math.Abs(chanceOf(k, n, p, q)/tail - 1)
		if worst = max(worst, off); off > 1e-11 {
			t.Errorf("%d of %d at %v: the limit %v has %v of that chance", k, n, tail, p, 1-off)
		}
	}
	tails := []float64{0.025, 0.05, 0.005, 0.5, 1e-6, 0.2}
	for n := int64(1); n <= 40; n++ {
		for k := range n {
			check(k, n, tails[rng.IntN(len(tails))])
		}
	}
	for range 60 {
		n := int64(math.Pow(10, 1.5+3.5*rng.Float64()))
		check(rng.Int64N(n), n, tails[rng.IntN(len(tails))])
		check(min(rng.Int64N(20), n-1), n, tails[rng.IntN(len(tails))])
		check(n-1-min(rng.Int64N(20), n-1), n, tails[rng.IntN(len(tails))])
	}
	t.Logf("off by up to %.1e of the chance up to 1e5 calls", worst)
	const billion = 1_000_000_000
	worst = 0
	for _, k := range []int64{0, 1, 2, 1000, 1_000_000, billion - 100_000, billion - 2, billion - 1} {
		check(k, billion, 0.025)
	}
	check(20_000, 20_000_000, 0.5)
	check(5_000_000, 10_000_000, 0.025)
	t.Logf("off by up to %.1e of the chance at 1e9 calls", worst)
}

func TestClopperPearsonTables(t *testing.T) {
	for _, tt := range []struct {
		good, total int64
		confidence  float64
		low, high   float64 // in percent
	}{
		// Tables of exact 95 % limits.
		{0, 10, 0.95, 0, 30.850}, {1, 10, 0.95, 0.253, 44.502}, {2, 10, 0.95, 2.521, 55.610}, {3, 10, 0.95, 6.674, 65.245}, {4, 10, 0.95, 12.155, 73.762},
		{5, 10, 0.95, 18.709, 81.291}, {9, 10, 0.95, 55.498, 99.747}, {10, 10, 0.95, 69.150, 100},
		{1, 20, 0.95, 0.127, 24.873}, {1, 100, 0.95, 0.025, 5.446}, {50, 100, 0.95, 39.832, 60.168},
		{0, 100, 0.95, 0, 3.622}, {0, 100, 0.90, 0, 2.951}, {5, 10, 0.99, 12.831, 87.169},
		// What says nothing.
		{0, 0, 0.95, 0, 100}, {-1, 10, 0.95, 0, 100}, {11, 10, 0.95, 0, 100}, {5, -1, 0.95, 0, 100}, {0, -1, 0.95, 0, 100},
		{5, 10, 0, 0, 100}, {5, 10, 1, 0, 100}, {5, 10, math.NaN(), 0, 100}, {5, 10, -1, 0, 100},
	} {
		low, high := ClopperPearson(tt.good, tt.total, tt.confidence)
		if math.Abs(100*low-tt.low) > 0.0006 || math.Abs(100*high-tt.high) > 0.0006 {
			t.Errorf("%d of %d at %v: %.4f to %.4f %%, want %v to %v", tt.good, tt.total, tt.confidence, 100*low, 100*high, tt.low, tt.high)
		}
		mirrorLow, mirrorHigh := ClopperPearson(tt.total-tt.good, tt.total, tt.confidence)
		if math.Abs(low+mirrorHigh-1) > 1e-15 || math.Abs(high+mirrorLow-1) > 1e-15 {
			t.Errorf("%d of %d: the mirror image is %v to %v", tt.good, tt.total, mirrorLow, mirrorHigh)
		}
	}
}

// TestCoverage: whatever the true share, the interval holds it at least as often as it says.
func TestCoverage(t *testing.T) {
	for _, n := range []int64{1, 2, 5, 20, 59} {
		for share := 0.005; share < 1; share += 0.005 {
			covered, chance := 0.0, math.Pow(1-share, float64(n))
			for k := int64(0); k <= n; k++ {
				if low, high := ClopperPearson(k, n, 0.95); low <= share && share <= high {
					covered += chance
				}
				chance *= float64(n-k) / float64(k+1) * share / (1 - share)
			}
			if covered < 0.95-1e-12 {
				t.Fatalf("%d calls, share %v: covered with %v", n, share, covered)
			}
		}
	}
}

// TestUpperBadTables holds the classic sample sizes: with so many bad, so many calls show 95
// or 99 % at 95 % confidence, and one call fewer does not.
func TestUpperBadTables(t *testing.T) {
	for share, sizes := range map[float64][]int64{0.05: {59, 93, 124, 153, 181, 208}, 0.01: {299, 473, 628, 773}} {
		for bad, n := range sizes {
			if at, before := UpperBad(int64(bad), n, 0.95), UpperBad(int64(bad), n-1, 0.95); at > share || before <= share {
				t.Errorf("%d bad: of %d %v, of %d %v", bad, n, at, n-1, before)
			}
		}
	}
	for _, got := range []float64{UpperBad(0, 0, 0.95), UpperBad(-1, 5, 0.95), UpperBad(6, 5, 0.95), UpperBad(5, 5, 0.95), UpperBad(1, 5, 1),
		UpperBad(1, 5, 0.49), UpperBad(1, 5, math.NaN()), UpperBad(0, -5, 0.95)} {
		if got != 1 {
			t.Errorf("what says nothing is below %v", got)
		}
	}
	if got := UpperBad(0, 59, 0.95); math.Abs(got-(1-math.Pow(0.05, 1.0/59))) > 1e-15 {
		t.Errorf("got %v", got)
	}
}

func TestCallsNeeded(t *testing.T) {
	for _, tt := range []struct {
		target     Target
		confidence float64
		want       int64
	}{
		{950_000, 0.95, 59}, {990_000, 0.95, 299}, {999_000, 0.95, 2995}, {999_900, 0.95, 29_956}, {500_000, 0.95, 5}, {900_000, 0.95, 29},
		{950_000, 0.99, 90}, {990_000, 0.99, 459}, {500_000, 0.75, 2}, {100_000, 0.99, 2}, {100_000, 0.9, 1}, {900_000, 0.05, 1},
		{million, 0.95, math.MaxInt64}, {990_000, 1, math.MaxInt64}, {990_000, math.NaN(), math.MaxInt64}, {0, 0.95, 0}, {990_000, 0, 0}, {-5, 0.5, 0},
	} {
		if got := CallsNeeded(tt.target, tt.confidence); got != tt.want {
			t.Errorf("%s at %v: %d, want %d", tt.target, tt.confidence, got, tt.want)
		}
	}
	// It is where UpperBad without a bad call first is within the budget.
	for target := Target(300_000); target < million; target += 1237 {
		n := CallsNeeded(target, 0.95)
		if at, before := UpperBad(0, n, 0.95), UpperBad(0, n-1, 0.95); at > target.BudgetShare() || before <= target.BudgetShare() {
			t.Fatalf("%s: of %d calls %v, one fewer %v", target, n, at, before)
		}
	}
}

// TestLimitsMove: with more bad calls the limit is higher, with more calls lower, and the
// confidence widens.
func TestLimitsMove(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 20))
	for range 1000 {
		n := 2 + int64(math.Pow(10, 9*rng.Float64()))
		k := rng.Int64N(n - 1)
		p := UpperBad(k, n, 0.95)
		if more, wider, calls := UpperBad(k+1, n, 0.95), UpperBad(k, n, 0.99), UpperBad(k, n+1+n/1000, 0.95); !(more > p && wider > p && calls < p) {
			t.Fatalf("%d of %d: %v; one more %v, wider %v, more calls %v", k, n, p, more, wider, calls)
		}
	}
}

func BenchmarkClopperPearson(b *testing.B) {
	for b.Loop() {
		ClopperPearson(9_990_000, 10_000_000, 0.95)
	}
}
