package slofile

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// hungAfter is how long the disk may take for one step before it is said to hang.
	hungAfter = 10 * time.Second
	// backoffMax is the longest pause after a fault: the counts of a minute are
	// what a kill may cost soon after the fault is over.
	backoffMax = time.Minute
	// tellEvery is how often at most people are told of a disk that comes and goes.
	tellEvery = 5 * time.Minute
)

// faults knows whether counts are being kept, and tells people when that changes.
type faults struct {
	tell func(string, error)

	backoff time.Duration // of Run

	mu     sync.Mutex
	err    error // why counts are not being kept; nil when they are
	since  time.Time
	told   bool      // people know of err
	toldAt time.Time // when they were told of one last
	busy   uint64    // the step under way, to tell it from later ones
	status Status    // what is not above
}

// fail notes a fault and returns when to try again.
func (f *faults) fail(err error) time.Duration {
	f.note(err)
	if errors.Is(err, errInUse) {
		f.backoff = 0 // the other process may end at any time
	}
	f.backoff = min(max(2*f.backoff, appendEvery), backoffMax)
	return f.backoff
}

// note keeps the reason why counts are not being kept.
func (f *faults) note(err error) {
	f.mu.Lock()
	tell := f.set(err)
	f.mu.Unlock()
	if tell {
		f.tell(notKept, err)
	}
}

const notKept = "the counts of objectives are not being kept: they are in memory alone, and Weir tries again"

// set is note under the lock; it tells whether people are to be told.
func (f *faults) set(err error) bool {
	begins := f.err == nil
	f.err = err
	if !begins {
		return false
	}
	f.since = time.Now()
	if f.told = f.toldAt.IsZero() || f.since.Sub(f.toldAt) >= tellEvery; f.told {
		f.toldAt = f.since
	}
	return f.told
}

// worked notes that the disk has taken what there was.
func (f *faults) worked() {
	f.backoff = 0
	f.mu.Lock()
	over := f.err != nil
	tell, began := over && f.told, f.since
	if over {
		f.err, f.since = nil, time.Now()
	}
	f.mu.Unlock()
	if tell {
		f.tell(fmt.Sprintf("the counts of objectives are being kept again, after %v", time.Since(began).Round(time.Second)), nil)
	}
}

// watch says that the disk hangs if what follows takes too long, until the
// function that it returns is called.
func (f *faults) watch() (stop func()) {
	f.mu.Lock()
	f.busy++
	step := f.busy
	f.mu.Unlock()
	t := time.AfterFunc(hungAfter, func() { f.hung(step) })
	return func() {
		t.Stop()
		f.mu.Lock()
		f.busy++ // a timer that has just fired says nothing
		f.mu.Unlock()
	}
}

// hung notes that a step takes too long, unless it is over.
func (f *faults) hung(step uint64) {
	err := fmt.Errorf("the disk has not answered for %v; look whether it hangs", hungAfter)
	f.mu.Lock()
	tell := f.busy == step && f.set(err)
	f.mu.Unlock()
	if tell {
		f.tell(notKept, err)
	}
}
