package bench

import (
	"math"
	"slices"

	"github.com/weirgate/weir/internal/stats"
)

const (
	// mostSlices is into how many slices of time a repeat is cut, leastSlices how
	// many are needed to say anything.
	mostSlices  = 20
	leastSlices = 5
)

// throughput compares tokens a second or, where usage is not known, calls.
func (p loadPair) throughput() (RegressionRow, bool) {
	tokens := true
	of := func(f *Figures) (float64, bool) { return known(f.TotalPerSecond) }
	row, ok := p.row(throughput, "tokens/s", of)
	if !ok {
		tokens = false
		of = func(f *Figures) (float64, bool) { return f.CallsPerSecond, f.Seconds > 0 }
		if row, ok = p.row(throughput, "calls/s", of); !ok {
			return row, false
		}
	}
	mean := func(v []float64) float64 { m, _ := stats.Mean(v); return m }
	row.within(stats.Ratio(slicesOf(p.base, tokens), slicesOf(p.now, tokens), mean, 1, 0), p.repeats(of))
	return row, true
}

// slicesOf cuts each repeat into slices of equal time and returns the throughput
// in each. Work is spread evenly over the time of its call, so that calls that
// end together do not make it look uneven; a slice is no shorter than a call, so that
// slices are as good as independent. It is empty when that leaves too few.
func slicesOf(run *Run, tokens bool) []float64 {
	var all []float64
	for i := range run.Raw {
		r := &run.Raw[i]
		calls := min(len(r.At), len(r.E2E), len(r.Tokens))
		if calls == 0 || !(r.Seconds > 0) || math.IsInf(r.Seconds, 0) {
			continue
		}
		long := slices.Clone(r.E2E[:calls])
		slices.Sort(long)
		n := mostSlices
		if typical := float64(long[calls/2]) / 1e3; typical > 0 {
			n = int(min(float64(n), r.Seconds/typical))
		}
		if n < leastSlices {
			continue
		}
		width := r.Seconds * 1e3 / float64(n)
		work := make([]float64, n)
		for c := range calls {
			amount := 1.0
			if tokens {
				if amount = float64(r.Tokens[c]); math.IsNaN(amount) {
					amount = 0
				}
			}
			from, to := float64(r.At[c])/width, float64(r.At[c]+r.E2E[c])/width
			if math.IsNaN(from) || math.IsNaN(to) {
				continue // no file of ours has that
			}
			share(work, from, to, amount)
		}
		scale := float64(r.Of) / float64(calls) / (width / 1e3) // a sample stands for all
		for _, w := range work {
			all = append(all, w*scale)
		}
	}
	return all
}

// share spreads an amount evenly from one place to another, in slices.
func share(work []float64, from, to, amount float64) {
	last := float64(len(work))
	from, to = min(max(from, 0), last), min(max(to, 0), last)
	if !(to > from) {
		work[min(int(from), len(work)-1)] += amount
		return
	}
	for i := int(from); i < len(work) && float64(i) < to; i++ {
		part := min(to, float64(i+1)) - max(from, float64(i))
		work[i] += amount * part / (to - from)
	}
}
