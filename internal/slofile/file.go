package slofile

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// appendEvery is what a kill may cost.
	appendEvery = 2 * time.Second
	// snapshotEvery bounds the journal of a quiet service in time: it is read in a
	// moment, and a damaged snapshot is soon two generations old.
	snapshotEvery = 10 * time.Minute
	// maxJournal bounds that of a busy one in bytes.
	maxJournal = 8 << 20
	// openWait is how long Open waits for the disk, so that what was kept is there
	// before the first call: far more than a disk takes that answers at all.
	openWait = 2 * time.Second
)

// File keeps a State in a directory. Its methods may be used by many goroutines.
type File struct {
	dir        string
	state      State
	fresh      func() State
	report     func(string, error)
	disk       disk
	every      time.Duration
	maxJournal int64

	loading chan taken // of Open's goroutine, until somebody has received from it

	begun   atomic.Bool // Run has been called
	closing sync.Once
	stop    chan struct{} // closed by Close
	done    chan struct{} // closed when Run has ended

	// tenants are those who use the directory's lock; nil before it was taken.
	tenants atomic.Pointer[tenants]

	faults
	writer
}

// taken is a directory that was taken, or why it was not.
type taken struct {
	lock  lock
	found *found
	err   error
}

// Open opens the directory and gives state what an earlier process has left
// there, before it returns. It fails only on arguments that make no sense. A
// directory that cannot be used, or whose files cannot, is told of through Report
// and Status; then state counts in memory, and Run tries again. Open waits for
// no disk longer than two seconds: what comes later is added to what state has
// counted by then; see Options.Fresh.
func Open(dir string, state State, o Options) (*File, error) {
	if dir == "" || state == nil {
		return nil, errors.New("open the counts of objectives: no directory, or no state")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open the counts of objectives: %w", err)
	}
	f := &File{
		dir: dir, state: state, fresh: o.Fresh, report: o.Report, disk: o.disk, every: o.every, maxJournal: o.maxJournal,
		loading: make(chan taken, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	if f.fresh == nil {
		f.fresh = func() State { return nil }
	}
	if f.report == nil {
		f.report = func(string, error) {}
	}
	if f.disk == nil {
		f.disk = osDisk{}
	}
	if f.every == 0 {
		f.every = appendEvery
	}
	if f.maxJournal == 0 {
		f.maxJournal = maxJournal
	}
	f.faults.since, f.faults.tell = time.Now(), f.report
	f.status.Path = dir
	loading := f.loading
	go func() { loading <- f.take(true) }()
	t := time.NewTimer(openWait)
	defer t.Stop()
	select {
	case got := <-loading:
		f.loading = nil
		if err := f.adopt(got, false); err != nil {
			f.fail(err)
		}
	case <-t.C:
		f.fail(fmt.Errorf("the disk of %s has not answered for %v; look whether it hangs", dir, openWait))
	}
	return f, nil
}

// take makes the directory this process's own and reads it. patient is whether
// a file that cannot be read is to be tried again.
func (f *File) take(patient bool) (t taken) {
	if t.lock, t.err = f.own(); t.err != nil {
		return t
	}
	if t.found, t.err = look(f.disk, f.dir, patient); t.err != nil {
		t.lock.Close() // there is nothing to lose
	}
	return t
}

// own makes the directory and locks it. Where there are no locks it goes on
// without: to count in memory alone would be worse.
func (f *File) own() (lock, error) {
	if err := f.disk.Prepare(f.dir); err != nil {
		return nil, fmt.Errorf("make the directory of counts: %w; let it be one that this process may write to", err)
	}
	l, err := f.disk.Lock(f.dir)
	switch {
	case errors.Is(err, errNoLocks):
		return unlocked{}, nil
	case errors.Is(err, errInUse):
		return nil, fmt.Errorf("the directory of counts %s is %w: each gateway needs its own; this one counts in memory until it is free", f.dir, err)
	case err != nil:
		return nil, fmt.Errorf("lock the directory of counts: %w", err)
	}
	return l, nil
}

// unlocked is a directory that cannot be locked.
type unlocked struct{}

func (unlocked) Held() bool   { return true }
func (unlocked) Close() error { return nil }

// adopt goes on with a directory that was taken. late is whether the state has
// counted already.
func (f *File) adopt(got taken, late bool) error {
	if got.err != nil {
		return got.err
	}
	var fresh func() State
	if late {
		fresh = f.fresh
	}
	loaded, err := got.found.adopt(f.state, fresh)
	loaded.At = time.Now()
	f.begin(got.lock, got.found, loaded)
	if got.lock == (unlocked{}) {
		f.report("the directory of counts "+f.dir+" cannot be locked: let no other gateway use it", errNoLocks)
	}
	switch {
	case err == nil:
	case loaded.Anew:
		f.report("the counts of objectives in "+f.dir+" cannot be used: counting begins anew, and the latest snapshot is kept there as "+asideName, err)
	default:
		f.report("some counts of objectives in "+f.dir+" cannot be used; what could be was taken up", err)
	}
	return nil
}

// Run keeps the state until ctx is done or Close is called, then writes it a last
// time and gives the directory up. Where the disk hangs, Run ends when that has
// answered: wait for it with Close, which does not. Run runs once.
func (f *File) Run(ctx context.Context) {
	if !f.begun.CompareAndSwap(false, true) {
		return
	}
	defer close(f.done)
	t := time.NewTimer(f.every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
		case <-f.stop:
		case <-t.C:
			t.Reset(f.step(false))
			continue
		}
		f.step(true)
		f.end()
		return
	}
}

// step writes what there is to write and returns when to come again. last is
// whether it is for good.
func (f *File) step(last bool) time.Duration {
	changes := f.state.Changes() // in every case: they must not gather
	f.changed = f.changed || len(changes) > 0
	if f.lock == nil {
		if err := f.await(); err != nil {
			return f.fail(err)
		}
		f.changed = true // in any case by what was taken up
	}
	wrote, err := f.write(changes, last)
	if err != nil {
		return f.fail(err)
	}
	if wrote {
		f.worked()
	}
	return f.every
}

// await takes the directory, be it by the try that Open did not wait for.
func (f *File) await() error {
	defer f.watch()()
	if f.loaded { // what is there now is this state's own, or a stranger's
		l, err := f.own()
		if err == nil {
			f.hold(l)
		}
		return err
	}
	var got taken
	if f.loading != nil {
		got = <-f.loading
		f.loading = nil
	} else {
		f.tries++
		got = f.take(f.tries < maxReadTries)
	}
	return f.adopt(got, true)
}

// Close writes the state a last time, waits for Run to end, at most until ctx is
// done, and returns what keeps the latest counts from being kept.
func (f *File) Close(ctx context.Context) error {
	f.closing.Do(func() { close(f.stop) })
	if !f.begun.Load() {
		go f.Run(context.Background()) // which ends at once, and is waited for below
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		return fmt.Errorf("close the counts of objectives: %w; the disk of %s is too slow or hangs, and the latest are lost", context.Cause(ctx), f.dir)
	}
	if s := f.Status(); !s.Kept {
		return fmt.Errorf("close the counts of objectives: those since %s are lost: %s", s.Since.Format(time.RFC3339), s.Error)
	}
	return nil
}

// Status returns how it stands. It waits for no disk.
func (f *File) Status() Status {
	f.faults.mu.Lock()
	defer f.faults.mu.Unlock()
	s := f.status
	s.Kept, s.Since = f.err == nil, f.faults.since
	if f.err != nil {
		s.Error = f.err.Error()
	}
	return s
}
