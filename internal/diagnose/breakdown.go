package diagnose

import (
	"time"

	"github.com/weirgate/weir/internal/call"
)

// Breakdown says of what a time is made up, over all calls that have it. It is
// exact: the totals of the parts add up to Total, and a mean of the whole is the
// sum of the means of its parts.
type Breakdown struct {
	Calls int           `json:"calls"` // that have it
	Total call.Duration `json:"total_ms,omitzero"`
	Mean  call.Duration `json:"mean_ms,omitzero"` // Total by Calls, cut to a nanosecond
	// Parts are the phases in the order of a call, each apart by how it is known.
	Parts []Part `json:"parts,omitempty"`
}

// Part is what one phase, known in one way, is of a Breakdown.
type Part struct {
	Phase  string        `json:"phase"` // as in call.Phases, without the unit
	Source call.Source   `json:"source"`
	Calls  int           `json:"calls"` // in which it is known so
	Total  call.Duration `json:"total_ms"`
	Share  call.Number   `json:"share,omitzero"` // of the Breakdown's Total, 0–1
}

// sourceOrder is the order of parts of one phase: the surest first.
var sourceOrder = [...]call.Source{call.Measured, call.FromEngine, call.Inferred, call.Unattributed}

// account adds up phases by how they are known.
type account struct {
	calls int
	total time.Duration
	parts [phases][len(sourceOrder)]struct {
		calls int
		total time.Duration
	}
}

func (a *account) add(p phase, src call.Source, d call.Duration) {
	took, known := d.Get()
	if !known {
		return
	}
	for i, s := range sourceOrder {
		if s == src {
			a.parts[p][i].calls++
			a.parts[p][i].total += took
			a.total += took
		}
	}
}

// first adds the time to the first token of a call that has been split.
func (a *account) first(l *look) {
	a.calls++
	for p := upload; p <= prefill; p++ {
		a.add(p, l.sources[p], l.spans[p])
	}
	if l.spans[delivery].IsKnown() {
		a.add(delivery, l.sources[delivery], call.Lasting(l.early))
	}
}

// all adds the whole call.
func (a *account) all(l *look) {
	a.calls++
	for p := range phases {
		a.add(p, l.sources[p], l.spans[p])
	}
}

func (a *account) breakdown() Breakdown {
	b := Breakdown{Calls: a.calls}
	if a.calls == 0 {
		return b
	}
	b.Total, b.Mean = call.Lasting(a.total), call.Lasting(a.total/time.Duration(a.calls))
	for p := range phases {
		for i, src := range sourceOrder {
			sum := &a.parts[p][i]
			if sum.calls == 0 {
				continue
			}
			part := Part{Phase: phaseNames[p], Source: src, Calls: sum.calls, Total: call.Lasting(sum.total)}
			if a.total > 0 {
				part.Share = call.Figure(float64(sum.total) / float64(a.total))
			}
			b.Parts = append(b.Parts, part)
		}
	}
	return b
}
