package report

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirgate/weir/internal/bench"
)

func find(t *testing.T, plots []plot, id string) plot {
	t.Helper()
	i := slices.IndexFunc(plots, func(p plot) bool { return p.ID == id })
	if i < 0 {
		t.Fatalf("no plot %s", id)
	}
	return plots[i]
}

func TestLadderPlot(t *testing.T) {
	p := find(t, plotsOf(ladder()), "ladder")
	if !slices.Equal(p.Bands, []band{{8, 16, "knee"}}) || !slices.Equal(p.Marks, []mark{{8, "last good 8"}, {6, "recommended 6"}}) {
		t.Errorf("bands %v, marks %v", p.Bands, p.Marks)
	}
	if !slices.Equal(p.X, bench.Series{1, 4, 8, 16, 32}) || !slices.Equal(p.Series[0].Y, bench.Series{4210, 15200, 27800, 30100, 30500}) ||
		!slices.Equal(p.Series[1].Y, bench.Series{820, 950, 1300, 3400, 8900}) || p.Series[1].Scale != "y2" {
		t.Errorf("series %v over %v", p.Series, p.X)
	}
	r := ladder()
	for i := range r.Ladder.Steps {
		r.Ladder.Steps[i].TPM, r.Ladder.Steps[i].TTFTP95 = nil, nil
	}
	slices.Reverse(r.Ladder.Steps)
	p = find(t, plotsOf(r), "ladder")
	if !slices.IsSorted(p.X) || p.YAxis.Unit != "calls/s" || p.Y2Axis != nil || len(p.Series) != 1 {
		t.Errorf("without tokens: %v over %v", p.Series, p.X)
	}
}

// TestCDF: each line is the exact share of calls at each of its points.
func TestCDF(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		r := simple()
		raw := bench.Raw{Of: 300, Seconds: 10}
		far := math.Pow(10, rng.Float64()*4)
		for range 1 + rng.IntN(300) {
			raw.At = append(raw.At, 1)
			raw.TTFT = append(raw.TTFT, float32(1+math.Floor(rng.Float64()*far)))
		}
		values := slices.Clone(raw.TTFT)
		raw.At, raw.TTFT = append(raw.At, 1), append(raw.TTFT, float32(math.NaN()))
		r.Runs[0].Raw = []bench.Raw{raw}
		p := find(t, plotsOf(r), "cdf-ttft")
		if len(p.X) != len(p.Series[0].Y) || p.Series[0].Y[len(p.X)-1] != 100 {
			t.Fatalf("%d points, the last %v", len(p.X), p.Series[0].Y)
		}
		for i, x := range p.X {
			n := 0
			for _, v := range values {
				if v <= x {
					n++
				}
			}
			if want := float32(100 * float64(n) / float64(len(values))); p.Series[0].Y[i] != want {
				t.Errorf("up to %v: %v, want %v", x, p.Series[0].Y[i], want)
			}
			if i > 0 && x <= p.X[i-1] {
				t.Errorf("x does not rise: %v, %v", p.X[i-1], x)
			}
		}
	}
}

// TestTokensOverTime: no token is lost or counted twice, whatever the bins.
func TestTokensOverTime(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		raw := rawOf(rng.Uint64(), 1+rng.IntN(400), 2+rng.Float64()*5000, 50+rng.Float64()*900, 20)
		want := 0.0
		for i := range raw.Output {
			raw.Output[i] = float32(rng.IntN(1000))
			want += float64(raw.Output[i])
		}
		sums, width := binned(raw, binOf(raw.Seconds))
		got := 0.0
		for _, s := range sums {
			got += s
		}
		if math.Abs(got-want) > 1e-9*(1+want) || math.Abs(width*float64(len(sums))-raw.Seconds) > 1e-6 || len(sums) > maxBins {
			t.Fatalf("%v tokens of %v, %d bins of %v s of %v", got, want, len(sums), width, raw.Seconds)
		}
	}
	p := find(t, plotsOf(ladder()), "tokens")
	for _, s := range p.Series {
		if len(s.Y) != len(p.X) {
			t.Errorf("%s has %d values at %d times", s.Label, len(s.Y), len(p.X))
		}
	}
	if !slices.IsSorted(p.X) {
		t.Error("time does not rise")
	}
	r := ladder()
	r.Runs[0].Raw[0].Of++ // a sample
	r.Runs[1].Raw[0].Output[3] = float32(math.NaN())
	if p := find(t, plotsOf(r), "tokens"); len(p.Series) != 3 {
		t.Errorf("%d loads are drawn of which not all tokens are known", len(p.Series)-3)
	}
}

// TestSteadyTokens: a steady load is a flat line, however long its calls are beside
// a bin.
func TestSteadyTokens(t *testing.T) {
	// A call begins each second and streams 100 tokens a second for four; only the
	// beginning and the end of the repeat hold less than four of them.
	raw := bench.Raw{Seconds: 42}
	for i := range 40 {
		raw.At, raw.TTFT = append(raw.At, float32(i*1000)), append(raw.TTFT, 0)
		raw.E2E, raw.Output = append(raw.E2E, 4000), append(raw.Output, 400)
	}
	raw.Of = len(raw.At)
	sums, width := binned(raw, 1)
	for i, s := range sums[4:38] {
		if math.Abs(s/width-400) > 1e-6 {
			t.Errorf("%v tokens/s in second %d", s/width, i+4)
		}
	}
	// Nothing comes before the first token; without one known, the whole call counts.
	one := bench.Raw{Seconds: 4, At: bench.Series{0, 0}, TTFT: bench.Series{2000, float32(math.NaN())}, E2E: bench.Series{4000, 4000}, Output: bench.Series{100, 40}}
	if sums, _ = binned(one, 1); !slices.Equal(sums, []float64{10, 10, 60, 60}) {
		t.Errorf("%v", sums)
	}
}

// TestPlotsAreBounded: however much was measured, the page stays small.
func TestPlotsAreBounded(t *testing.T) {
	r := bench.Result{Streamed: true, Ladder: &bench.Ladder{}}
	big := rawOf(1, 20_000, 600, 100, 20)
	for range 60 {
		r.Runs = append(r.Runs, bench.Run{Load: "x", Raw: []bench.Raw{big}})
	}
	for _, p := range plotsOf(r) {
		n := 0
		for _, s := range p.Series {
			n += len(s.X)
		}
		if len(p.Series) > maxLoads || n > maxPoints+maxLoads || len(p.X) > maxBins+2*maxLoads {
			t.Errorf("%s: %d loads, %d points, %d values of x", p.ID, len(p.Series), n, len(p.X))
		}
	}
	// Series of different lengths are no result of ours, but no reason to fail.
	r.Runs = []bench.Run{{Load: "x", Raw: []bench.Raw{{Of: 3, Seconds: 1, At: bench.Series{1, 2, 3}, TTFT: bench.Series{1}}, {Seconds: math.NaN(), At: bench.Series{1}}}}}
	if p := plotsOf(r); len(p) != 2 {
		t.Errorf("%d plots of one figure, want the scatter and its distribution", len(p))
	}
}
