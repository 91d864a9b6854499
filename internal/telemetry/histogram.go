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

// Native histograms have 2^nativeSchema buckets per power of two. They reach
// from about 1 µs, below which all is one bucket, to about 4.5 hours, above
// which all stands in the next bucket.
const (
	nativeSchema  = 3
	nativeLowest  = -20 << nativeSchema // key of the bucket that ends at 2^-20 s
	nativeHighest = 14 << nativeSchema  // key of the bucket that ends at 2^14 s
)

// layout divides time so finely that every classic and every native bucket is
// a whole number of its cells. One count per cell then answers both, exactly
// and from one reading. A layout never changes.
type layout struct {
	edges []time.Duration // classic upper bounds
	cells []time.Duration // upper bounds of the cells but the last, which has none
	first [65]uint16      // by bit length of the nanoseconds: the first cell that can hold them
	class []uint16        // by cell: its classic bucket
	key   []int           // by cell: the key of its native bucket; nativeLowest is the zero bucket
}

func newLayout(edges []time.Duration) *layout {
	l := &layout{edges: edges, cells: slices.Clone(edges)}
	native := make([]time.Duration, 0, nativeHighest-nativeLowest+1)
	for k := nativeLowest; k <= nativeHighest; k++ {
		native = append(native, time.Duration(math.Exp2(float64(k)/(1<<nativeSchema))*float64(time.Second)))
	}
	l.cells = append(l.cells, native...)
	slices.Sort(l.cells)
	l.cells = slices.Compact(l.cells)
	for _, upper := range l.cells {
		c, _ := slices.BinarySearch(edges, upper)
		k, _ := slices.BinarySearch(native, upper)
		l.class = append(l.class, uint16(c))
		l.key = append(l.key, nativeLowest+k)
	}
	l.class = append(l.class, uint16(len(edges)))
	l.key = append(l.key, nativeHighest+1)
	for n := range l.first {
		if n > 0 {
			lowest := uint64(1) << (n - 1)
			i, _ := slices.BinarySearchFunc(l.cells, lowest, func(c time.Duration, t uint64) int {
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

// cell returns the cell that holds d, which is not negative.
func (l *layout) cell(d time.Duration) int {
	i := int(l.first[bits.Len64(uint64(d))])
	for i < len(l.cells) && l.cells[i] < d {
		i++
	}
	return i
}

// histogram counts durations without a lock and without allocating. It is
// exposed as a classic and a native histogram at once.
type histogram struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	layout *layout
	counts []atomic.Uint64 // by cell
	sum    atomic.Uint64   // seconds, as the bits of a float64
}

// observe counts one duration; a negative one is no time and is left out.
func (h *histogram) observe(d time.Duration) {
	if d < 0 {
		return
	}
	h.counts[h.layout.cell(d)].Add(1)
	h.addSum(d.Seconds())
}

// merge counts all gaps of one call, each at the middle of its bucket. sum is
// their exact sum; when it is unknown the middles are added.
func (h *histogram) merge(g *call.Gaps, sum call.Duration) {
	var middles float64
	g.Each(func(middle time.Duration, n uint64) {
		h.counts[h.layout.cell(middle)].Add(n)
		middles += middle.Seconds() * float64(n)
	})
	if exact, known := sum.Get(); known && exact >= 0 {
		middles = exact.Seconds()
	}
	h.addSum(middles)
}

func (h *histogram) addSum(seconds float64) {
	for {
		old := h.sum.Load()
		if h.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+seconds)) {
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
		if l.key[i] == nativeLowest {
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
			UpperBound:      new(float64(edge) / float64(time.Second)),
			CumulativeCount: new(below),
		}
	}
	out.Label = h.labels
	out.Histogram = &dto.Histogram{
		SampleCount:   new(total),
		SampleSum:     new(math.Float64frombits(h.sum.Load())),
		Bucket:        buckets,
		Schema:        new(int32(nativeSchema)),
		ZeroThreshold: new(math.Exp2(nativeLowest >> nativeSchema)),
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
