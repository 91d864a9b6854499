package gateway

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/dialect"
	"github.com/weirgate/weir/internal/estimate"
	"github.com/weirgate/weir/internal/keys"
	"github.com/weirgate/weir/internal/ledger"
	"github.com/weirgate/weir/internal/limit"
	"github.com/weirgate/weir/internal/queue"
	"github.com/weirgate/weir/internal/spend"
)

// Admission is what a call passes on its way to the upstream, as one directive
// configures it. Every part but Keys may be left out.
type Admission struct {
	// Keys finds the caller of a key; nil knows none.
	Keys *keys.Store
	// RequireKey refuses whoever has no good key, and every path that no dialect
	// knows but those in AllowPaths.
	RequireKey bool
	AllowPaths []string
	Limits     *limit.Pool
	// Queue holds calls back while the upstream is full. It does so only while
	// the limits are enforced: in mode shadow no call is touched.
	Queue *queue.Queue
	// TTFT is each class's objective for the first token, which the queue's
	// order and its shedding go by; a class without one has no deadline.
	TTFT      map[string]time.Duration
	Estimates *estimate.Estimator
	Budgets   *spend.Budgets
	Ledger    Ledger
	// DefaultOutput is how many output tokens are reserved for a call that does
	// not bound them, unless less is known to be usual. 0 is DefaultOutput.
	DefaultOutput int64
	// ReaderTimeout is how long one write to the client may be blocked before
	// the client is cut; 0 is for ever.
	ReaderTimeout time.Duration
	forecast      forecast
}

// DefaultOutput is Admission.DefaultOutput when that is not set.
const DefaultOutput = 1024

// Ledger keeps what calls used. No method may block for long.
type Ledger interface {
	// Start records an admitted call before it is sent. An error refuses the call.
	Start(*ledger.Start) error
	// End records how a call ended.
	End(*call.Record)
	// Amend records what was learnt of it after that.
	Amend(*call.Amendment)
}

// entry is one call's way through an Admission.
type entry struct {
	caller  *keys.Key // nil when unknown
	status  keys.Status
	refused *refusal
	left    bool // the client went away while it waited

	scanner  estimate.Scanner
	features estimate.Features
	input    int64      // expected, as input below
	output   int64      // expected, summed over choices
	usual    call.Count // what such calls usually write, for one choice
	guessed  bool       // the client has not bounded its output
	seen     bool       // the body could be read, and input was predicted from it
	asked    limit.Request
	weighed  bool // asked is what the limits were asked
	ticket   limit.Ticket
	slot     queue.Slot
	ask      queue.Ask
	start    ledger.Start
	facts    call.Admission
}

var entries = sync.Pool{New: func() any { return new(entry) }}

// enter begins a call's way: it finds the caller, and what follows from that
// for the call's identity.
func (c *Call) enter(key string) {
	a := c.options.Admission
	e := entries.Get().(*entry)
	c.entry = e
	if a.Keys != nil && !c.probe {
		e.caller, e.status = a.Keys.Lookup(key, c.identity.Time)
	}
	id := &c.identity
	if k := e.caller; k != nil {
		id.Key, id.Bench = k.Alias, k.Bench
		if k.Class != "" {
			id.Class = k.Class
		}
	} else {
		id.Key = c.gateway.keyID(key)
	}
}

// retries returns how often the client says it has sent the call before.
func retries(h http.Header) int {
	v := first(h, "X-Stainless-Retry-Count")
	if v == "" { // else each call would make an error
		return 0
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || n > 1000 {
		return 0
	}
	return n
}

// knock refuses a caller without a good key, before the body is read.
func (c *Call) knock() *refusal {
	a := c.options.Admission
	if !a.RequireKey || c.probe {
		return nil
	}
	if r := keyRefusal(c.entry.status); r != nil {
		return r
	}
	path := c.request.URL.Path
	if !plainPath(path) {
		return pathRefusal()
	}
	if c.options.Dialect != nil && len(dialect.ByPath(path)) == 0 && !a.allows(path) {
		return pathRefusal() // the directive's dialect makes a call of it, not a good one
	}
	return nil
}

// admit takes what the call needs, part by part, or refuses it with nothing
// taken. It waits while the upstream is full.
func (c *Call) admit() *refusal {
	a, e := c.options.Admission, c.entry
	now := time.Now()
	if e.caller != nil && !e.caller.Allows("") { // a key that may use any model allows "" too
		if r := c.askedModels(); r != nil {
			return r
		}
	}
	mode := limit.Enforce
	if a.Limits != nil {
		mode = a.Limits.Mode()
	}
	if c.probe {
		return c.admitProbe(mode, now)
	}
	if a.Budgets != nil && e.caller != nil && e.caller.Budget != nil && mode != limit.Off {
		if s := a.Budgets.Check(e.caller, now); s.Exceeded && mode == limit.Enforce {
			return budgetRefusal(e.caller.Alias, &s)
		} else if s.Exceeded {
			e.facts.WouldRefuse = byBudget
		}
	}
	c.expect()
	if a.Limits != nil {
		e.asked = limit.Request{Key: c.identity.Key, Model: c.modelAsked(), Input: e.input, Output: e.output, Clamp: e.guessed}
		if e.caller != nil && !e.caller.Limits.IsZero() {
			e.asked.KeyLimits = &e.caller.Limits
		}
		e.weighed = true
		if r := a.Limits.Admit(&e.asked, &e.ticket); r != nil {
			return limitRefusal(r)
		}
		if r := e.ticket.WouldRefuse(); r != nil && e.facts.WouldRefuse == "" {
			e.facts.WouldRefuse = r.Wall()
		}
		if in, out := e.ticket.Reserved(); in.IsKnown() || out.IsKnown() {
			e.facts.Reserved = in.Plus(out)
			e.output = out.Or(e.output) // after clamping
		}
	}
	if a.Queue != nil && mode == limit.Enforce {
		if r := c.wait(now); r != nil || e.left {
			e.ticket.Cancel()
			return r
		}
	}
	if a.Ledger != nil {
		if err := c.recordStart(); err != nil {
			e.ticket.Cancel()
			e.slot.Release()
			return ledgerRefusal(err)
		}
	}
	return nil
}

// askedModels refuses a caller who may use certain models only, unless every
// name that an upstream may take for the model's is one of them.
func (c *Call) askedModels() *refusal {
	k, h := c.entry.caller, c.request.Header
	if c.body.over == call.BodyBudget {
		return busyRefusal()
	}
	var names []string
	err := errNotSeen
	if c.body.complete() && !encoded(h) {
		names, err = dialect.ModelsNamed(c.request.URL.Path, first(h, "Content-Type"), c.body.held)
	}
	if err != nil || len(names) == 0 {
		return modelRefusal(k.Alias, "")
	}
	for _, name := range names {
		if !k.Allows(name) {
			return modelRefusal(k.Alias, name)
		}
	}
	return nil
}

var errNotSeen = errors.New("request body is too large, or encoded")

// expect predicts what the call will cost.
func (c *Call) expect() {
	a, e := c.options.Admission, c.entry
	if a.Estimates != nil {
		e.features = e.scanner.Features()
		if e.seen = len(c.degraded) == 0 && e.features.Known(); e.seen {
			e.input = a.Estimates.Predict(c.wants.Model, c.identity.Key, &e.features)
			e.facts.EstimatedInput = call.Known(e.input)
		}
	}
	if !c.dialect.WritesTokens() {
		return
	}
	if !e.seen {
		e.input = max(c.request.ContentLength, int64(len(c.body.held))) / unseenBytes
		e.facts.EstimatedInput = call.Known(e.input)
	}
	each := int64(DefaultOutput)
	if a.DefaultOutput > 0 {
		each = a.DefaultOutput
	}
	e.guessed = true
	if a.Estimates != nil {
		if p95, known := a.Estimates.Output(c.wants.Model, c.identity.Key); known {
			e.usual = call.Known(p95)
		}
	}
	each = min(each, e.usual.Or(each))
	if most, said := c.wants.MaxTokens.Get(); said {
		each, e.guessed = most, false
	}
	choices := max(c.wants.N.Or(1), c.wants.BestOf.Or(1), 1)
	e.output = each
	if each > 0 && choices > limit.MaxLimit/each {
		e.output = limit.MaxLimit
	} else {
		e.output = each * choices
	}
}

// unseenBytes of a body that could not be read count as one token: the coarse
// rule of the trade, so that no prompt is free for being hard to read.
const unseenBytes = 4

// modelAsked is the model that limits count the call for. Some servers do not mind
// the case of the body's keys.
func (c *Call) modelAsked() string {
	if c.wants.Model != "" || !c.body.complete() {
		return c.wants.Model
	}
	if names, _ := dialect.ModelsNamed(c.request.URL.Path, first(c.request.Header, "Content-Type"), c.body.held); len(names) > 0 {
		return names[len(names)-1]
	}
	return ""
}

// wait enters the queue.
func (c *Call) wait(now time.Time) *refusal {
	a, e := c.options.Admission, c.entry
	e.ask = queue.Ask{
		Key: c.identity.Key, Class: c.identity.Class, Bytes: int64(cap(c.body.held)),
		Tokens: queue.Tokens{Input: e.input, Output: e.output},
	}
	if e.caller != nil {
		e.ask.KeyWeight = e.caller.Weight
	}
	if due, ok := a.TTFT[c.identity.Class]; ok && c.wants.Stream {
		e.ask.Deadline = c.identity.Time.Add(due)
		e.ask.PredictedTTFT = a.forecast.ttft()
	}
	err := a.Queue.Enter(c.ctx, &e.ask, &e.slot)
	var rejected *queue.Rejection
	switch {
	case err == nil:
		return nil
	case errors.As(err, &rejected):
		return queueRefusal(rejected)
	case errors.Is(err, context.DeadlineExceeded):
		return timeRefusal()
	}
	e.left = true
	return nil
}

// recordStart tells the ledger that the call has been admitted.
func (c *Call) recordStart() error {
	e, id := c.entry, &c.identity
	e.start = ledger.Start{
		ID: id.ID, Time: id.Time, Key: id.Key, Model: id.Model, Class: id.Class, Dialect: id.Dialect, Path: id.Path,
		Stream: c.wants.Stream, RequestID: id.RequestID, TraceID: id.TraceID, Run: id.Run,
		EstimatedInput: e.facts.EstimatedInput, Reserved: e.facts.Reserved,
	}
	if c.dialect.WritesTokens() {
		// Should the process end before the call does: what such calls usually
		// write, and never more than the client allows.
		e.start.EstimatedOutput = call.Known(min(e.output, e.usual.Or(e.output)))
	}
	return c.options.Admission.Ledger.Start(&e.start)
}
