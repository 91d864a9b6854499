package gateway

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// live knows the calls in flight. A call enters once, may stop awaiting its
// first token once, and leaves once: three short locks a call, none a chunk.
type live struct {
	mu       sync.Mutex
	calls    map[*Call]struct{}
	awaiting list // streamed calls without a token yet, oldest first
	empty    chan struct{}
}

// list is a doubly linked list through the calls themselves.
type list struct {
	head, tail *Call
	n          int64
}

func (l *live) enter(c *Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls == nil {
		l.calls = make(map[*Call]struct{})
	}
	l.calls[c] = struct{}{}
	l.awaiting.push(c)
}

// settled takes a call off the list of those that await their first token.
func (l *live) settled(c *Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.awaiting.remove(c)
}

func (l *live) leave(c *Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.awaiting.remove(c)
	delete(l.calls, c)
	if len(l.calls) == 0 && l.empty != nil {
		close(l.empty)
		l.empty = nil
	}
}

// cut cancels all calls and waits for them to leave.
func (l *live) cut(ctx context.Context) (cut, left int) {
	l.mu.Lock()
	cut = len(l.calls)
	if cut == 0 {
		l.mu.Unlock()
		return 0, 0
	}
	if l.empty == nil {
		l.empty = make(chan struct{})
	}
	empty := l.empty
	for c := range l.calls {
		c.cancel(ErrShutdown)
		// A body that is still being read does not heed the context. Not
		// every writer can do this; those calls end with their connection.
		_ = c.control.SetReadDeadline(time.Now())
	}
	l.mu.Unlock()
	select {
	case <-empty:
		return cut, 0
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return cut, len(l.calls)
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
	s := Live{InFlight: int64(len(g.live.calls)), AwaitingFirstToken: g.live.awaiting.n}
	if c := g.live.awaiting.head; c != nil {
		s.OldestReceived = c.received
	}
	return s
}

func (l *list) push(c *Call) {
	c.waits = true
	c.before, c.after = l.tail, nil
	if l.tail != nil {
		l.tail.after = c
	} else {
		l.head = c
	}
	l.tail = c
	l.n++
}

func (l *list) remove(c *Call) {
	if !c.waits {
		return
	}
	c.waits = false
	if c.before != nil {
		c.before.after = c.after
	} else {
		l.head = c.after
	}
	if c.after != nil {
		c.after.before = c.before
	} else {
		l.tail = c.before
	}
	c.before, c.after = nil, nil
	l.n--
}

// controller is the part of http.ResponseController that a cut needs.
type controller interface{ SetReadDeadline(time.Time) error }

var _ controller = (*http.ResponseController)(nil)
