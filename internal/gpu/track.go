package gpu

import "math"

// track is what is kept of one GPU. Sample i speaks for the time from start[i] to
// its own instant.
type track struct {
	key string
	times
	start   [ring]int64     // ns
	clock   [ring]float64   // SM clock as a share of its maximum; above 1: not known to be at work
	reasons [ring]Reasons   // the benign ones left out
	totals  [ring][3]weight // of the shares, up to and with each sample
	shares  [ring][3]float64
	energy  curve
}

// The shares of which there are means.
const (
	shareUtil = iota
	shareBandwidth
	shareBusy
)

// notAtWork stands for no clock ratio.
const notAtWork = 2.0

// weight is a sum of shares, each times the seconds that it is of, and of these
// seconds: its quotient is a mean by time.
type weight struct{ sum, seconds float64 }

func (w *weight) add(share, seconds float64) {
	if !math.IsNaN(share) {
		w.sum += share * seconds
		w.seconds += seconds
	}
}

func (w weight) mean() Number {
	if w.seconds == 0 {
		return Number{}
	}
	return Figure(min(1, max(0, w.sum/w.seconds))) // rounding of totals
}

// add takes a sample; one that is not newer than the last is dropped.
func (g *track) add(at int64, r *Reading) {
	start, total := at-hold, [3]weight{}
	if g.n > 0 {
		if at <= g.last() {
			return
		}
		start, total = max(start, g.last()), g.totals[place(g.n-1)]
	}
	i := place(g.n)
	g.shares[i] = [3]float64{orNaN(r.Utilization), orNaN(r.MemoryBandwidth), orNaN(r.MemoryBusy)}
	for k, share := range g.shares[i] {
		total[k].add(share, seconds(at-start))
	}
	g.times.at[i], g.start[i], g.totals[i] = at, start, total
	g.clock[i], g.reasons[i] = clockRatio(r), r.Reasons.Throttling()
	g.n++
	g.energy.add(at, orNaN(r.Power), orNaN(r.Energy))
}

// clockRatio is the clock as a share of its maximum, 0–1, of a GPU that is known
// to work: a low clock of an idle one is no throttling.
func clockRatio(r *Reading) float64 {
	util, utilKnown := r.Utilization.Get()
	idle := r.ReasonsKnown && r.Reasons&Idle != 0 || utilKnown && util == 0
	clock, known := r.Clock.Get()
	highest, alsoKnown := r.MaxClock.Get()
	if idle || !utilKnown && !r.ReasonsKnown || !known || !alsoKnown || highest <= 0 {
		return notAtWork
	}
	return min(1, clock/highest)
}

// overlaps tells whether samples speak for any of the time from a to b.
func (g *track) overlaps(a, b int64) bool {
	return g.n > 0 && g.start[place(g.first())] <= b && g.last()+hold >= a
}

// sums are what a Window adds up.
type sums struct {
	gpus, samples             int
	shares                    [3]weight
	clock                     float64 // the lowest
	reasons                   Reasons
	joules                    float64
	joulesKnown, joulesAbsent bool
}

// part adds sample i, which speaks for so many ns of the window. One that only
// touches it weighs a nanosecond, so that a window of no length has a mean.
func (w *sums) part(g *track, i int, ns int64) {
	for k, share := range g.shares[place(i)] {
		w.shares[k].add(share, seconds(max(0, ns)+1))
	}
}

// window adds what the GPU did from a to b.
func (g *track) window(a, b int64, w *sums) {
	if !g.overlaps(a, b) {
		return
	}
	first, end := g.seek(a), g.seek(b)
	if end < g.n && g.start[place(end)] < b {
		end++ // the sample that b lies in
	}
	samples := end - first
	late := b > g.last() // the next sample is not there yet: the last one speaks for the rest
	if samples > 0 {
		w.part(g, first, min(b, g.of(first))-max(a, g.start[place(first)]))
	}
	if samples > 1 {
		last := end - 1
		w.part(g, last, min(b, g.of(last))-g.start[place(last)])
		if samples > 2 { // those in between are whole
			from, to := &g.totals[place(first)], &g.totals[place(last-1)]
			for k := range w.shares {
				w.shares[k].sum += to[k].sum - from[k].sum
				w.shares[k].seconds += to[k].seconds - from[k].seconds
			}
		}
	}
	if late {
		w.part(g, g.n-1, min(b, g.last()+hold)-max(a, g.last()))
		if samples == 0 {
			first, samples = g.n-1, 1
		}
	}
	if samples <= 0 {
		return // a gap
	}
	clock, reasons := w.clock, w.reasons
	for i := first; i < first+samples; i++ {
		if here := g.clock[place(i)]; here < clock {
			clock = here
		}
		reasons |= g.reasons[place(i)]
	}
	w.clock, w.reasons = clock, reasons
	w.gpus++
	w.samples += samples
	if joules, ok := g.energy.between(a, b); ok {
		w.joules, w.joulesKnown = w.joules+joules, true
	} else {
		w.joulesAbsent = true
	}
}
