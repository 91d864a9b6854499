package capacity

import (
	"cmp"
	"math"
	"slices"

	"github.com/weirgate/weir/internal/stats"
)

// liveCurve is a step function of time and its integral.
type liveCurve struct {
	at    []float64 // upwards
	value []float64 // from at[i] on
	area  []float64 // from at[0] to at[i]
}

// liveEdge is a change of a curve.
type liveEdge struct{ at, by float64 }

// liveEdges makes room for a beginning and an end of each call.
func liveEdges(calls []liveCall) []liveEdge { return make([]liveEdge, 0, 2*len(calls)) }

func newLiveCurve(edges []liveEdge) *liveCurve {
	slices.SortFunc(edges, func(a, b liveEdge) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) // ends before beginnings
	})
	c := &liveCurve{at: make([]float64, 0, len(edges)), value: make([]float64, 0, len(edges)), area: make([]float64, 0, len(edges))}
	var value, area, last float64
	for i, e := range edges {
		if i > 0 {
			area += value * (e.at - last)
		}
		value, last = value+e.by, e.at
		if n := len(c.at); n > 0 && c.at[n-1] == e.at {
			c.value[n-1] = value
			continue
		}
		c.at, c.value, c.area = append(c.at, e.at), append(c.value, value), append(c.area, area)
	}
	return c
}

// index is the last place at or before t, -1 before the first.
func (c *liveCurve) index(t float64) int {
	i, found := slices.BinarySearch(c.at, t)
	if !found {
		i--
	}
	return i
}

// before is the value just before t.
func (c *liveCurve) before(t float64) float64 {
	i, _ := slices.BinarySearch(c.at, t)
	if i == 0 {
		return 0
	}
	return c.value[i-1]
}

func (c *liveCurve) integral(t float64) float64 {
	i := c.index(t)
	if i < 0 {
		return 0
	}
	return c.area[i] + c.value[i]*(t-c.at[i])
}

// mean is the mean by time from a to b; NaN when no time lies between.
func (c *liveCurve) mean(a, b float64) float64 {
	if !(b > a) {
		return math.NaN()
	}
	return (c.integral(b) - c.integral(a)) / (b - a)
}

func (c *liveCurve) most() float64 {
	if len(c.value) == 0 {
		return 0
	}
	return slices.Max(c.value)
}

// liveLoad is what the engine had to do over time, as far as calls passed here.
type liveLoad struct {
	inFlight *liveCurve // from received to ended
	upstream *liveCurve // from sent to ended
	decoding *liveCurve // from first to last token
	steps    liveSteps

	kvMost float64 // the most tokens that decoding calls held at once
	share  float64 // of the engine's load, 0–1: what is ours
	gauged bool    // share comes from gauges, and is less than 1
	crowd  bool    // more calls are in flight here than one engine's gauges show
	// kvScale is the KV tokens in use for each token of decoding calls, from the gauges; NaN unknown.
	kvScale float64
}

// liveSteps are the steps that ended prompts, by the instant of their first tokens.
type liveSteps struct {
	at     []float64
	tokens []float64 // sum of uncached tokens up to and with this step
	count  []float64 // of steps, those in which longer prompts began among them
}

// within counts the steps after a up to b, and their tokens.
func (s *liveSteps) within(a, b float64) (n, tokens float64) {
	i, j := s.index(a), s.index(b)
	if j <= i {
		return 0, 0
	}
	n, tokens = s.count[j], s.tokens[j]
	if i >= 0 {
		n, tokens = n-s.count[i], tokens-s.tokens[i]
	}
	return n, tokens
}

func (s *liveSteps) index(t float64) int {
	i, found := slices.BinarySearch(s.at, t)
	if !found {
		i--
	}
	return i
}

// liveMeasure computes the load and fills in what each call met.
func liveMeasure(calls []liveCall, kvTokens, stepTokens float64) *liveLoad {
	liveGuess(calls)
	l := &liveLoad{share: 1, kvScale: math.NaN()}
	in, up, dec := liveEdges(calls), liveEdges(calls), liveEdges(calls)
	for i := range calls {
		c := &calls[i]
		in = append(in, liveEdge{c.received, 1}, liveEdge{c.ended, -1})
		up = append(up, liveEdge{c.sent, 1}, liveEdge{c.ended, -1})
		if c.last > c.first {
			dec = append(dec, liveEdge{c.first, 1}, liveEdge{c.last, -1})
		}
	}
	l.inFlight, l.upstream, l.decoding = newLiveCurve(in), newLiveCurve(up), newLiveCurve(dec)
	l.fillSteps(calls, stepTokens)
	held := l.fillKV(calls)
	l.readGauges(calls, held, kvTokens)
	l.fillCalls(calls)
	return l
}

// liveGuess gives calls that were not streamed an instant of the first token: the
// median upstream TTFT of those that were.
func liveGuess(calls []liveCall) {
	var waits []float64
	for i := range calls {
		if c := &calls[i]; !c.guessed && !math.IsNaN(c.first) {
			waits = append(waits, c.first-c.sent)
		}
	}
	wait, known := stats.Median(waits)
	for i := range calls {
		c := &calls[i]
		if !c.guessed {
			continue
		}
		if !known {
			c.last = math.NaN()
			continue
		}
		c.first = min(c.sent+wait, c.last)
	}
}

// fillSteps finds which prompts ended in the same step: their first tokens come at the
// same instant, to within a quarter of the quickest time for a token.
func (l *liveLoad) fillSteps(calls []liveCall, stepTokens float64) {
	var pace []float64
	order := make([]int, 0, len(calls))
	for i := range calls {
		if !math.IsNaN(calls[i].first) {
			order = append(order, i)
		}
		if calls[i].tpot > 0 {
			pace = append(pace, calls[i].tpot)
		}
	}
	slices.Sort(pace)
	near := 0.001
	if len(pace) > 0 {
		near = stats.Quantile(pace, 0.05) / 4
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(calls[a].first, calls[b].first) })
	sum := 0.0
	for _, i := range order {
		c := &calls[i]
		n := len(l.steps.at)
		if n == 0 || c.first-l.steps.at[n-1] > near {
			l.steps.at, l.steps.tokens = append(l.steps.at, c.first), append(l.steps.tokens, sum)
			n++
		}
		if c.uncached > 0 { // not NaN
			sum += c.uncached
		}
		l.steps.tokens[n-1] = sum
	}
	// A step takes so many tokens, so that longer prompts took more of them.
	l.steps.count = make([]float64, len(l.steps.at))
	before, steps := 0.0, 0.0
	for i, sum := range l.steps.tokens {
		steps += max(1, math.Ceil((sum-before)/stepTokens))
		before = sum
		l.steps.count[i] = steps
	}
}

// fillKV returns the tokens that decoding calls hold over time, as one value at each
// edge of a call, and keeps the highest.
func (l *liveLoad) fillKV(calls []liveCall) func(t float64) float64 {
	base, pace := liveEdges(calls), liveEdges(calls)
	for i := range calls {
		c := &calls[i]
		if !(c.last > c.first) || math.IsNaN(c.input) || math.IsNaN(c.output) {
			continue
		}
		// input + pace·(t − first), as two sums that do not depend on t.
		v := (c.output - 1) / (c.last - c.first)
		base = append(base, liveEdge{c.first, c.input - v*c.first}, liveEdge{c.last, -(c.input - v*c.first)})
		pace = append(pace, liveEdge{c.first, v}, liveEdge{c.last, -v})
	}
	b, p := newLiveCurve(base), newLiveCurve(pace)
	held := func(t float64) float64 { return b.before(t) + p.before(t)*t }
	for i := range calls {
		if c := &calls[i]; c.last > c.first {
			l.kvMost = max(l.kvMost, held(c.last))
		}
	}
	return held
}

const (
	// ownEngine is the share of the engine's load from which on the rest is taken for noise.
	ownEngine = 0.9
	// gaugeReadings is how many readings it takes to speak of others.
	gaugeReadings = 50
)

// readGauges holds the calls in flight against the engine's own gauges: what is
// running there beyond them belongs to others.
func (l *liveLoad) readGauges(calls []liveCall, held func(float64) float64, kvTokens float64) {
	var ours, theirs, tokens, used float64
	n, kv, seen := 0, 0, math.Inf(-1)
	from, to := liveSteady(calls)
	for i := range calls {
		c := &calls[i]
		if !(c.read > from && c.read < to) || c.read-seen < 1e-4 {
			continue // none, or the reading that another call had
		}
		running, known := c.load.Running.Get()
		waiting, too := c.load.Waiting.Get()
		if !known || !too {
			continue
		}
		seen = c.read
		n++
		ours += l.upstream.before(c.read)
		theirs += float64(running + waiting)
		if use, known := c.load.KVUse.Get(); known && kvTokens > 0 && running > 0 {
			kv++
			tokens += held(c.read)
			used += use * kvTokens
		}
	}
	if n >= gaugeReadings && theirs > 0 {
		ratio := ours / theirs
		l.crowd = ratio > 1/ownEngine/ownEngine
		if ratio < ownEngine {
			l.share, l.gauged = ratio, true
		}
	}
	if kv >= gaugeReadings && tokens > 0 {
		l.kvScale = used / tokens * l.share
	}
}

// liveSteady is the time of which all calls are known: from when those that were
// received before the first record have ended, to when the last was received.
func liveSteady(calls []liveCall) (from, to float64) {
	if len(calls) == 0 {
		return 0, 0
	}
	spans := make([]float64, len(calls))
	for i := range calls {
		spans[i] = calls[i].ended - calls[i].received
	}
	slices.Sort(spans)
	return calls[0].received + stats.Quantile(spans, 0.99), calls[len(calls)-1].received
}

// fillCalls tells each call what it met.
func (l *liveLoad) fillCalls(calls []liveCall) {
	wait := liveEdges(calls)
	for i := range calls {
		c := &calls[i]
		end := c.first
		if math.IsNaN(end) {
			end = c.ended
		}
		wait = append(wait, liveEdge{c.sent, 1}, liveEdge{max(end, c.sent), -1})
	}
	waiting := newLiveCurve(wait)
	sent := make([]float64, len(calls))
	for i := range calls {
		sent[i] = calls[i].sent
	}
	slices.Sort(sent)
	for i := range calls {
		c := &calls[i]
		c.at = l.decoding.before(c.sent) / l.share
		c.batch, c.prompts, c.others = math.NaN(), 0, 0
		if math.IsNaN(c.first) {
			continue
		}
		later, _ := slices.BinarySearch(sent, c.first)
		sooner, _ := slices.BinarySearch(sent, c.sent)
		c.ahead = int(math.Round(waiting.before(c.sent))) + later - sooner - 1
		if c.last > c.first {
			c.batch = 1 + (l.decoding.mean(c.first, c.last)-1)/l.share
			c.prompts, c.others = l.steps.within(c.first, c.last)
			c.prompts, c.others = c.prompts/l.share, c.others/l.share
		}
	}
}
