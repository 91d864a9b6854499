package alert

import (
	"fmt"
	"sync"
	"time"
)

const (
	// hungAfter is how long the disk may take for one step before it is said to hang.
	hungAfter = 10 * time.Second
	// tellEvery is how often at most people are told of a disk that comes and goes.
	tellEvery = 5 * time.Minute
)

// trouble knows whether alerts are being kept, and tells people when that changes.
type trouble struct {
	report func(string, error)

	mu     sync.Mutex
	begun  bool      // what was there has been taken up
	err    error     // why they are not being kept; nil when they are
	since  time.Time // of begun, and of err; of when there was none any more
	told   bool      // people know of err
	toldAt time.Time // when they were told of one last
	step   uint64    // the step under way, to tell it from later ones
}

const notKept = "alerts are not being kept: after a restart those that hold would be told again, and the end of others would not; Weir tries again"

// note keeps the reason why alerts are not being kept.
func (t *trouble) note(err error) {
	t.mu.Lock()
	tell := t.set(err)
	t.mu.Unlock()
	if tell {
		t.report(notKept, err)
	}
}

// noteDuring is note unless the step is over, which it tells.
func (t *trouble) noteDuring(step uint64, err error) bool {
	t.mu.Lock()
	under := t.step == step
	tell := under && t.set(err)
	t.mu.Unlock()
	if tell {
		t.report(notKept, err)
	}
	return under
}

// set is note under the lock; it tells whether people are to be told.
func (t *trouble) set(err error) bool {
	begins, now := t.err == nil, time.Now()
	t.err = err
	if !begins {
		return false
	}
	t.since = now
	if t.told = t.toldAt.IsZero() || now.Sub(t.toldAt) >= tellEvery; t.told {
		t.toldAt = now
	}
	return t.told
}

// works notes that they are being kept.
func (t *trouble) works() {
	t.mu.Lock()
	tell, since := t.err != nil && t.told, t.since
	if t.err != nil || !t.begun {
		t.since = time.Now()
	}
	t.begun, t.err = true, nil
	t.mu.Unlock()
	if tell {
		t.report(fmt.Sprintf("alerts are being kept again, after %v", time.Since(since).Round(time.Second)), nil)
	}
}

// status is Keeper.Status without the path.
func (t *trouble) status() KeeperStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := KeeperStatus{Kept: t.begun && t.err == nil, Since: wall(t.since)}
	if t.err != nil {
		s.Error = foreign(t.err)
	}
	return s
}

func (t *trouble) fault() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// watch calls hung if what follows takes too long, until the function that it returns is called.
func (t *trouble) watch(hung func(step uint64)) (stop func()) {
	t.mu.Lock()
	t.step++
	step := t.step
	t.mu.Unlock()
	timer := time.AfterFunc(hungAfter, func() { hung(step) })
	return func() {
		timer.Stop()
		t.mu.Lock()
		t.step++ // a timer that has just fired says nothing
		t.mu.Unlock()
	}
}
