package slo

import (
	"maps"
	"slices"
)

// Total is what one objective of one model counted since this process began, restored
// counts left out.
type Total struct {
	Class, Model string
	Objective    string // its name
	// Good, Bad and Unknown are inside the envelope, Outside is all three outside.
	Good, Bad, Unknown, Outside int64
}

// Totals yields counters for each class, objective and model; sums over models are left out. They never
// fall: where a correction moves a call that was shown already, the counter that
// would fall stands until it has caught up. For a class with an
// envelope a minute's counts come when the minute is over, by what Tick was told.
func (t *Tracker) Totals(yield func(Total) bool) {
	classes := *t.classes.Load()
	for _, name := range slices.Sorted(maps.Keys(classes)) {
		for _, n := range classes[name].totals(t.clock.state.Load()) {
			if !yield(n) {
				return
			}
		}
	}
}

func (c *class) totals(a *aging) (all []Total) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.def == nil {
		return nil
	}
	for _, model := range slices.Sorted(maps.Keys(c.series)) {
		s := c.series[model]
		s.age(a)
		s.show()
		for i, o := range c.def.class.Objectives {
			n := s.shown[4*c.def.column[i]:][:4]
			all = append(all, Total{c.name, model, o.Name, n[0], n[1], n[2], n[3]})
		}
	}
	return all
}

// show takes what was counted into what is shown, as far as nothing falls.
func (s *series) show() {
	for i := range len(s.shown) / 4 {
		n, in, out := s.shown[4*i:][:4], s.life[kinds*i:][:kinds], s.lifeOut[kinds*i:][:kinds]
		for k := range kinds {
			n[k] = max(n[k], in[k])
		}
		n[3] = max(n[3], sumOf(out))
	}
}
