package ledger

import "time"

// breakerState lets calls go when the disk does not answer. It trips when a
// write fails, or when a call has waited for longer than the breaker's time;
// then calls pass without waiting, and what they record is kept in memory, up to
// maxPending, until the writer gets through. A write that succeeds within the
// breaker's time closes it.
//
// There is one timer for all calls. It is set when a call begins to wait and
// none is set, and when it fires it looks how long the oldest has waited, so
// that in a busy gateway it is touched once per breaker's time, not per call.
type breakerState struct {
	tripped   bool
	reason    error     // why
	since     time.Time // since when
	uncovered uint64    // entries whose calls did not wait until they were written
	timer     *time.Timer
	armed     bool
}

// errHung is the reason when nothing failed: nothing happened.
type errHung time.Duration

func (e errHung) Error() string {
	return "the disk of the spill did not answer within " + time.Duration(e).String()
}

// arm sets the timer unless it is set. The lock is held.
func (s *spill) arm() {
	if s.armed {
		return
	}
	s.armed = true
	if s.timer == nil {
		s.timer = time.AfterFunc(s.breaker, s.ring)
	} else {
		s.timer.Reset(s.breaker)
	}
}

// ring is called by the timer.
func (s *spill) ring() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = false
	oldest := &s.inflight
	if len(oldest.waiters) == 0 {
		oldest = &s.current
	}
	if len(oldest.waiters) == 0 {
		return
	}
	if left := s.breaker - time.Since(oldest.since); left > 0 {
		s.armed = true
		s.timer.Reset(left)
		return
	}
	s.trip(errHung(s.breaker))
}

// trip lets all calls go. The lock is held.
func (s *spill) trip(reason error) {
	if !s.tripped {
		s.since = time.Now()
		s.log.warn("spill is not being written", "calls go on; what a crash would lose is counted as uncovered",
			"dir", s.dir, "reason", reason)
	}
	s.tripped, s.reason = true, reason
	s.uncovered += uint64(len(s.inflight.waiters) + len(s.current.waiters))
	s.inflight.release(false)
	s.current.release(false)
}

// untrip lets calls wait again. The lock is held.
func (s *spill) untrip() {
	s.log.info("spill is being written again", "dir", s.dir, "after", time.Since(s.since).Round(time.Millisecond), "uncovered", s.uncovered)
	s.tripped, s.reason = false, nil
}

// release tells those who wait how it ended. The lock is held.
func (b *batch) release(written bool) {
	for i, w := range b.waiters {
		w.done <- written
		b.waiters[i] = nil
	}
	b.waiters = b.waiters[:0]
}
