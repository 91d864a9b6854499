package call

import "time"

// Each calls f once for every bucket that holds gaps, shortest first, with the
// bucket's middle and the number of gaps in it. The middle is within GapError of
// each of them, but for gaps too long for the last bucket, and never above Max.
// A nil Gaps has none. It does not allocate.
func (g *Gaps) Each(f func(middle time.Duration, n uint64)) {
	if g == nil || g.n == 0 {
		return
	}
	for i, c := range g.buckets {
		if c != 0 {
			f(min(gapMiddle(i), time.Duration(g.max)), uint64(c))
		}
	}
}
