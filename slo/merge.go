package slo

import (
	"errors"
	"fmt"
	"slices"
)

// Merge adds what another replica's Snapshot holds, for a reader that shows several gateways as one, or a
// gateway that has counted before it could read what it had kept. A reader
// that is not configured takes all classes and objectives; else the configured ones are taken. The order of
// merges does not matter, as long as there are no more than MaxSeries models in all.
//
// Minutes kept as such are judged by their envelope anew, by the calls of all replicas; what was outside in
// a replica whose envelope is another, or has changed since, stays outside. Hours beyond are
// added up as they are: their minutes outside are then those of all replicas together.
//
// An error changes nothing: damaged input; a clock that is a day ahead; too many objectives or
// other envelopes where this Tracker is not configured.
func (t *Tracker) Merge(snapshot []byte) error {
	if err := t.merge(snapshot); err != nil {
		return fmt.Errorf("merge counts: %w", err)
	}
	return nil
}

func (t *Tracker) merge(snapshot []byte) error {
	m, err := decode(snapshot, kindSnapshot)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(m.classes) == 0 {
		return nil
	}
	if a := t.clock.state.Load(); t.config.Load() != nil && m.minute > a.minute+leap {
		return errors.New("they are more than a day ahead of what is known of the time; set the clock where they come from, or tell the right time first")
	}
	configured := t.config.Load() != nil
	classes := *t.classes.Load()
	layouts := make(map[string]*layout, len(m.classes))
	if !configured {
		if layouts, err = t.union(classes, m); err != nil {
			return err
		}
	}
	a := t.adopt(m)
	t.reshaped = true
	if !configured {
		was := classes
		classes = make(map[string]*class, len(layouts))
		for name, c := range was {
			classes[name] = c
		}
		for _, x := range m.classes {
			c := classes[x.name]
			if c == nil {
				c = newClass(x.name, x.layout)
				c.since = x.since
				copy(c.began, x.began)
				classes[x.name] = c
			}
			c.reshape(a, nil, layouts[x.name], 1<<63-1)
		}
		t.publish(classes)
	}
	for _, x := range m.classes {
		if c := classes[x.name]; c != nil {
			t.mergeClass(c, x)
		}
	}
	return nil
}

// union returns the layouts of the image's classes with what is there already.
func (t *Tracker) union(classes map[string]*class, m *image) (map[string]*layout, error) {
	layouts := make(map[string]*layout, len(m.classes))
	more := len(classes)
	for _, x := range m.classes {
		c := classes[x.name]
		if c == nil {
			more++
			layouts[x.name] = x.layout
			continue
		}
		if !c.layout.sameEnvelope(x.layout) {
			return nil, fmt.Errorf("class %s has another envelope there; configure this Tracker with the one to go by", x.name)
		}
		keys := unionOf(c.layout.keys, x.layout.keys)
		if len(keys) > MaxObjectives {
			return nil, fmt.Errorf("class %s has %d objectives in all, and at most %d can be; configure this Tracker with those to show", x.name, len(keys), MaxObjectives)
		}
		layouts[x.name] = newLayout(keys, x.layout.envelope)
	}
	if more > MaxClasses {
		return nil, fmt.Errorf("there are %d classes in all, and at most %d can be; configure this Tracker with those to show", more, MaxClasses)
	}
	return layouts, nil
}

// mergeClass adds the counts of an image. All of a large one takes most of a second, so calls
// get their turn after each series; t.mu keeps everything away that changes columns, and
// whoever asks meanwhile gets whole models, some of which have been added.
func (t *Tracker) mergeClass(c *class, x *imageClass) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, j := range c.columns(x) {
		if j >= 0 {
			c.began[i] = min(c.began[i], x.began[j])
		}
	}
	same := c.layout.sameEnvelope(x.layout)
	if same {
		c.since = max(c.since, x.since)
	}
	from := c.layout.from(x.layout)
	for i, m := range x.series {
		if i > 0 {
			c.pause()
		}
		a := t.clock.state.Load() // time may have gone on
		s := t.given(c, a, m.model)
		if s == nil {
			s = t.at(c, a, OtherModel, false)
		}
		s.settle(a)
		for _, h := range m.hours {
			s.mergeHour(a, h, from, c.since, same)
		}
		for _, d := range m.days {
			s.mergeDay(a, d, from[:c.layout.counts], x.layout.counts)
		}
		s.adopt(a)
	}
}

// mergeHour adds an hour minute by minute. Minutes from since on are judged by the
// sums where the envelope is the same.
func (s *series) mergeHour(a *aging, x imageHour, from []int, since int64, same bool) {
	h := s.hour(a, x.hour)
	for r := range 60 {
		if x.rows>>r&1 == 0 {
			continue
		}
		minute := x.hour*60 + int64(r)
		outside := x.outside>>r&1 == 1
		if h == nil {
			s.mergeMinute(a, x, r, outside, from)
			continue
		}
		for c, o := range from {
			if o >= 0 {
				h.add(r, c, x.cells.get(r, o))
			}
		}
		switch {
		case same && s.layout.qualified() && minute >= since:
			outside = s.layout.outside(&h.cells, r)
		default:
			outside = outside || h.outside>>r&1 == 1
		}
		h.turn(r, outside)
	}
	if h != nil && !h.packed && x.hour < floorDiv(a.minute, 60) {
		h.pack()
	}
}

// mergeMinute adds a minute that is not kept as one here.
func (s *series) mergeMinute(a *aging, x imageHour, row int, outside bool, from []int) {
	n := s.layout.counts
	hour := x.hour
	if int64(row) < a.split(hour) {
		hour--
	}
	side := 0
	if outside {
		side = n
		s.hourly(a, hour, 2*n, 1)
	}
	for c, o := range slices.Clip(from[:n]) {
		if o < 0 {
			continue
		}
		if v := x.cells.get(row, o); v != 0 {
			s.hourly(a, hour, side+c, v)
		}
	}
}

// mergeDay adds a day hour by hour.
func (s *series) mergeDay(a *aging, x imageDay, from []int, counts int) {
	n := len(from)
	for r := range 24 {
		hour := x.day*24 + int64(r)
		for c, o := range from {
			if o < 0 {
				continue
			}
			if v := x.cells.get(r, o); v != 0 {
				s.hourly(a, hour, c, v)
			}
			if v := x.cells.get(r, counts+o); v != 0 {
				s.hourly(a, hour, n+c, v)
			}
		}
		if v := x.cells.get(r, 2*counts); v != 0 {
			s.hourly(a, hour, 2*n, v)
		}
	}
}
