package slo

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// Snapshot returns all counts, in a format of its own that has a version and a
// checksum, with what they are about, so that they find their objectives again under another configuration. The
// times for display and Totals are not among them.
//
// What it holds is not among later Changes: if it cannot be kept, the next thing to keep is
// another Snapshot.
func (t *Tracker) Snapshot() []byte { return t.encode(allOfIt) }

// Copy returns what Snapshot does, for a reader such as one that merges several replicas.
// Later Changes are not the fewer for it.
func (t *Tracker) Copy() []byte { return t.encode(copyOfAll) }

// encode returns all counts, or those that have changed; nil if none have.
func (t *Tracker) encode(what extent) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	all, kind := what != changesOnly, byte(kindSnapshot)
	if !all {
		kind = kindChanges
	}
	b := begin(kind)
	a := t.clock.state.Load()
	if a == nil {
		a = &aging{lost: &t.clock.lost}
	}
	classes := *t.classes.Load()
	b = appendTime(b, a)
	b = binary.AppendUvarint(b, uint64(len(classes)))
	changed := all || t.reshaped
	for _, name := range slices.Sorted(maps.Keys(classes)) {
		var some bool
		b, some = classes[name].encode(b, a, what)
		changed = changed || some
	}
	if !changed {
		return nil
	}
	t.reshaped = t.reshaped && what == copyOfAll
	return seal(b)
}

// encode appends the class and the series that have something to tell, each under the lock by
// itself, so that calls do not wait long.
func (c *class) encode(b []byte, a *aging, what extent) ([]byte, bool) {
	c.mu.Lock()
	b = c.header(b)
	models := slices.SortedFunc(maps.Values(c.series), byModel)
	c.mu.Unlock()
	var series []byte
	n := 0
	for _, s := range models {
		var some bool
		if series, some = c.encodeSeries(series, s, a, what, c.pause); some {
			n++
		}
	}
	b = binary.AppendUvarint(b, uint64(n))
	return append(b, series...), n > 0
}

// encodeSeries appends a series. All of one takes milliseconds, so calls get their turn between
// its parts; what they change meanwhile has changed for the next Changes. If an hour has ended
// meanwhile, though, counts may have moved to days, and it is done again without a pause.
func (c *class) encodeSeries(b []byte, s *series, a *aging, what extent, pause func()) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.dead {
		return b, false
	}
	s.age(a)
	before, hour := len(b), floorDiv(s.seen, 60)
	b, some := s.encode(b, a, what, func() {
		if what != changesOnly {
			pause()
		}
	})
	if floorDiv(s.seen, 60) != hour {
		b, some = s.encode(b[:before], a, what, func() {})
	}
	return b, some
}

// Restore takes what Snapshot returned, in place of all that was counted before. It may come
// before or after Configure. A Tracker that is not configured keeps all of it, until Configure
// drops what is not configured; else that is dropped at once. An error changes nothing.
func (t *Tracker) Restore(snapshot []byte) error {
	m, err := decode(snapshot, kindSnapshot)
	if err != nil {
		return fmt.Errorf("restore counts: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.adopt(m)
	classes := *t.classes.Load()
	if t.config.Load() == nil {
		for _, c := range classes {
			t.retire(c)
		}
		classes = make(map[string]*class, len(m.classes))
		for _, x := range m.classes {
			classes[x.name] = newClass(x.name, x.layout)
		}
	}
	for name, c := range classes {
		i := slices.IndexFunc(m.classes, func(x *imageClass) bool { return x.name == name })
		if i < 0 {
			t.replace(c, a, nil)
		} else {
			t.replace(c, a, m.classes[i])
		}
	}
	t.publish(classes)
	return nil
}

// adopt takes the time of counts that come from elsewhere.
func (t *Tracker) adopt(m *image) *aging {
	if a := t.clock.state.Load(); len(m.classes) == 0 && a != nil {
		return a
	}
	return t.clock.adopt(m.minute, m.period, t.config.Load() != nil)
}

// replace puts the counts of an image, nil for none, in place of the class's own.
func (t *Tracker) replace(c *class, a *aging, x *imageClass) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := t.empty(c)
	if x == nil {
		return
	}
	from, cols := c.layout.from(x.layout), c.columns(x)
	for i, j := range cols {
		if j >= 0 {
			c.began[i] = x.began[j]
		}
	}
	if c.layout.sameEnvelope(x.layout) {
		c.since = x.since
	} else {
		c.since = a.minute
	}
	for _, m := range x.series {
		s := newSeries(m.model, x.layout)
		for _, h := range m.hours {
			s.hours[slot(h.hour, hourSlots)] = h.hourCells
		}
		for _, d := range m.days {
			s.days[slot(d.day, daySlots)] = d.dayCells
		}
		s.adopt(a)
		s.remap(a, c.layout, from, cols)
		if old := was[m.model]; old != nil {
			s.life, s.lifeOut, s.shown, s.seconds = old.life, old.lifeOut, old.shown, old.seconds
		}
		c.series[m.model] = s
		t.models.join(m.model)
	}
}

// columns returns for each column of the class which one of an image it is, -1 for none.
func (c *class) columns(x *imageClass) []int {
	cols := make([]int, len(c.layout.keys))
	for i, key := range c.layout.keys {
		cols[i] = x.layout.index(key)
	}
	return cols
}

func byModel(a, b *series) int {
	switch {
	case a.model == b.model:
		return 0
	case a.model < b.model:
		return -1
	}
	return 1
}
