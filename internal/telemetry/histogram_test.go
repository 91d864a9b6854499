package telemetry

import (
	"maps"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/weirgate/weir/internal/call"
)

func newTestHistogram(edges []time.Duration) *histogram {
	f := newFamily(&Metric{Name: "test_seconds", Type: Histogram, Edges: edges})
	return f.histogram(new(atomic.Pointer[histogram]))
}

func written(t *testing.T, h *histogram) *dto.Histogram {
	t.Helper()
	var out dto.Metric
	if err := h.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.GetHistogram()
}

// An edge belongs to its bucket, and one nanosecond more does not: so that the
// share of calls within an objective is exact.
func TestEdgesAreExact(t *testing.T) {
	for _, edges := range [][]time.Duration{callEdges, tokenEdges, chunkEdges} {
		for i, edge := range edges {
			h := newTestHistogram(edges)
			h.observe(edge)
			h.observe(edge + 1)
			h.observe(edge - 1)
			b := written(t, h).GetBucket()[i]
			if b.GetCumulativeCount() != 2 {
				t.Errorf("edge %v holds %d of edge−1 ns, edge, edge+1 ns; want 2", edge, b.GetCumulativeCount())
			}
		}
	}
}

// The bounds are the floats that people write in queries.
func TestEdgesAreTheFloatsPeopleWrite(t *testing.T) {
	bounds := make(map[float64]bool)
	for _, edges := range [][]time.Duration{callEdges, tokenEdges} {
		for _, b := range written(t, newTestHistogram(edges)).GetBucket() {
			bounds[b.GetUpperBound()] = true
		}
	}
	for _, want := range []float64{0.00025, 0.003, 0.01, 0.04, 0.1, 0.2, 0.3, 0.64, 1.28, 1.5, 2, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 600} {
		if !bounds[want] {
			t.Errorf("no bound is %v", want)
		}
	}
}

func TestNativeBuckets(t *testing.T) {
	h := newTestHistogram(callEdges)
	// Key k holds (2^((k−1)/8), 2^(k/8)] seconds.
	h.observe(0)
	h.observe(900 * time.Nanosecond) // below 2^-20 s
	h.observe(time.Second)           // key 0
	h.observe(time.Second)
	h.observe(time.Second + 1) // key 1
	h.observe(2 * time.Second) // key 8
	h.observe(math.MaxInt64)   // beyond the last
	got := written(t, h)
	counts := nativeCounts(got)
	want := map[int]int64{0: 2, 1: 1, 8: 1, 14<<nativeSchema + 1: 1}
	if len(counts) != len(want) {
		t.Errorf("native buckets %v, want %v", counts, want)
	}
	for k, n := range want {
		if counts[k] != n {
			t.Errorf("native bucket %d counts %d, want %d", k, counts[k], n)
		}
	}
	if got.GetSchema() != 3 || got.GetZeroCount() != 2 || got.GetZeroThreshold() != math.Exp2(-20) {
		t.Errorf("schema %d, %d at zero up to %v", got.GetSchema(), got.GetZeroCount(), got.GetZeroThreshold())
	}
	if got.GetSampleCount() != 7 {
		t.Errorf("%d samples, want 7", got.GetSampleCount())
	}
}

// nativeCounts undoes the sparse form.
func nativeCounts(h *dto.Histogram) map[int]int64 {
	counts := make(map[int]int64)
	var key, i int
	var n int64
	for _, span := range h.GetPositiveSpan() {
		key += int(span.GetOffset())
		for range span.GetLength() {
			n += h.GetPositiveDelta()[i]
			counts[key] = n
			i++
			key++
		}
	}
	return counts
}

// TestTokens: a histogram of tokens has buckets of whole tokens, in both forms.
func TestTokens(t *testing.T) {
	f := newFamily(&Metric{Name: "test_usage", Type: Histogram, TokenEdges: usageEdges})
	h := f.histogram(new(atomic.Pointer[histogram]))
	sum := 0.0
	for _, n := range []int64{0, 1, 2, 3, 4, 5, 1024, 1025, 67_108_864, 1 << 27, maxFigure} {
		h.count(n)
		sum += float64(n)
	}
	got := written(t, h)
	within := map[float64]uint64{1: 2, 4: 5, 16: 6, 64: 6, 256: 6, 1024: 7, 4096: 8, 16_777_216: 8, 67_108_864: 9}
	for _, b := range got.GetBucket() {
		if want, asked := within[b.GetUpperBound()]; asked && b.GetCumulativeCount() != want {
			t.Errorf("le %v: %d calls, want %d", b.GetUpperBound(), b.GetCumulativeCount(), want)
		}
	}
	// Key k holds (2^((k−1)/8), 2^(k/8)] tokens: 2 is key 8, 3 stands in (2.83, 3.08], 5 in (4.76, 5.19].
	want := map[int]int64{0: 1, 8: 1, 13: 1, 16: 1, 19: 1, 80: 1, 81: 1, 208: 1, 216: 1, 217: 1}
	if counts := nativeCounts(got); !maps.Equal(counts, want) {
		t.Errorf("native buckets %v, want %v", counts, want)
	}
	if got.GetZeroCount() != 1 || got.GetZeroThreshold() != 0.5 || got.GetSampleCount() != 11 || got.GetSampleSum() != sum {
		t.Errorf("%d of no token up to %v, %d calls of %v tokens in all, want %v", got.GetZeroCount(), got.GetZeroThreshold(), got.GetSampleCount(), got.GetSampleSum(), sum)
	}
}

// Any durations: classic and native buckets count them all, each where a plain
// search puts it.
func TestHistogramAgainstPlainCounting(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, edges := range [][]time.Duration{callEdges, tokenEdges, chunkEdges} {
		h := newTestHistogram(edges)
		within := make([]uint64, len(edges))
		native := make(map[int]int64)
		var zero uint64
		const n = 20_000
		for range n {
			d := time.Duration(math.Exp2(r.Float64() * 43)) // 1 ns to 2.4 h
			h.observe(d)
			for i, e := range edges {
				if d <= e {
					within[i]++
				}
			}
			if d.Seconds() <= math.Exp2(-20) {
				zero++
			} else {
				native[int(math.Ceil(math.Log2(d.Seconds())*8))]++
			}
		}
		got := written(t, h)
		for i, b := range got.GetBucket() {
			if b.GetCumulativeCount() != within[i] {
				t.Errorf("le %v: %d, want %d", edges[i], b.GetCumulativeCount(), within[i])
			}
		}
		if got.GetZeroCount() != zero || got.GetSampleCount() != n {
			t.Errorf("%d at zero of %d, want %d of %d", got.GetZeroCount(), got.GetSampleCount(), zero, n)
		}
		counts := nativeCounts(got)
		for k, want := range native {
			if counts[k] != want {
				t.Errorf("native bucket %d: %d, want %d", k, counts[k], want)
			}
		}
	}
}

// Any numbers of tokens, likewise.
func TestTokensAgainstPlainCounting(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	f := newFamily(&Metric{Name: "test_usage", Type: Histogram, TokenEdges: usageEdges})
	h := f.histogram(new(atomic.Pointer[histogram]))
	within := make([]uint64, len(usageEdges))
	native := make(map[int]int64)
	for range 20_000 {
		n := int64(math.Exp2(r.Float64()*27)) - 1
		h.count(n)
		for i, e := range usageEdges {
			if n <= e {
				within[i]++
			}
		}
		if n > 0 {
			native[int(math.Ceil(math.Log2(float64(n))*8))]++
		}
	}
	got := written(t, h)
	for i, b := range got.GetBucket() {
		if b.GetCumulativeCount() != within[i] {
			t.Errorf("le %v: %d, want %d", usageEdges[i], b.GetCumulativeCount(), within[i])
		}
	}
	if counts := nativeCounts(got); !maps.Equal(counts, native) {
		t.Errorf("native buckets %v, want %v", counts, native)
	}
}

// Merged gaps stand within GapError of where single observations would.
func TestMergeWithinGapError(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var gaps call.Gaps
	var all []time.Duration
	var sum time.Duration
	for range 5_000 {
		d := time.Duration(math.Exp(r.NormFloat64()*1.5) * float64(20*time.Millisecond))
		gaps.Add(d)
		all = append(all, d)
		sum += d
	}
	h := newTestHistogram(tokenEdges)
	h.merge(&gaps, call.Lasting(sum))
	got := written(t, h)
	if got.GetSampleCount() != uint64(len(all)) || math.Abs(got.GetSampleSum()-sum.Seconds()) > 1e-6 {
		t.Errorf("%d gaps adding to %v s, want %d adding to %v", got.GetSampleCount(), got.GetSampleSum(), len(all), sum)
	}
	for i, b := range got.GetBucket() {
		// One nanosecond beside the relative error: middles are rounded down.
		low := float64(tokenEdges[i]) * (1 - call.GapError)
		high := float64(tokenEdges[i])*(1+call.GapError) + 1
		var least, most uint64
		for _, d := range all {
			if float64(d) <= low {
				least++
			}
			if float64(d) <= high {
				most++
			}
		}
		if n := b.GetCumulativeCount(); n < least || n > most {
			t.Errorf("le %v: %d gaps, want %d to %d", tokenEdges[i], n, least, most)
		}
	}
}
