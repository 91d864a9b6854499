package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// sample is ten values with a tie and five orders of magnitude.
func sample() []float64 {
	v := []float64{820, 950.5, 1300, 3400.25, 8900, 12.125, 7, 7, 1e-3, 64}
	slices.Sort(v)
	return v
}

// near tells whether two numbers agree to what rounding leaves of them.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Max(math.Abs(a), math.Abs(b)) }

// TestNumpy holds both quantiles to what numpy 2.4.6 computed of the same
// values, methods "linear" and "inverted_cdf".
func TestNumpy(t *testing.T) {
	for _, c := range []struct{ q, linear, step float64 }{
		{0, 0.001, 0.001},
		{0.01, 0.63091, 0.001},
		{0.1, 6.3001000000000005, 0.001},
		{0.25, 8.28125, 7},
		{1. / 3, 12.125, 12.125},
		{0.5, 442, 64},
		{0.9, 3950.224999999998, 3400.25},
		{0.95, 6425.112499999994, 8900},
		{0.99, 8405.022500000001, 8900},
		{1, 8900, 8900},
	} {
		if got := Quantile(sample(), c.q); !near(got, c.linear) {
			t.Errorf("Quantile at %v is %v, numpy says %v", c.q, got, c.linear)
		}
		if got := Step(sample(), c.q); got != c.step {
			t.Errorf("Step at %v is %v, numpy says %v", c.q, got, c.step)
		}
	}
	squares := make([]float64, 101)
	for i := range squares {
		squares[i] = float64(i*i*37%1009) / 7
	}
	for _, step := range []bool{false, true} { // 100 steps to the last value: both agree here
		s, ok := Describe(squares, step)
		if !ok || s.N != 101 || !near(s.Mean, 74.61810466760961) || !near(s.StdDev, 44.04834459445413) ||
			!near(s.P50, 81) || !near(s.P90, 134.14285714285714) || !near(s.P95, 137.14285714285714) || !near(s.P99, 143.14285714285714) {
			t.Errorf("step %v: %+v", step, s)
		}
	}
}

func TestNothing(t *testing.T) {
	for _, v := range []float64{Quantile(nil, 0.5), Step(nil, 0.5), Quantile([]float64{1}, -0.1), Step([]float64{1}, 1.1), Quantile([]float64{1}, math.NaN())} {
		if !math.IsNaN(v) {
			t.Errorf("got %v, want NaN", v)
		}
	}
	if _, ok := Describe(nil, false); ok {
		t.Error("nothing was described")
	}
	if _, ok := Median(nil); ok {
		t.Error("nothing has a median")
	}
	if _, _, ok := Range(nil); ok {
		t.Error("nothing has a range")
	}
	if _, ok := Mean(nil); ok {
		t.Error("nothing has a mean")
	}
	if s, ok := Describe([]float64{3}, false); !ok || s != (Summary{1, 3, 3, 3, 3, 3, 3, 3, 0}) {
		t.Errorf("one value: %+v", s)
	}
}

// TestStepIsItsDefinition: the smallest value whose cumulative share is at least q.
func TestStepIsItsDefinition(t *testing.T) {
	for n := 1; n <= 200; n++ {
		v := make([]float64, n)
		for i := range v {
			v[i] = float64(i)
		}
		for percent := 0; percent <= 100; percent++ {
			q := float64(percent) / 100
			want := 0
			for float64(want+1)/float64(n) < q {
				want++
			}
			if got := Step(v, q); got != float64(want) {
				t.Fatalf("Step at %v of %d values is number %v, want %d", q, n, got, want)
			}
		}
	}
}

// FuzzQuantile: quantiles lie within the sample, never fall as q rises, and Step
// is one of the values.
func FuzzQuantile(f *testing.F) {
	f.Add(uint64(1), uint16(10), 0.5, 0.9)
	f.Add(uint64(2), uint16(1), 0.0, 1.0)
	f.Fuzz(func(t *testing.T, seed uint64, n uint16, p, q float64) {
		if n == 0 || !(p >= 0 && p <= q && q <= 1) {
			return
		}
		rng := rand.New(rand.NewPCG(seed, 0))
		v := make([]float64, n)
		for i := range v {
			v[i] = rng.NormFloat64() * math.Exp(rng.NormFloat64()*5)
		}
		slices.Sort(v)
		a, b := Quantile(v, p), Quantile(v, q)
		if !(v[0] <= a && a <= b*(1+1e-12*math.Copysign(1, b)) && b <= v[n-1]) {
			t.Errorf("quantiles %v and %v at %v and %v of %v", a, b, p, q, v)
		}
		c, d := Step(v, p), Step(v, q)
		if c > d || !slices.Contains(v, c) || !slices.Contains(v, d) {
			t.Errorf("steps %v and %v at %v and %v of %v", c, d, p, q, v)
		}
	})
}

// TestDescribe: any order will do, nothing is changed, and a mean far from 0 does
// not swallow the deviation.
func TestDescribe(t *testing.T) {
	v := []float64{1e9 + 3, 1e9 + 1, 1e9 + 2}
	s, _ := Describe(v, false)
	if s.Mean != 1e9+2 || math.Abs(s.StdDev-math.Sqrt(2./3)) > 1e-9 || s.Min != 1e9+1 || s.Max != 1e9+3 {
		t.Errorf("%+v", s)
	}
	if !slices.Equal(v, []float64{1e9 + 3, 1e9 + 1, 1e9 + 2}) {
		t.Error("Describe sorted its argument")
	}
	if m, ok := Median(v); !ok || m != 1e9+2 {
		t.Errorf("median %v", m)
	}
	if m, ok := Median([]float64{4, 1}); !ok || m != 2.5 {
		t.Errorf("median of two %v", m)
	}
	if low, high, ok := Range(v); !ok || low != 1e9+1 || high != 1e9+3 {
		t.Errorf("range %v to %v", low, high)
	}
	if m, ok := Mean(v); !ok || m != 1e9+2 {
		t.Errorf("mean %v", m)
	}
	if s, _ := Describe([]float64{math.MaxFloat64, math.MaxFloat64}, false); s.Mean != math.MaxFloat64 {
		t.Errorf("the mean of two great numbers is %v", s.Mean)
	}
}
