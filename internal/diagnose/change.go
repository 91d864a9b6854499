package diagnose

import (
	"cmp"
	"math/big"
	"slices"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// Change says how the mean of a time changed between two windows, and how much
// each phase has of that. It is exact: the changes of the parts add up to that of
// the whole, to the nanosecond, and each is within one nanosecond of what it is
// as a fraction. So do the totals of each window.
type Change struct {
	// Before and After are the times in each window.
	Before Amount `json:"before"`
	After  Amount `json:"after"`
	// Change is After's mean less Before's, unknown unless both are known.
	Change call.Duration `json:"change_ms,omitzero"`
	// Parts are the phases in the order of a call. Those of TPOT are decode and
	// delivery by output token.
	Parts []ChangePart `json:"parts,omitempty"`
	// Mix says what of the change is that calls of another kind came.
	Mix []Standard `json:"mix,omitempty"`
}

// Amount is a time summed over the calls that have it.
type Amount struct {
	Calls int           `json:"calls"`
	Total call.Duration `json:"total_ms,omitzero"`
	Mean  call.Duration `json:"mean_ms,omitzero"` // Total by Calls, cut to a nanosecond
}

// ChangePart is what one phase has of a Change.
type ChangePart struct {
	Phase  string        `json:"phase"`     // as in call.Phases, without the unit
	Before call.Duration `json:"before_ms"` // total of the calls that have the whole
	After  call.Duration `json:"after_ms"`
	Change call.Duration `json:"change_ms,omitzero"` // of its mean over these calls
	Share  call.Number   `json:"share,omitzero"`     // of the whole's change: below 0 where it went the other way
	// SourceBefore and SourceAfter say how most of its time is known.
	SourceBefore call.Source `json:"source_before,omitempty"`
	SourceAfter  call.Source `json:"source_after,omitempty"`
}

// sumOf adds up one measure of one window.
type sumOf struct {
	calls   int
	total   time.Duration
	squares float64 // of the differences from pivot, s²
	first   float64 // of the differences from pivot, s
	pivot   float64 // s: the first value, so that squares do not swamp what differs
	parts   [phases]time.Duration
	sources [phases][len(sourceOrder)]time.Duration
}

func (a *sumOf) add(s *sample, m measure) {
	if !s.has[m] {
		return
	}
	if a.calls == 0 {
		a.pivot = s.whole[m].Seconds()
	}
	a.calls++
	a.total += s.whole[m]
	d := s.whole[m].Seconds() - a.pivot
	a.first += d
	a.squares += d * d
	for p, d := range s.parts[m] {
		a.parts[p] += d
		a.sources[p][s.sources[p]] += d
	}
}

// mean is the mean in seconds.
func (a *sumOf) mean() float64 { return a.total.Seconds() / float64(a.calls) }

// variance is that of the mean, s², as if calls did not depend on each other.
func (a *sumOf) variance() float64 {
	n := float64(a.calls)
	if n < 2 {
		return 0
	}
	return max(a.squares-a.first*a.first/n, 0) / (n - 1) / n
}

func (a *sumOf) amount() Amount {
	if a.calls == 0 {
		return Amount{}
	}
	return Amount{a.calls, call.Lasting(a.total), call.Lasting(a.total / time.Duration(a.calls))}
}

// source is how most of a part is known.
func (a *sumOf) source(p phase) call.Source {
	most, at := time.Duration(0), -1
	for i, d := range a.sources[p] {
		if d > most {
			most, at = d, i
		}
	}
	if at < 0 {
		return ""
	}
	return sourceOrder[at]
}

// changeOf compares two sums exactly.
func changeOf(b, a *sumOf) Change {
	c := Change{Before: b.amount(), After: a.amount()}
	if b.calls == 0 || a.calls == 0 {
		return c
	}
	whole, parts := apportion(b, a)
	c.Change = call.Lasting(whole)
	for p := range phases {
		if b.parts[p] == 0 && a.parts[p] == 0 {
			continue
		}
		part := ChangePart{Phase: phaseNames[p], Before: call.Lasting(b.parts[p]), After: call.Lasting(a.parts[p]), Change: call.Lasting(parts[p]),
			SourceBefore: b.source(p), SourceAfter: a.source(p)}
		if whole != 0 {
			part.Share = call.Figure(float64(parts[p]) / float64(whole))
		}
		c.Parts = append(c.Parts, part)
	}
	return c
}

// apportion returns the change of the mean, cut down to a nanosecond, and those of
// its parts. A part's change is the fraction (after·calls before − before·calls
// after) / (calls before · calls after); each is cut down, and what that leaves of
// the whole goes to those that lost most, one nanosecond each.
func apportion(b, a *sumOf) (whole time.Duration, parts [phases]time.Duration) {
	nb, na := big.NewInt(int64(b.calls)), big.NewInt(int64(a.calls))
	below := new(big.Int).Mul(nb, na)
	cut := func(before, after time.Duration) (time.Duration, *big.Int) {
		n := new(big.Int).Mul(big.NewInt(int64(after)), nb)
		n.Sub(n, new(big.Int).Mul(big.NewInt(int64(before)), na))
		rest := new(big.Int)
		n.DivMod(n, below, rest) // Euclidean: the rest is 0 or more
		return time.Duration(n.Int64()), rest
	}
	whole, _ = cut(b.total, a.total)
	var rests [phases]*big.Int
	left := whole
	order := make([]phase, phases)
	for p := range phases {
		parts[p], rests[p] = cut(b.parts[p], a.parts[p])
		left -= parts[p]
		order[p] = p
	}
	slices.SortFunc(order, func(p, q phase) int { return cmp.Or(rests[q].Cmp(rests[p]), cmp.Compare(p, q)) })
	for _, p := range order[:min(max(int(left), 0), len(order))] {
		parts[p]++
	}
	return whole, parts
}
