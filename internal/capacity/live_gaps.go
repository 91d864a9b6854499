package capacity

import "math"

// Arrivals are described by their gaps, and the gaps by the rate of the stretch they lie
// in: what is left, the gaps in units of their stretch's mean gap, is how bursty arrivals
// are at a steady rate. So a day with a busy and a quiet half is not taken for
// burstiness, and calls that come in clusters are.

const (
	// stretchCalls is the least number of calls that make a stretch: the mean of a hundred
	// gaps of random arrivals is known to a tenth.
	stretchCalls = 100
	// stretchGain is how much likelier, as a logarithm, two rates have to make the gaps than one for
	// a stretch to be cut; the best of many cuts of random arrivals reaches about 5 by chance.
	stretchGain = 5.5
)

// liveStretch is calls from ≤ i < to that came at one rate.
type liveStretch struct {
	from, to int     // gaps
	rate     float64 // calls a second
}

// liveStretches cuts gaps (seconds, not negative) where the rate changes, by halving: the
// cut that explains the gaps best is made if it explains them enough better.
func liveStretches(gaps []float64) []liveStretch {
	sums := make([]float64, len(gaps)+1)
	squares := 0.0
	for i, g := range gaps {
		sums[i+1] = sums[i] + g
		squares += g * g
	}
	// Of gaps that scatter more than those of random arrivals, sums do so too.
	scatter := 1.0
	if n := float64(len(gaps)); n > 1 && sums[len(gaps)] > 0 {
		mean := sums[len(gaps)] / n
		scatter = max(1, (squares/n-mean*mean)/(mean*mean))
	}
	var list []liveStretch
	var cut func(from, to int)
	cut = func(from, to int) {
		// −log likelihood of exponential gaps with their own mean, but for a constant.
		cost := func(a, b int) float64 {
			n := float64(b - a)
			return n * math.Log(max(sums[b]-sums[a], 1e-9)/n)
		}
		best, at := 0.0, 0
		whole := cost(from, to)
		for i := from + stretchCalls; i <= to-stretchCalls; i++ {
			if gain := whole - cost(from, i) - cost(i, to); gain > best {
				best, at = gain, i
			}
		}
		if best > stretchGain*scatter {
			cut(from, at)
			cut(at, to)
			return
		}
		list = append(list, liveStretch{from, to, float64(to-from) / max(sums[to]-sums[from], 1e-9)})
	}
	if len(gaps) > 0 {
		cut(0, len(gaps))
	}
	return list
}

// liveArrivals is when calls came, and at which rates.
type liveArrivals struct {
	unit    []float64 // gap before call i, in mean gaps of its stretch; 1 for the first call
	rate    float64   // of all, calls a second
	present float64   // of the last stretch
	highest float64   // of the busiest calls in a row
	over    int       // how many those are
}

func liveArrive(calls []liveCall) liveArrivals {
	n := len(calls)
	a := liveArrivals{unit: make([]float64, n)}
	if n < 2 {
		return a
	}
	gaps := make([]float64, n-1)
	for i := range gaps {
		gaps[i] = calls[i+1].received - calls[i].received
	}
	stretches := liveStretches(gaps)
	a.unit[0] = 1
	for _, s := range stretches {
		for i := s.from; i < s.to; i++ {
			a.unit[i+1] = gaps[i] * s.rate
		}
	}
	a.present = stretches[len(stretches)-1].rate
	a.rate = float64(n-1) / max(calls[n-1].received-calls[0].received, 1e-9)
	a.over = min(stretchCalls, n-1)
	for i := 0; i+a.over < n; i++ {
		if rate := float64(a.over) / max(calls[i+a.over].received-calls[i].received, 1e-9); rate > a.highest {
			a.highest = rate
		}
	}
	return a
}

// missed counts the calls that came among calls at this rate or faster, and those of them whose
// TTFT was longer than a limit (s).
func (a *liveArrivals) missed(calls []liveCall, rate, limit float64) (missed, of int) {
	n := len(calls)
	busy := make([]bool, n)
	for i := 0; a.over > 0 && i+a.over < n; i++ {
		if float64(a.over) >= rate*(calls[i+a.over].received-calls[i].received) {
			for j := i + a.over; j >= i && !busy[j]; j-- {
				busy[j] = true
			}
		}
	}
	for i := range calls {
		if c := &calls[i]; busy[i] && c.judged && !math.IsNaN(c.ttft) {
			of++
			if c.ttft > limit {
				missed++
			}
		}
	}
	return missed, of
}

// liveBlocks draws n places of a sample of a size, in runs of neighbours, so that what
// follows one another in the records does so in the draw.
func liveBlocks(to []int, n, size int, draw func(n int) int) []int {
	to = to[:0]
	for len(to) < n {
		start := draw(size)
		for k := 0; k < runCalls && len(to) < n; k++ {
			to = append(to, (start+k)%size)
		}
	}
	return to
}
