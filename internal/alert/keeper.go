package alert

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// writeEvery is the shortest time between two writes, on average: news may come one
	// earlier, for receivers wait for them.
	writeEvery = time.Second
	// refreshEvery is how often alerts are written of which only the figures have changed, and
	// how long a condition has been away: a kill may cost as much of that.
	refreshEvery = 30 * time.Second
	// retryEvery is the pause after a fault. What is written is small.
	retryEvery = 5 * time.Second
	// takeUpWait is how long Keep waits for the shelf.
	takeUpWait = 2 * time.Second
	// takeUpTries is how often reading is tried before what is there counts as unreadable.
	takeUpTries = 5
)

// Shelf is where alerts outlive the process. It may take any time, or never return.
type Shelf interface {
	// Name says where that is.
	Name() string
	// Load returns what was stored last, be it by another process, and nil when nothing
	// was. An error that is ErrNotYet is none of what is there.
	Load() ([]byte, error)
	// Store replaces it, whole or not at all.
	Store(data []byte) error
	// SetAside takes away what Load returns, and tells where it lies then.
	SetAside() (string, error)
}

// ErrNotYet is the error of a Shelf that is another process's, or cannot be reached.
var ErrNotYet = errors.New("not yet this process's own")

// Keeper keeps the alerts of a Manager on a Shelf, with one goroutine. Neither Observe nor
// receivers wait for the Shelf, but that news are written before they are told if that takes
// no longer than a quarter of a second.
type Keeper struct {
	m     *Manager
	shelf Shelf
	trouble

	first  chan struct{} // closed when the shelf was tried for the first time
	closed sync.Once
	stop   chan struct{}
	done   chan struct{}
	over   atomic.Bool // that nothing goes on: see CloseForGood

	tries int
	next  time.Time // before which nothing is written but news
	// unsure is that it is not known what is on the shelf. Else empty is that it has no
	// alerts, and observed is when objectives were looked at for them.
	unsure, empty bool
	observed      time.Time
}

// Keep takes up the alerts that an earlier process left on the shelf, and keeps the
// Manager's there until Close. It returns when they are taken up, or cannot be, at the
// latest after two seconds: call it after Configure and before the first Observe. A shelf
// that answers later, or is another process's so far, is taken up when it does; until
// then nothing is written to it. What is unreadable there is set aside.
//
// report is told what people should know, once when it begins and once when it is over, with
// the error where there is one. It may be nil, and holds up nothing but the keeping.
func (m *Manager) Keep(shelf Shelf, report func(text string, err error)) *Keeper {
	if report == nil {
		report = func(string, error) {}
	}
	k := &Keeper{m: m, shelf: shelf, trouble: trouble{report: report, since: time.Now()}, first: make(chan struct{}), stop: make(chan struct{}), done: make(chan struct{})}
	go k.run()
	timer := time.NewTimer(takeUpWait)
	defer timer.Stop()
	select {
	case <-k.first:
	case <-timer.C:
	}
	return k
}

// KeeperStatus is how a Keeper stands.
type KeeperStatus struct {
	Path string `json:"path"` // the Shelf's name
	// Kept is whether alerts outlive the process, Since since when that is so, or is
	// not so, and Error why not. Without an Error it is not known yet.
	Kept  bool      `json:"kept"`
	Since time.Time `json:"since"`
	Error string    `json:"error,omitempty"`
}

// Status tells whether alerts are being kept.
func (k *Keeper) Status() KeeperStatus {
	s := k.status()
	s.Path = k.shelf.Name()
	return s
}

// Close writes the alerts a last time and waits for that, at most until ctx is done. It
// returns what keeps them from being kept.
func (k *Keeper) Close(ctx context.Context) error {
	k.closed.Do(func() { close(k.stop) })
	select {
	case <-k.done:
	case <-ctx.Done():
		return fmt.Errorf("close the alerts in %s: %w; the disk is too slow or hangs", k.shelf.Name(), context.Cause(ctx))
	}
	if err := k.fault(); err != nil {
		return fmt.Errorf("close the alerts in %s: %w", k.shelf.Name(), err)
	}
	return nil
}

// CloseForGood is Close for a Manager that goes on but keeps nothing any more: what is
// firing is written as if it ended now. The next process that takes that up ends it at
// receivers that this one does not tell by itself, and what still holds then begins anew.
func (k *Keeper) CloseForGood(ctx context.Context) error {
	k.over.Store(true)
	return k.Close(ctx)
}

func (k *Keeper) run() {
	defer close(k.done)
	defer k.m.writes(false)
	taken := k.takeUp()
	close(k.first)
	for ; !taken; taken = k.takeUp() {
		if !k.pause(retryEvery) {
			return // what is there is another's, or was never read
		}
	}
	refresh := time.NewTicker(refreshEvery)
	defer refresh.Stop()
	for {
		retry := time.Duration(0)
		select {
		case <-k.stop:
		case <-k.m.unkept:
			k.pace()
			retry = k.write(false)
		case <-refresh.C:
			retry = k.write(true)
		}
		for retry > 0 && k.pause(retry) {
			retry = k.write(true)
		}
		select {
		case <-k.stop:
			k.write(true)
			return
		default:
		}
	}
}

// pause returns after d, or tells false at Close.
func (k *Keeper) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-k.stop:
		return false
	}
}

// takeUp takes up what is on the shelf, and tells whether it belongs to this Manager now.
// Then news wait to be written: Keep returns after that, so that those of the first Observe do.
func (k *Keeper) takeUp() bool {
	stop := k.watch(k.hung)
	n, err := k.load()
	stop()
	if err != nil {
		k.note(err)
		return false
	}
	k.m.Snapshot() // which makes tags, and takes its time for it
	k.works()
	if n > 0 {
		k.report(fmt.Sprintf("alerts of the process before go on: %d", n), nil)
	}
	k.m.writes(true)
	return true
}

// load takes up what is on the shelf and tells how many alerts there are then. What is
// of no use is set aside. An error is that another try may do better.
func (k *Keeper) load() (n int, err error) {
	data, err := k.shelf.Load()
	switch {
	case err == nil && data == nil:
		k.empty = true
		return 0, nil
	case err == nil && k.m.isOwn(data):
		return 0, nil // of before objectives were switched off: it knows better
	case err == nil:
		if n, err = k.m.restore(data, time.Now()); err == nil {
			k.m.shelve(data)
			return n, nil
		}
	case errors.Is(err, ErrNotYet):
		return 0, err
	default:
		if k.tries++; k.tries < takeUpTries {
			return 0, err
		}
	}
	where, fault := k.shelf.SetAside()
	if fault != nil {
		return 0, errors.Join(err, fault)
	}
	k.empty = true
	k.report("the alerts in "+k.shelf.Name()+" cannot be used, and lie in "+where+" now", err)
	return 0, nil
}

// pace waits as long as the next write has to, less when there come news.
func (k *Keeper) pace() {
	for {
		wait := max(time.Until(k.next), 0) // which is far below 0 at first
		if k.m.urgent() {
			wait -= writeEvery
		}
		if wait <= 0 {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-k.m.unkept:
		case <-k.stop:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// write writes the alerts if they have changed, or else, to refresh them, if they were
// looked at since, and tells when to try again; 0 is not.
func (k *Keeper) write(refresh bool) (retry time.Duration) {
	over := time.Time{}
	if k.over.Load() {
		over = time.Now()
	}
	image := k.m.image(over)
	none := len(image.alerts) == 0
	same := image.changes == k.m.writtenUpTo() && over.IsZero() && (!refresh || image.observed.Equal(k.observed))
	if !k.unsure && (same || none && k.empty) {
		k.m.wrote(image.changes)
		return 0
	}
	if now := time.Now(); k.next.Before(now) {
		k.next = now
	}
	k.next = k.next.Add(writeEvery)
	began := time.Now()
	stop := k.watch(k.hung)
	data := image.seal()
	k.m.shelve(data) // even if it fails, it may be there
	err := k.shelf.Store(data)
	stop()
	if err != nil {
		k.unsure = true
		k.m.writes(false)
		k.note(err)
		return retryEvery
	}
	k.unsure, k.empty, k.observed = false, none, image.observed
	k.m.wrote(image.changes)
	k.works()
	select {
	case <-k.stop: // nothing is written any more
	default:
		k.m.writes(time.Since(began) < writeTime) // no use in waiting for one that takes longer
	}
	return 0
}

// hung is that a step takes long.
func (k *Keeper) hung(step uint64) {
	if k.noteDuring(step, fmt.Errorf("the disk of %s has not answered for %v; look whether it hangs", k.shelf.Name(), hungAfter)) {
		k.m.writes(false)
	}
}

// writes tells the Manager whether news are to wait to be written.
func (m *Manager) writes(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept.on == on {
		return
	}
	m.kept.on = on
	m.wakeOutlets()
}

// wrote notes which changes are on the shelf.
func (m *Manager) wrote(changes uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept.done = max(m.kept.done, changes)
	m.wakeOutlets()
}

func (m *Manager) writtenUpTo() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept.done
}

// urgent tells whether there are news that are not written.
func (m *Manager) urgent() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept.news > m.kept.done
}

// shelve notes what lies on the shelf, or may do so, of this Manager's.
func (m *Manager) shelve(data []byte) {
	sum := sha256.Sum256(data)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept.sums = [2][sha256.Size]byte{sum, m.kept.sums[0]}
}

// isOwn tells whether what lies on the shelf is what this Manager has put there, or taken
// up from there, last.
func (m *Manager) isOwn(data []byte) bool {
	sum := sha256.Sum256(data)
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.kept.sums[:], sum)
}
