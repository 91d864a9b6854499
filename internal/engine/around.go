package engine

import (
	"sort"
	"time"
)

// settle is the time in which an engine's gauges must have taken notice of a
// request for NoQueueAt to rely on them; see there. A step that takes longer
// than this makes every stream stutter by as much.
const settle = 500 * time.Millisecond

// Before returns the last reading that was over at t, within the last 15
// minutes: what At told at that instant. It is false where the reading was older
// than three times Every by then, or the next try had failed.
func (s *Sampler) Before(t time.Time) (Gauges, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.lastBefore(t)
	if i < 0 {
		return Gauges{}, false
	}
	if r := s.readings[i]; r.lost.IsZero() || r.lost.After(t) {
		return *r.Gauges, true
	}
	return Gauges{}, false
}

// Around returns the readings on both sides of an instant: the last that was
// over at t, and the first that began at t or later. One under way at t is
// neither. It is false where one of them is missing, where they are more than
// three times Every apart, and where a try failed or the engine was started again
// between them.
func (s *Sampler) Around(t time.Time) (before, after Gauges, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.lastBefore(t)
	if i < 0 {
		return Gauges{}, Gauges{}, false
	}
	last := s.readings[i]
	for _, r := range s.readings[i+1:] {
		if !s.follows(last, r) || r.began().Sub(s.readings[i].Time) > s.stale {
			break
		}
		if !r.began().Before(t) {
			return *s.readings[i].Gauges, *r.Gauges, true
		}
		last = r
	}
	return Gauges{}, Gauges{}, false
}

// NoQueueAt tells that a request sent to the engine at t waited in the engine's
// own queue for bound at most, if at all, as far as gauges can tell.
//
// It is true when every reading around t, from the last that was over at t to
// the first that began settle (500 ms) or more after t, shows that nothing
// waited, that no rank had all its places taken (where MaxSeqs is known), and
// that no request lost its place in between; and when no try failed and the
// engine was not started again in between. bound is the time from t to the end
// of the last of these readings.
//
// What is claimed: nothing waited at an instant before t + bound, so that a
// request that was in the queue earlier had left it by then. What is not: that
// there was no queue. One that formed and went between two readings is not seen,
// so bound is a limit and no estimate; where the first token came sooner than
// bound, it adds nothing to what is known. The time from t until the engine puts
// the request into its queue (the way there, HTTP, making tokens) is part of
// bound, not of the queue.
//
// It relies on the gauges' having taken notice of the request by settle after t.
// vLLM writes them after each step, llama.cpp and TGI show what is, but not yet a
// request that came during the step under way: a step longer than settle, or a
// prompt whose tokens take longer to make, can make the claim untrue, the less so
// if MaxSeqs is known. SGLang's gauges may be older by many steps: of it nothing
// is claimed.
//
// t may lie up to 15 minutes back. Until the reading after t has come the answer
// is false; ask again when the call has ended.
func (s *Sampler) NoQueueAt(t time.Time) (bound time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.lastBefore(t)
	if i < 0 || !s.readings[i].idleQueue() {
		return 0, false
	}
	last := s.readings[i]
	for _, r := range s.readings[i+1:] {
		if !s.follows(last, r) || !r.idleQueue() || last.Preemptions != r.Preemptions {
			break
		}
		if r.began().Sub(t) >= settle {
			return r.Time.Sub(t), true
		}
		last = r
	}
	return 0, false
}

// lastBefore is the place of the last reading that was over at t, -1 if there is
// none, or none recent enough; s.mu is held.
func (s *Sampler) lastBefore(t time.Time) int {
	i := sort.Search(len(s.readings), func(i int) bool { return s.readings[i].Time.After(t) }) - 1
	if i < 0 || t.Sub(s.readings[i].Time) > s.stale {
		return -1
	}
	return i
}

// follows tells whether nothing is missing between a reading and the next.
func (s *Sampler) follows(a, b reading) bool {
	return a.lost.IsZero() && b.began().Sub(a.Time) <= s.stale && a.sameRun(b.Gauges)
}

// idleQueue tells whether the engine showed, by gauges that can be relied on,
// that nothing waited and that a request that came would have had a place.
func (g *Gauges) idleQueue() bool {
	if !gauges[g.Kind].live || !g.Waiting.Known || g.Waiting.N > 0 || g.Swapped.N > 0 || full(g.Running, g.MaxSeqs) {
		return false
	}
	for _, r := range g.Ranks {
		if full(r.Running, r.MaxSeqs) {
			return false
		}
	}
	return true
}

// full tells whether all places are known to be taken.
func full(running, places Figure) bool {
	return running.Known && places.Known && running.N >= places.N
}
