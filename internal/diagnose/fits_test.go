package diagnose

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// TestLinear: slopes that are there are found, and those that cannot be told are
// not.
func TestLinear(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	const n = 400
	x := make([][]float64, 4)
	y := make([]float64, n)
	for i := range n {
		a, b := rng.Float64()*10, rng.Float64()*3
		x[0] = append(x[0], a)
		x[1] = append(x[1], 2*a+rng.NormFloat64()*0.01) // goes with the first
		x[2] = append(x[2], b)
		x[3] = append(x[3], 7+rng.Float64()*0.01) // hardly varies
		y[i] = 5 + 3*a + 2*b + rng.NormFloat64()*0.1
	}
	l, ok := fitLinear(x, y)
	if !ok || !l.known[0] || l.known[1] || !l.known[2] || l.known[3] {
		t.Fatalf("known %v %v", ok, l.known)
	}
	if math.Abs(l.coef[0]-3) > 0.02 || math.Abs(l.coef[2]-2) > 0.05 || math.Abs(l.sd-0.1) > 0.02 {
		t.Errorf("slopes %v, sd %v", l.coef, l.sd)
	}
	by, off := l.moved([]float64{l.means[0] + 4, 99, l.means[2] + 1, 99})
	if math.Abs(by[0]-12) > 0.1 || math.Abs(by[2]-2) > 0.1 || by[1] != 0 || by[3] != 0 || off <= 0 || off > 0.05 {
		t.Errorf("explained %v ± %v", by, off)
	}
	// The error is what it says: of 400 draws about 95 of 100 lie within two of it.
	within := 0
	for range 400 {
		var xs [1][]float64
		ys := make([]float64, 60)
		for i := range ys {
			v := rng.Float64() * 10
			xs[0] = append(xs[0], v)
			ys[i] = 1 + v + rng.NormFloat64()
		}
		l, _ := fitLinear(xs[:], ys)
		by, off := l.moved([]float64{20})
		if math.Abs(l.level+by[0]-21) <= 2*off {
			within++
		}
	}
	if within < 364 || within > 398 {
		t.Errorf("%d of 400 within two standard errors", within)
	}
	// What would make it quicker is left out.
	for i := range y {
		y[i] = 10 - x[0][i] + 3*x[2][i]
	}
	if l, ok := fitLinear(x, y); !ok || l.coef[0] != 0 || l.coef[2] < 2 {
		t.Errorf("%v: slopes %v", ok, l.coef)
	}
	for name, c := range map[string]struct {
		x [][]float64
		y []float64
	}{
		"too few":        {[][]float64{x[0][:10]}, y[:10]},
		"nothing varies": {[][]float64{x[3]}, y},
		"no figures":     {nil, y},
	} {
		if _, ok := fitLinear(c.x, c.y); ok {
			t.Errorf("%s: there is a line", name)
		}
	}
}

// TestCrowd: what runs beside each call is what adding it up, instant by instant,
// gives.
func TestCrowd(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 10 {
		list := many(60, func(i int) *call.Record {
			return with(func(r *call.Record) {
				r.Time = r.Time.Add(time.Duration(rng.Int64N(int64(4 * time.Second))))
				r.Upstream = fmt.Sprint("u", i%2)
				r.Input, r.Cached, r.Output = known(100+rng.Int64N(900)), known(0), known(2+rng.Int64N(200))
				r.Phases.Decode = lasting(time.Duration(1+rng.Int64N(3000)) * ms)
				r.Phases.Delivery = lasting(0)
			})
		})
		samples, odd := samples(list, originOf(list))
		if odd != 0 {
			t.Fatal(odd)
		}
		crowd(samples[:30], samples[30:])
		for i := range samples {
			s := &samples[i]
			var want [besides]float64
			for j := range samples {
				o := &samples[j]
				if o.rec.Upstream != s.rec.Upstream {
					continue
				}
				over := (min(s.last, o.last) - max(s.first, o.first)).Seconds()
				if over > 0 {
					want[besideCalls] += over
					want[besideContext] += over * o.context()
				}
				if o.first > s.first && o.first < s.last {
					want[besideStalls]++
					want[besidePrefill] += float64(o.uncached.Or(0))
				}
			}
			took := (s.last - s.first).Seconds()
			want[besideCalls] /= took
			want[besideContext] /= took
			n := float64(s.rec.Output.Or(0) - 1)
			want[besideStalls] /= n
			want[besidePrefill] /= n
			for k := range want {
				if !s.crowded || math.Abs(s.beside[k]-want[k]) > 1e-6*(1+want[k]) {
					t.Fatalf("call %d, figure %d: %v, want %v", i, k, s.beside[k], want[k])
				}
			}
		}
	}
}

// TestFlights: as many are in flight as were sent and have not been written whole.
func TestFlights(t *testing.T) {
	list := many(40, func(i int) *call.Record {
		return with(func(r *call.Record) { r.Upstream = []string{"a:1", "b:1", ""}[i%3] })
	})
	samples, _ := samples(list, originOf(list))
	f := flightsOf(samples)
	for at := time.Duration(0); at < 7*time.Second; at += 97 * ms {
		want := map[string]int64{}
		for i := range samples {
			if s := &samples[i]; s.sent <= at && at < s.working {
				want[""]++
				if s.rec.Upstream != "" {
					want[s.rec.Upstream]++
				}
			}
		}
		for _, name := range []string{"", "a:1", "b:1"} {
			if got := f.at(name, at); got != known(want[name]) {
				t.Errorf("%q after %v: %v in flight, want %d", name, at, got, want[name])
			}
		}
	}
	if f.at("c:1", 0).IsKnown() {
		t.Error("calls of an upstream that has none")
	}
}
