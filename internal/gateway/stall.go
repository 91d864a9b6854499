package gateway

import (
	"sync/atomic"
	"time"
)

// stallGuard cuts a client that does not read: one write to it was blocked for
// too long. Its zero value guards nothing.
type stallGuard struct {
	after time.Duration
	timer *time.Timer // runs while a write does
	cut   atomic.Bool
}

// begin and end stand around each write to the client.
func (g *stallGuard) begin(c *Call) {
	if g.after <= 0 {
		return
	}
	if g.timer == nil {
		g.timer = time.AfterFunc(g.after, func() {
			g.cut.Store(true)
			// The blocked write ends with an error; the client gets no more. A
			// write that ended at this very moment took just as long.
			_ = c.control.SetWriteDeadline(time.Now())
		})
		return
	}
	g.timer.Reset(g.after)
}

func (g *stallGuard) end() {
	if g.timer != nil {
		g.timer.Stop()
	}
}
