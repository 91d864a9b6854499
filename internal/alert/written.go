package alert

import (
	"crypto/sha256"
	"time"
)

// writeTime is how long news wait to be written before they are told. Were a receiver told
// first and the process killed then, the next one would know nothing of it, and an
// incident that was opened would never be closed. A disk that works takes some
// milliseconds, less than the phase to blame does, which is waited for as well; one that does
// not holds up one telling by this much, and then none until it works again.
const writeTime = 250 * time.Millisecond

// keeping is how a Manager stands with its Keeper.
type keeping struct {
	// on is that news wait to be written.
	on bool
	// changes counts the changes of what is kept. news is how many there were when there
	// was something new to tell, and done at the image that was written last.
	changes, news, done uint64
	// sums are of what was taken up from the shelf or put there last, the latest two since a
	// write that failed may have worked.
	sums [2][sha256.Size]byte
}

// written is how an alert stands with the Keeper.
type written struct {
	news  uint64    // keeping.changes when there was something new to tell of it; 0 is written
	waits time.Time // since when a receiver waits for it
}

// changed notes that what is kept is no longer what there is; m.mu is held.
func (m *Manager) changed() {
	m.kept.changes++
	nudge(m.unkept)
}

// news notes that an alert has begun or ended, or is to be told to one more receiver; m.mu
// is held.
func (m *Manager) news(e *entry) {
	m.changed()
	e.written, m.kept.news = written{news: m.kept.changes}, m.kept.changes
}

// waits tells until when what there is to tell of an alert waits to be written; zero is not.
// Who waits is woken by then, or when it is. m.mu is held.
func (m *Manager) waits(e *entry, now time.Time) (until time.Time) {
	w := &e.written
	if !m.kept.on || m.stopping || w.news <= m.kept.done {
		return time.Time{}
	}
	if w.waits.IsZero() || w.waits.After(now) {
		w.waits = now
	}
	if until = w.waits.Add(writeTime); until.After(now) {
		return until
	}
	m.kept.on = false
	return time.Time{}
}
