package diagnose

import (
	"math"
	"slices"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// trend is how a figure changed.
type trend int

const (
	unclear trend = iota // not known in both windows, or of too few calls
	down
	flat
	up
)

// pair is both windows as the rules see them. Rules read figures, trends and
// the decode fit; whether those come from records or from the rows of a table is
// nothing to them.
type pair struct {
	b, a   *Figures
	trends [measures]trend
	ratios [measures]call.Number // new by healthy
	change [measures]*Change
	sums   [2][measures]sumOf
	sig    [2]*Signals
	decode decodeFit
	prompt promptFit
	clocks []clockChange
	scene  scene
	// onsets are when calls were first seen to be slow, by measure.
	onsets        [measures]onset
	read          []reading // of the new window
	list          [2][]sample
	siblings      []Sibling
	rerouted      bool // no upstream is slower by itself
	rows          bool // they come from a table: there are no records
	least         int
	reasonsBefore []string
}

// trendOf compares two sums: a change counts when it is large and no chance.
func trendOf(b, a *sumOf, floor time.Duration) trend {
	if b.calls < FocusCalls || a.calls < FocusCalls {
		return unclear
	}
	before, after := b.mean(), a.mean()
	diff := after - before
	sure := math.Abs(diff) >= Sure*math.Sqrt(b.variance()+a.variance()) && math.Abs(diff) >= floor.Seconds()
	switch {
	case sure && after >= Rise*before:
		return up
	case sure && after*Rise <= before:
		return down
	}
	return flat
}

// by is the ratio of two figures; unknown when the first is not above 0.
func by(before, after call.Number) call.Number {
	b, known := before.Get()
	a, too := after.Get()
	if !known || !too || b <= 0 {
		return call.Number{}
	}
	return call.Figure(a / b)
}

func inMS(d call.Duration) call.Number {
	if v, known := d.Get(); known {
		return call.Figure(milliseconds(v))
	}
	return call.Number{}
}

// rose tells whether a figure is known to be up by Rise; from nothing it rises with
// any noticeable amount.
func rose(before, after call.Number, least float64) bool {
	b, known := before.Get()
	a, too := after.Get()
	return known && too && a >= Rise*b && a-b >= least
}

// first is the measure of the way to the first token: TTFT or, where calls have
// none, E2E.
func (p *pair) first() measure {
	if p.trends[ofTTFT] == unclear && !p.ratios[ofTTFT].IsKnown() {
		return ofE2E
	}
	return ofTTFT
}

// firstUp tells whether the first token (the whole answer) comes later by more
// than the steps of decoding explain.
func (p *pair) firstUp() bool {
	m := p.first()
	if p.trends[m] != up {
		return false
	}
	if m != ofTTFT || p.trends[ofTPOT] != up {
		return true
	}
	later := p.a.TTFT.Or(0) - p.b.TTFT.Or(0)
	slower := p.a.TPOT.Or(0) - p.b.TPOT.Or(0)
	return later > StepsOfPrompt*slower
}

// part is how much of the change of a measure's mean a phase has.
func (p *pair) part(m measure, ph phase) time.Duration {
	c := p.change[m]
	if c == nil {
		return 0
	}
	for i := range c.Parts {
		if c.Parts[i].Phase == phaseNames[ph] {
			return c.Parts[i].Change.Or(0)
		}
	}
	return 0
}

// means are the means of a phase in both windows.
func (p *pair) means(m measure, ph phase) (before, after time.Duration) {
	for i, to := range [...]*time.Duration{&before, &after} {
		if s := &p.sums[i][m]; s.calls > 0 {
			*to = s.parts[ph] / time.Duration(s.calls)
		}
	}
	return before, after
}

// share is what some phases have of the change of a measure, if that is a rise.
func (p *pair) share(m measure, list ...phase) (d time.Duration, share float64) {
	c := p.change[m]
	if c == nil || c.Change.Or(0) <= 0 {
		return 0, 0
	}
	for _, ph := range list {
		d += p.part(m, ph)
	}
	return d, float64(d) / float64(c.Change.Or(0))
}

// queueChange is by how much the time in queues grew, and what that is of the
// change of the first token's time.
func (p *pair) queueChange() (d time.Duration, share float64) {
	change := p.change[p.first()]
	if change == nil || change.Change.Or(0) <= 0 {
		return 0, 0
	}
	d = p.a.Queue.Or(0) - p.b.Queue.Or(0)
	return d, float64(d) / float64(change.Change.Or(0))
}

// queueing tells whether queues are what the first token waits for: at least four
// fifths of its time, or of what it takes longer.
func (p *pair) queueing() bool {
	if !p.firstUp() || !p.a.Queue.IsKnown() || p.a.Queue.Or(0) <= p.b.Queue.Or(0) {
		return false
	}
	least := QueueShare
	if p.first() == ofE2E {
		least = Dominant
	}
	_, share := p.queueChange()
	return p.a.QueueShare.Or(0) >= least || share >= least
}

// waits tells whether the gauges show that more waits than did.
func (p *pair) waits() (grown, known bool) {
	a, read := p.a.Waiting.Get()
	return read && a > 0 && a > p.b.Waiting.Or(0), read
}

// slower tells whether anything takes longer than it did.
func (p *pair) slower() bool {
	return slices.Contains(p.trends[:], up)
}
