package call

import (
	"math/bits"
	"time"
)

// Gaps is a histogram of the gaps between content-bearing events of one call.
// It takes 1,488 bytes, counts without allocating, and answers percentiles to
// within GapError of the true gap (below 16 µs to within 1 µs).
//
// Buckets are 16 per power of two from 16 µs up to 67 s; a percentile that
// falls on a longer gap is answered with the maximum, which is kept exactly.
type Gaps struct {
	n, max  uint64 // max in nanoseconds
	buckets [gapBuckets]uint32
}

// GapError bounds the relative error of a percentile read from Gaps: half a
// bucket, one thirty-second.
const GapError = 1.0 / 32

const (
	gapSub     = 16
	gapOctaves = 22
	gapBuckets = gapSub * (gapOctaves + 1)
)

// Add counts one gap; a negative one counts as 0.
func (g *Gaps) Add(d time.Duration) {
	d = max(d, 0)
	g.n++
	g.max = max(g.max, uint64(d))
	g.buckets[gapBucket(d)]++
}

// Count returns how many gaps were added.
func (g *Gaps) Count() uint64 { return g.n }

// Max returns the longest gap, exactly; unknown when none was added.
func (g *Gaps) Max() Duration {
	if g == nil || g.n == 0 {
		return Duration{}
	}
	return Lasting(time.Duration(g.max))
}

// Quantile returns the gap at rank q (0 … 1), within GapError of the true one
// and never above Max; unknown when none was added.
func (g *Gaps) Quantile(q float64) Duration {
	if g == nil || g.n == 0 {
		return Duration{}
	}
	rank := uint64(q * float64(g.n-1))
	var seen uint64
	for i, c := range g.buckets {
		seen += uint64(c)
		if seen > rank && i < gapBuckets-1 {
			return Lasting(min(gapMiddle(i), time.Duration(g.max)))
		}
	}
	return g.Max()
}

func gapBucket(d time.Duration) int {
	us := uint64(d / time.Microsecond)
	if us < gapSub {
		return int(us)
	}
	octave := bits.Len64(us) - 5 // 16 µs … 31 µs is octave 0
	if octave >= gapOctaves {
		return gapBuckets - 1
	}
	return gapSub*(octave+1) + int(us>>octave) - gapSub
}

func gapMiddle(i int) time.Duration {
	if i < gapSub {
		return time.Duration(i)*time.Microsecond + time.Microsecond/2
	}
	octave := i/gapSub - 1
	low := uint64(gapSub+i%gapSub) << octave
	return time.Duration(low)*time.Microsecond + time.Duration(uint64(1)<<octave)*time.Microsecond/2
}
