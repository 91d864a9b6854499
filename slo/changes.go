package slo

import (
	"fmt"
	"slices"
)

// Changes returns the minutes and hours whose counts have changed since the last Changes or
// Snapshot, nil if there are none. Counts are absolute, so a Snapshot and all Changes
// after it restore everything, and it does no harm to apply some of them again
// from the first on.
func (t *Tracker) Changes() []byte { return t.encode(changesOnly) }

// Apply takes what Changes returned, after Restore of the Snapshot before, in their order, and
// before the first call: counts are set to what is told, not added. An error changes
// nothing.
func (t *Tracker) Apply(changes []byte) error {
	m, err := decode(changes, kindChanges)
	if err != nil {
		return fmt.Errorf("apply changes of counts: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.adopt(m)
	classes := *t.classes.Load()
	if t.config.Load() == nil {
		// It has the shape that it had where the changes come from.
		was := classes
		classes = make(map[string]*class, len(m.classes))
		for _, x := range m.classes {
			c := was[x.name]
			if c == nil {
				c = newClass(x.name, x.layout)
				copy(c.began, x.began)
			}
			c.reshape(a, nil, x.layout, 0)
			classes[x.name] = c
		}
		for name, c := range was {
			if classes[name] == nil {
				t.retire(c)
			}
		}
		t.publish(classes)
	}
	for _, x := range m.classes {
		if c := classes[x.name]; c != nil {
			t.apply(c, a, x)
		}
	}
	return nil
}

// apply sets the counts of a class to those of an image.
func (t *Tracker) apply(c *class, a *aging, x *imageClass) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cols := c.columns(x)
	c.renew(a, x, cols)
	if c.layout.sameEnvelope(x.layout) {
		c.since = x.since
	}
	from := c.layout.from(x.layout)
	for _, m := range x.series {
		s := t.given(c, a, m.model)
		if s == nil {
			continue
		}
		for _, h := range m.hours {
			if to := s.hour(a, h.hour); to != nil {
				to.take(h, from)
			}
		}
		for _, d := range m.days {
			if to := s.daily(a, d.day); to != nil {
				to.take(d, from[:c.layout.counts], x.layout.counts)
			}
		}
		s.adopt(a)
	}
}

// renew begins columns anew that the image has begun later than the class: they
// had been dropped between. The lock is held.
func (c *class) renew(a *aging, x *imageClass, cols []int) {
	keep := make([]int, len(cols))
	from := make([]int, c.layout.cols)
	for i := range from {
		from[i] = i
	}
	renewed := false
	for i, j := range cols {
		keep[i] = i
		if j < 0 {
			continue
		}
		if x.began[j] > c.began[i] {
			renewed, keep[i] = true, -1
			for k := range kinds {
				from[kinds*i+k] = -1
			}
		}
		c.began[i] = x.began[j]
	}
	if !renewed {
		return
	}
	for _, s := range c.series {
		s.remap(a, c.layout, from, keep)
	}
}

// given returns the series for counts that come from elsewhere, nil where there is no
// room.
func (t *Tracker) given(c *class, a *aging, model string) *series {
	s := t.at(c, a, model, true)
	if s.model != model {
		return nil
	}
	return s
}

// take sets the minutes that an image tells of. from has for each column which one of
// the image it is, -1 for none.
func (h *hourCells) take(x imageHour, from []int) {
	for r := range 60 {
		if x.rows>>r&1 == 0 {
			continue
		}
		h.turn(r, x.outside>>r&1 == 1)
		for c, o := range from {
			if o >= 0 {
				h.set(r, c, x.cells.get(r, o))
			}
		}
		h.dirty &^= 1 << r
	}
}

// take does the same for hours; counts is how many counts the image has on each side.
func (d *dayCells) take(x imageDay, from []int, counts int) {
	for r := range 24 {
		if x.rows>>r&1 == 0 {
			continue
		}
		for c, o := range from {
			if o >= 0 {
				d.set(r, c, x.cells.get(r, o))
				d.set(r, len(from)+c, x.cells.get(r, counts+o))
			}
		}
		d.set(r, 2*len(from), x.cells.get(r, 2*counts))
		d.dirty &^= 1 << r
	}
}

// daily returns the cells of a day, nil if it is not kept.
func (s *series) daily(a *aging, day int64) *dayCells {
	if !a.keeps(day) {
		return nil
	}
	at := &s.days[slot(day, daySlots)]
	if *at == nil || (*at).day != day {
		*at = newDay(day, s.layout.counts)
	}
	return *at
}

// unionOf returns the keys of two layouts, those of the second behind.
func unionOf(a, b []string) []string {
	all := slices.Clone(a)
	for _, key := range b {
		if !slices.Contains(all, key) {
			all = append(all, key)
		}
	}
	return all
}
