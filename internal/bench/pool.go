package bench

import (
	"math/rand/v2"
	"slices"

	"github.com/weirgate/weir/internal/stats"
)

// maxGaps is how many gaps of one repeat are kept: 80 MB. 2,000 streams at 100
// tokens a second reach it after 100 s.
const maxGaps = 20_000_000

// pool keeps values up to a limit, and beyond it a uniform sample of them. Mean
// and greatest value are always those of all. It is not for concurrent use.
type pool struct {
	limit  int
	values []float32
	seen   int
	sum    float64
	most   float32
	random *rand.Rand
}

// newPool keeps limit values. Which ones are kept beyond it follows from seed.
func newPool(limit int, seed uint64) *pool {
	return &pool{limit: limit, random: rand.New(rand.NewPCG(seed, 0x706f6f6c))}
}

func (p *pool) add(v float32) {
	p.seen++
	p.sum += float64(v)
	if p.seen == 1 || v > p.most {
		p.most = v
	}
	if len(p.values) < p.limit {
		p.values = append(p.values, v)
		return
	}
	// Each of the values seen so far is to be kept with the same chance.
	if at := p.random.IntN(p.seen); at < p.limit {
		p.values[at] = v
	}
}

func (p *pool) addAll(values []float32) {
	for _, v := range values {
		p.add(v)
	}
}

// sampled tells whether not all values were kept.
func (p *pool) sampled() bool { return p.seen > len(p.values) }

// quantiles describes the values, nil when there are none. It sorts them, and
// makes no copy: there may be many.
func (p *pool) quantiles() *Quantiles {
	if len(p.values) == 0 {
		return nil
	}
	slices.Sort(p.values)
	at := func(q float64) float64 {
		position := q * float64(len(p.values)-1)
		low := min(int(position), len(p.values)-1)
		high := min(low+1, len(p.values)-1)
		return stats.Quantile([]float64{float64(p.values[low]), float64(p.values[high])}, position-float64(low))
	}
	return &Quantiles{N: p.seen, Mean: p.sum / float64(p.seen), P50: at(0.5), P90: at(0.9), P95: at(0.95), P99: at(0.99), Max: float64(p.most)}
}
