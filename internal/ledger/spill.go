package ledger

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxPending bounds the bytes that wait in memory for a disk that does not
	// take them; there may be twice as many, one half on its way to the disk.
	maxPending = 8 << 20
	// endShare is the part of the spill that is kept for ends: 1/endShare. A
	// start without an end costs an estimate, an end that is lost a bill.
	endShare = 8

	backoffMin = 10 * time.Millisecond
	backoffMax = time.Second
)

// Reasons why a call passed without being recorded at once.
var (
	errNotWritten = errors.New("the spill is not being written")
	errSpillFull  = errors.New("the spill is full")
	errClosed     = errors.New("the ledger is closed")
	errTooLarge   = errors.New("the entry is too large")
)

// spill is a log in a directory, in segments, of what happens to calls. Calls
// append to it; one reader, the committer, follows it and removes what it has
// put into the database.
//
// Appending hands the bytes to the writer goroutine, which writes whatever has
// come together in one write(2) into the page cache, and waits until that has
// returned. A call could write itself, or into a mapped file, with a fifth of
// the latency; but a write or a page fault on a disk that hangs cannot be left,
// and a thread that faults holds up the garbage collector, so all calls. A wait
// for a goroutine can be left: that is the breaker's work.
type spill struct {
	disk    disk
	dir     string
	max     int64 // bytes
	segment int64 // bytes after which a new segment is begun
	breaker time.Duration
	log     *logger

	wake      chan struct{} // to the writer: there is something, or closing
	abandon   chan struct{} // closed: give up what cannot be written
	done      chan struct{} // closed when the writer has ended
	prepared  chan struct{} // closed when the directory has been taken
	attempted chan struct{} // closed when taking it has been tried once
	more      chan struct{} // to the committer: there are ends to commit, or closing
	full      chan struct{} // to the committer: a whole group is there

	waiters sync.Pool // of *waiter

	// Of the writer goroutine.
	out     file // the last segment; nil when the next write begins one
	nextSeg uint64
	lock    io.Closer

	users atomic.Int32 // goroutines that use the directory: the last gives it up

	mu       sync.Mutex
	current  batch // filled by calls
	inflight batch // with the writer
	idle     bool  // the writer waits for wake
	closing  bool
	breakerState

	segments []segment // oldest first
	bytes    int64     // of all segments
	accepted uint64    // entries taken from calls
	written  uint64    // of those, how many are in segments
	dropped  uint64    // of those that came, how many were not taken or were given up
	gone     bool      // somebody has removed the last segment's file
	overflow time.Time // since when the spill has been full; zero when it is not

	followed
}

// segment is one file of the spill.
type segment struct {
	n    uint64
	size int64 // bytes written in whole; what follows is torn
	old  bool  // left by an earlier process
}

func (g segment) name() string { return fmt.Sprintf("%016d.spill", g.n) }

// batch is what goes to the disk in one write.
type batch struct {
	buf     []byte
	entries uint64
	ends    int64
	carried bool // holds entries of the committer's own
	waiters []*waiter
	since   time.Time // when the first waiter came
}

// waiter is one call that waits for its bytes to be written. Its buffer and its
// channel are used again.
type waiter struct {
	entry []byte
	done  chan bool // whether they were; never more than one value in it
}

func newWaiter() any { return &waiter{done: make(chan bool, 1)} }

func newSpill(d disk, dir string, max int64, breaker time.Duration, log *logger) *spill {
	return &spill{
		disk: d, dir: dir, max: max, segment: min(max/16, 4<<20), breaker: breaker, log: log,
		wake: make(chan struct{}, 1), abandon: make(chan struct{}), done: make(chan struct{}),
		prepared: make(chan struct{}), attempted: make(chan struct{}),
		more: make(chan struct{}, 1), full: make(chan struct{}, 1),
		waiters: sync.Pool{New: newWaiter},
	}
}

// append takes the entry that w holds, and waits until it is written or the
// breaker lets the call go. It returns nil when it is written; else the entry
// may still be written later, unless the error is one of the other three.
func (s *spill) append(w *waiter, kind byte) error {
	s.mu.Lock()
	if err := s.room(len(w.entry), kind); err != nil {
		s.dropped++
		s.mu.Unlock()
		return err
	}
	s.current.buf = append(s.current.buf, w.entry...)
	s.current.entries++
	if kind == kindEnd || kind == kindAmend {
		s.current.ends++
	}
	s.accepted++
	if s.tripped {
		s.uncovered++
		s.mu.Unlock()
		return errNotWritten // the writer finds it when the disk is back
	}
	if len(s.current.waiters) == 0 {
		s.current.since = time.Now()
	}
	s.current.waiters = append(s.current.waiters, w)
	s.arm()
	wake := s.idle
	s.idle = false
	s.mu.Unlock()
	if wake {
		s.wake <- struct{}{}
	}
	if !<-w.done {
		return errNotWritten
	}
	return nil
}

// room tells whether n more bytes of that kind may be taken. The lock is held.
func (s *spill) room(n int, kind byte) error {
	if s.closing {
		return errClosed
	}
	limit := s.max
	if kind == kindStart {
		limit -= limit / endShare
	}
	held := int64(len(s.current.buf) + n)
	if held > maxPending || s.bytes+int64(len(s.inflight.buf))+held > limit {
		if s.overflow.IsZero() {
			s.overflow = time.Now()
			s.log.warn("spill is full", "usage of calls is being lost until the database takes rows again; see its state for the reason",
				"dir", s.dir, "bytes", s.bytes)
		}
		return errSpillFull
	}
	return nil
}

// ease takes the spill for full no longer when a start of any size has room
// again. The lock is held.
func (s *spill) ease() {
	held := int64(len(s.current.buf) + maxEntry)
	if held <= maxPending && s.bytes+int64(len(s.inflight.buf))+held <= s.max-s.max/endShare {
		s.overflow = time.Time{}
	}
}

// carry appends entries for the committer, which does not wait: it will read
// them when they have been written. They are as many as there are open calls.
func (s *spill) carry(entries []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current.buf = append(s.current.buf, entries...)
	s.current.carried = true
	s.rouse()
}

// rouse wakes the writer if it waits. The lock is held.
func (s *spill) rouse() {
	if s.idle {
		s.idle = false
		s.wake <- struct{}{} // has room: idle was true
	}
}

// close lets the writer end when all is written. Nothing is taken any more.
func (s *spill) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	s.rouse()
}

// followed is where the committer stands, and what it waits for.
type followed struct {
	ends      int64     // ends in segments of this process
	endsRead  int64     // of those, how many are in the database
	oldest    mark      // of the ends that the database lacks
	later     time.Time // when the first end came after that mark was set; zero without
	notified  bool      // more was sent, and the committer has not looked since
	grouping  bool      // the committer waits for full
	committed position  // all before it is in the database
	replaying bool      // segments of earlier processes are left
	flushing  int       // callers of flush
	changed   chan struct{}
}

// mark says that the ends up to a count came at a time, or later.
type mark struct {
	ends int64
	at   time.Time
}

// read accounts for n more ends that the database has taken. The lock is held.
func (s *spill) read(n int64) {
	s.endsRead += n
	if s.endsRead < s.oldest.ends {
		return
	}
	if s.endsRead < s.ends {
		s.oldest = mark{s.ends, s.later} // those that are left came after the mark
	} else {
		s.oldest = mark{}
	}
	s.later = time.Time{}
}

// position is a place in the spill.
type position struct {
	seg uint64
	off int64
}

func (p position) before(q position) bool {
	return p.seg < q.seg || p.seg == q.seg && p.off < q.off
}

// wrote accounts for the batch in flight, which has just been written, now. The
// lock is held.
func (s *spill) wrote(now time.Time) {
	n := int64(len(s.inflight.buf))
	s.segments[len(s.segments)-1].size += n
	s.bytes += n
	s.written += s.inflight.entries
	if s.inflight.ends > 0 || s.inflight.carried {
		s.ends += s.inflight.ends
		switch {
		case s.inflight.ends == 0:
		case s.oldest.at.IsZero():
			s.oldest = mark{s.ends, now}
		case s.later.IsZero():
			s.later = now
		}
		if !s.notified {
			s.notified = true
			notify(s.more)
		}
		if s.grouping && s.ends-s.endsRead >= maxGroup {
			s.grouping = false
			notify(s.full)
		}
	}
	s.signal()
}

// signal wakes those who wait in flush. The lock is held.
func (s *spill) signal() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// notify sends without waiting: one value in the channel says all.
func notify(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// next returns where the reader at p goes on, and up to where that segment may
// be read; false when there is nothing more. old tells whose segment it is. All
// before p must be in the database: when nothing more is there, no end is
// awaited, be it that some were lost where the spill was damaged.
func (s *spill) next(p position) (at position, limit int64, old, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.segments {
		if g.n < p.seg {
			continue
		}
		if g.n > p.seg {
			p = position{seg: g.n}
		}
		if p.off < g.size {
			return p, g.size, g.old, true
		}
	}
	s.read(s.ends - s.endsRead)
	return p, 0, false, false
}

// remove takes a segment away that the database holds.
func (s *spill) remove(n uint64) error {
	if err := s.disk.Remove(s.path(segment{n: n})); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, g := range s.segments {
		if g.n == n {
			s.bytes -= g.size
			s.segments = append(s.segments[:i], s.segments[i+1:]...)
			break
		}
	}
	s.ease()
	return nil
}
