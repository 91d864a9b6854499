package capacity

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/weirgate/weir/internal/stats"
)

const (
	// replayCalls is how many calls a replay for the estimate has, roundCalls one for its
	// interval.
	replayCalls = 16000
	roundCalls  = 4000
	// runCalls is how many calls in a row are drawn together, so that calls that came in a
	// cluster do so again.
	runCalls = 16
	// modelError is how far the model was off on simulated engines with effects that it lacks,
	// as a standard deviation of the knee's logarithm. No interval claims to be surer.
	modelError = 0.03
)

// liveEstimate is the state of the estimate of one upstream.
type liveEstimate struct {
	calls    []liveCall
	load     *liveLoad
	arrivals liveArrivals
	mix      []liveItem // one for each call
	tpots    []int      // calls whose TPOT is fitted
	prefills livePrefills
	work     liveWork
	replay   liveReplay
}

// fill prepares the mix: calls whose tokens are not known are taken to be like the one before.
func (e *liveEstimate) fill() (usable int) {
	e.mix = make([]liveItem, len(e.calls))
	var like liveItem
	first := -1 // call whose tokens are known
	for i := range e.calls {
		c := &e.calls[i]
		if c.usable() {
			usable++
			if c.decodes() {
				e.tpots = append(e.tpots, i)
			}
		}
		if c.whole() {
			like.input, like.uncached, like.output = c.input, max(c.uncached, 1), c.output
			if first < 0 {
				first = i
			}
		}
		like.gap, like.before, like.judged = e.arrivals.unit[i], c.before, c.judged
		e.mix[i] = like
	}
	for i := range max(first, 0) { // it stands for those before it as well
		k := &e.mix[first]
		e.mix[i].input, e.mix[i].uncached, e.mix[i].output = k.input, k.uncached, k.output
	}
	return usable
}

// draw fills items with n calls, in runs of the mix at places, which is how a sample of the
// records was drawn; nil is all of them in order.
func (e *liveEstimate) draw(items []liveItem, n int, places []int, rng *rand.Rand) []liveItem {
	items = items[:0]
	sum := 0.0
	for len(items) < n {
		start := rng.IntN(len(e.mix))
		for k := 0; k < runCalls && len(items) < n; k++ {
			i := (start + k) % len(e.mix)
			if places != nil {
				i = places[i]
			}
			items = append(items, e.mix[i])
			sum += e.mix[i].gap
		}
	}
	// The rate asked for is the rate replayed: the mean gap is 1.
	if mean := sum / float64(len(items)); mean > 0 {
		for i := range items {
			items[i].gap /= mean
		}
	}
	return items
}

// spread estimates the standard deviation of the logarithm of the knee: so many times the
// records are drawn anew in runs, fitted and replayed (a block bootstrap; H. R. Künsch, The
// jackknife and the bootstrap for general stationary observations, Annals of
// Statistics 17, 1989). It is NaN where too few draws give a knee.
func (e *liveEstimate) spread(m liveModel, knee, stepTokens float64, seed uint64, rounds int) float64 {
	rng := rand.New(rand.NewPCG(seed, 0x737072656164))
	n := len(e.calls)
	isTPOT, isPrefill := make([]bool, n), make([]bool, n)
	for _, i := range e.tpots {
		isTPOT[i] = true
	}
	for _, i := range e.prefills.calls {
		isPrefill[i] = true
	}
	var items []liveItem
	var places, tpots, prefills []int
	logs := make([]float64, 0, rounds)
	for range rounds {
		places = liveBlocks(places, n, n, rng.IntN)
		tpots, prefills = tpots[:0], prefills[:0]
		for _, i := range places {
			if isTPOT[i] {
				tpots = append(tpots, i)
			}
			if isPrefill[i] {
				prefills = append(prefills, i)
			}
		}
		cost, ok := liveFitCost(e.calls, e.load, tpots, livePrefills{e.prefills.source, prefills}, stepTokens, &m.engine.cost, &e.work)
		if !ok {
			continue
		}
		if e.prefills.source == "engine" {
			cost.front = m.engine.cost.front
		}
		again := m.with(cost)
		items = e.draw(items, roundCalls, places, rng)
		if rate, ok := again.around(&e.replay, items, knee, 4, roundError); ok {
			logs = append(logs, math.Log(rate))
		}
	}
	if len(logs) < rounds*3/4 {
		return math.NaN()
	}
	// From the middle 68 %, which is two standard deviations wide, so that a draw gone astray
	// does not count.
	slices.Sort(logs)
	return (stats.Quantile(logs, 0.84) - stats.Quantile(logs, 0.16)) / 2
}

// drift is how much longer tokens took in the busiest third of the calls than a fit of the
// others foretells, as a share; NaN when it cannot be told.
func (e *liveEstimate) drift(stepTokens float64) float64 {
	order := slices.Clone(e.tpots)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(e.calls[a].batch, e.calls[b].batch) })
	cut := len(order) * 2 / 3
	if cut == 0 {
		return math.NaN()
	}
	low, high := e.calls[order[cut/20]].batch, e.calls[order[cut-1-cut/20]].batch
	known := order // with too little variation below, a fit of all has to do
	if high-low >= 1 && high >= leastVariation*low {
		known = order[:cut]
	}
	cost, ok := liveFitCost(e.calls, e.load, known, e.prefills, stepTokens, nil, &e.work)
	if !ok {
		return math.NaN()
	}
	offs := make([]float64, 0, len(order)-cut)
	for _, i := range order[cut:] {
		c := &e.calls[i]
		offs = append(offs, c.tpot/cost.foretell(c)-1)
	}
	off, told := stats.Median(offs)
	if !told {
		return math.NaN()
	}
	return off
}
