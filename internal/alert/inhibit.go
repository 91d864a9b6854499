package alert

// inhibit finds which alerts are not told because another one says it already, and marks
// whom the others are owed to; m.mu is held. An alert that a receiver knows already is
// kept up and ended there nevertheless: Alertmanager would take it for over, and a
// webhook would never hear of its end.
func (m *Manager) inhibit() {
	for _, e := range m.entries {
		if !e.firing() {
			continue
		}
		e.inhibitedBy = m.inhibitor(e.key)
		if e.inhibitedBy != nil || e.stale || !e.clear.IsZero() && !e.announced {
			continue // what nobody was told of while it held is no news once it is clear
		}
		if !e.announced {
			e.announced = true
			m.news(e)
		}
		for _, out := range m.outlets {
			if e.marks[out] == nil {
				e.marks[out] = new(mark)
				m.news(e) // that it is owed the end
			}
		}
	}
}

// inhibitor returns the most important firing alert that says what k would, or nil;
// m.mu is held.
func (m *Manager) inhibitor(k key) *key {
	if k.model != "" {
		// The same trouble over all models says more than that of each.
		for at := len(Severities) - 1; at >= k.severity.rank(); at-- {
			if found := m.firing(k.allModels(Severities[at])); found != nil {
				return found
			}
		}
	}
	for _, s := range louder[k.severity] {
		if found := m.firing(k.of(s)); found != nil {
			return found
		}
	}
	return nil
}

// louder are the severities of the same subject beside which another one says nothing
// new. Freeze and Exhausted are said beside a page, as they are for others: who releases.
var louder = map[Severity][]Severity{
	Ticket:  {Page},
	Warning: {Page, Exhausted, Freeze},
	Freeze:  {Exhausted},
}

// firing returns k when its alert is firing, else nil; m.mu is held.
func (m *Manager) firing(k key) *key {
	if e := m.entries[k]; e != nil && e.firing() {
		return &k
	}
	return nil
}
