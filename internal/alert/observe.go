package alert

import (
	"time"

	"github.com/weirgate/weir/slo"
)

// Observe takes up how all objectives stand at now: alerts begin at once, and end when
// they have been away long enough. It calls nobody and waits for nobody. An objective that is
// no longer in the Status counts as kept.
func (m *Manager) Observe(now time.Time, s slo.Status) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leftOut = 0
	m.round, m.before, m.observed = m.round+1, m.observed, now
	room := m.room()
	for i := range s.Objectives {
		o := &s.Objectives[i]
		subject := key{class: o.Class, objective: o.Objective.Name, model: o.Model}
		for _, severity := range Severities {
			m.take(now, subject.of(severity), o, s.Period, room)
		}
	}
	for _, e := range m.entries {
		if e.round != m.round && e.firing() {
			m.fade(now, e, nil, s.Period)
		}
	}
	m.inhibit()
	m.tidy()
	m.wakeAll()
}

// take takes up one objective as far as one severity goes; m.mu is held.
func (m *Manager) take(now time.Time, k key, o *slo.ObjectiveStatus, period slo.PeriodStatus, room *room) {
	e := m.entries[k]
	if e != nil {
		if e.round == m.round {
			return // the same subject twice: the first counts
		}
		e.round = m.round
	}
	if !holds(o, k.severity) {
		if e != nil && e.firing() {
			m.fade(now, e, o, period)
		}
		return
	}
	if e == nil {
		if !room.make(k) {
			m.leftOut++
			return
		}
		e = &entry{key: k, round: m.round, labels: labelsOf(k, m.options.Labels), marks: make(map[*outlet]*mark)}
		e.fingerprint = fingerprint(e.labels)
		m.entries[k] = e
	}
	if e.begin == 0 || !e.firing() {
		m.begun++
		e.begin, e.starts, e.ends, e.blame, e.announced = m.begun, now, time.Time{}, nil, false
		e.asked = asked{wanted: m.options.Blame != nil}
		m.news(e)
	}
	e.resumed = false
	m.lasts(e, o, period)
}

// lasts takes up that an alert's condition holds, or as good as holds; m.mu is held.
func (m *Manager) lasts(e *entry, o *slo.ObjectiveStatus, period slo.PeriodStatus) {
	if !e.clear.IsZero() || e.stale {
		e.clear, e.stale = time.Time{}, false
		m.changed()
	}
	e.objective, e.period = keep(o), period
}

// holds tells whether a severity's condition holds right now. The states of the budget
// are levels: what is frozen is past its warning too.
func holds(o *slo.ObjectiveStatus, s Severity) bool {
	switch s {
	case Page, Ticket:
		for i := range o.Firing {
			if pages(&o.Firing[i]) == (s == Page) {
				return true
			}
		}
		return false
	case Exhausted:
		return o.Budget.State == slo.StateExhausted
	case Freeze:
		return o.Budget.State == slo.StateFreeze || holds(o, Exhausted)
	}
	return o.Budget.State == slo.StateWarning || holds(o, Freeze)
}

func pages(f *slo.Firing) bool { return f.Page || f.Outage }

// fade takes up that an alert's condition does not hold, and ends the alert when that
// has been so for long enough; m.mu is held. o is nil when the objective is gone.
func (m *Manager) fade(now time.Time, e *entry, o *slo.ObjectiveStatus, period slo.PeriodStatus) {
	m.resume(now, e)
	if e.key.severity.budget() && o != nil {
		if another(e.period, period) {
			m.end(now, e) // another budget
			return
		}
		if !m.below(&o.Budget, e.key.severity) {
			m.lasts(e, o, period)
			return
		}
	}
	if e.clear.IsZero() || e.clear.After(now) { // a clock set back begins anew
		e.clear = now
		m.changed()
	}
	if now.Sub(e.clear) >= m.options.hold(e.key.severity) {
		m.end(now, e)
	}
}

// end ends an alert; m.mu is held.
func (m *Manager) end(now time.Time, e *entry) {
	e.ends = later(e.starts, now)
	m.news(e)
}

// another tells whether the budget is that of another period. A rolling one moves all
// the time and stays the same.
func another(before, now slo.PeriodStatus) bool {
	return before.Name != now.Name || !before.To.IsZero() && !now.From.Before(before.To)
}

// below tells whether a budget is clearly below a state's threshold. One with too few
// calls to tell has no state.
func (m *Manager) below(b *slo.Budget, s Severity) bool {
	consumed := judged(b)
	return b.TooFew || consumed == nil || *consumed < m.options.threshold(s)-margin
}

// judged is the share consumed that the budget's state goes by; nil is unknown.
func judged(b *slo.Budget) *float64 {
	if b.ConsumedForecast != nil {
		return b.ConsumedForecast
	}
	return b.Consumed
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
