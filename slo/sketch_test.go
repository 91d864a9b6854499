package slo

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// exactQuantile is the type 7 definition: interpolated between the two nearest ranks.
func exactQuantile(sorted []time.Duration, q float64) float64 {
	rank := q * float64(len(sorted)-1)
	i := int(rank)
	if i+1 >= len(sorted) {
		return float64(sorted[len(sorted)-1])
	}
	return float64(sorted[i]) + (rank-float64(i))*float64(sorted[i+1]-sorted[i])
}

// randomTimes returns times of some shape, between 1 µs and 24 h.
func randomTimes(rng *rand.Rand, n int) []time.Duration {
	spread, centre := 0.01+3*rng.Float64(), math.Log(1e4)+rng.Float64()*math.Log(1e9)
	all := make([]time.Duration, n)
	for i := range all {
		d := time.Duration(math.Exp(min(centre+spread*rng.NormFloat64(), 40)))
		if rng.IntN(20) == 0 {
			d = shortest << rng.IntN(36) // right on an edge
		}
		all[i] = min(max(d, shortest), longest)
	}
	return all
}

// TestQuantileBound: quantiles are within 1/128 of those of the times themselves.
func TestQuantileBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	worst := 0.0
	for range 100 {
		times := randomTimes(rng, 1+rng.IntN(2000))
		var h Histogram
		for _, d := range times {
			h.Add(d)
		}
		slices.Sort(times)
		if h.Count() != int64(len(times)) {
			t.Fatalf("%d times are %d", len(times), h.Count())
		}
		last := time.Duration(0)
		for q := 0.0; q <= 1; q += 1.0 / 100 {
			got, ok := h.Quantile(q)
			want := exactQuantile(times, q)
			off := math.Abs(float64(got)-want) / want
			if worst = max(worst, off); !ok || off > 1.0/128+0.5/want || got < last { // half a nanosecond of rounding
				t.Fatalf("%d times: the %v quantile is %s, %v; want %s", len(times), q, got, ok, time.Duration(want))
			}
			last = got
		}
	}
	t.Logf("off by up to %.3f %%", 100*worst)
	if worst < 0.006 {
		t.Errorf("only off by %v: the times do not try it", worst)
	}
}

// TestBuckets: each bucket begins where the one before ends, is at most 1/64 wide, and its middle
// is its own.
func TestBuckets(t *testing.T) {
	if bucketOf(shortest) != 0 || bucketOf(longest) != numBuckets-1 || bucketOf(-5) != 0 || bucketOf(0) != 0 || bucketOf(math.MaxInt64) != numBuckets-1 || bucketOf(math.MinInt64) != 0 {
		t.Errorf("the ends are in %d and %d of %d", bucketOf(shortest), bucketOf(longest), numBuckets)
	}
	edge := time.Duration(1000)
	for b := range numBuckets {
		if b > 0 && bucketOf(edge-1) != b-1 || bucketOf(edge) != b {
			t.Fatalf("%d ns is in bucket %d and not %d", edge, bucketOf(edge), b)
		}
		middle := middle(b)
		if bucketOf(time.Duration(middle)) != b {
			t.Fatalf("the middle of %d is in %d", b, bucketOf(time.Duration(middle)))
		}
		next := edge + time.Duration(2*(middle-float64(edge))) + 1
		if wide := float64(next-edge) / float64(edge); wide > 1.0/64 || wide < 1.0/128 {
			t.Fatalf("bucket %d from %d to %d is %v wide", b, edge, next, wide)
		}
		edge = next
	}
	if edge <= longest {
		t.Errorf("the last bucket ends at %s", edge)
	}
}

func TestHistogramEnds(t *testing.T) {
	var h Histogram
	for _, q := range []float64{0, 0.5, 1} {
		if d, ok := h.Quantile(q); ok || d != 0 {
			t.Errorf("without times, %v is %s", q, d)
		}
	}
	h.Merge(nil)
	h.Merge(&Histogram{})
	h.Reset()
	h.Add(-time.Second)
	h.Add(100 * time.Hour)
	for _, q := range []float64{-0.1, 1.1, math.NaN(), math.Inf(1)} {
		if d, ok := h.Quantile(q); ok || d != 0 {
			t.Errorf("%v is %s", q, d)
		}
	}
	low, _ := h.Quantile(0)
	high, _ := h.Quantile(1)
	if low < 999 || low > 1008 || high < longest-longest/128 || high > longest+longest/128 || h.Count() != 2 {
		t.Errorf("%s to %s", low, high)
	}
	if len(h.counts) > numBuckets {
		t.Errorf("%d buckets", len(h.counts))
	}
}

// TestMerge: histograms of parts, merged in any order, are that of the whole, and the parts stay.
func TestMerge(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	for range 60 {
		var whole, sum Histogram
		parts := make([]Histogram, 1+rng.IntN(6))
		for i := range parts {
			for _, d := range randomTimes(rng, rng.IntN(200)) {
				parts[i].Add(d)
				whole.Add(d)
			}
		}
		for _, i := range rng.Perm(len(parts)) {
			before := parts[i].Count()
			sum.Merge(&parts[i])
			if parts[i].Count() != before {
				t.Fatal("a part changed")
			}
		}
		same(t, &sum, &whole)
		whole.Merge(&whole)
		if whole.Count() != 2*sum.Count() {
			t.Fatalf("with itself, %d became %d", sum.Count(), whole.Count())
		}
		sum.Reset()
		if sum.Count() != 0 {
			t.Fatal("something is left")
		}
		sum.Merge(&parts[0])
		same(t, &sum, &parts[0])
	}
}

// same fails where two histograms differ in any quantile.
func same(t *testing.T, a, b *Histogram) {
	t.Helper()
	if a.Count() != b.Count() {
		t.Fatalf("%d and %d times", a.Count(), b.Count())
	}
	for q := 0.0; q <= 1; q += 1.0 / 64 {
		x, okX := a.Quantile(q)
		y, okY := b.Quantile(q)
		if x != y || okX != okY {
			t.Fatalf("the %v quantiles are %s and %s", q, x, y)
		}
	}
}

// TestSaturation: a full bucket stays full, alone.
func TestSaturation(t *testing.T) {
	var h, other Histogram
	h.Add(time.Second)
	h.Add(time.Minute)
	i := bucketOf(time.Second) - h.first
	h.counts[i], h.total = math.MaxUint32-1, math.MaxUint32
	for range 3 {
		h.Add(time.Second)
	}
	if h.counts[i] != math.MaxUint32 || h.Count() != math.MaxUint32+1 {
		t.Errorf("%d in the bucket, %d in all", h.counts[i], h.Count())
	}
	other.Add(time.Second)
	other.Add(time.Hour)
	h.Merge(&other)
	if h.Count() != math.MaxUint32+2 {
		t.Errorf("%d in all", h.Count())
	}
	if got, _ := h.Quantile(0.5); got.Round(10*ms) > 1010*ms {
		t.Errorf("the median is %s", got)
	}
	if got, _ := h.Quantile(1); got < 59*time.Minute {
		t.Errorf("the longest is %s", got)
	}
}

// TestHistogramMemory: only the range in use is held.
func TestHistogramMemory(t *testing.T) {
	var h Histogram
	if h.counts != nil {
		t.Error("the zero value holds something")
	}
	for _, tt := range []struct {
		d    time.Duration
		most int
	}{{time.Second, growStep}, {1001 * ms, growStep}, {2 * time.Second, 64 + 2*growStep}, {500 * ms, 128 + 2*growStep}, {shortest, 23 * 64}, {longest, numBuckets}} {
		if h.Add(tt.d); len(h.counts) > tt.most || cap(h.counts) > len(h.counts) {
			t.Errorf("after %s, %d buckets", tt.d, len(h.counts))
		}
	}
	var small Histogram
	small.Merge(&h)
	small.Reset()
	if len(h.counts)*4 > 9300 {
		t.Errorf("all are %d bytes", len(h.counts)*4)
	}
}

func BenchmarkHistogramAdd(b *testing.B) {
	rng := rand.New(rand.NewPCG(25, 26))
	times := randomTimes(rng, 1024)
	var h Histogram
	for _, d := range times {
		h.Add(d)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		h.Add(times[i&1023])
	}
}

func BenchmarkHistogramQuantile(b *testing.B) {
	rng := rand.New(rand.NewPCG(27, 28))
	var h Histogram
	for _, d := range randomTimes(rng, 10_000) {
		h.Add(d)
	}
	for b.Loop() {
		h.Quantile(0.99)
	}
}

func BenchmarkHistogramMerge(b *testing.B) {
	var h, other Histogram
	for d := 100 * ms; d < 2*time.Second; d += ms {
		other.Add(d)
	}
	b.ReportAllocs()
	for b.Loop() {
		h.Merge(&other)
	}
}
