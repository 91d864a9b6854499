package alert

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirgate/weir/internal/call"
)

const (
	// gapCounts is how much of the time in which nobody looked counts for a condition
	// that was away before it and is away after it: a few intervals of Observe. So a
	// long gap ends no alert, and a process that starts anew all the time ends one at last.
	gapCounts = 15 * time.Second
	// staleAfter is the gap after which what was firing before it is believed, and told, only
	// when it has been seen to hold: by then Alertmanager has ended it, too.
	staleAfter = lasting
)

// Restore takes up what Snapshot returned in an earlier process, at now. Call it after
// New or Configure, so that receivers are known, and before the first Observe. What is
// firing goes on with its labels, its beginning and its fingerprint until Observe has
// seen it away for long enough, for which the time in between counts for 15 s at most. A
// receiver that is the same knows what it knew and is owed the rest; one that is new is
// told what goes on; after a gap of more than four minutes, nobody is told that something
// is firing before Observe has seen that it is. An error says what to do, and then the
// Manager is as it was.
//
// Alerts that have begun since New keep their beginning if somebody was told of it, and
// their receivers are owed an end.
func (m *Manager) Restore(data []byte, now time.Time) error {
	_, err := m.restore(data, now)
	return err
}

// restore is Restore, and tells how many alerts there are then.
func (m *Manager) restore(data []byte, now time.Time) (int, error) {
	body, err := unseal(data)
	if err != nil {
		return 0, refusal(err)
	}
	alerts, err := body.read()
	if err != nil {
		return 0, refusal(err)
	}
	var salt [saltLen]byte
	b, err := hex.DecodeString(body.Salt)
	if err != nil || len(b) != saltLen {
		return 0, refusal(errors.New("its salt is no salt"))
	}
	copy(salt[:], b)
	m.lockTagged(&salt)
	defer m.mu.Unlock()
	known := make([]*outlet, len(body.Receivers))
	for _, out := range m.outlets {
		tag := m.tagger.tags[out.manners.identity]
		if i := slices.Index(body.Receivers, tag); tag != "" && i >= 0 {
			known[i] = out
		}
	}
	// What was observed before is the beginning of the gap, unless this Manager has looked
	// on its own.
	gap := now.Sub(body.Observed)
	if m.observed.IsZero() {
		m.observed = body.Observed
	}
	for _, a := range alerts {
		m.takeUp(a, known, gap > staleAfter, now, body.Observed)
	}
	m.inhibit()
	m.tidy()
	m.changed()
	m.wakeAll()
	return len(m.entries), nil
}

func refusal(err error) error {
	return fmt.Errorf("take up the alerts of an earlier process: %w; alerts begin anew: those that hold are told again, and an end that was owed to a webhook has to be set there by hand", err)
}

// restored is an alert as it was read.
type restored struct {
	keptAlert
	told []restoredMark
}

type restoredMark struct {
	receiver int
	mark     // of beginning 1, the latest, or 0
}

// read reads the alerts of a file, at most as many as a Manager keeps.
func (b *keptBody) read() ([]*restored, error) {
	var all []*restored
	for i, text := range b.Alerts[:min(len(b.Alerts), maxAlerts)] {
		a := new(restored)
		if len(text) > maxKeptOne {
			return nil, fmt.Errorf("alert %d has %d bytes", i, len(text))
		}
		if err := json.Unmarshal(text, &a.keptAlert); err != nil {
			return nil, fmt.Errorf("alert %d cannot be read: %w", i, err)
		}
		if err := a.absurd(); err != nil {
			return nil, fmt.Errorf("alert %d: %w", i, err)
		}
		if a.Blame != nil {
			a.Blame = tidyBlame(*a.Blame)
		}
		for _, k := range a.Told {
			if k.Receiver < 0 || k.Receiver >= len(b.Receivers) {
				return nil, fmt.Errorf("alert %d was told to receiver %d of %d", i, k.Receiver, len(b.Receivers))
			}
			r := restoredMark{receiver: k.Receiver, mark: mark{at: k.At}}
			var err, other error
			r.mark.told, err = k.Took.news(1)
			r.mark.refused, other = k.Refused.news(1)
			if err = errors.Join(err, other); err != nil {
				return nil, fmt.Errorf("alert %d: %w", i, err)
			}
			a.told = append(a.told, r)
		}
		all = append(all, a)
	}
	return all, nil
}

// takeUp takes up one alert; m.mu is held. known are the receivers by their index.
func (m *Manager) takeUp(a *restored, known []*outlet, stale bool, now, observed time.Time) {
	k := key{class: string(a.Class), objective: string(a.Objective), model: string(a.Model), severity: a.Severity}
	here := m.entries[k]
	if here != nil && here.heard() {
		for _, r := range a.told {
			out := known[r.receiver]
			if out == nil || !r.mark.knows() || here.marks[out] != nil && here.marks[out].knows() {
				continue
			}
			// What it knows is of an earlier beginning.
			here.marks[out] = &mark{told: news{status: r.mark.told.status}, refused: news{status: r.mark.refused.status}, at: notAfter(r.mark.at, now)}
		}
		return
	}
	if here == nil && len(m.entries) >= maxAlerts {
		return
	}
	m.begun++
	e := &entry{
		key: k, labels: a.Labels, fingerprint: fingerprint(a.Labels), begin: m.begun,
		starts: a.Starts, ends: a.Ends, announced: a.Announced, stale: stale || a.Stale, resumed: true,
		blame: a.Blame, marks: make(map[*outlet]*mark),
	}
	e.objective, e.period = a.Condition.stood()
	if !e.ends.IsZero() {
		e.ends = later(e.starts, e.ends)
	}
	if !a.Clear.IsZero() {
		e.clear = m.observed.Add(-max(observed.Sub(a.Clear), 0))
	}
	// Calls that say what was to blame are no longer there for what was to be told already.
	e.asked = asked{wanted: m.options.Blame != nil && e.blame == nil && !e.announced}
	for _, r := range a.told {
		out := known[r.receiver]
		if out == nil {
			continue
		}
		number := func(n news) news {
			if n.begin > 0 {
				n.begin = e.begin
			}
			return n
		}
		e.marks[out] = &mark{told: number(r.mark.told), refused: number(r.mark.refused), at: notAfter(r.mark.at, now)}
	}
	m.entries[k] = e
}

// heard tells whether any receiver was told of it, or refused to be.
func (e *entry) heard() bool {
	for _, k := range e.marks {
		if k.knows() {
			return true
		}
	}
	return false
}

func (k *mark) knows() bool { return k.told != news{} || k.refused != news{} }

// notAfter is for times of a clock that may have been set back since: a reminder would
// be late by as much.
func notAfter(t, now time.Time) time.Time {
	if t.After(now) {
		return now
	}
	return t
}

// resume takes up again, at the first look after a gap, how long a condition has been
// away; m.mu is held, and m.observed is still the look before.
func (m *Manager) resume(now time.Time, e *entry) {
	if !e.resumed {
		return
	}
	e.resumed = false
	if !e.clear.IsZero() {
		away := max(m.before.Sub(e.clear), 0) + min(max(now.Sub(m.before), 0), gapCounts)
		e.clear = now.Add(-away)
	}
}

// absurd tells what no alert of ours has.
func (a *keptAlert) absurd() error {
	for _, name := range []exact{a.Class, a.Objective, a.Model} {
		if len(name) > maxKeptName {
			return fmt.Errorf("a name of %d bytes", len(name))
		}
	}
	switch {
	case a.Severity.rank() < 0:
		return fmt.Errorf("severity %.20q is not known", string(a.Severity))
	case a.Starts.IsZero():
		return errors.New("it never began")
	case len(a.Labels) == 0 || len(a.Labels) > maxKeptLabels:
		return fmt.Errorf("it has %d labels", len(a.Labels))
	case len(a.Told) > maxKeptReceivers:
		return fmt.Errorf("it was told to %d receivers", len(a.Told))
	}
	for name, value := range a.Labels {
		if !labelName(name) || len(value) > maxLabel || call.OneLine(value) != value {
			return fmt.Errorf("label %.40q cannot be one", name)
		}
	}
	return nil
}
