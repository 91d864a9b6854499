package diagnose

import (
	"cmp"
	"slices"

	"github.com/weirgate/weir/internal/call"
)

// Call says what was at fault in one call: nil when nothing stands out, or when
// the record is nil or its figures cannot be true. Failures come first, then what
// took most time, then conditions, then what is only possible.
func Call(rec *call.Record) []Finding {
	var l look
	if !l.at(rec) {
		return nil
	}
	var s sheet
	s.fill(&l)
	f := frame{calls: 1}
	groups := make([]*group, len(s.hits))
	for i := range s.hits {
		groups[i] = newGroup(&s.hits[i])
		groups[i].add(&l, &s.hits[i], s.of(i), 1)
	}
	order(groups, f.calls)
	var list []Finding
	for _, g := range groups {
		list = append(list, g.finding(&f))
	}
	return list
}

// order sorts the groups of so many calls, the most telling first.
func order(groups []*group, calls int) {
	slices.SortFunc(groups, func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.rank(calls), b.rank(calls)), cmp.Compare(b.time, a.time), cmp.Compare(b.calls, a.calls),
			cmp.Compare(places[a.meaning.Code], places[b.meaning.Code]), cmp.Compare(a.of, b.of), cmp.Compare(a.source, b.source), cmp.Compare(a.wall, b.wall))
	})
}

// rank is the place of a group's kind: lower is first.
func (g *group) rank(calls int) int {
	switch {
	case g.meaning.failure && often(g.calls, calls):
		return 0
	case g.source == call.Unattributed:
		return 3
	case g.of != "" && !g.meaning.failure:
		return 1
	case !g.meaning.failure:
		return 2
	}
	return 4 // failures, but few
}

// often tells whether n of so many calls are enough to say something of them all.
func often(n, calls int) bool { return float64(n) >= Worth*float64(calls) }
