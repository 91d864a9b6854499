package gateway

import (
	"context"
	"net"
	"net/http/httptrace"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/rtt"
)

// maxTrail is how many attempts of one call are told apart, the latest of them.
const maxTrail = 8

// upstreamTrace notes what the transport tells of the attempts of one call. Its
// hooks run on the transport's goroutines, some after the handler has returned,
// so everything they touch is atomic.
type upstreamTrace struct {
	received time.Time
	ctx      context.Context // of the call
	named    bool            // the surroundings do not tell the upstream's address

	announced int32        // attempts in all, as far as they were taken from attempts
	attempts  atomic.Int32 // since the last take
	connected atomic.Int64 // GotConn of the last attempt, as an offset plus 1; 0 is not yet
	wrote     atomic.Int64 // WroteRequest of the last attempt, likewise
	firstByte atomic.Int64 // first response byte of the last attempt, likewise
	interim   atomic.Bool  // the last attempt's first byte was of an informational answer (1xx)
	reused    atomic.Bool  // the last attempt's connection had served before
	wroteAll  atomic.Bool  // the last attempt's request was written without an error
	remote    atomic.Pointer[string]
	body      atomic.Pointer[attemptBody]
	trip      atomic.Int64 // the connection's round trip when the last attempt's first byte came, plus 1; 0 is unknown

	trips *rtt.Samples
	mu    sync.Mutex
	conn  net.Conn // of the last attempt
	trail [maxTrail]call.Attempt
	begun int // attempts on the trail and before it

	running atomic.Int32          // hooks that have begun and not yet returned
	hooks   httptrace.ClientTrace // made once, and never changed
}

// traces are those that were freed.
var traces sync.Pool

func newTrace(ctx context.Context, received time.Time, trips *rtt.Samples) *upstreamTrace {
	t, _ := traces.Get().(*upstreamTrace)
	if t == nil {
		t = new(upstreamTrace)
		t.hooks = httptrace.ClientTrace{
			GetConn:              t.getConn,
			GotConn:              t.gotConn,
			WroteRequest:         t.wroteRequest,
			GotFirstResponseByte: t.gotFirstByte,
		}
	}
	t.received, t.ctx, t.trips = received, ctx, trips
	return t
}

// free gives the trace back, if no hook of it can run any more: there was one
// attempt, and every hook has run for it. The answer must have passed, so that
// no informational one can come. A hook may still be at work when its instant is
// known (an answer may come before the end of writing, and a client may leave as
// it comes), so it must have returned too. Others are left to the garbage collector.
func (t *upstreamTrace) free() {
	if t.announced != 1 || t.attempts.Load() != 0 || t.interim.Load() ||
		t.connected.Load() == 0 || t.wrote.Load() == 0 || t.firstByte.Load() == 0 ||
		t.running.Load() != 0 { // asked last: whoever has set an instant was counted before
		return
	}
	t.ctx = nil
	t.announced = 0
	t.connected.Store(0)
	t.wrote.Store(0)
	t.firstByte.Store(0)
	t.remote.Store(nil)
	t.body.Store(nil)
	t.trip.Store(0)
	t.conn = nil
	clear(t.trail[:])
	t.begun = 0
	traces.Put(t)
}

// take returns how many attempts have begun since the last take.
func (t *upstreamTrace) take() int {
	n := t.attempts.Swap(0)
	t.announced += n
	return int(n)
}

func (t *upstreamTrace) now() int64 { return int64(time.Since(t.received)) + 1 }

func offset(v *atomic.Int64) call.Duration {
	if n := v.Load(); n > 0 {
		return call.Lasting(time.Duration(n - 1))
	}
	return call.Duration{}
}

// getConn begins an attempt: what is known of the attempt before is forgotten.
func (t *upstreamTrace) getConn(hostPort string) {
	t.running.Add(1)
	defer t.running.Add(-1)
	t.attempts.Add(1)
	t.connected.Store(0)
	t.wrote.Store(0)
	t.firstByte.Store(0)
	t.trip.Store(0)
	t.interim.Store(false)
	t.reused.Store(false)
	t.wroteAll.Store(false)
	if t.named {
		remote := hostPort // escapes only here
		t.remote.Store(&remote)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conn = nil
	t.trail[t.begun%maxTrail] = call.Attempt{Start: call.Lasting(time.Since(t.received)), Upstream: hostPort}
	t.begun++
}

// latest changes what is known of the latest attempt.
func (t *upstreamTrace) latest(change func(*call.Attempt)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begun > 0 {
		change(&t.trail[(t.begun-1)%maxTrail])
	}
}

// attemptsMade returns the latest attempts in order, at most n of them; when each
// ended is not told.
func (t *upstreamTrace) attemptsMade(n int) []call.Attempt {
	t.mu.Lock()
	defer t.mu.Unlock()
	n = min(n, t.begun, maxTrail)
	made := make([]call.Attempt, 0, n)
	for i := t.begun - n; i < t.begun; i++ {
		made = append(made, t.trail[i%maxTrail])
	}
	return slices.Clip(made)
}

func (t *upstreamTrace) gotConn(info httptrace.GotConnInfo) {
	t.running.Add(1)
	defer t.running.Add(-1)
	now := t.now()
	t.connected.Store(now)
	t.reused.Store(info.Reused)
	t.foldAnnouncement(info.Reused)
	t.latest(func(a *call.Attempt) {
		a.Connected, a.Reused = call.Lasting(time.Duration(now-1)), info.Reused
		t.conn = info.Conn
	})
	if b := t.body.Load(); b != nil {
		b.begin(t.ctx)
	}
}

// announcedAgain is within what time a second announcement is of the same attempt.
// An attempt that came to nothing takes longer, and the proxy then waits.
const announcedAgain = time.Millisecond

// foldAnnouncement makes one attempt of two on the trail where they are one: over
// HTTP/2 without TLS the transport announces an attempt a second time when it has
// found a connection that has served before.
func (t *upstreamTrace) foldAnnouncement(reused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !reused || t.begun < 2 {
		return
	}
	last, before := &t.trail[(t.begun-1)%maxTrail], &t.trail[(t.begun-2)%maxTrail]
	if before.Connected.IsKnown() || before.Upstream != last.Upstream || last.Start.Or(0)-before.Start.Or(0) > announcedAgain {
		return
	}
	*last = call.Attempt{}
	t.begun--
}

func (t *upstreamTrace) wroteRequest(info httptrace.WroteRequestInfo) {
	t.running.Add(1)
	defer t.running.Add(-1)
	now := t.now()
	t.wrote.Store(now)
	t.wroteAll.Store(info.Err == nil)
	if info.Err == nil {
		t.latest(func(a *call.Attempt) { a.Sent = call.Lasting(time.Duration(now - 1)) })
	}
	if b := t.body.Load(); b != nil {
		b.wroteAll()
	}
}

func (t *upstreamTrace) gotFirstByte() {
	t.running.Add(1)
	defer t.running.Add(-1)
	now := t.now()
	t.firstByte.Store(now)
	var conn net.Conn
	t.latest(func(a *call.Attempt) {
		a.FirstByte = call.Lasting(time.Duration(now - 1))
		conn = t.conn
	})
	// The connection lives for sure, and it has just been in use.
	if trip, known := t.trips.Of(conn, time.Now()); known {
		t.trip.Store(int64(trip) + 1)
	}
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
