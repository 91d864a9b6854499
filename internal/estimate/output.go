package estimate

import "math/bits"

// The scale of a histogram: each value below 16 has a bucket of its own, and
// each power of two from there on eight, so a bucket is no wider than an eighth of
// the smallest value in it. The last one takes all that is larger.
const (
	exact      = 16
	exactBits  = 4
	perOctave  = 8
	octaveBits = 3
	lastOctave = 20
	numBuckets = exact + (lastOctave-exactBits+1)*perOctave
	maxOutput  = 1<<(lastOctave+1) - 1 // tokens
)

const (
	// window is how many reports a histogram remembers: the weight of a report
	// falls by this part of it with each that follows.
	window = 512
	// enough is how many reports it takes until a 95th percentile is told; of
	// fewer it would be the largest.
	enough = 20
)

// histogram is a distribution of output tokens, older reports weighing less.
// The zero value is empty.
type histogram struct {
	counts  [numBuckets]float32
	total   float64 // of counts
	newest  float64 // what the newest report weighed; older ones weigh less relative to it
	reports int64
}

func bucketOf(v int64) int {
	if v < exact {
		return int(v)
	}
	v = min(v, maxOutput)
	octave := bits.Len64(uint64(v)) - 1
	return exact + (octave-exactBits)*perOctave + int(v>>(octave-octaveBits))&(perOctave-1)
}

// upperEdge returns the largest value of a bucket.
func upperEdge(bucket int) int64 {
	if bucket < exact {
		return int64(bucket)
	}
	octave, part := (bucket-exact)/perOctave+exactBits, (bucket-exact)%perOctave
	return int64(perOctave+part+1)<<(octave-octaveBits) - 1
}

// learn takes a report of v ≥ 0 tokens.
func (h *histogram) learn(v int64) {
	if h.newest == 0 {
		h.newest = 1
	}
	// Instead of making all older ones lighter, the new one is made heavier.
	h.newest *= window / (window - 1.)
	if h.newest > 1<<20 {
		h.settle()
	}
	h.counts[bucketOf(v)] += float32(h.newest)
	h.total += h.newest
	h.reports++
}

// settle scales all weights so that the newest is 1.
func (h *histogram) settle() {
	if h.newest == 0 {
		return
	}
	h.total = 0
	for i := range h.counts {
		h.counts[i] /= float32(h.newest)
		h.total += float64(h.counts[i])
	}
	h.newest = 1
}

// p95 returns a value that is at least the 95th percentile (nearest rank, by
// weight) and at most an eighth above it; of values beyond maxOutput that one.
func (h *histogram) p95() (int64, bool) {
	if h.reports < enough {
		return 0, false
	}
	// From above: few buckets lie beyond the percentile.
	left := h.total * 0.05
	for i := numBuckets - 1; i > 0; i-- {
		// Rounding of the sums must not let an exact 5 % count as more.
		if left -= float64(h.counts[i]); left < -1e-5*h.total {
			return upperEdge(i), true
		}
	}
	return 0, true
}
