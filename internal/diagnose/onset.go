package diagnose

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// onset is when calls began to be slow: the first of three in a row that are beyond
// what 95 of 100 healthy calls took, and slower than the mean by more than Rise.
type onset struct {
	known bool
	// began is when the first of them was sent, seen when its time had passed.
	began, seen time.Time
}

func onsetOf(before, after []sample, from time.Time, m measure) onset {
	var healthy numbers
	for i := range before {
		if before[i].has[m] {
			healthy = append(healthy, before[i].whole[m].Seconds())
		}
	}
	limit, known := healthy.quantile(0.95).Get()
	if !known {
		return onset{}
	}
	limit = max(limit, healthy.mean().Or(0)*Rise)
	var o onset
	n := 0
	for i := range after {
		s := &after[i]
		switch {
		case !s.has[m]:
			continue
		case s.whole[m].Seconds() <= limit:
			n, o = 0, onset{}
			continue
		case n == 0:
			o.began, o.seen = from.Add(s.sent), from.Add(s.seen(m))
		}
		if n++; n == inARow {
			o.known = true
			return o
		}
	}
	return onset{}
}

// seen is when a measure of the call is known.
func (s *sample) seen(m measure) time.Duration {
	switch {
	case m == ofTTFT && s.decoding:
		return s.first
	case m == ofTPOT:
		return s.last
	}
	return s.ended
}

// since tells from when on a condition of the readings holds: the first of two in
// a row, since a single reading may be chance.
func since(read []reading, holds func(*reading) bool) (time.Time, bool) {
	for i := range read {
		if holds(&read[i]) && (i+1 == len(read) || holds(&read[i+1])) {
			return read[i].at, true
		}
	}
	return time.Time{}, false
}

// lead is evidence of which came first, the signal or the slow calls. What was seen
// no later than the first slow call was known to be slow came before; what came so
// little later that readings may have missed it says nothing.
func (p *pair) lead(f *Finding, m measure, signal string, at time.Time) {
	o := p.onsets[m]
	if !o.known || at.IsZero() {
		return
	}
	ahead := o.seen.Sub(at)
	e := Evidence{Figure: "lead_ms", Value: call.Figure(milliseconds(ahead)), Unit: InMilliseconds}
	clock := at.UTC().Format("15:04:05")
	if ahead < 0 && ahead >= -FreshReading {
		return
	}
	if ahead >= 0 {
		e.Text = fmt.Sprintf("%s since %s, %s before the first slow %s was seen", signal, clock, span(ahead), inCapitals[m])
		f.For = append(f.For, e)
		return
	}
	e.Text = fmt.Sprintf("%s only since %s, %s after the first slow %s", signal, clock, span(-ahead), inCapitals[m])
	f.Against = append(f.Against, e)
}

// siblingsOf compares upstreams, models and keys on the measure that changed most.
// scope is the one dimension by which some changed and others did not.
func siblingsOf(list [2][]sample, m measure) (all []Sibling, scope *Scope, rerouted bool) {
	for d := range dimensions {
		sums := [2]map[string]*sumOf{{}, {}}
		for i := range list {
			for j := range list[i] {
				s := &list[i][j]
				name := named[d].of(s.rec)
				at := sums[i][name]
				if at == nil {
					if len(sums[i]) >= maxNames {
						continue
					}
					at = new(sumOf)
					sums[i][name] = at
				}
				at.add(s, m)
			}
		}
		var names, changed, healthy []string
		for name := range sums[1] {
			names = append(names, name)
		}
		slices.Sort(names)
		floor := Felt
		if m == ofTPOT {
			floor = 0
		}
		first := len(all)
		for _, name := range names {
			b, a := sums[0][name], sums[1][name]
			if b == nil || name == "" {
				continue
			}
			t := trendOf(b, a, floor)
			if t == unclear {
				continue
			}
			all = append(all, Sibling{Dimension: named[d].figure, Name: clean(name), Measure: measureNames[m], Calls: a.calls,
				Before: b.amount().Mean, After: a.amount().Mean, Changed: t == up})
			if t == up {
				changed = append(changed, name)
			} else if a.mean() < (1+Rise)/2*b.mean() {
				healthy = append(healthy, name)
			}
		}
		switch n := len(all) - first; {
		case n < 2:
			all = all[:first]
		case d == byUpstream && len(healthy) == n:
			rerouted = true
		case len(changed) > 0 && len(healthy) > 0 && scope == nil:
			scope = &Scope{Dimension: named[d].figure, Names: changed}
		}
		if n := len(all) - first; n > maxSiblings {
			all = all[:first+maxSiblings]
		}
	}
	return all, scope, rerouted
}

// sides are evidence of what upstreams, models or keys show beside each other.
// apart is whether it speaks for the finding that some stayed healthy.
func (p *pair) sides(f *Finding, apart bool) {
	for d := range dimensions {
		var healthy, changed int
		var one *Sibling
		for i := range p.siblings {
			s := &p.siblings[i]
			switch {
			case s.Dimension != named[d].figure:
			case s.Changed:
				changed++
			default:
				if healthy++; one == nil {
					one = s
				}
			}
		}
		e := Evidence{Figure: named[d].figure, Unit: InMilliseconds}
		switch {
		case changed > 0 && healthy > 0:
			e.Text = fmt.Sprintf("%s %s stayed as it was: %s %s, before %s", named[d].word, one.Name, span(one.After.Or(0)), one.Measure, span(one.Before.Or(0)))
			e.Value, e.Calls = inMS(one.After), one.Calls
			f.For = append(f.For, e)
		case changed > 1 && d == byUpstream && apart:
			e.Text = fmt.Sprintf("all %d upstreams changed alike, which is not the way of a single machine", changed)
			e.Unit = NoUnit
			f.Against = append(f.Against, e)
		}
	}
}
