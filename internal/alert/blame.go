package alert

import (
	"sync"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// blameTime is how long an alert waits for the phase to blame. A page without it is
// better than a page that is late.
const blameTime = 2 * time.Second

// asked is how an alert stands with Options.Blame.
type asked struct {
	wanted bool // nobody was asked yet
	under  bool // somebody is being asked
	// since is when Run took it up; released is that it waits no longer.
	since    time.Time
	released bool
}

// pending tells whether the alert still waits for its blame.
func (a *asked) pending() bool { return (a.wanted || a.under) && !a.released }

// blamer asks Options.Blame, for one alert at a time, so that a slow one takes up one
// goroutine and no more. It belongs to Run's goroutine.
type blamer struct {
	m       *Manager
	workers *sync.WaitGroup
	answers chan answer // room for the one that is out
	busy    bool
}

type answer struct {
	entry *entry
	begin uint64
	blame *Blame // nil is none
}

func newBlamer(m *Manager, workers *sync.WaitGroup) *blamer {
	return &blamer{m: m, workers: workers, answers: make(chan answer, 1)}
}

// step asks for the most important alert that wants it, releases those that have waited
// long enough, and returns when the next is to be; zero is never.
func (b *blamer) step(now time.Time) (next time.Time) {
	m := b.m
	m.mu.Lock()
	defer m.mu.Unlock()
	var first *entry
	freed := false
	for _, e := range m.entries {
		a := &e.asked
		if !a.wanted && !a.under || !e.announced || !e.firing() {
			continue // what is not told needs nobody to blame
		}
		if a.since.IsZero() {
			a.since = now
		}
		if limit := a.since.Add(blameTime); !a.released {
			if limit.After(now) {
				if next.IsZero() || limit.Before(next) {
					next = limit
				}
			} else {
				a.released, freed = true, true
			}
		}
		if a.wanted && (first == nil || compare(e, first) < 0) {
			first = e
		}
	}
	if freed {
		m.wakeOutlets()
	}
	if first == nil || b.busy {
		return next
	}
	ask := m.options.Blame
	if ask == nil { // it was configured away
		first.asked = asked{}
		m.wakeAll()
		return next
	}
	first.asked.wanted, first.asked.under = false, true
	b.busy = true
	k, number, begin, at := first.key, first.objective.Objective.Number, first.begin, m.observed
	b.workers.Go(func() {
		a := answer{entry: first, begin: begin}
		defer func() {
			if recover() != nil {
				a.blame = nil
			}
			b.answers <- a
		}()
		a.blame = tidyBlame(ask(k.class, k.model, k.objective, number, at))
	})
	return next
}

// take takes up an answer. One to a beginning that was followed by another is dropped.
func (b *blamer) take(a answer) {
	b.busy = false
	m := b.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if a.entry.begin != a.begin {
		return
	}
	a.entry.blame, a.entry.asked = a.blame, asked{}
	m.changed()
	m.wakeOutlets()
}

// wakeOutlets wakes all outlets; m.mu is held.
func (m *Manager) wakeOutlets() {
	for _, out := range m.outlets {
		nudge(out.wake)
	}
}

// Bounds of what Blame may say.
const (
	maxPhase    = 60
	maxSentence = 400
	maxEvidence = 10
)

// tidyBlame bounds a blame; one that says nothing is nil.
func tidyBlame(b Blame) *Blame {
	clean := Blame{Phase: cut(call.OneLine(b.Phase), maxPhase), Text: cut(call.OneLine(b.Text), maxSentence), Share: b.Share}
	for _, e := range b.Evidence[:min(len(b.Evidence), maxEvidence)] {
		if e = cut(call.OneLine(e), maxSentence); e != "" {
			clean.Evidence = append(clean.Evidence, e)
		}
	}
	if clean.Phase == "" && clean.Text == "" && len(clean.Evidence) == 0 {
		return nil
	}
	return &clean
}
