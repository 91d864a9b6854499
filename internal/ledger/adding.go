package ledger

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// adding adds up rows of usage_hours and usage_days by a query's groupings. It
// is an aggregate function of SQLite: its arguments are the columns of by,
// the provenance, and those of sums.
type adding struct {
	by    []Grouping // those that are texts
	spans *calendar  // how time is divided

	to, off *index // of the spans to which the rows at hand are added, and of which they are taken off; nil: none
	recent  [2]index
	lines   []*line
	room    []line // for more of them

	texts  []string // each once
	ids    map[string]int32
	groups []group // from 1 on
	known  map[group]int32
	next   []int32 // the group that last came after each; 0: none yet
	last   int32   // the group that came last; 0 at first
}

// group is what tells the sums of one span apart: the texts of by and the
// provenance, each by its place in texts.
type group [5]int32

// index finds the lines of one span, by group.
type index struct {
	span  int
	lines []*line
}

// line is sums of one group in one span.
type line struct {
	span  int
	group int32
	tally
}

// tally is in the order of sums.
type tally [numSums]int64

// newAdding returns an adding for a query's groupings.
func newAdding(by []Grouping, s *calendar) *adding {
	a := &adding{spans: s, ids: make(map[string]int32), groups: make([]group, 1), known: make(map[group]int32), next: make([]int32, 1)}
	a.recent[0].span, a.recent[1].span = none, none
	for _, g := range []Grouping{ByKey, ByModel, ByClass, ByUpstream} {
		if slices.Contains(by, g) {
			a.by = append(a.by, g)
		}
	}
	return a
}

// arguments is how many the function takes.
func (a *adding) arguments() int { return len(a.by) + 1 + len(tally{}) }

// begin says which spans the rows that follow concern.
func (a *adding) begin(p piece) {
	a.to, a.off = a.index(p.to, p.off), a.index(p.off, p.to)
}

// index returns the index of a span, at the cost of any but other's. Spans come
// in their order, so that an earlier one is hardly ever needed again; should it
// be, its sums are in several lines, which usage puts together.
func (a *adding) index(span, other int) *index {
	if span == none {
		return nil
	}
	x, y := &a.recent[0], &a.recent[1]
	switch {
	case x.span == span:
		return x
	case y.span == span:
		return y
	case x.span == other || y.span != other && y.span < x.span:
		x = y
	}
	x.span = span
	clear(x.lines)
	return x
}

// Step takes a row.
func (a *adding) Step(_ sqlite3.Context, row ...sqlite3.Value) {
	n := len(a.by) + 1
	g := a.group(row[:n])
	var t tally
	for i, v := range row[n:] {
		t[i] = v.Int64()
	}
	if a.to != nil {
		a.line(a.to, g).add(&t)
	}
	if a.off != nil {
		a.line(a.off, g).takeOff(&t)
	}
}

// Value ends a statement. The sums stay here, for the next.
func (a *adding) Value(c sqlite3.Context) { c.ResultNull() }

// group finds the group of a row by its texts.
func (a *adding) group(texts []sqlite3.Value) int32 {
	// Rows come in the order of the primary key, and hours are much alike: after
	// one group mostly comes the one that came after it in the hour before.
	g := a.next[a.last]
	if g == 0 || !a.is(g, texts) {
		var ids group
		for i, t := range texts {
			ids[i] = a.id(t.RawText())
		}
		if g = a.known[ids]; g == 0 {
			g = int32(len(a.groups))
			a.groups, a.next = append(a.groups, ids), append(a.next, 0)
			a.known[ids] = g
		}
		a.next[a.last] = g
	}
	a.last = g
	return g
}

func (a *adding) is(g int32, texts []sqlite3.Value) bool {
	ids := &a.groups[g]
	for i, t := range texts {
		if a.texts[ids[i]] != string(t.RawText()) {
			return false
		}
	}
	return true
}

func (a *adding) id(text []byte) int32 {
	id, known := a.ids[string(text)]
	if !known {
		id = int32(len(a.texts))
		a.texts = append(a.texts, string(text))
		a.ids[a.texts[id]] = id
	}
	return id
}

// line returns the sums of a group in a span.
func (a *adding) line(x *index, g int32) *line {
	if int(g) >= len(x.lines) {
		x.lines = append(x.lines, make([]*line, len(a.groups)-len(x.lines))...)
	}
	l := x.lines[g]
	if l == nil {
		if len(a.room) == 0 {
			a.room = make([]line, 128)
		}
		l, a.room = &a.room[0], a.room[1:]
		l.span, l.group = x.span, g
		x.lines[g] = l
		a.lines = append(a.lines, l)
	}
	return l
}

func (t *tally) add(u *tally) {
	for i := range t {
		t[i] += u[i]
	}
}

func (t *tally) takeOff(u *tally) {
	for i := range t {
		t[i] -= u[i]
	}
}

// usage returns the sums as rows of a report, in its order.
func (a *adding) usage() []Usage {
	rank := a.ranks()
	slices.SortFunc(a.lines, func(x, y *line) int {
		return cmp.Or(cmp.Compare(x.span, y.span), cmp.Compare(rank[x.group], rank[y.group]))
	})
	sums, rows := a.lines[:0], 0
	for _, l := range a.lines {
		if n := len(sums); n > 0 && sums[n-1].span == l.span && sums[n-1].group == l.group {
			sums[n-1].add(&l.tally)
		} else {
			sums = append(sums, l)
		}
	}
	// What came to nothing was taken off again: those calls are another span's.
	sums = slices.DeleteFunc(sums, func(l *line) bool { return l.tally == tally{} })
	for i, l := range sums {
		if i == 0 || !a.together(l, sums[i-1]) {
			rows++
		}
	}
	all := slices.Grow([]Usage(nil), rows)
	for i, l := range sums {
		texts := &a.groups[l.group]
		if i == 0 || !a.together(l, sums[i-1]) {
			all = append(all, Usage{From: a.spans.starts[l.span]})
			for j, g := range a.by {
				*all[len(all)-1].field(g) = a.texts[texts[j]]
			}
		}
		all[len(all)-1].add(a.texts[texts[len(a.by)]], &l.tally)
	}
	return all
}

// ranks returns the place of each group in the order of a report.
func (a *adding) ranks() []int32 {
	order := make([]int32, len(a.groups))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order[1:], func(x, y int32) int {
		for i := range len(a.by) + 1 {
			if c := strings.Compare(a.texts[a.groups[x][i]], a.texts[a.groups[y][i]]); c != 0 {
				return c
			}
		}
		return 0
	})
	rank := make([]int32, len(order))
	for i, g := range order {
		rank[g] = int32(i)
	}
	return rank
}

// together tells whether two lines belong to one row of the report: they differ
// in their provenance at most.
func (a *adding) together(x, y *line) bool {
	n := len(a.by)
	return x.span == y.span && slices.Equal(a.groups[x.group][:n], a.groups[y.group][:n])
}

// field returns the text that a grouping fills.
func (u *Usage) field(g Grouping) *string {
	switch g {
	case ByKey:
		return &u.Key
	case ByModel:
		return &u.Model
	case ByClass:
		return &u.Class
	default:
		return &u.Upstream
	}
}

// add adds the sums of one provenance.
func (u *Usage) add(provenance string, t *tally) {
	for i, to := range [numSums]*int64{
		sumCalls: &u.Calls, sumCompleted: &u.Completed, sumRefused: &u.Refused,
		sumInput: &u.Reported.Input, sumOutput: &u.Reported.Output,
		sumCached: &u.Reported.Cached, sumCacheWrite: &u.Reported.CacheWrite, sumReasoning: &u.Reported.Reasoning,
		sumEstimatedInput: &u.Estimated.Input, sumEstimatedOutput: &u.Estimated.Output,
	} {
		*to += t[i]
	}
	if provenance == "none" {
		u.NoUsage += t[sumCalls]
	}
	if n := t[sumInput] + t[sumOutput] + t[sumEstimatedInput] + t[sumEstimatedOutput]; n != 0 {
		if u.BySource == nil {
			u.BySource = make(map[string]int64)
		}
		u.BySource[provenance] += n
	}
}
