package alert

import (
	"slices"
	"time"
)

// State is what a Manager keeps, for people and metrics.
type State struct {
	// Alerts are those that are firing, and those that ended and are owed to a receiver;
	// the most important first.
	Alerts []Standing `json:"alerts"`
	// LeftOut is how many conditions held at the last Observe for which there was no
	// room among the 1000 alerts that are kept.
	LeftOut   int             `json:"left_out"`
	Receivers []ReceiverState `json:"receivers"`
}

// Standing is how one alert stands.
type Standing struct {
	Alert
	Severity  Severity `json:"severity"`
	Class     string   `json:"class"`
	Objective string   `json:"objective"`
	Model     string   `json:"model,omitempty"` // left out for all models
	// ClearSince is since when the condition is away; the alert ends when it stays so.
	ClearSince time.Time `json:"clear_since,omitzero"`
	// InhibitedBy is the name of the alert for whose sake this one is not told, with
	// its model if it has one.
	InhibitedBy string `json:"inhibited_by,omitempty"`
	Blame       *Blame `json:"blame,omitempty"`
	// Pending are the receivers that have yet to be told how it stands.
	Pending []string `json:"pending,omitempty"`
}

// ReceiverState is how telling one receiver goes.
type ReceiverState struct {
	Name string `json:"name"`
	// Pending is how many alerts it has yet to be told of.
	Pending int `json:"pending"`
	// Sent is beginnings and ends that were delivered, Reminders what was told again.
	Sent      int64 `json:"sent"`
	Reminders int64 `json:"reminders"`
	// Failed is attempts that failed. Dropped is beginnings and ends that were given up:
	// refused for good, or without room.
	Failed  int64 `json:"failed_attempts"`
	Dropped int64 `json:"dropped"`
	// LastSent is when an attempt last worked; LastError is what the last failure was,
	// however long ago, at LastFailure. FailingSince is zero while it works.
	LastSent     time.Time `json:"last_sent,omitzero"`
	LastFailure  time.Time `json:"last_failure,omitzero"`
	LastError    string    `json:"last_error,omitempty"`
	FailingSince time.Time `json:"failing_since,omitzero"`
}

// note counts an attempt; the Manager's lock is held.
func (s *ReceiverState) note(now time.Time, sent []told, err error) {
	if err != nil {
		s.Failed++
		s.LastFailure, s.LastError = wall(now), foreign(err)
		if s.FailingSince.IsZero() {
			s.FailingSince = s.LastFailure
		}
		if !permanent(err) {
			return
		}
	} else {
		s.LastSent, s.FailingSince = wall(now), time.Time{}
	}
	for _, t := range sent {
		switch {
		case err == nil && t.again:
			s.Reminders++
		case err == nil:
			s.Sent++
		case !t.again:
			s.Dropped++
		}
	}
}

// State returns how all alerts and receivers stand.
func (m *Manager) State() State {
	m.mu.Lock()
	options := m.options
	s := State{LeftOut: m.leftOut, Receivers: make([]ReceiverState, len(m.outlets)), Alerts: make([]Standing, 0, len(m.entries))}
	views := make([]*view, 0, len(m.entries))
	pending := make(map[key][]string)
	entries := make([]*entry, 0, len(m.entries))
	for _, e := range m.entries {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, compare)
	for i, out := range m.outlets {
		s.Receivers[i] = out.state
		s.Receivers[i].Name = out.name
	}
	for _, e := range entries {
		views = append(views, e.view())
		for i, out := range m.outlets {
			k := e.marks[out]
			if k != nil && k.due(e) == change && (e.inhibitedBy == nil || !e.firing()) {
				s.Receivers[i].Pending++
				pending[e.key] = append(pending[e.key], out.name)
			}
		}
	}
	m.mu.Unlock()
	for _, v := range views {
		st := Standing{Alert: v.alert(&options), Severity: v.key.severity, Class: labelValue(v.key.class),
			Objective: labelValue(v.key.objective), ClearSince: wall(v.clear), Blame: v.blame, Pending: pending[v.key]}
		if v.clear.IsZero() || v.status() == Resolved {
			st.ClearSince = time.Time{}
		}
		if v.key.model != "" {
			st.Model = labelValue(v.key.model)
		}
		if by := v.inhibitedBy; by != nil && v.status() == Firing {
			st.InhibitedBy = by.severity.alertname()
			if by.model != "" {
				st.InhibitedBy += " " + labelValue(by.model)
			}
		}
		s.Alerts = append(s.Alerts, st)
	}
	return s
}
