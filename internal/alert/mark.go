package alert

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// mark is what one receiver knows of one alert. That there is one says that the receiver
// was to be told of it, and so is owed its end.
type mark struct {
	// told and refused are what the receiver took last, and what it will not take: an
	// alert's beginning, by number, or its end. The zero value is nothing.
	told, refused news
	at            time.Time // when either became so
}

// news is something to tell of an alert.
type news struct {
	status Status
	begin  uint64
}

// latest is what there is to tell.
func (e *entry) latest() news {
	if e.firing() {
		return news{Firing, e.begin}
	}
	return news{Resolved, e.begin}
}

// need is why a receiver is to be told.
type need int

const (
	nothing  need = iota
	reminder      // it has to hear again that an alert is firing
	change        // it does not know how the alert stands
)

// due tells whether the receiver does not know how the alert stands. Inhibition is not
// looked at.
func (k *mark) due(e *entry) need {
	if latest := e.latest(); k.told == latest || k.refused == latest {
		return nothing
	}
	return change
}

// needs tells what an outlet needs to be told of an alert, and for a reminder when; m.mu
// is held.
func (m *Manager) needs(out *outlet, e *entry) (need, time.Time) {
	k := e.marks[out]
	if k == nil {
		return nothing, time.Time{}
	}
	if !e.firing() {
		return k.due(e), time.Time{}
	}
	if k.due(e) == change {
		if e.asked.pending() && !m.stopping {
			return nothing, time.Time{} // the blame comes within moments, and wakes the outlet
		}
		if e.inhibitedBy == nil && !e.stale {
			return change, time.Time{}
		}
	}
	// What it took once it is told again even if that is inhibited by now, and what it
	// refused it may take by now.
	if out.manners.again > 0 && !m.stopping && !e.stale && (k.told.status == Firing || k.refused.status == Firing && e.inhibitedBy == nil) {
		return reminder, k.at.Add(out.manners.again)
	}
	return nothing, time.Time{}
}

// told is an alert on its way to a receiver.
type told struct {
	entry *entry
	news  news
	again bool // a reminder
}

// next returns what an outlet is to be told at now, the most important first, and else
// when there will be a reminder; zero is none.
func (m *Manager) next(out *outlet, now time.Time) (batch Batch, sent []told, later time.Time) {
	sent, later, views, options := m.due(out, now)
	if len(sent) == 0 {
		return Batch{}, nil, later
	}
	batch.At = now
	for _, v := range views {
		batch.Alerts = append(batch.Alerts, v.alert(&options))
	}
	return batch, sent, time.Time{}
}

// due is next without the texts, which are made without the lock.
func (m *Manager) due(out *outlet, now time.Time) (sent []told, later time.Time, views []*view, options Options) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var early []told // reminders that are due within half their interval
	for _, e := range m.entries {
		need, at := m.needs(out, e)
		if need == change {
			if until := m.waits(e, now); !until.IsZero() {
				if later.IsZero() || until.Before(later) {
					later = until
				}
				continue
			}
		}
		t := told{e, e.latest(), need == reminder && e.marks[out].told == e.latest()}
		switch {
		case need == change, need == reminder && !at.After(now):
			sent = append(sent, t)
		case need == reminder:
			if later.IsZero() || at.Before(later) {
				later = at
			}
			if at.Sub(now) <= out.manners.again/2 {
				early = append(early, t)
			}
		}
	}
	if len(sent) == 0 {
		return nil, later, nil, Options{}
	}
	// One post a minute for all, and not one for each.
	sent = append(sent, early...)
	slices.SortFunc(sent, func(a, b told) int {
		switch {
		case a.again != b.again && a.again:
			return 1
		case a.again != b.again:
			return -1
		}
		return compare(a.entry, b.entry)
	})
	sent = sent[:min(len(sent), max(out.manners.most, 1))]
	for _, t := range sent {
		views = append(views, t.entry.view())
	}
	return sent, time.Time{}, views, m.options
}

// compare orders alerts: those that are firing first, then what matters most, then what
// began first, then by name.
func compare(a, b *entry) int {
	if a.firing() != b.firing() {
		if a.firing() {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(b.key.weight(), a.key.weight()), a.starts.Compare(b.starts),
		strings.Compare(a.key.class, b.key.class), strings.Compare(a.key.objective, b.key.objective),
		strings.Compare(a.key.model, b.key.model))
}

// settle notes what became of a batch.
func (m *Manager) settle(out *outlet, now time.Time, sent []told, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out.state.note(now, sent, err)
	if err != nil && !permanent(err) {
		return
	}
	for _, t := range sent {
		k := t.entry.marks[out]
		if k == nil {
			continue // the outlet, or the alert, is gone
		}
		k.at = now
		if err == nil {
			k.told, k.refused = t.news, news{}
		} else {
			k.refused = t.news
		}
	}
	m.changed()
	m.tidy()
}
