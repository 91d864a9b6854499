package slo

import (
	"math"
	"math/bits"
	"time"
)

// The buckets of a Histogram: 64 of equal width between a power of two and the next, in
// nanoseconds, from the one that holds shortest to the one that holds longest.
const (
	subBits     = 6
	shortest    = time.Microsecond
	longest     = 24 * time.Hour
	firstBucket = 9<<subBits | 61                    // that of 1000 ns: 2⁹ ≤ 1000, and 1000/2³ is 64 + 61
	numBuckets  = 46<<subBits | 14 + 1 - firstBucket // up to that of 24 h: 2⁴⁶ ≤ 8.64e13, and 8.64e13/2⁴⁰ is 64 + 14
	// growStep is how many buckets are added at once, at least.
	growStep = 16
)

// Histogram counts times for display: its quantiles are within 0.78 % (1/128) of those of
// the times themselves, between 1 µs and 24 h; what is outside counts as the nearest of
// these two. Judgements never come from it.
//
// The zero value is empty and ready. It is not safe for concurrent use. Memory is taken for
// the buckets between the smallest and the largest time alone, 4 bytes each: 256 bytes for
// each octave, 9.3 KB for all. A bucket stops at 4,294,967,295, and what comes then is not
// counted: at 1000 calls a second in one bucket that is after 49 days.
type Histogram struct {
	counts []uint32
	first  int // the bucket of counts[0]
	total  int64
}

// Add counts a time. It allocates only when the time is outside the range used before.
func (h *Histogram) Add(d time.Duration) {
	b := bucketOf(d)
	i := b - h.first
	if uint(i) >= uint(len(h.counts)) {
		h.grow(b, b)
		i = b - h.first
	}
	if h.counts[i] != math.MaxUint32 {
		h.counts[i]++
		h.total++
	}
}

// Merge adds the counts of another, which stays as it is. nil adds nothing.
func (h *Histogram) Merge(other *Histogram) {
	if other == nil || other.total == 0 {
		return
	}
	low, high := 0, len(other.counts)-1
	for other.counts[low] == 0 {
		low++
	}
	for other.counts[high] == 0 {
		high--
	}
	h.grow(other.first+low, other.first+high)
	for i, n := range other.counts[low : high+1] {
		c := &h.counts[other.first+low+i-h.first]
		n = min(n, math.MaxUint32-*c)
		*c += n
		h.total += int64(n)
	}
}

// Quantile returns the time below which a share q of the times lies, interpolated between
// the two nearest as definitions of type 7 do, and false without times or where q is not
// from 0 to 1.
func (h *Histogram) Quantile(q float64) (time.Duration, bool) {
	if h.total == 0 || !(q >= 0 && q <= 1) {
		return 0, false
	}
	rank := q * float64(h.total-1)
	whole := min(int64(rank), h.total-1)
	below := h.at(whole)
	if share := rank - float64(whole); share > 0 && whole+1 < h.total {
		below += share * (h.at(whole+1) - below)
	}
	return time.Duration(math.Round(below)), true
}

// at returns the middle of the bucket that holds the time of a rank, from 0 to total-1.
func (h *Histogram) at(rank int64) float64 {
	for i, n := range h.counts {
		if rank -= int64(n); rank < 0 {
			return middle(h.first + i)
		}
	}
	return middle(h.first + len(h.counts) - 1)
}

// Count returns how many times were counted.
func (h *Histogram) Count() int64 { return h.total }

// Reset forgets all times, and keeps the memory for the next.
func (h *Histogram) Reset() {
	clear(h.counts)
	h.total = 0
}

// grow makes room for buckets low to high.
func (h *Histogram) grow(low, high int) {
	end := high + 1
	if len(h.counts) > 0 {
		if low >= h.first && end <= h.first+len(h.counts) {
			return
		}
		low, end = min(low, h.first), max(end, h.first+len(h.counts))
	}
	low -= low % growStep
	end = min((end+growStep-1)/growStep*growStep, numBuckets)
	counts := make([]uint32, end-low)
	if len(h.counts) > 0 {
		copy(counts[h.first-low:], h.counts)
	}
	h.counts, h.first = counts, low
}

// bucketOf returns the bucket of a time, from 0 to numBuckets-1.
func bucketOf(d time.Duration) int {
	ns := uint64(min(max(d, shortest), longest))
	octave := bits.Len64(ns) - 1
	return octave<<subBits | int(ns>>(octave-subBits))&(1<<subBits-1) - firstBucket
}

// middle returns the middle of a bucket in nanoseconds.
func middle(bucket int) float64 {
	bucket += firstBucket
	width := uint64(1) << (bucket>>subBits - subBits)
	low := (1<<subBits + uint64(bucket)&(1<<subBits-1)) * width
	return float64(low) + float64(width-1)/2
}
