package estimate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestBuckets(t *testing.T) {
	for v := int64(0); v <= maxOutput; v += 1 + v/64 {
		b := bucketOf(v)
		edge := upperEdge(b)
		if b < 0 || b >= numBuckets || edge < v || float64(edge) > float64(v)*1.125 || bucketOf(edge) != b || edge < maxOutput && bucketOf(edge+1) != b+1 {
			t.Fatalf("%d is in bucket %d, which ends at %d", v, b, edge)
		}
	}
	if b := bucketOf(math.MaxInt64); b != numBuckets-1 || upperEdge(b) != maxOutput {
		t.Errorf("the largest is in bucket %d, which ends at %d", b, upperEdge(b))
	}
}

// TestP95 compares with the sorted reports, weighed as they should be.
func TestP95(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for trial := range 60 {
		type report struct {
			v      int64
			weight float64
		}
		var all []report
		var h histogram
		n := 1 + rng.IntN(3000)
		middle := math.Exp(rng.Float64() * 9)
		for i := range n {
			if i == n/2 {
				middle = math.Exp(rng.Float64() * 9) // things change
			}
			v := int64(middle * math.Exp(rng.NormFloat64()))
			h.learn(v)
			all = append(all, report{v, math.Pow(window/(window-1.), float64(i))})
		}
		got, known := h.p95()
		if known != (n >= enough) {
			t.Fatalf("trial %d: %d reports, known %v", trial, n, known)
		}
		if !known {
			continue
		}
		slices.SortFunc(all, func(a, b report) int { return int(a.v - b.v) })
		var total, sum float64
		for _, r := range all {
			total += r.weight
		}
		// Sums in single precision may move the rank by a hair.
		low, high := int64(-1), int64(-1)
		for _, r := range all {
			sum += r.weight
			if low < 0 && sum >= 0.95*total*(1-1e-4) {
				low = r.v
			}
			if high < 0 && sum >= 0.95*total+1e-4*total {
				high = r.v
			}
		}
		if high < 0 {
			high = all[n-1].v
		}
		if got < low || float64(got) > float64(high)*1.125 {
			t.Fatalf("trial %d: got %d, want from %d to an eighth above %d", trial, got, low, high)
		}
	}
}

// TestOutputFollows: what was long ago is forgotten, about as fast as documented.
func TestOutputFollows(t *testing.T) {
	e := New(0, 0)
	for range 50_000 {
		e.LearnOutput("m", "k", 8000)
	}
	n := 0
	for p95 := int64(math.MaxInt64); p95 > 150; n++ {
		e.LearnOutput("m", "k", 100)
		p95, _ = e.Output("m", "k")
	}
	// The weight of the old ones falls below a twentieth after 512·ln 20 reports.
	if want := window * math.Log(20); math.Abs(float64(n)-want) > 5 {
		t.Errorf("followed after %d reports, want %.0f", n, want)
	}
}

func TestOutputFallsBack(t *testing.T) {
	e := New(0, 0)
	if _, known := e.Output("m", "k"); known {
		t.Error("known before anything was learnt")
	}
	for i := range enough - 1 {
		e.LearnOutput("m", "k", int64(i))
	}
	if _, known := e.Output("m", "k"); known {
		t.Error("known after 19 reports")
	}
	for range 200 {
		e.LearnOutput("m", "other", 1000)
	}
	if p95, known := e.Output("m", "k"); !known || p95 < 1000 || p95 > 1125 {
		t.Errorf("got %d, %v, want the model's 1000", p95, known)
	}
	e.LearnOutput("m", "k", 5)
	if p95, known := e.Output("m", "k"); !known || p95 < 17 || p95 > 19 {
		t.Errorf("got %d, %v, want the key's own", p95, known)
	}
	if _, known := e.Output("n", "k"); known {
		t.Error("another model is known")
	}
}

func TestOutputOdd(t *testing.T) {
	e := New(0, 0)
	for range 100 {
		e.LearnOutput("m", "k", -1)
	}
	if _, known := e.Output("m", "k"); known {
		t.Error("negative reports are known")
	}
	for range 100 {
		e.LearnOutput("m", "k", 0)
	}
	if p95, known := e.Output("m", "k"); !known || p95 != 0 {
		t.Errorf("got %d, %v, want a known 0", p95, known)
	}
	for range 100 {
		e.LearnOutput("m", "k", math.MaxInt64)
	}
	if p95, known := e.Output("m", "k"); !known || p95 != maxOutput {
		t.Errorf("got %d, %v", p95, known)
	}
	// A few absurd ones among many do not count.
	for i := range 5000 {
		v := int64(40)
		if i%50 == 0 {
			v = math.MaxInt64
		}
		e.LearnOutput("n", "k", v)
	}
	if p95, _ := e.Output("n", "k"); p95 < 40 || p95 > 45 {
		t.Errorf("got %d", p95)
	}
}
