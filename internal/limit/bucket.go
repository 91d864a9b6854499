package limit

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// bucket is one rate's token bucket. Its times must never run back, and the pool's
// mutex is held for all of its methods.
type bucket struct {
	lim *rate.Limiter
	size
}

func newBucket(z size) *bucket {
	return &bucket{rate.NewLimiter(rate.Limit(z.perSecond), int(z.burst)), z}
}

// resize makes a changed limit hold from now on. The level stays as it is, debt
// included, but for a bucket that was full, which stays full: a full bucket may be
// dropped and made anew at any time, and must be the same afterwards.
func (b *bucket) resize(now time.Time, z size) {
	if b.size == z {
		return
	}
	full := b.full(now)
	b.lim.SetLimitAt(now, rate.Limit(z.perSecond))
	b.lim.SetBurstAt(now, int(z.burst))
	if full && z.burst > b.burst {
		b.lim.ReserveN(now, int(b.burst-z.burst))
	}
	b.size = z
}

// level returns what is in the bucket: below 0 it is in debt.
func (b *bucket) level(now time.Time) float64 { return b.lim.TokensAt(now) }

// full tells whether the bucket is as it was made.
func (b *bucket) full(now time.Time) bool { return b.level(now) >= float64(b.burst) }

// whole returns the level in whole tokens, as wait counts them.
func (b *bucket) whole(level float64) int64 {
	return int64(math.Floor(level + b.perSecond*1e-9))
}

// wait returns the nanoseconds until a bucket at this level can pay n, +Inf when it
// never can. What is there within a nanosecond is there: sums of fractions are not
// exact, and rate.Limiter counts alike. A bucket in debt cannot even pay 0.
func (b *bucket) wait(level float64, n int64) float64 {
	if b.limit == 0 || n > b.burst {
		return math.Inf(1)
	}
	if short := float64(n) - level; short > 0 {
		if ns := short / b.perSecond * 1e9; ns >= 1 {
			return ns
		}
	}
	return 0
}

// book takes n from the bucket, into debt if need be; below 0 it gives back, and
// what would stand above the burst is lost.
func (b *bucket) book(now time.Time, n int64) {
	switch {
	case n == 0:
	case n <= b.burst:
		b.lim.ReserveN(now, int(n))
	default:
		// ReserveN books nothing above the burst. With the burst raised for the moment it
		// books all at once what would else take n/burst steps, or could not be booked
		// at all where the limit has become 0. Neither call changes the level.
		b.lim.SetBurstAt(now, int(n))
		b.lim.ReserveN(now, int(n))
		b.lim.SetBurstAt(now, int(b.burst))
	}
}

// nanoseconds returns a wait as a duration, at most the longest there is. It is
// rounded, not rounded up: what is left after it is less than a nanosecond, which
// wait lets pass, and 18 s do not read as 18.000000001s.
func nanoseconds(ns float64) time.Duration {
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(math.Round(ns))
}
