package diagnose

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirgate/weir/internal/call"
)

const (
	// maxSums bounds the evidence of one finding, and maxNames the upstreams, models
	// and keys that are told apart in it.
	maxSums  = 24
	maxNames = 256
)

// group is what a window's calls (or the one call) show of one code, apart by
// what the share is of and how it is known.
type group struct {
	meaning     *Meaning
	source      call.Source
	of          Whole
	calls       int
	time, whole time.Duration // sums over these calls
	sums        []sum
	worst       []Example // worst first
	dialect     string    // of the first of worst
	names       [dimensions]map[string]int
	wall        wall
	scene       scene
}

// sum is one kind of evidence over all calls of a group.
type sum struct {
	fact
	calls int
	total float64
	place int // among the facts of a call, the first that was seen
}

// mean is the mean of the figure over the calls that have it.
func (s *sum) mean() float64 { return s.total / float64(s.calls) }

func newGroup(h *hit) *group {
	return &group{meaning: &meanings[places[h.code]], source: h.source, of: h.of, wall: h.wall}
}

// add counts one call in; keep is how many examples are kept, at least 1.
func (g *group) add(l *look, h *hit, facts []fact, keep int) {
	g.calls++
	g.time += h.time
	g.whole += h.whole
	g.scene.add(l.rec)
	for i := range facts {
		g.count(&facts[i], i)
	}
	for d := range g.names {
		if g.names[d] == nil {
			g.names[d] = make(map[string]int)
		}
		note(g.names[d], named[d].of(l.rec))
	}
	e := Example{ID: l.rec.ID, Whole: call.Lasting(h.whole)}
	if h.of != "" {
		e.Time = call.Lasting(h.time)
	}
	if l.rec.Sampled {
		e.TraceID = l.rec.TraceID
	}
	at, _ := slices.BinarySearchFunc(g.worst, e, worse)
	if at >= keep {
		return
	}
	if at == 0 {
		g.dialect = l.rec.Dialect
	}
	if len(g.worst) == keep {
		g.worst = g.worst[:keep-1]
	}
	g.worst = slices.Insert(g.worst, at, e)
}

// rankSums puts first what most calls show, and of equals what the rule names first.
// What calls failed with goes before the circumstances.
func (g *group) rankSums() {
	later := func(s sum) int {
		if g.meaning.failure && s.name == "" {
			return 1
		}
		return 0
	}
	slices.SortFunc(g.sums, func(a, b sum) int {
		return cmp.Or(cmp.Compare(later(a), later(b)), cmp.Compare(b.calls, a.calls), cmp.Compare(a.place, b.place), cmp.Compare(a.figure.label, b.figure.label),
			cmp.Compare(a.figure.why, b.figure.why), cmp.Compare(a.name, b.name))
	})
}

// worse orders examples, the worst first.
func worse(a, b Example) int {
	return cmp.Or(cmp.Compare(b.Time.Or(0), a.Time.Or(0)), cmp.Compare(b.Whole.Or(0), a.Whole.Or(0)), cmp.Compare(a.ID, b.ID))
}

func (g *group) count(f *fact, place int) {
	for i := range g.sums {
		if s := &g.sums[i]; s.figure == f.figure && s.name == f.name {
			s.calls++
			s.total += f.value
			s.place = min(s.place, place)
			return
		}
	}
	if len(g.sums) < maxSums {
		g.sums = append(g.sums, sum{fact: *f, calls: 1, total: f.value, place: place})
	}
}

// has returns the mean of a figure, and in how many calls it is.
func (g *group) has(f *figure) (mean float64, calls int) {
	for i := range g.sums {
		if g.sums[i].figure == f {
			return g.sums[i].mean(), g.sums[i].calls
		}
	}
	return 0, 0
}

// mostly tells whether at least half of the calls have the same of these figures.
func (g *group) mostly(figures ...*figure) bool {
	for _, f := range figures {
		if _, calls := g.has(f); 2*calls >= g.calls {
			return true
		}
	}
	return false
}

// others is the name that counts the rest where there are too many.
const others = "other"

// note counts a name, as one of the others when there are too many.
func note(m map[string]int, name string) {
	if _, there := m[name]; !there && len(m) >= maxNames {
		name = others
	}
	m[name]++
}
