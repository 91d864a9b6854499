package otlpin

import "time"

// Ticket stands for one call that waits for its engine's span. A nil *Ticket is a
// call that is not tracked; its methods may be called.
type Ticket struct {
	trace *trace
	span  SpanID // the call's CLIENT span

	// Guarded by Joiner.mu from here.
	state    ticketState
	joined   bool  // closed with a span
	others   int32 // requests of the call beside best
	best     *EngineSpan
	stages   []stage // at most maxStages
	deliver  func(EngineSpan, bool)
	deadline instant // of the join window, then of the memory of the ticket

	prev, next *Ticket // in the Joiner's list for the state
}

type ticketState uint8

const (
	ticketOpen   ticketState = iota // its call runs
	ticketAwaits                    // its call ended
	ticketReady                     // its span is to be delivered
	ticketClosed                    // delivered or given up; remembered for a while
)

// stage is one stage of an engine's request that came as a span of its own.
type stage struct {
	EngineSpan
}

const maxStages = 4 // tensor-parallel ranks may each send theirs

// Answer is what became of a call's span when the call ended.
type Answer uint8

const (
	// None: the call is not tracked, or it was already done. Nothing will be delivered.
	None Answer = iota
	// Joined: the span was already there and is returned.
	Joined
	// Awaited: deliver will be called, exactly once.
	Awaited
)

// Done ends a call, at now. If its span is already known for certain, Done returns
// it (Joined) and never calls deliver. Else it returns Awaited, and deliver is called
// exactly once, on the Joiner's own goroutine, as soon as the span is certain or
// when the join window closes: with the span and true, or with false where none
// came. deliver must be quick: it holds up that of others.
//
// With a nil deliver the call does not wait: what is there is returned, if anything.
// Only the first Done of a ticket counts. It never blocks and does not allocate
// unless it returns a span.
func (t *Ticket) Done(now time.Time, deliver func(EngineSpan, bool)) (EngineSpan, Answer) {
	if t == nil {
		return EngineSpan{}, None
	}
	j := t.trace.joiner
	j.mu.Lock()
	defer j.mu.Unlock()
	if t.state != ticketOpen {
		return EngineSpan{}, None
	}
	if deliver == nil || j.closed || t.settled() {
		span, found := t.result()
		t.close(found, now)
		if !found {
			return EngineSpan{}, None
		}
		return span, Joined
	}
	t.state, t.deliver, t.deadline = ticketAwaits, deliver, j.at(now)+instant(j.window)
	j.waiting.push(t)
	if j.waiting.first == t {
		j.wakeUp() // the loop sleeps until some later time
	}
	return EngineSpan{}, Awaited
}

// settled tells whether nothing that may still come could change the result:
// the span is the call's own and has all that it can have. The caller holds mu.
func (t *Ticket) settled() bool {
	if t.best == nil || t.best.Match != ByParent {
		return false
	}
	if t.best.Queue.IsKnown() || !t.best.PrefillWithQueue.IsKnown() {
		return true
	}
	_, found := t.queueOf(t.best, false)
	return found
}

// result is the span as it is delivered. The caller holds mu.
func (t *Ticket) result() (EngineSpan, bool) {
	if t.best == nil {
		// The stage alone says how long the queue was, if it is surely this call's.
		if s, found := t.queueOf(nil, true); found {
			return s.EngineSpan, true
		}
		return EngineSpan{}, false
	}
	span := *t.best
	span.Others = int(t.others)
	if !span.Queue.IsKnown() {
		if s, found := t.queueOf(t.best, true); found {
			span.Queue = s.Queue
			span.takeQueueOut()
		}
	}
	return span, true
}

// queueOf finds the stage in which the request of span waited: one below it or, at
// last and where the ancestors are not known, any, if there was but one request and
// one call. Of several (one for each rank) it is the one that began first. The caller holds mu.
func (t *Ticket) queueOf(span *EngineSpan, last bool) (best stage, found bool) {
	only := last && t.others == 0 && t.trace.tracked == 1
	for _, s := range t.stages {
		if !(span != nil && t.trace.descends(s.ParentID, span.SpanID)) && !only {
			continue
		}
		if !found || s.Start.Before(best.Start) ||
			s.Start.Equal(best.Start) && string(s.SpanID[:]) < string(best.SpanID[:]) {
			best, found = s, true
		}
	}
	return best, found
}

// add gives the ticket a span of its own call. The caller holds mu.
func (t *Ticket) add(s *seen, by Match) {
	j := t.trace.joiner
	if t.state == ticketReady || t.state == ticketClosed {
		switch {
		case s.stage:
		case t.joined || t.state == ticketReady:
			j.count.Further++
		default:
			j.count.Late++
			j.latest = max(j.latest, time.Duration(j.at(time.Now())-t.deadline)+linger)
		}
		return
	}
	switch {
	case s.stage:
		if len(t.stages) < maxStages && j.keep() {
			s.Match = by
			t.stages = append(t.stages, stage{s.EngineSpan})
		}
	case t.best == nil && !j.keep():
		return
	default:
		span := s.EngineSpan
		span.Match = by
		switch {
		case t.best == nil:
			t.best = &span
		case span.betterThan(t.best):
			t.best, t.others = &span, t.others+1
			j.count.Further++
		default:
			t.others++
			j.count.Further++
		}
	}
	t.check()
}

// check has the ticket delivered if it waits for nothing more. The caller holds mu.
func (t *Ticket) check() {
	if t.state == ticketAwaits && t.settled() {
		j := t.trace.joiner
		j.waiting.remove(t)
		t.state = ticketReady
		j.ready.push(t)
		j.wakeUp()
	}
}

// close ends the ticket, which stays known for a while so that spans that
// come too late are told from foreign ones. The caller holds mu.
func (t *Ticket) close(joined bool, now time.Time) {
	j := t.trace.joiner
	t.state, t.joined = ticketClosed, joined
	j.kept -= len(t.stages)
	if t.best != nil {
		j.kept--
	}
	t.best, t.stages, t.deliver = nil, nil, nil
	if joined {
		j.count.Joined++
	} else {
		j.count.Unjoined++
	}
	j.open--
	t.trace.open--
	if t.trace.open == 0 {
		j.count.Ambiguous += int64(t.trace.requestsPending())
		j.kept -= len(t.trace.pending)
		if t.trace.pending != nil {
			t.trace.pending = nil
		}
	}
	t.deadline = j.at(now) + instant(linger)
	j.past.push(t)
	if j.past.n > maxPast || j.closed {
		j.forget(j.past.first)
	}
}

// tickets is a list of tickets in the order in which they were pushed.
type tickets struct {
	first, last *Ticket
	n           int
}

func (l *tickets) push(t *Ticket) {
	t.prev, t.next = l.last, nil
	if l.last != nil {
		l.last.next = t
	} else {
		l.first = t
	}
	l.last = t
	l.n++
}

func (l *tickets) remove(t *Ticket) {
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		l.first = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	} else {
		l.last = t.prev
	}
	t.prev, t.next = nil, nil
	l.n--
}
