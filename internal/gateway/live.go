package gateway

import (
	"context"
	"sync"
	"time"
)

// live knows the calls in flight. A call enters once, may stop awaiting its
// first token once, and leaves once: three short locks a call, none a chunk.
type live struct {
	mu       sync.Mutex
	calls    list
	awaiting list          // streamed calls without a token yet, oldest first
	empty    chan struct{} // closed when the last call leaves, if someone waits for that
}

// list is a doubly linked list through places in the calls themselves.
type list struct {
	head, tail *place
	n          int64
}

// place is a call's place in a list.
type place struct {
	call          *Call // nil when it is in none
	before, after *place
}

func (l *live) enter(c *Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls.push(&c.inFlight, c)
	l.awaiting.push(&c.awaiting, c)
}

// settled takes a call off the list of those that await their first token.
func (l *live) settled(c *Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.awaiting.remove(&c.awaiting)
}

func (l *live) leave(c *Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.awaiting.remove(&c.awaiting)
	l.calls.remove(&c.inFlight)
	if l.calls.n == 0 && l.empty != nil {
		close(l.empty)
		l.empty = nil
	}
}

// cut cancels all calls and waits for them to leave.
func (l *live) cut(ctx context.Context) (cut, left int) {
	l.mu.Lock()
	cut = int(l.calls.n)
	if cut == 0 {
		l.mu.Unlock()
		return 0, 0
	}
	if l.empty == nil {
		l.empty = make(chan struct{})
	}
	empty := l.empty
	for p := l.calls.head; p != nil; p = p.after {
		p.call.cut()
	}
	l.mu.Unlock()
	select {
	case <-empty:
		return cut, 0
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return cut, int(l.calls.n)
}

// Live is the state of the calls in flight at one moment.
type Live struct {
	InFlight           int64
	AwaitingFirstToken int64
	// OldestReceived is when the longest waiting of those was received; the
	// zero time when none waits.
	OldestReceived time.Time
}

// Live tells how many calls are in flight and wait for their first token.
func (g *Gateway) Live() Live {
	g.live.mu.Lock()
	defer g.live.mu.Unlock()
	s := Live{InFlight: g.live.calls.n, AwaitingFirstToken: g.live.awaiting.n}
	if p := g.live.awaiting.head; p != nil {
		s.OldestReceived = p.call.identity.Time
	}
	return s
}

func (l *list) push(p *place, c *Call) {
	*p = place{call: c, before: l.tail}
	if l.tail != nil {
		l.tail.after = p
	} else {
		l.head = p
	}
	l.tail = p
	l.n++
}

// remove takes p out; one that is in no list stays so.
func (l *list) remove(p *place) {
	if p.call == nil {
		return
	}
	if p.before != nil {
		p.before.after = p.after
	} else {
		l.head = p.after
	}
	if p.after != nil {
		p.after.before = p.before
	} else {
		l.tail = p.before
	}
	*p = place{}
	l.n--
}
