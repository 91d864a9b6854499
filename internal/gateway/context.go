package gateway

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"time"
)

// hookedContext is the client's context, with hooks for the transport in it. It
// is what httptrace.WithClientTrace would return, without a copy of its own of
// anything: it lies within the call, and whoever derives from it registers with
// the server's context directly.
type hookedContext struct {
	context.Context
	hooks *httptrace.ClientTrace
}

// Value implements context.Context.
func (c *hookedContext) Value(key any) any {
	if key == hooksKey {
		return c.hooks
	}
	return c.Context.Value(key)
}

// hooksKey is the key under which contexts hold hooks. httptrace does not
// export it, but asks any context for it.
var hooksKey = func() any {
	var asked keyCatcher
	httptrace.ContextClientTrace(&asked)
	return asked.key
}()

// keyCatcher is a context that remembers what it was asked for.
type keyCatcher struct {
	context.Context
	key any
}

// Value implements context.Context.
func (c *keyCatcher) Value(key any) any {
	c.key = key
	return nil
}

// innermost returns the server's own writer, which sets deadlines on the
// connection itself. A writer around it may keep books of deadlines that only
// the handler's goroutine may touch, as Caddy's writer for idle time-outs does.
func innermost(w http.ResponseWriter) http.ResponseWriter {
	for {
		u, wraps := w.(interface{ Unwrap() http.ResponseWriter })
		if !wraps {
			return w
		}
		w = u.Unwrap()
	}
}

// cutBy tells how a call that the server's own writer w answers can be ended from
// outside. A server's
// HTTP/1 connection ends the request's context when reading from it fails, and
// a deadline makes it fail; then no context of our own is needed, which would
// cost seven allocations a call. Everything else needs one.
func cutBy(w http.ResponseWriter, r *http.Request) (deadline bool) {
	if r.ProtoMajor != 1 || r.Context().Value(http.ServerContextKey) == nil {
		return false
	}
	_, can := w.(interface{ SetReadDeadline(time.Time) error })
	return can
}

// context makes the context of the call's requests; w is the server's own writer.
func (c *Call) context(w http.ResponseWriter) {
	c.ctx = c.request.Context()
	if !cutBy(w, c.request) {
		c.ctx, c.cancel = context.WithCancel(c.ctx)
	}
	c.trace = newTrace(c.ctx, c.identity.Time, &c.gateway.trips)
	c.trace.named = c.around.Upstream == nil
	if httptrace.ContextClientTrace(c.ctx) != nil { // someone outside listens too
		hooks := c.trace.hooks // joining changes them
		c.traced = httptrace.WithClientTrace(c.ctx, &hooks)
		return
	}
	c.hooked = hookedContext{Context: c.ctx, hooks: &c.trace.hooks}
	c.traced = &c.hooked
}

// cut ends the call from outside: the process shuts down.
func (c *Call) cut() {
	c.isCut.Store(true)
	if c.cancel != nil {
		c.cancel()
	}
	// This ends the context of calls without one of their own, and the reading
	// of a body, which heeds no context. Not every writer can do this; a body
	// that is still being read then ends with its connection.
	_ = c.connection.SetReadDeadline(time.Now())
}
