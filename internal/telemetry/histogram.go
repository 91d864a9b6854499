package telemetry

import (
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/weirgate/weir/internal/call"
)

// nativeSchema says that native histograms have 2^nativeSchema buckets per power
// of two.
const nativeSchema = 3

// scale tells what a histogram counts. Native buckets reach from 2^lowest, below
// which all is one bucket, to 2^highest, above which all stands in the next bucket.
type scale struct {
	one             float64 // how much of what is counted is one of the metric's unit
	lowest, highest int
}

var (
	// inSeconds counts nanoseconds: native buckets from about 1 µs to about 4.5 hours.
	inSeconds = scale{one: float64(time.Second), lowest: -20, highest: 14}
	// inTokens counts tokens: native buckets from 1 to 134 million.
	inTokens = scale{one: 1, lowest: -1, highest: 27}
)

// layout divides what is counted so finely that every classic and every native
// bucket is a whole number of its cells. One count per cell then answers both,
// exactly and from one reading. A layout never changes.
type layout struct {
	scale
	edges []int64    // classic upper bounds
	cells []int64    // upper bounds of the cells but the last, which has none
	first [65]uint16 // by bit length: the first cell that can hold such a number
	class []uint16   // by cell: its classic bucket
	key   []int      // by cell: the key of its native bucket
	zero  int        // the key of the native bucket that reaches down to 0
}

func newLayout(s scale, edges []int64) *layout {
	l := &layout{scale: s, edges: edges, cells: slices.Clone(edges), zero: s.lowest << nativeSchema}
	var native []int64
	for k := l.zero; k <= s.highest<<nativeSchema; k++ {
		native = append(native, int64(math.Exp2(float64(k)/(1<<nativeSchema))*s.one))
	}
	l.cells = append(l.cells, native...)
	slices.Sort(l.cells)
	l.cells = slices.Compact(l.cells)
	for _, upper := range l.cells {
		c, _ := slices.BinarySearch(edges, upper)
		k, _ := slices.BinarySearch(native, upper)
		l.class = append(l.class, uint16(c))
		l.key = append(l.key, l.zero+k)
	}
	l.class = append(l.class, uint16(len(edges)))
	l.key = append(l.key, s.highest<<nativeSchema+1)
	for n := range l.first {
		if n > 0 {
			lowest := uint64(1) << (n - 1)
			i, _ := slices.BinarySearchFunc(l.cells, lowest, func(c int64, t uint64) int {
				if uint64(c) < t {
					return -1
				}
				return 1
			})
			l.first[n] = uint16(i)
		}
	}
	return l
}

// cell returns the cell that holds n, which is not negative.
func (l *layout) cell(n int64) int {
	i := int(l.first[bits.Len64(uint64(n))])
	for i < len(l.cells) && l.cells[i] < n {
		i++
	}
	return i
}

// histogram counts durations, or tokens, without a lock and without allocating.
// It is exposed as a classic and a native histogram at once.
type histogram struct {
	desc      *prometheus.Desc
	labels    []*dto.LabelPair
	layout    *layout
	counts    []atomic.Uint64            // by cell
	sum       atomic.Uint64              // in the metric's unit, as the bits of a float64
	exemplars []atomic.Pointer[exemplar] // by classic bucket; nil where there are none
}

// observe counts one duration; a negative one is no time and is left out.
func (h *histogram) observe(d time.Duration) {
	if d >= 0 {
		h.count(int64(d))
	}
}

// count counts n, which is not negative.
func (h *histogram) count(n int64) {
	h.counts[h.layout.cell(n)].Add(1)
	h.addSum(float64(n) / h.layout.one)
}

// merge counts all gaps of one call, each at the middle of its bucket. sum is
// their exact sum; when it is unknown the middles are added.
func (h *histogram) merge(g *call.Gaps, sum call.Duration) {
	var middles float64
	g.Each(func(middle time.Duration, n uint64) {
		h.counts[h.layout.cell(int64(middle))].Add(n)
		middles += middle.Seconds() * float64(n)
	})
	if exact, known := sum.Get(); known && exact >= 0 {
		middles = exact.Seconds()
	}
	h.addSum(middles)
}

func (h *histogram) addSum(x float64) {
	for {
		old := h.sum.Load()
		if h.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+x)) {
			return
		}
	}
}

// Desc is part of prometheus.Metric.
func (h *histogram) Desc() *prometheus.Desc { return h.desc }

// Write is part of prometheus.Metric. Both forms come from one reading of the
// cells, so that their counts always agree.
func (h *histogram) Write(out *dto.Metric) error {
	l := h.layout
	classic := make([]uint64, len(l.edges)+1)
	native := nativeBuckets{}
	var zero, total uint64
	for i := range h.counts {
		n := h.counts[i].Load()
		if n == 0 {
			continue
		}
		total += n
		classic[l.class[i]] += n
		if l.key[i] == l.zero {
			zero += n
		} else {
			native.add(l.key[i], n)
		}
	}
	native.close()
	buckets := make([]*dto.Bucket, len(l.edges))
	var below uint64
	for i, edge := range l.edges {
		below += classic[i]
		// A whole number of nanoseconds divided by 1e9 is the float nearest to
		// the edge as people write it.
		buckets[i] = &dto.Bucket{
			UpperBound:      new(float64(edge) / l.one),
			CumulativeCount: new(below),
		}
	}
	out.Label = h.labels
	out.Histogram = &dto.Histogram{
		SampleCount:   new(total),
		SampleSum:     new(math.Float64frombits(h.sum.Load())),
		Bucket:        buckets,
		Schema:        new(int32(nativeSchema)),
		ZeroThreshold: new(math.Exp2(float64(l.lowest))),
		ZeroCount:     new(zero),
		PositiveSpan:  native.spans,
		PositiveDelta: native.deltas,
	}
	return nil
}

// nativeBuckets builds the sparse form of native buckets: runs of neighbouring
// buckets, and each count as the difference to the one before.
type nativeBuckets struct {
	spans  []*dto.BucketSpan
	deltas []int64

	key   int    // the bucket being counted
	count uint64 // its count so far; 0 when there is none
	end   int    // one past the last bucket written
	last  int64  // its count
}

// add counts n in a bucket; keys come in ascending order.
func (b *nativeBuckets) add(key int, n uint64) {
	if key != b.key {
		b.close()
		b.key = key
	}
	b.count += n
}

// close writes the bucket being counted.
func (b *nativeBuckets) close() {
	if b.count == 0 {
		return
	}
	if len(b.spans) > 0 && b.key == b.end {
		*b.spans[len(b.spans)-1].Length++
	} else {
		b.spans = append(b.spans, &dto.BucketSpan{Offset: new(int32(b.key - b.end)), Length: new(uint32(1))})
	}
	b.deltas = append(b.deltas, int64(b.count)-b.last)
	b.end, b.last, b.count = b.key+1, int64(b.count), 0
}
