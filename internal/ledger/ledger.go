package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// Defaults of Options, each for a field that is 0.
const (
	// DefaultMaxSpill holds about half a million calls: hours of a busy gateway
	// whose database is locked, and no more than a log file takes.
	DefaultMaxSpill = 256 << 20
	// DefaultRetention is a quarter, the longest period that bills are argued
	// about in single calls.
	DefaultRetention = 90 * 24 * time.Hour
	// DefaultBreaker is far above what a disk takes for an append to the page
	// cache (microseconds) and far below what a caller notices.
	DefaultBreaker = 10 * time.Millisecond
)

// minSpill is the smallest spill, in bytes, that makes sense: some hundred calls.
const minSpill = 1 << 20

// openWait is how long Open waits for the spill's directory, so that the first
// calls are covered. A disk that hangs holds it up no longer.
const openWait = 250 * time.Millisecond

// KeepAll is the Retention that deletes no rows.
const KeepAll = time.Duration(-1)

// Options configure a Ledger. Path must be set.
type Options struct {
	// Path is the SQLite database, such as usage.db. It is made when it is
	// missing; its directory is not.
	Path string
	// Spill is the directory of the spill log; "" is Path with ".spill". It
	// should be on a local disk, and belongs to one process.
	Spill string
	// MaxSpill bounds the spill in bytes, at least 1 MiB; 0 is DefaultMaxSpill.
	// What would pass it is lost, and counted.
	MaxSpill int64
	// Retention is how long the row of a call is kept after the call was
	// received; 0 is DefaultRetention, KeepAll keeps all. Hourly sums are kept
	// for ever.
	Retention time.Duration
	// Breaker is the longest that a call waits for the disk; 0 is DefaultBreaker.
	Breaker time.Duration
	// FailClosed makes Start return an error when a call could not be recorded.
	// By default calls go on, and are counted as uncovered.
	FailClosed bool
	// Log is told when the ledger degrades and recovers; nil logs nothing.
	Log *slog.Logger
	// Now is the wall clock; nil is time.Now.
	Now func() time.Time

	disk disk // nil is the operating system's
}

// Ledger records calls. It may be used by many goroutines at once.
type Ledger struct {
	failClosed bool
	now        func() time.Time
	spill      *spill
	committer  *committer
	reader     *Reader
	log        *logger
	interrupt  context.CancelFunc // of the database's work

	closing sync.Once
	closed  error // what Close returned
}

// Open opens the ledger. It fails only on options that make no sense: a
// database or a directory that cannot be used gives a ledger that is degraded,
// says why in its State, keeps what it can, and tries again. It waits for no
// disk longer than a quarter of a second.
func Open(o Options) (*Ledger, error) {
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	log := newLogger(o.Log)
	ctx, cancel := context.WithCancel(context.Background())
	s := newSpill(o.disk, o.Spill, o.MaxSpill, o.Breaker, log)
	l := &Ledger{
		failClosed: o.FailClosed, now: o.Now, spill: s, log: log, interrupt: cancel,
		reader: newReader(o.Path),
		committer: &committer{
			spill: s, path: o.Path, retention: o.Retention, now: o.Now, log: log, ctx: ctx,
			wait: groupWait, stop: make(chan struct{}), ended: make(chan struct{}), hurry: make(chan struct{}, 1),
			tail: tail{open: make(map[callKey]place), carried: make(map[uint64]bool)},
		},
	}
	s.users.Store(2)
	go s.run()
	go l.committer.run()
	t := time.NewTimer(openWait)
	defer t.Stop()
	select {
	case <-s.attempted:
	case <-t.C:
	}
	return l, nil
}

// Validate tells what Open would find wrong with the options.
func (o Options) Validate() error { return o.complete() }

func (o *Options) complete() error {
	if o.Path == "" {
		return errors.New("path of the database is empty")
	}
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return err
	}
	o.Path = path
	if o.Spill == "" {
		o.Spill = o.Path + ".spill"
	}
	if o.Spill, err = filepath.Abs(o.Spill); err != nil {
		return err
	}
	if o.Spill == o.Path {
		return fmt.Errorf("spill directory and database are both %s", o.Path)
	}
	if o.MaxSpill == 0 {
		o.MaxSpill = DefaultMaxSpill
	}
	if o.MaxSpill < minSpill {
		return fmt.Errorf("spill of at most %d bytes: it needs at least %d", o.MaxSpill, minSpill)
	}
	if o.Retention == 0 {
		o.Retention = DefaultRetention
	}
	if o.Retention < 0 && o.Retention != KeepAll {
		return fmt.Errorf("retention %v is negative", o.Retention)
	}
	if o.Breaker == 0 {
		o.Breaker = DefaultBreaker
	}
	if o.Breaker < 0 {
		return fmt.Errorf("breaker %v is negative", o.Breaker)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.disk == nil {
		o.disk = osDisk{}
	}
	return nil
}

// Start records that a call was admitted. When it returns, the call survives
// the end of the process, however that comes; unless the disk did not take it
// within the breaker's time, which is counted and, with FailClosed alone, an
// error. The end of the call is to be recorded in either case.
func (l *Ledger) Start(s *Start) error {
	if s.ID == "" {
		return errors.New("record the start of a call: it has no id")
	}
	w := l.spill.waiters.Get().(*waiter)
	defer l.spill.waiters.Put(w)
	var fits bool
	w.entry, fits = sealEntry(appendStart(beginEntry(w.entry[:0], kindStart), s, l.now), 0)
	err := errTooLarge
	if fits {
		err = l.spill.append(w, kindStart)
	}
	if err == nil || !l.failClosed {
		return nil
	}
	return fmt.Errorf("record the start of a call: %w", err)
}

// End records how a call ended, whether it had a Start or not. It never fails
// the call: what could not be recorded is counted in the State. When it
// returns, the row is in the spill, and within about groupWait in the database, or longWait while many calls end.
// A second end of the same id changes nothing. rec must be complete; its tokens
// without a UsageSource are left out, and estimates stand in for them.
func (l *Ledger) End(rec *call.Record) {
	if rec.ID == "" {
		l.spill.lost()
		return
	}
	w := l.spill.waiters.Get().(*waiter)
	defer l.spill.waiters.Put(w)
	w.entry = appendRow(beginEntry(w.entry[:0], kindEnd), rec, l.now)
	l.keep(w, kindEnd)
}

// keep hands over the entry that w holds. What cannot be kept is counted.
func (l *Ledger) keep(w *waiter, kind byte) {
	var fits bool
	if w.entry, fits = sealEntry(w.entry, 0); !fits {
		l.spill.lost()
		return
	}
	// What did not get in is counted where it was turned away.
	_ = l.spill.append(w, kind)
}

// Flush waits until all that was recorded before is in the database.
func (l *Ledger) Flush(ctx context.Context) error {
	return l.spill.flush(ctx, l.committer)
}

// Close commits what is left, waits for the ledger's goroutines, and gives up
// its files. Starts and ends that come later are lost. A database that does not
// take rows gets one more try: what it lacks stays in the spill, is committed
// after the next Open, and Close says so. A disk that hangs is waited for until
// ctx ends. A second Close returns what the first did.
func (l *Ledger) Close(ctx context.Context) error {
	l.closing.Do(func() { l.closed = l.close(ctx) })
	return l.closed
}

func (l *Ledger) close(ctx context.Context) error {
	var errs []error
	l.spill.close()
	select {
	case <-l.spill.done:
	case <-ctx.Done():
		l.spill.quit()
		errs = append(errs, fmt.Errorf("the spill was not written to its end: %w", ctx.Err()))
	}
	l.committer.quit()
	select {
	case <-l.committer.ended:
	case <-ctx.Done():
		l.interrupt()
		errs = append(errs, fmt.Errorf("the database was interrupted: %w", ctx.Err()))
	}
	if !l.rest() {
		// Whatever the disk holds up ends when the disk does.
		errs = append(errs, errors.New("the disk still holds up a goroutine"))
	} else if err := l.left(); err != nil {
		errs = append(errs, err)
	}
	if err := l.reader.Close(); err != nil {
		errs = append(errs, err)
	}
	l.interrupt()
	l.log.close()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close ledger: %w", err)
	}
	return nil
}
