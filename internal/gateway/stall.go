package gateway

import (
	"sync"
	"sync/atomic"
	"time"
)

// stallGuard cuts a client that does not read: one write to it was blocked for
// too long. Its zero value guards nothing.
type stallGuard struct {
	after time.Duration
	timer *time.Timer // runs while a write does
	cut   atomic.Bool

	mu     sync.Mutex // guards closed, and is held while a deadline is set
	closed bool       // the call has ended: its writer may not be touched any more
}

// begin and end stand around each write to the client.
func (g *stallGuard) begin(c *Call) {
	if g.after <= 0 {
		return
	}
	if g.timer == nil {
		g.timer = time.AfterFunc(g.after, func() { g.expire(c) })
		return
	}
	g.timer.Reset(g.after)
}

func (g *stallGuard) end() {
	if g.timer != nil {
		g.timer.Stop()
	}
}

// expire cuts the client. The blocked write ends with an error, and the client
// gets no more. A write that ended at this very moment took just as long.
func (g *stallGuard) expire(c *Call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.cut.Store(true)
		_ = c.connection.SetWriteDeadline(time.Now())
	}
}

// close waits for expire, if it runs, and lets it run no more.
func (g *stallGuard) close() {
	if g.timer == nil {
		return
	}
	g.timer.Stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}
