package limit

import (
	"math"
	"math/big"
)

// model is what a pool should do, told as plainly as can be: levels are exact
// fractions, every subject has its buckets from the start, and nothing is ever dropped.
type model struct {
	sets [3]modelSet // key "a", key "b", the pool
	now  int64       // ns; never runs back
}

type modelSet struct {
	sizes   sizes
	buckets [numRates]*modelBucket
	calls   int64
	tokens  int64
}

type modelBucket struct {
	size
	perNano *big.Rat
	level   *big.Rat
	last    int64
}

type modelTicket struct {
	held, charged bool
	set           [2]int
	takes         [2]bool
	took          [2][numRates]bool
	reserved      int64 // output
	booked        cost
}

func rat(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

// newRate sizes the bucket: its rate is the undivided limit over the replicas.
func (b *modelBucket) newRate(z size, replicas int64) {
	b.size = z
	undivided := int64(math.Round(z.perSecond * 60 * float64(replicas))) // the nearest double is what it was made of
	b.perNano = big.NewRat(undivided, 60_000_000_000*replicas)
}

func (b *modelBucket) advance(now int64) {
	b.level.Add(b.level, new(big.Rat).Mul(rat(now-b.last), b.perNano))
	b.last = now
	if top := rat(b.burst); b.level.Cmp(top) > 0 {
		b.level = top
	}
}

func (b *modelBucket) book(now, n int64) {
	b.advance(now)
	b.level.Sub(b.level, rat(n))
	b.advance(now)
}
