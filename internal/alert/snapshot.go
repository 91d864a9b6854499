package alert

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"
)

// Snapshot returns all alerts, and what each receiver knows of them, for Restore in the
// next process; see kept.go for the format. It is at most 8 MiB long.
func (m *Manager) Snapshot() []byte {
	image := m.image(time.Time{})
	return image.seal()
}

// image is a copy of what is kept, to be written without the lock.
type image struct {
	body     keptBody
	alerts   []keptAlert
	changes  uint64    // keeping.changes then
	observed time.Time // Manager.observed then
}

// image copies what is kept. Alerts that are firing are taken to have ended at over;
// the zero time is for those that go on.
func (m *Manager) image(over time.Time) *image {
	m.lockTagged(nil)
	defer m.mu.Unlock()
	i := &image{changes: m.kept.changes, observed: m.observed}
	i.body = keptBody{Salt: hex.EncodeToString(m.tagger.salt[:]), Observed: dated(m.observed), Receivers: []string{}}
	index := make(map[*outlet]int)
	for _, out := range m.outlets {
		if tag := m.tagger.tags[out.manners.identity]; tag != "" && len(index) < maxKeptReceivers {
			index[out] = len(i.body.Receivers)
			i.body.Receivers = append(i.body.Receivers, tag)
		}
	}
	entries := make([]*entry, 0, len(m.entries))
	for _, e := range m.entries {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, compare)
	for _, e := range entries {
		a := keptAlert{
			Class: exact(e.key.class), Objective: exact(e.key.objective), Model: exact(e.key.model), Severity: e.key.severity,
			Labels: e.labels, Starts: dated(e.starts), Ends: dated(e.ends), Clear: dated(e.clear),
			Announced: e.announced, Stale: e.stale, Blame: e.blame, Condition: condition(&e.objective, e.period),
		}
		if e.firing() && !over.IsZero() {
			a.Ends = dated(later(e.starts, over))
		}
		for _, out := range m.outlets {
			k := e.marks[out]
			if n, there := index[out]; there && k != nil {
				a.Told = append(a.Told, keptMark{Receiver: n, Took: k.told.kept(e.begin), Refused: k.refused.kept(e.begin), At: dated(k.at)})
			}
		}
		i.alerts = append(i.alerts, a)
	}
	return i
}

// seal writes an image.
func (i *image) seal() []byte {
	const overhead = 1 << 10 // of what stands around the alerts and the tags
	size := overhead + (2*tagLen+3)*len(i.body.Receivers)
	i.body.Alerts = []json.RawMessage{}
	for _, a := range i.alerts {
		b, err := json.Marshal(a)
		if err != nil || len(b) > maxKeptOne || a.absurd() != nil {
			continue // it would not be taken up
		}
		if size += len(b) + 1; size > maxKept {
			break
		}
		i.body.Alerts = append(i.body.Alerts, b)
	}
	return seal(i.body)
}
