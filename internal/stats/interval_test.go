package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func at(q float64) func([]float64) float64 {
	return func(v []float64) float64 { return Quantile(v, q) }
}

func mean(v []float64) float64 { m, _ := Mean(v); return m }

// TestCoverage: of many trials with a known true ratio, as many intervals contain it
// as ought to: at 95 % fewer than 270 of 300 would be a chance of one in several
// thousand, and all 300 would show intervals that are too wide.
func TestCoverage(t *testing.T) {
	const trials, ratio = 300, 1.2
	lognormal := func(rng *rand.Rand) float64 { return math.Exp(0.5 * rng.NormFloat64()) }
	for name, c := range map[string]struct {
		draw   func(*rand.Rand) float64
		figure func([]float64) float64
		n      int
	}{
		"median of normal":    {func(rng *rand.Rand) float64 { return 100 + 10*rng.NormFloat64() }, at(0.5), 150},
		"median of lognormal": {lognormal, at(0.5), 150},
		"mean of lognormal":   {lognormal, mean, 150},
		"mean of exponential": {(*rand.Rand).ExpFloat64, mean, 150},
		"p95 of exponential":  {(*rand.Rand).ExpFloat64, at(0.95), 300},
		"p99 of lognormal":    {lognormal, at(0.99), 800},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(7, uint64(len(name))))
			inside, wide := 0, 0.0
			for trial := range trials {
				base, now := make([]float64, c.n), make([]float64, c.n)
				for i := range base {
					base[i], now[i] = c.draw(rng), ratio*c.draw(rng)
				}
				i := Ratio(base, now, c.figure, uint64(trial), 200)
				if !i.Known() || i.Low > i.Point || i.Point > i.High {
					t.Fatalf("trial %d: %+v", trial, i)
				}
				if i.Contains(ratio) {
					inside++
				}
				wide += (i.High - i.Low) / trials
			}
			t.Logf("%d of %d intervals contain the truth; mean width %.3f", inside, trials, wide)
			if inside < 270 || inside == trials {
				t.Errorf("%d of %d intervals contain the truth", inside, trials)
			}
		})
	}
}

// TestRatioFollowsItsSeed: the same seed gives the same interval, whatever the order of
// the values, and another gives nearly the same.
func TestRatioFollowsItsSeed(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	base, now := make([]float64, 400), make([]float64, 300)
	for i := range base {
		base[i] = rng.ExpFloat64()
	}
	for i := range now {
		now[i] = 2 * rng.ExpFloat64()
	}
	first := Ratio(base, now, at(0.9), 5, 0)
	kept := slices.Clone(base)
	rng.Shuffle(len(base), func(i, j int) { base[i], base[j] = base[j], base[i] })
	mixed := slices.Clone(base)
	if again := Ratio(base, now, at(0.9), 5, Rounds); again != first {
		t.Errorf("%+v and %+v", first, again)
	}
	if !slices.Equal(base, mixed) {
		t.Error("Ratio changed its argument")
	}
	other := Ratio(kept, now, at(0.9), 6, 0)
	width := first.High - first.Low
	if other == first || other.Point != first.Point || math.Abs(other.Low-first.Low) > width/5 || math.Abs(other.High-first.High) > width/5 {
		t.Errorf("another seed: %+v and %+v", first, other)
	}
}

// TestResample: the sorted draw is a draw: each value comes as often as another,
// and so often as by chance.
func TestResample(t *testing.T) {
	const n, rounds = 20, 20000
	from := make([]float64, n)
	for i := range from {
		from[i] = float64(i)
	}
	rng := rand.New(rand.NewPCG(3, 3))
	to := make([]float64, n)
	var sum, squares [n]float64
	for range rounds {
		resample(to, from, rng)
		if !slices.IsSorted(to) {
			t.Fatal("not sorted")
		}
		var count [n]float64
		for _, v := range to {
			count[int(v)]++
		}
		for i, c := range count {
			sum[i] += c
			squares[i] += c * c
		}
	}
	for i := range n {
		m := sum[i] / rounds
		variance := squares[i]/rounds - m*m
		// Binomial of 20 draws at 1/20: mean 1, variance 0.95.
		if math.Abs(m-1) > 5*math.Sqrt(0.95/rounds) || math.Abs(variance-0.95) > 0.06 {
			t.Errorf("value %d comes %v times a round, variance %v", i, m, variance)
		}
	}
}

func TestRatioUnknown(t *testing.T) {
	for name, i := range map[string]Interval{
		"no base":          Ratio(nil, []float64{1}, mean, 1, 0),
		"nothing now":      Ratio([]float64{1}, nil, mean, 1, 0),
		"base of 0":        Ratio([]float64{0, 0}, []float64{1}, mean, 1, 0),
		"means: no base":   MeanRatio(nil, []float64{1, 2}),
		"means: not above": MeanRatio([]float64{0, 1}, []float64{1, 2}),
		"means: infinite":  MeanRatio([]float64{1, 1}, []float64{1, math.Inf(1)}),
	} {
		if i.Known() || !math.IsNaN(i.Point) || i.Contains(1) {
			t.Errorf("%s: %+v", name, i)
		}
	}
	if i := MeanRatio([]float64{2}, []float64{3}); !near(i.Point, 1.5) || i.Known() {
		t.Errorf("single values: %+v", i)
	}
	if i := MeanRatio([]float64{2, 2}, []float64{3, 3}); !near(i.Point, 1.5) || i.Low != i.Point || i.High != i.Point {
		t.Errorf("no scatter: %+v", i)
	}
}

// TestWelch holds the interval to what scipy computed of the same logarithms
// (ttest_ind with equal_var=False), and Student's quantiles to scipy's.
func TestWelch(t *testing.T) {
	for _, c := range []struct {
		base, now []float64
		want      Interval
	}{
		{[]float64{27800, 28100, 27500}, []float64{25000, 25300, 24900}, Interval{0.9016929811321034, 0.8817216331204334, 0.9221166881723157}},
		{[]float64{100, 90, 120, 105}, []float64{150, 149}, Interval{1.4487234838214702, 1.1984875562944155, 1.751206945414655}},
	} {
		got := MeanRatio(c.base, c.now)
		for _, pair := range [][2]float64{{got.Point, c.want.Point}, {got.Low, c.want.Low}, {got.High, c.want.High}} {
			if math.Abs(pair[0]-pair[1]) > 1e-10 {
				t.Errorf("%v: got %+v, want %+v", c.now, got, c.want)
			}
		}
	}
	for _, c := range []struct{ p, freedom, want float64 }{
		{0.975, 1, 12.706204736174694}, {0.975, 2, 4.302652729749462}, {0.975, 4, 2.7764451051977934}, {0.975, 3.7, 2.8675207071911895},
		{0.975, 10, 2.228138851986274}, {0.975, 100, 1.9839715185235518}, {0.975, 1e6, 1.959966356814107}, {0.9, 5, 1.4758840488244815},
	} {
		if got := studentQuantile(c.p, c.freedom); math.Abs(got-c.want) > 1e-8*c.want {
			t.Errorf("t(%v, %v) is %v, want %v", c.p, c.freedom, got, c.want)
		}
	}
}

// TestMeanRatioCoverage: three repeats a side with 2 % of noise.
func TestMeanRatioCoverage(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	inside := 0
	const trials = 2000
	for range trials {
		var base, now [3]float64
		for i := range base {
			base[i], now[i] = 1000*(1+0.02*rng.NormFloat64()), 900*(1+0.02*rng.NormFloat64())
		}
		if MeanRatio(base[:], now[:]).Contains(0.9) {
			inside++
		}
	}
	if share := float64(inside) / trials; share < 0.94 || share > 0.99 {
		t.Errorf("%.1f %% of intervals contain the truth", 100*share)
	}
}

func BenchmarkRatio(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	v := make([]float64, 10000)
	for i := range v {
		v[i] = rng.ExpFloat64()
	}
	for b.Loop() {
		Ratio(v, v, at(0.99), 1, Rounds)
	}
}
