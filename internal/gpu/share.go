package gpu

import "time"

const (
	// buckets is how many seconds of counts are kept, a power of two.
	buckets = 1024
	second  = int64(time.Second)
	// A bucket holds the second that it counts, and the tokens.
	tokenBits = 36
	tokenMask = 1<<tokenBits - 1
	// mostAtOnce bounds one Count, so that a second holds thousands of them.
	mostAtOnce = 1 << 24
)

// Count notes that n tokens were just written to clients, by whatever call. It
// waits for nobody and allocates nothing. Share divides energy by these counts:
// count for all streams in the same unit, say one for each content-bearing event.
// A second counts up to 6.8e10 tokens.
func (s *Sampler) Count(now time.Time, n int) {
	if s == nil || n <= 0 {
		return
	}
	k := s.since(now)
	if k < 0 {
		return
	}
	k /= second
	stamp := uint64(k) // good for 8 years
	add := uint64(min(n, mostAtOnce))
	bucket := &s.tokens[k&(buckets-1)]
	for {
		word := bucket.Load()
		switch was := word >> tokenBits; {
		case was == stamp:
			bucket.Add(add)
			return
		case was > stamp:
			return // a quarter of an hour late
		case bucket.CompareAndSwap(word, stamp<<tokenBits|add):
			return
		}
	}
}

// counted returns the tokens counted in second k.
func (s *Sampler) counted(k int64) int64 {
	word := s.tokens[k&(buckets-1)].Load()
	if word>>tokenBits != uint64(k) {
		return 0
	}
	return int64(word & tokenMask)
}

// Share returns the part of the GPUs' energy that belongs to one call, J: tokens
// of it were written from from to to, its first and last. In each second of the
// sampler's clock the energy of all GPUs is divided among the calls by the tokens
// that they wrote in it:
//
//	Σ over seconds: energy · tokens of the call / tokens of all calls
//
// The tokens of all calls are those of Count, exact also for calls that still
// run; those of the call are taken to be spread evenly over its time, and never to
// be more than all. tokens is in the unit of Count.
//
// What follows for the figure: a call that writes unevenly gets too much where it
// paused, and too little where it hurried; alone on the GPUs it gets all energy
// from the second of its first token to that of its last, up to a second more than
// its time at either end. Energy of seconds in which nobody wrote anything, of
// idling and of prefills that run alone, belongs to no call; a prefill beside
// other calls is paid by these. All sampled GPUs are taken to serve the calls that
// are counted. The energy of the last two seconds is held, as Window says. ok is
// false if the energy of any GPU is unknown for any of these seconds, if no token
// was counted, or if the call began over a quarter of an hour ago.
func (s *Sampler) Share(from, to time.Time, tokens int64) (joules float64, ok bool) {
	if s == nil || tokens <= 0 || to.Before(from) {
		return 0, false
	}
	a, b := s.since(from), s.since(to)
	if a < 0 {
		return 0, false
	}
	c := claim{from: a, to: b, tokens: float64(tokens)}
	first, last := a/second, b/second
	if last > first && b%second == 0 {
		last-- // nothing of it lies in the last second
	}
	if last-first >= int64(keep/time.Second) {
		return 0, false
	}
	any := false
	for k := first; k <= last; k++ {
		any = any || s.counted(k) > 0
	}
	if !any {
		return 0, false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	var walks [maxGPUs]walk
	n := 0
	for _, g := range s.tracks {
		if !g.overlaps(a, b) {
			continue
		}
		if walks[n], ok = begin(&g.energy, first*second); !ok {
			return 0, false
		}
		n++
	}
	for k := first; k <= last; k++ {
		part := 0.0
		if all := s.counted(k); all > 0 {
			part = min(1, c.within(k)/float64(all))
		}
		for i := range walks[:n] {
			end := (k + 1) * second
			if k == last {
				// The second may not be over: neither are its tokens.
				end = min(end, max(b, walks[i].energy.last()))
			}
			used, ok := walks[i].on(end)
			if !ok {
				return 0, false
			}
			joules += used * part
		}
	}
	return joules, n > 0
}

// claim is the tokens that a call wrote from from to to.
type claim struct {
	from, to int64 // ns
	tokens   float64
}

// within is how many of them fall into second k, if they are spread evenly.
func (c claim) within(k int64) float64 {
	if c.from == c.to {
		return c.tokens
	}
	return c.tokens * float64(min(c.to, (k+1)*second)-max(c.from, k*second)) / float64(c.to-c.from)
}

// walk goes along the energy of one GPU.
type walk struct {
	energy  *curve
	i       int // the first point at or after where it is
	joules  float64
	segment int32
}

// begin begins a walk at t; ok is false where the energy is unknown.
func begin(energy *curve, t int64) (w walk, ok bool) {
	w = walk{energy: energy, i: energy.seek(t)}
	w.joules, w.segment, ok = energy.to(t, w.i)
	return w, ok
}

// on goes on to t and returns the energy of the way.
func (w *walk) on(t int64) (joules float64, ok bool) {
	for w.i < w.energy.n && w.energy.of(w.i) < t {
		w.i++
	}
	now, segment, ok := w.energy.to(t, w.i)
	if !ok || segment != w.segment {
		return 0, false
	}
	joules = now - w.joules
	w.joules = now
	return joules, true
}
