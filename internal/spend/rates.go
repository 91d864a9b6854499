package spend

import (
	"slices"
	"sort"
	"time"

	"github.com/weirgate/weir/internal/ledger"
)

// Cost is what tokens cost at these rates. Cached and written tokens are part of
// the input and reasoning is part of the output, so that
//
//	(input − cached − cache write)·input + cached·cached input + cache write·cache write
//	+ (output − reasoning)·output + reasoning·reasoning
//
// It is linear: the cost of a sum is the sum of the costs, to the last digit, even
// where an upstream reports more cached tokens than input.
func (r Rates) Cost(s ledger.Sums) Money {
	return times(s.Input-s.Cached-s.CacheWrite, r.Input).
		Plus(times(s.Cached, r.CachedInput)).
		Plus(times(s.CacheWrite, r.CacheWrite)).
		Plus(times(s.Output-s.Reasoning, r.Output)).
		Plus(times(s.Reasoning, r.Reasoning))
}

// timeline is the rates of one model over time, earliest first. Before the first
// step there is no price. Neighbouring steps differ.
type timeline []step

type step struct {
	from  time.Time // zero: since ever
	rates Rates
}

// timeline works out when the rates of a model change.
func (p *Prices) timeline(model string) timeline {
	if p == nil {
		return nil
	}
	var starts []time.Time
	var matching []*entry
	for i := range p.entries {
		if e := &p.entries[i]; e.matches(model) {
			starts, matching = append(starts, e.from), append(matching, e)
		}
	}
	slices.SortFunc(starts, time.Time.Compare)
	var line timeline
	for _, from := range slices.CompactFunc(starts, time.Time.Equal) {
		// The first that has begun counts; the one that begins here has.
		i := slices.IndexFunc(matching, func(e *entry) bool { return !e.from.After(from) })
		if rates := matching[i].rates; len(line) == 0 || line[len(line)-1].rates != rates {
			line = append(line, step{from, rates})
		}
	}
	return line
}

// at returns the rates at an instant; false when there is no price yet.
func (l timeline) at(t time.Time) (Rates, bool) {
	i := sort.Search(len(l), func(i int) bool { return l[i].from.After(t) })
	if i == 0 {
		return Rates{}, false
	}
	return l[i-1].rates, true
}
