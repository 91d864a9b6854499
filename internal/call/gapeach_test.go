package call

import (
	"math"
	"testing"
	"time"
)

func TestGapsEach(t *testing.T) {
	var g Gaps
	gaps := []time.Duration{0, 3 * time.Microsecond, 20 * time.Millisecond, 20 * time.Millisecond, 30 * time.Second, 10 * time.Minute}
	for _, d := range gaps {
		g.Add(d)
	}
	want := []struct {
		middle time.Duration
		n      uint64
	}{{500, 1}, {3500, 1}, {20 * time.Millisecond, 2}, {30 * time.Second, 1}, {66 * time.Second, 1}}
	i := 0
	g.Each(func(middle time.Duration, n uint64) {
		if i < len(want) {
			w := want[i]
			if n != w.n || math.Abs(float64(middle-w.middle)) > max(500, float64(w.middle)*GapError) {
				t.Errorf("bucket %d: %d gaps of %v, want %d of about %v", i, n, middle, w.n, w.middle)
			}
		}
		i++
	})
	if i != len(want) {
		t.Errorf("%d buckets, want %d", i, len(want))
	}
	var none *Gaps
	none.Each(func(time.Duration, uint64) { t.Error("a nil Gaps has a bucket") })
	new(Gaps).Each(func(time.Duration, uint64) { t.Error("empty Gaps have a bucket") })
}
