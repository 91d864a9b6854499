package diagnose

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/weirgate/weir/internal/call"
)

// TestEachHolds: how many times what it was each prompt holds tokens up is found from
// calls whose tokens take a step, and the prompts beside them a while.
func TestEachHolds(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	const n, step = 3000, 0.02 // s
	// window is calls with so many prompts beside each of their tokens on average,
	// each of which takes so long.
	window := func(prompts, each float64) (x [][]float64, y []float64) {
		x = make([][]float64, besides)
		for range n {
			stalls := prompts * 2 * rng.Float64()
			x[besideCalls] = append(x[besideCalls], 2)
			x[besideContext] = append(x[besideContext], 500)
			x[besideStalls] = append(x[besideStalls], stalls)
			x[besidePrefill] = append(x[besidePrefill], 100*stalls)
			y = append(y, step+stalls*each+0.0002*rng.NormFloat64())
		}
		return x, y
	}
	for _, tt := range []struct {
		name          string
		prompts, each [2]float64 // healthy and new
		load          float64    // computed tokens a second, as a multiple
		want          float64
	}{
		{"each takes longer", [2]float64{0.02, 0.02}, [2]float64{0.1, 0.4}, 1, 4 * (0.02 + 0.02*0.1) / (0.02 + 0.02*0.4)},
		{"more come", [2]float64{0.02, 0.06}, [2]float64{0.1, 0.1}, 3 * (0.02 + 0.02*0.1) / (0.02 + 0.06*0.1), 1},
		{"as before", [2]float64{0.02, 0.02}, [2]float64{0.1, 0.1}, 1, 0},
		{"fewer", [2]float64{0.02, 0.01}, [2]float64{0.1, 0.1}, 0.5, 0},
	} {
		x, y := window(tt.prompts[0], tt.each[0])
		newX, newY := window(tt.prompts[1], tt.each[1])
		healthy, ok := fitLinear(x, y)
		d := decodeFit{before: average(y), change: average(newY) - average(y)}
		d.hold(&healthy, ok, nil, average(x[besideStalls]), newX, newY)
		p := pair{b: &Figures{Prefill: call.Figure(100)}, a: &Figures{Prefill: call.Figure(100 * tt.load)}, decode: d}
		got, known := p.eachHolds().Get()
		if known != (tt.want > 0) || math.Abs(got-tt.want) > 0.05*tt.want {
			t.Errorf("%s: %v (%v), want %v; %+v", tt.name, got, known, tt.want, d)
		}
		if want := tt.prompts[1] * tt.each[1]; math.Abs(d.heldAfter-want) > 0.05*want {
			t.Errorf("%s: a token is held up by %v, want %v", tt.name, d.heldAfter, want)
		}
	}

	// A healthy window without a slope counts its whole time to the first token.
	flat, steady := window(0.02, 0.1)
	for i := range flat[besideStalls] {
		flat[besideStalls][i], flat[besidePrefill][i], steady[i] = 0.02, 2, 0.022
	}
	newX, newY := window(0.02, 0.4)
	healthy, ok := fitLinear(flat, steady)
	first := sample{}
	first.has[ofTTFT], first.whole[ofTTFT] = true, 150*ms
	d := decodeFit{before: average(steady), change: average(newY) - average(steady)}
	d.hold(&healthy, ok, []sample{first, first}, 0.02, newX, newY)
	if math.Abs(d.heldBefore-0.003) > 1e-9 || d.held <= 0 {
		t.Errorf("without a slope: %+v", d)
	}
	// A new window without one says nothing.
	d = decodeFit{before: 0.02, change: 0.02}
	d.hold(&healthy, ok, nil, 0.02, flat, steady)
	p := pair{b: &Figures{}, a: &Figures{}, decode: d}
	if d.held != 0 || p.eachHolds().IsKnown() {
		t.Errorf("of nothing: %+v", d)
	}
}

// TestGapsSteady: only a median gap that is known in both windows says anything.
func TestGapsSteady(t *testing.T) {
	for _, tt := range []struct {
		before, after call.Duration
		want          bool
	}{
		{call.Lasting(20 * ms), call.Lasting(21 * ms), true},
		{call.Lasting(20 * ms), call.Lasting(5 * ms), true},
		{call.Lasting(20 * ms), call.Lasting(24 * ms), false},
		{call.Duration{}, call.Lasting(20 * ms), false},
		{call.Lasting(20 * ms), call.Duration{}, false},
		{call.Lasting(0), call.Lasting(0), false},
	} {
		p := pair{b: &Figures{Gap: tt.before}, a: &Figures{Gap: tt.after}}
		if got := p.gapsSteady(); got != tt.want {
			t.Errorf("%v, %v: %v", tt.before, tt.after, got)
		}
	}
}
