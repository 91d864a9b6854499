package gateway

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/dialect"
	"github.com/weirgate/weir/internal/keys"
	"github.com/weirgate/weir/internal/limit"
	"github.com/weirgate/weir/internal/meter"
	"github.com/weirgate/weir/internal/otlpin"
	"github.com/weirgate/weir/internal/queue"
	"github.com/weirgate/weir/internal/telemetry"
	"github.com/weirgate/weir/slo"
)

// Next is the handler behind the gateway. An error means that nothing was
// written and that the surrounding server will answer.
type Next interface {
	ServeHTTP(http.ResponseWriter, *http.Request) error
}

// NextFunc makes a Next of a function.
type NextFunc func(http.ResponseWriter, *http.Request) error

// ServeHTTP implements Next.
func (f NextFunc) ServeHTTP(w http.ResponseWriter, r *http.Request) error { return f(w, r) }

// Surroundings is what only the server around the gateway can tell. Each
// function may be nil.
type Surroundings struct {
	// Status returns the status that the server answers when Next returns err.
	Status func(err error) int
	// Cause returns the error that says why Next returned err, where the
	// server's own kinds of error hide it.
	Cause func(err error) error
	// Upstream returns the address of the upstream that served, "" when unknown.
	Upstream func(*http.Request) string
	// Connection returns the connection of the request's client, nil when it has
	// none of its own.
	Connection func(*http.Request) net.Conn
	// Retries returns how often the proxy behind Next has tried again within one
	// run; false when none ran.
	Retries func(*http.Request) (int, bool)
	// Checkpoint is called before Next; what it returns undoes what Next did to
	// the server's own per-request state, so that Next can run again. It may
	// return nil.
	Checkpoint func(*http.Request) Restorer
}

// Restorer brings back a state that it remembers.
type Restorer interface {
	// Restore returns the context for the second run, made from that of the first.
	// What the first may still be using on other goroutines must not be in it.
	Restore(context.Context) context.Context
}

// Call is one inference call on its way through the gateway.
type Call struct {
	gateway *Gateway
	options *Options
	around  *Surroundings
	request *http.Request           // as the client sent it
	ctx     context.Context         // the client's, or one derived from it that cancel ends
	cancel  context.CancelFunc      // nil where the connection's deadline does its work; see cutBy
	traced  context.Context         // ctx with the hooks of trace
	hooked  hookedContext           // what traced usually is
	isCut   atomic.Bool             // the process shuts down
	control http.ResponseController // of the client's writer, for the handler's goroutine
	// connection is of the innermost writer, for deadlines set from other goroutines.
	connection http.ResponseController

	inFlight  place // in live.calls, under its lock
	awaiting  place // in live.awaiting, under its lock
	tokenSeen bool  // has been taken off live.awaiting by its own goroutine
	allHeard  bool  // no instant is waited for any more that objectives go by

	candidates []*dialect.Dialect
	dialect    *dialect.Dialect
	beside     *Beside
	span       telemetry.Span
	ticket     *otlpin.Ticket // nil unless the engine's own span is waited for
	judged     slo.Pending
	watched    bool  // judged follows the call, which has not ended
	probe      bool  // see Identity.Probe
	counted    int64 // events with output that the GPUs' books have
	wants      call.Request
	identity   call.Identity // with the instant from which all others are counted
	instants   call.Instants
	body       *requestBody
	attempt    *attemptBody
	trace      *upstreamTrace
	meter      *meter.Meter
	tap        tap
	first      firstRun
	degraded   []call.Degradation
	hidesUsage bool // the upstream reports usage only when asked, and was not
	replayed   bool
	entry      *entry // nil without an Admission
	stall      stallGuard
	upload     *upload // nil unless the body is sent on while it comes
	// refusedBytes is the length of the body that a refusal was answered with.
	refusedBytes int
	attempts     int  // of runs that have returned
	connected    bool // one of them had a connection of its own
	header       headerMark

	record atomic.Pointer[call.Record]
}

// firstRun is room for what every call needs once, so that it is not allocated
// piece by piece.
type firstRun struct {
	body    requestBody
	url     url.URL
	attempt attemptBody
}

// Reasons for which a request is not measured.
const (
	UnknownPath   = telemetry.UnknownPath
	UnknownMethod = telemetry.MethodWithoutBody
)

// Begin recognises an inference call. It returns nil for everything else, which
// is to be passed on untouched; that is counted. around and options must
// outlive the call.
func (g *Gateway) Begin(r *http.Request, options *Options, around *Surroundings) *Call {
	received := time.Now()
	var candidates []*dialect.Dialect
	if options.Dialect == nil {
		if candidates = dialect.ByPath(r.URL.Path); len(candidates) == 0 {
			g.metrics.Unmeasured(UnknownPath)
			return nil
		}
	}
	if r.Method != http.MethodPost {
		g.metrics.Unmeasured(UnknownMethod)
		return nil
	}
	if options.Dialect != nil {
		candidates = []*dialect.Dialect{options.Dialect}
	}
	c := &Call{
		gateway: g, options: options, around: around, request: r,
		candidates: candidates, dialect: candidates[0], beside: g.beside.Load(),
		identity: call.Identity{
			ID:        g.newID(),
			RequestID: call.NameOf(first(r.Header, "X-Request-Id")),
			Run:       call.NameOf(first(r.Header, "X-Weir-Run")),
			Time:      received,
			Class:     options.Class,
			Path:      call.NameOf(r.URL.Path),

			ClientRetries: retries(r.Header),
		},
	}
	if c.beside.Tracer != nil {
		c.span = c.beside.Tracer.Begin(r)
		c.identity.TraceID = c.span.TraceID()
	} else {
		c.identity.TraceID = traceID(r)
	}
	c.probe = g.isProbe(r.Header)
	c.identity.Probe = c.probe
	key := keys.FromRequest(r.Header, r.URL.RawQuery)
	if options.Admission != nil {
		c.enter(key)
		if a := options.Admission; a.Limits == nil || a.Limits.Mode() == limit.Enforce {
			c.stall.after = a.ReaderTimeout
		}
	} else {
		c.identity.Key = g.keyID(key)
	}
	if asked := first(r.Header, "X-Weir-Class"); asked != "" {
		c.identity.Class = options.lower(c.identity.Class, asked)
	}
	return c
}

// lower returns the class that a header asks for, if it has less weight. A class of
// which nobody knows the weight has that of the default one, as in the queue.
func (o *Options) lower(class, asked string) string {
	now, known := o.Weights[class]
	if !known {
		now = o.Weights[queue.DefaultClass]
	}
	if w, ok := o.Weights[asked]; ok && w < now {
		return asked
	}
	return class
}

// ID returns the call's id.
func (c *Call) ID() string { return c.identity.ID }

// Record returns the call's record, nil until it has ended.
func (c *Call) Record() *call.Record { return c.record.Load() }

// Serve reads the request, runs next with the tap between it and the client,
// and leaves the call's one record, whatever happens. It returns next's error
// and lets its panics pass.
func (c *Call) Serve(w http.ResponseWriter, next Next) (err error) {
	c.control = *http.NewResponseController(w)
	server := innermost(w)
	c.connection = *http.NewResponseController(server)
	c.context(server)
	c.gateway.live.enter(c)
	returned := false
	defer func() {
		var panicked any
		if !returned {
			panicked = recover()
		}
		c.end(err, panicked)
		if panicked != nil {
			panic(panicked)
		}
	}()
	if c.entry != nil {
		if r := c.knock(); r != nil {
			c.identity.Dialect = c.dialect.Name
			c.refuse(w, r)
			returned = true
			return nil
		}
	}
	c.readRequest()
	if c.entry != nil {
		if r := c.admit(); r != nil {
			c.refuse(w, r)
			returned = true
			return nil
		}
		if c.entry.left {
			w.WriteHeader(meter.StatusClientClosed) // for the server's log: nobody reads it
			returned = true
			return nil
		}
	}
	c.instants.Admitted = call.Lasting(c.since())
	c.wasAdmitted()
	if c.body.rest != nil {
		// Else the server takes the rest away from the upload when the answer begins: up to
		// 256 KiB of it would be missing, or the answer be broken off
		// (https://go.dev/issue/40747). HTTP/2 and 3 are as they should be, and say so.
		_ = c.control.EnableFullDuplex()
	}
	c.watchUpload()
	c.meter = meter.New(c.dialect, &c.wants)
	for _, reason := range c.degraded {
		c.meter.Degrade(reason)
	}
	c.track()
	c.tap = tap{w: w, control: &c.control, call: c, meter: c.meter}
	r := c.outgoing()
	err = c.run(r, next)
	c.tap.finish()
	returned = true
	return err
}

// readRequest reads the body ahead and learns what the client asks for.
func (c *Call) readRequest() {
	r := c.request
	look := newLook(c.candidates, r)
	if c.entry != nil && c.options.Admission.Estimates != nil {
		look.scanner = &c.entry.scanner
	}
	c.body = &c.first.body
	c.body.budget = &c.gateway.looks
	c.body.readAhead(r, look.write)
	c.instants.BodyRead = call.Lasting(c.since())
	var malformed bool
	c.dialect, c.wants, malformed = look.done(c.body.complete())
	switch {
	case encoded(r.Header) && (malformed || !c.body.complete()):
		// Most servers do not mind the header, so a body that reads well is what
		// it seems. This one is not.
		c.wants = call.Request{}
		c.degraded = append(c.degraded, call.BodyEncoded)
	case look.failed:
		c.degraded = append(c.degraded, call.MeterFault)
	case c.body.over != "":
		c.degraded = append(c.degraded, c.body.over)
	case malformed:
		c.degraded = append(c.degraded, call.BodyMalformed)
	}
	c.identity.Model = c.wants.Model
	c.identity.Dialect = c.dialect.Name
	if !c.wants.Stream {
		c.gateway.live.settled(c)
		c.tokenSeen, c.allHeard = true, true
	}
	c.watch()
	c.policy(&look)
	look.free()
}

// answered is called when the final header goes to the client: the request
// cannot be sent again any more, so what is held of it can go.
func (c *Call) answered() {
	// The status of a client that left is the proxy's own note: no byte came.
	if noted := c.tap.status == meter.StatusClientClosed && c.ctx.Err() != nil; !noted && !c.instants.FirstByte.IsKnown() {
		c.instants.FirstByte = call.Lasting(c.since())
	}
	c.letGo(false)
}

// letGo releases the memory of the body unless it is still being sent; over
// tells that the call is, and nothing may be sent any more.
func (c *Call) letGo(over bool) {
	if c.attempt == nil || c.attempt.letGo(over) {
		c.body.release()
	}
}

// end seals the record. It runs once per call, on every path.
func (c *Call) end(err error, panicked any) {
	at := c.since()
	defer func() {
		// On every path, a fault below included: nobody waits for this call,
		// nobody holds memory for it.
		if c.body != nil {
			c.letGo(true)
		}
		c.ticket.Done(time.Now(), nil)
		c.forget()
		c.stall.close()
		if c.upload != nil {
			c.upload.stop()
		}
		c.leaveEntry()
		if c.cancel != nil {
			c.cancel()
		}
		c.gateway.live.leave(c)
	}()
	if c.meter == nil { // a fault before the answer could begin
		c.meter = meter.New(c.dialect, &c.wants)
	}
	if panicked != nil && c.tap.w != nil {
		c.tap.finish()
	}
	e := c.ending(err, panicked)
	e.At = at
	e.Instants = c.endInstants()
	e.UsageOnRequest = c.hidesUsage
	if trip := c.trace.trip.Load(); trip > 0 {
		e.RTT = call.Lasting(time.Duration(trip - 1))
	}

	rec := &call.Record{Identity: c.identity}
	c.meter.Finish(rec, e)
	rec.Identity.Dialect, rec.Operation = c.dialect.Name, c.dialect.Operation
	c.count() // of a run that did not return
	rec.Attempts = c.attempts
	rec.Replayed = c.replayed
	rec.Upstream = c.upstream()
	rec.ClientProtocol = c.request.Proto
	if c.tap.strip != nil { // the meter saw what the client did not get
		rec.BytesOut -= c.tap.strip.removed
	}
	if c.body != nil {
		rec.BytesIn = c.body.size()
	}
	rec.BytesOut += int64(c.refusedBytes)
	c.surroundings(rec)
	if c.entry != nil {
		c.settle(rec)
	}
	c.judge(rec)
	c.spans(rec)
	// A handler that writes after it has returned reaches no meter.
	c.tap.meter = nil
	c.meter.Free()
	if c.tap.status != 0 {
		c.trace.free()
	}
	c.record.Store(rec)
	c.gateway.keep(rec)
	c.join(rec)
}

// endInstants settles which instants are known. A handler without a connection
// of its own has the request as soon as it is run, and its header is the first
// byte.
func (c *Call) endInstants() call.Instants {
	at := c.instants
	if !c.connected && c.trace.attempts.Load() == 0 {
		if at.FirstByte.IsKnown() {
			at.Sent = at.Admitted
		}
		return at
	}
	at.Sent = c.trace.sent()
	switch first := offset(&c.trace.firstByte); {
	case !first.IsKnown():
		at.FirstByte = call.Duration{} // the answer came from somewhere else
	case !c.trace.interim.Load():
		at.FirstByte = first
	}
	return at
}

// clientTrip returns the round trip between the client and the gateway.
func (c *Call) clientTrip() call.Duration {
	if c.around.Connection == nil {
		return call.Duration{}
	}
	if trip, known := c.gateway.trips.Of(c.around.Connection(c.request), time.Now()); known {
		return call.Lasting(trip)
	}
	return call.Duration{}
}

func (c *Call) upstream() string {
	if c.around.Upstream != nil {
		if u := c.around.Upstream(c.request); u != "" {
			return u
		}
	}
	if p := c.trace.remote.Load(); p != nil {
		return *p
	}
	return ""
}
