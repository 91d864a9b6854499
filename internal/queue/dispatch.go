package queue

import "time"

// All of this file runs under the queue's lock.

// vacant tells whether the cap on calls leaves one.
func (q *Queue) vacant() bool { return q.cfg.Calls == 0 || q.inFlight < q.cfg.Calls }

// fits tells whether a call may go now, as far as the caps go. A call larger
// than the cap on tokens goes when it is alone.
func (q *Queue) fits(s *Slot) bool {
	return q.vacant() && (q.cfg.Tokens == 0 || q.inFlight == 0 || s.reserved <= q.cfg.Tokens-q.tokens)
}

// dispatch lets in whoever fits, in order. A call whose turn it is but whose tokens do not
// fit keeps its turn until they do, or until it leaves, and holds up all
// others meanwhile: small calls that slip past would keep a large one out
// for ever. The hold-up lasts no longer than the calls in flight do.
func (q *Queue) dispatch(now time.Time) {
	for q.waiting > 0 && q.vacant() {
		if q.chosen == nil {
			q.chosen = q.pick()
		}
		s := q.chosen
		if q.cfg.Shed && s.lost(now) {
			q.refuse(s, ShedPop, now)
			continue
		}
		if !q.fits(s) {
			return
		}
		q.begin(s)
		q.unlink(s)
		s.waited = now.Sub(s.entered)
		s.state = granted
		s.poke()
	}
}

// pick returns the waiting call whose turn it is.
func (q *Queue) pick() *Slot {
	var next *class
	for _, c := range q.classes { // at a tie the heavier class
		if c.waiting > 0 && (next == nil || c.counter() < next.counter()) {
			next = c
		}
	}
	return next.active.first().calls.first()
}

// pass lets in a call that need not wait.
func (q *Queue) pass(s *Slot, name string) {
	c := s.class
	c.lift(q.floor)
	s.key = c.key(name)
	q.begin(s)
	s.state = admitted
	c.tally.admit(0)
}

// begin counts a call in flight and charges it to its class and key.
func (q *Queue) begin(s *Slot) {
	c, k := s.class, s.key
	q.inFlight++
	q.tokens += s.reserved
	q.floor = max(q.floor, c.served)
	c.floor = max(c.floor, k.served)
	s.classWeight = c.weight
	c.begin(s.price / s.classWeight)
	k.begin(s.price / s.keyWeight)
}

// charge replaces what a call in flight is charged with.
func (q *Queue) charge(s *Slot, price float64) {
	s.class.pending += (price - s.price) / s.classWeight
	s.key.pending += (price - s.price) / s.keyWeight
	s.price = price
	if s.key.calls.len() > 0 {
		s.class.active.fix(s.key)
	}
}

// release ends a call in flight and lets in whoever fits now.
func (q *Queue) release(s *Slot) {
	c, k := s.class, s.key
	q.inFlight--
	q.tokens -= s.reserved
	c.end(s.price / s.classWeight)
	k.end(s.price / s.keyWeight)
	if k.calls.len() > 0 {
		c.active.fix(k) // its counter has moved by a rounding at most
	} else if k.inFlight == 0 {
		c.rest(k)
	}
	s.state, s.class, s.key = outside, nil, nil
	sent := s.price > 0 // or the grant came too late
	if sent {
		c.size.add(s.price)
	}
	if q.waiting > 0 { // else the time is of no use, and the clock costs more than all of this
		now := time.Now()
		if sent {
			q.flow.depart(now, s.price)
		}
		q.dispatch(now)
	}
	if c.retired {
		q.bury()
	}
}

// join puts a call into the queue.
func (q *Queue) join(s *Slot, ask *Ask, now time.Time) {
	c := s.class
	if q.waiting == 0 {
		q.flow.watch(now)
	}
	if c.waiting == 0 {
		c.lift(q.floor)
	}
	k := c.key(ask.Key)
	s.key = k
	s.entered = now
	s.due = s.deadline
	if s.due.IsZero() {
		s.due = now.Add(q.cfg.MaxWait)
	}
	q.arrivals++
	s.number = q.arrivals
	k.calls.push(s)
	if k.calls.len() == 1 {
		c.active.push(k)
	} else {
		c.active.fix(k)
	}
	q.waiting++
	c.waiting++
	q.bytes += s.bytes
	s.prev, s.next = q.newest, nil
	if s.prev != nil {
		s.prev.next = s
	} else {
		q.oldest = s
	}
	q.newest = s
	s.state = waiting
	if s.ready == nil {
		s.ready = make(chan struct{}, 1)
		s.timer = time.NewTimer(q.cfg.MaxWait)
	} else {
		s.timer.Reset(q.cfg.MaxWait)
	}
}

// unlink takes a call out of the queue. Its key is left awake.
func (q *Queue) unlink(s *Slot) {
	c, k := s.class, s.key
	k.calls.remove(s)
	if k.calls.len() == 0 {
		c.active.remove(k)
	} else {
		c.active.fix(k)
	}
	q.waiting--
	c.waiting--
	q.bytes -= s.bytes
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		q.oldest = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	} else {
		q.newest = s.prev
	}
	s.prev, s.next = nil, nil
	if q.chosen == s {
		q.chosen = nil
	}
}

// leave ends the wait of a call that will not be let in.
func (q *Queue) leave(s *Slot) {
	c, k := s.class, s.key
	q.unlink(s)
	if k.idle() {
		c.rest(k)
	}
	s.state, s.class, s.key = outside, nil, nil
	if c.retired {
		q.bury()
	}
}

// refuse turns a waiting call away. The caller dispatches afterwards.
func (q *Queue) refuse(s *Slot, why Reason, now time.Time) {
	c, name := s.class, s.key.name
	q.leave(s) // which may forget the key
	var limit int64
	if why == Waited {
		limit = int64(q.cfg.MaxWait)
	}
	s.refusal = q.rejection(c, c.keys[name], why, limit, now)
	s.poke()
}
