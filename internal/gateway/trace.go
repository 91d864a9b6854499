package gateway

import (
	"context"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// upstreamTrace notes what the transport tells of the attempts of one call. Its
// hooks run on the transport's goroutines, some after the handler has returned,
// so everything is atomic and nothing is pooled.
type upstreamTrace struct {
	received time.Time

	attempts  atomic.Int32
	connected atomic.Int64 // GotConn of the last attempt, as an offset plus 1; 0 is not yet
	wrote     atomic.Int64 // WroteRequest of the last attempt, likewise
	firstByte atomic.Int64 // first response byte of the last attempt, likewise
	interim   atomic.Bool  // the last attempt's first byte was of an informational answer (1xx)
	reused    atomic.Bool  // the last attempt's connection had served before
	wroteAll  atomic.Bool  // the last attempt's request was written without an error
	named     bool         // the surroundings do not tell the upstream's address
	remote    atomic.Pointer[string]
	body      atomic.Pointer[attemptBody]
	ctx       context.Context // of the call
	hooks     httptrace.ClientTrace
}

func (t *upstreamTrace) now() int64 { return int64(time.Since(t.received)) + 1 }

func offset(v *atomic.Int64) call.Duration {
	if n := v.Load(); n > 0 {
		return call.Lasting(time.Duration(n - 1))
	}
	return call.Duration{}
}

// client returns the hooks for the context of the call's requests. It is called
// once: the context makes hooks of handlers outside part of them.
func (t *upstreamTrace) client() *httptrace.ClientTrace {
	t.hooks = httptrace.ClientTrace{
		GetConn:              t.getConn,
		GotConn:              t.gotConn,
		WroteRequest:         t.wroteRequest,
		GotFirstResponseByte: t.gotFirstByte,
	}
	return &t.hooks
}

// getConn begins an attempt: what is known of the attempt before is forgotten.
func (t *upstreamTrace) getConn(hostPort string) {
	t.attempts.Add(1)
	t.connected.Store(0)
	t.wrote.Store(0)
	t.firstByte.Store(0)
	t.interim.Store(false)
	t.reused.Store(false)
	t.wroteAll.Store(false)
	if t.named {
		remote := hostPort // escapes only here
		t.remote.Store(&remote)
	}
}

func (t *upstreamTrace) gotConn(info httptrace.GotConnInfo) {
	t.connected.Store(t.now())
	t.reused.Store(info.Reused)
	if b := t.body.Load(); b != nil {
		b.begin(t.ctx)
	}
}

func (t *upstreamTrace) wroteRequest(info httptrace.WroteRequestInfo) {
	t.wrote.Store(t.now())
	t.wroteAll.Store(info.Err == nil)
	if b := t.body.Load(); b != nil {
		b.wroteAll()
	}
}

func (t *upstreamTrace) gotFirstByte() {
	t.firstByte.Store(t.now())
	if b := t.body.Load(); b != nil {
		b.answered()
	}
}

// gotInterim notes that the first byte was not of the answer. The transport
// tells of no other. It is told by the proxy, which passes such an answer on,
// and not by a hook: the proxy has that hook itself, and joining two costs a
// function made by reflection on every attempt.
func (t *upstreamTrace) gotInterim() { t.interim.Store(true) }

// sent returns when the last attempt's request had been written: the earlier of
// the end of writing and the first response byte.
func (t *upstreamTrace) sent() call.Duration {
	wrote, first := offset(&t.wrote), offset(&t.firstByte)
	if t.interim.Load() { // 100 Continue comes before the body is sent
		return wrote
	}
	if !wrote.IsKnown() || first.IsKnown() && first.Or(0) < wrote.Or(0) {
		return first
	}
	if !t.wroteAll.Load() && !first.IsKnown() {
		return call.Duration{} // the request never got out whole
	}
	return wrote
}
