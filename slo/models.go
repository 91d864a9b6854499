package slo

import "sync"

// models knows which names of models have proven to be some, and how many series
// there are, OtherModel's not counted. Its lock comes after those of classes.
type models struct {
	mu     sync.Mutex
	proven map[string]int // how many classes have a series of it
	series int
}

// join counts a series that comes from elsewhere, and so has proven to be one.
func (m *models) join(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(name)
}

// add counts a series. The lock is held.
func (m *models) add(name string) {
	if name == OtherModel {
		return
	}
	if m.proven == nil {
		m.proven = make(map[string]int)
	}
	m.proven[name]++
	m.series++
}

// admit tells whether a class may have a series for a model, which must be proven or has just
// been. full is whether there is no room.
func (m *models) admit(name string, answered bool) (ok, full bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case !answered && m.proven[name] == 0:
		return false, false
	case m.series >= MaxSeries:
		return false, true
	}
	m.add(name)
	return true, false
}

// leave takes back what admit or join has counted.
func (m *models) leave(name string) {
	if name == OtherModel {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.series--
	if m.proven[name]--; m.proven[name] <= 0 {
		delete(m.proven, name)
	}
}

// at returns the series of a model, as far as it has proven to be one or
// answered says so, and else that of OtherModel. The class's lock is held.
func (t *Tracker) at(c *class, a *aging, model string, answered bool) *series {
	if s := c.recent; s != nil && s.model == model && !s.dead {
		s.age(a)
		return s
	}
	s := c.series[model]
	if s == nil && model != OtherModel {
		s = t.admit(c, a, model, answered)
	}
	if s == nil {
		model = OtherModel
		s = c.series[model]
	}
	if s == nil {
		s = newSeries(model, c.layout)
		c.series[model] = s
	}
	s.age(a)
	c.recent = s
	return s
}

// admit makes the series of a model that may have one, or returns nil.
func (t *Tracker) admit(c *class, a *aging, model string, answered bool) *series {
	if model == AllModels || len(model) > MaxModel {
		return nil
	}
	ok, full := t.models.admit(model, answered)
	if full && t.makeRoom(c, a) {
		ok, full = t.models.admit(model, answered)
	}
	if full {
		t.clock.lost.Add(1)
	}
	if !ok {
		return nil
	}
	s := newSeries(model, c.layout)
	c.series[model] = s
	return s
}

// makeRoom drops a series of the class of which nothing is kept any more. Those of other
// classes are behind their own locks, and wait for their own class's turn.
func (t *Tracker) makeRoom(c *class, a *aging) bool {
	for name, s := range c.series {
		if name != OtherModel && s.forgotten(a) {
			s.dead = true
			delete(c.series, name)
			t.models.leave(name)
			return true
		}
	}
	return false
}

// forgotten tells whether all counts of a series are older than what is kept.
func (s *series) forgotten(a *aging) bool {
	s.age(a)
	for _, h := range s.hours {
		if h != nil {
			return false
		}
	}
	for _, d := range s.days {
		if d != nil && a.keeps(d.day) {
			return false
		}
	}
	return true
}
