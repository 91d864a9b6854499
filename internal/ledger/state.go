package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// hungAfter is how long the database may work on one group before the ledger
// says that it hangs.
const hungAfter = 5 * time.Second

// closeGrace is how long Close waits, after its context has ended, for
// goroutines that have been told to give up.
const closeGrace = time.Second

// State is how a ledger is. Counts are those of this process since Open.
type State struct {
	// Degraded is whether calls are recorded less safely than they should be:
	// the spill or the database takes nothing at the moment. Reason says why
	// and what to do, Since when that began.
	Degraded bool      `json:"degraded"`
	Reason   string    `json:"reason,omitempty"`
	Since    time.Time `json:"since,omitzero"`

	Rows      int64  `json:"rows"`      // new rows in the database
	Crashed   int64  `json:"crashed"`   // of those, calls whose process ended before they did
	Replayed  int64  `json:"replayed"`  // of those, rows that an earlier process left in the spill
	Repeated  int64  `json:"repeated"`  // ends whose row the database had
	Deleted   int64  `json:"deleted"`   // rows deleted by the retention
	Uncovered uint64 `json:"uncovered"` // starts and ends that were not in the spill when their call went on
	Dropped   uint64 `json:"dropped"`   // starts and ends that are lost: no room, too late, or without an id

	// Torn counts segments that ended within an entry, as a crash leaves them;
	// Damaged counts places where the spill held something else than was
	// written, and Refused rows that the database will never take. What was
	// there is lost.
	Torn    int64 `json:"torn"`
	Damaged int64 `json:"damaged"`
	Refused int64 `json:"refused"`

	SpillBytes int64 `json:"spill_bytes"` // on the disk, and waiting for it
	Pending    int64 `json:"pending"`     // ends of this process that the database lacks
	// Lag is how long the oldest of them that is in the spill has waited, at
	// most; 0 without any.
	Lag time.Duration `json:"lag_ns"`
	// Replaying is whether segments of earlier processes are left.
	Replaying bool `json:"replaying"`
}

// State returns how the ledger is. It does not wait for a disk.
func (l *Ledger) State() State {
	now := time.Now()
	var st State
	degrade := func(since time.Time, reason string) {
		if st.Reason != "" {
			st.Reason += "; "
		}
		st.Reason += reason
		if !st.Degraded || since.Before(st.Since) {
			st.Since = since
		}
		st.Degraded = true
	}

	s := l.spill
	s.mu.Lock()
	st.Uncovered, st.Dropped = s.uncovered, s.dropped
	st.SpillBytes = s.bytes + int64(len(s.inflight.buf)+len(s.current.buf))
	st.Pending = s.ends + s.inflight.ends + s.current.ends - s.endsRead
	if !s.oldest.at.IsZero() {
		st.Lag = now.Sub(s.oldest.at)
	}
	st.Replaying = s.replaying
	if s.tripped {
		degrade(s.since, s.reason.Error())
	}
	if !s.overflow.IsZero() {
		degrade(s.overflow, fmt.Sprintf("the spill is full (%d bytes): rows are lost until the database takes them", st.SpillBytes))
	}
	s.mu.Unlock()

	c := l.committer
	c.mu.Lock()
	p := c.progress
	c.mu.Unlock()
	st.Rows, st.Crashed, st.Replayed, st.Repeated, st.Deleted = p.rows, p.crashed, p.replayed, p.repeated, p.deleted
	st.Torn, st.Damaged, st.Refused = p.torn, p.damage, p.refused
	if p.failure != nil {
		degrade(p.failing, p.failure.Error())
	}
	if !p.busy.IsZero() && now.Sub(p.busy) > hungAfter {
		degrade(p.busy, fmt.Sprintf("ledger %s: a transaction has not come to its end for %v: does the disk hang, or is a large ledger of an older weir being brought up to date?",
			c.path, now.Sub(p.busy).Round(time.Second)))
	}
	return st
}

// lost counts what cannot be recorded at all.
func (s *spill) lost() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped++
}

// flush waits until the committer has come to where the spill ends now.
func (s *spill) flush(ctx context.Context, c *committer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	target, end := s.accepted, position{}
	s.flushing++
	defer func() { s.flushing-- }()
	for {
		if end == (position{}) && s.written >= target {
			end = s.end()
		}
		if s.written >= target && !s.replaying && !s.committed.before(end) {
			return nil
		}
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		notify(c.hurry)
		err := wait(ctx, changed, c.ended)
		s.mu.Lock()
		if err != nil {
			return fmt.Errorf("flush ledger: %w", err)
		}
	}
}

// end returns where the spill ends. The lock is held.
func (s *spill) end() position {
	for _, g := range slices.Backward(s.segments) {
		if g.size > 0 {
			return position{g.n, g.size}
		}
	}
	return position{}
}

func wait(ctx context.Context, changed, ended <-chan struct{}) error {
	select {
	case <-changed:
		return nil
	case <-ended:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// quit makes the writer give up what it cannot write.
func (s *spill) quit() { close(s.abandon) }

// quit lets the committer end when all is committed, or at the first failure.
func (c *committer) quit() { close(c.stop) }

// rest waits for the goroutines, a little longer if the context has ended. It
// reports false when one has not ended.
func (l *Ledger) rest() bool {
	t := time.NewTimer(closeGrace)
	defer t.Stop()
	for _, done := range []<-chan struct{}{l.spill.done, l.committer.ended} {
		select {
		case <-done:
		case <-t.C:
			return false
		}
	}
	return true
}

// left says what the database lacks when the ledger has ended.
func (l *Ledger) left() error {
	l.committer.mu.Lock()
	defer l.committer.mu.Unlock()
	if err := l.committer.progress.failure; err != nil {
		return fmt.Errorf("%w (what it lacks is in the spill %s, and is committed when a ledger is opened there)", err, l.spill.dir)
	}
	return nil
}
