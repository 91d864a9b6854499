package dialect

import (
	"bytes"
	"net/http"
	"strconv"
	"sync"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/jsonscan"
)

// Response reads one answer, event by event or as a JSON body. It is not safe
// for concurrent use.
type Response struct {
	d      *Dialect
	answer call.Answer
	scan   jsonscan.Scanner
	plain  plain
	trail  jsonscan.Trail
	ev     event
	scarce *rare // made when an event first needs it

	figures figures
	// outputs holds each choice's own running count of output tokens, for
	// answers that count by choice.
	outputs outputs
	texts   texts
	echoed  uint64 // choices whose first text has come, the prompt or not
	prompt  call.Digest
	wrote   int   // 1 + the first choice that wrote; 0 is none
	counted int64 // events that are one token each, in dialects that have them

	kept []byte // what the event in a body needs of pieces that are gone

	n          int64 // choices asked for, 0 unknown
	echo       bool
	ended      bool // the terminal event has been read
	complete   bool // a usage of the whole answer has come
	inBody     bool
	bodyText   bool // the body is plain text
	bodyBegun  bool
	bodyEvents bool // the body is an array of events
	inArray    Seen // of the array elements that ended in the current piece
	closed     bool
}

// Seen is what one event, or what ended in one piece of a body, carried.
type Seen struct {
	Content  bool // model output
	Visible  bool // output that is not reasoning only
	Finished bool // a finish reason
	Terminal bool // the dialect's end of the answer
}

// responses are those that were freed. A call makes one, of over 1 KB.
var responses = sync.Pool{New: func() any { return new(Response) }}

// NewResponse begins to read the answer to a request; req may be nil.
func (d *Dialect) NewResponse(req *call.Request) *Response {
	r := responses.Get().(*Response)
	scarce := r.scarce
	if scarce != nil {
		*scarce = rare{finishes: scarce.finishes[:0]}
	}
	*r = Response{d: d, scarce: scarce, kept: r.kept[:0]}
	if req != nil {
		r.echo, r.prompt = req.Echo, req.Prompt
		r.n = req.N.Or(0)
	}
	return r
}

// Free gives the Response back. Neither it nor what Answer returned may be used
// any more; copies of the Answer may.
func (r *Response) Free() {
	if cap(r.kept) > maxKept {
		r.kept = nil
	}
	responses.Put(r)
}

// maxKept is the largest buffer that a freed Response holds on to.
const maxKept = 4 << 10

// Header reads the figures that TGI puts in the header of an answer that is not
// streamed; times are in milliseconds.
func (r *Response) Header(h http.Header) {
	if len(h["X-Inference-Time"]) == 0 {
		return // the other names may be someone else's, in another unit
	}
	a := &r.answer
	headerDuration(h, "X-Queue-Time", &a.Engine.Queue)
	headerDuration(h, "X-Total-Time", &a.Engine.Total)
	headerCount(h, "X-Prompt-Tokens", &r.figures.n[figInput])
	headerCount(h, "X-Generated-Tokens", &r.figures.n[figOutput])
	r.settleUsage()
}

func headerDuration(h http.Header, key string, d *call.Duration) {
	if ms, err := strconv.ParseFloat(h.Get(key), 64); err == nil && ms >= 0 {
		if t := call.Milliseconds(ms); t.IsKnown() {
			*d = t
		}
	}
}

func headerCount(h http.Header, key string, c *call.Count) {
	if n, err := strconv.ParseInt(h.Get(key), 10, 53); err == nil && n >= 0 {
		*c = call.Known(n)
	}
}

// Event reads one dispatched event of a stream: an SSE event with data, or an
// NDJSON line that is not blank. It keeps neither slice. What comes after the
// terminal event is not metered.
func (r *Response) Event(name, data []byte) Seen {
	if r.ended {
		return Seen{}
	}
	if r.plain.matches(name, data) {
		seen := Seen{Content: true, Visible: r.plain.visible}
		r.number(seen)
		return seen
	}
	return r.read(name, data)
}

// SkipEvent passes over an event that was too long to be read: it takes its
// number like any other.
func (r *Response) SkipEvent() {
	if !r.ended {
		r.answer.Events++
	}
}

// read reads an event that is not like the one before it.
func (r *Response) read(name, data []byte) Seen {
	if isDone(data) {
		r.answer.Recognised = true
		seen := Seen{Terminal: true}
		r.terminate()
		r.number(seen)
		return seen
	}
	r.begin()
	r.inBody = false
	failed := string(name) == "error"
	read := r.trail.Follow(data, (*sink)(r))
	if !read {
		r.trail.Lay(&r.scan, r.d.shape, data, (*sink)(r))
		read = r.scan.Done()
	}
	if !read {
		if failed {
			r.failedWith("error")
		} else {
			r.answer.ParseErrors++
		}
		r.answer.Events++
		return Seen{}
	}
	if r.ev.kind == nil {
		r.ev.kind = name // servers that leave the type to the event's name
	}
	r.ev.failed = r.ev.failed || failed
	seen := r.commit()
	if r.isPlain(seen) {
		r.plain.set(name, data, r.ev.textStart, r.ev.textEnd, seen.Visible)
	}
	return seen
}

// isDone tells whether data is the end mark of OpenAI's streams.
func isDone(data []byte) bool {
	for len(data) > 0 && data[0] == ' ' {
		data = data[1:]
	}
	return len(data) > 5 && data[0] == '[' && data[1] == 'D' && string(bytes.TrimSpace(data)) == "[DONE]"
}

// begin forgets the event before.
func (r *Response) begin() {
	r.kept = r.kept[:0]
	rareBefore := r.ev.isRare
	r.ev = event{}
	if rareBefore {
		kept := r.scarce.finishes[:0]
		*r.scarce = rare{finishes: kept}
	}
}

// commit makes the event that has been read count.
func (r *Response) commit() Seen {
	r.d.settle(r)
	e, a := &r.ev, &r.answer
	if e.own || e.failed {
		a.Recognised = true
	}
	if e.id != nil {
		a.ResponseID = name(e.id)
	}
	if e.model != nil {
		a.ResponseModel = name(e.model)
	}
	if e.failed {
		r.failedWith(r.errorCode())
	}
	seen := Seen{Content: e.visible || e.reasoning, Visible: e.visible}
	if seen.Content && e.wrote != 0 {
		if r.wrote == 0 {
			r.wrote = e.wrote
		}
		a.MultipleChoices = a.MultipleChoices || e.multiple || e.wrote != r.wrote
	}
	if e.isRare {
		seen.Finished = r.commitRare()
	}
	if e.terminal {
		seen.Terminal = true
		r.terminate()
	}
	r.number(seen)
	return seen
}

// commitRare makes what is not usual count; it tells whether a choice finished.
func (r *Response) commitRare() bool {
	e, c, a := &r.ev, r.scarce, &r.answer
	r.echoed |= c.echoed
	for _, f := range c.finishes {
		a.Finish.Set(f.choice, name(f.reason))
	}
	if c.engine != (call.Engine{}) {
		later(&a.Engine.Queue, c.engine.Queue)
		later(&a.Engine.Load, c.engine.Load)
		later(&a.Engine.Prefill, c.engine.Prefill)
		later(&a.Engine.Decode, c.engine.Decode)
		later(&a.Engine.Total, c.engine.Total)
		later(&a.Engine.E2E, c.engine.E2E)
	}
	if c.figures != (figures{}) {
		r.figures.merge(&c.figures, e.total)
		output := c.figures.either(figCompletion, figOutput)
		switch {
		case e.total && output.IsKnown():
			r.complete = true
		case e.choices == 1 && !r.inBody:
			r.outputs.set(e.index, output)
		}
		r.settleUsage()
	}
	return len(c.finishes) > 0
}

func later(d *call.Duration, new call.Duration) {
	if new.IsKnown() {
		*d = new
	}
}

// settleUsage brings the answer's usage up to date with the figures.
func (r *Response) settleUsage() {
	t := r.d.tokens(&r.figures)
	if !r.complete && r.outputs.choices() > 1 {
		t.Output = r.outputs.sum()
	}
	a := &r.answer
	if t.timings && (a.Finish.Multiple() || a.MultipleChoices) {
		t.Usage = call.Usage{} // they are one choice's alone
	}
	a.Usage = t.Usage
	switch {
	case a.Usage.IsZero():
		a.UsageSource = call.UsageNone
	case t.timings:
		a.UsageSource = call.UsageTimings
	default:
		a.UsageSource = call.UsageReported
	}
}

// number gives the event its number.
func (r *Response) number(seen Seen) {
	a := &r.answer
	if seen.Content {
		a.ContentEvents++
		if !a.FirstContent.IsKnown() {
			a.FirstContent = call.Known(a.Events)
		}
		if seen.Visible && !a.FirstVisible.IsKnown() {
			a.FirstVisible = call.Known(a.Events)
		}
	}
	a.Events++
}

func (r *Response) failedWith(code string) {
	if r.answer.Error == "" {
		r.answer.Error = code
	}
	r.answer.Recognised = true
}

func (r *Response) terminate() {
	r.answer.Terminated = true
	r.ended = !r.d.lasting
}

// Answer returns the facts so far. They are final after Close; the Answer is
// the Response's own until then.
func (r *Response) Answer() *call.Answer { return &r.answer }

// Close ends the answer, wherever it broke off, and settles where its usage
// comes from.
func (r *Response) Close() {
	if r.closed {
		return
	}
	r.closed, r.ended = true, true
	a := &r.answer
	if a.Usage.IsZero() && r.counted > 0 {
		a.Usage.Output = call.Known(r.counted)
		a.UsageSource = call.UsageCounted
	}
	switch {
	case a.Usage.IsZero():
		a.UsageSource = call.UsageNone
	case a.UsageSource != call.UsageCounted && !r.whole():
		a.UsageSource = call.UsagePartial
		if a.Usage.Output == call.Known(0) && a.ContentEvents > 0 {
			// The figure the stream began with. Output has come since, so it is
			// not 0, and how much it is nobody knows.
			a.Usage.Output = call.Count{}
		}
	}
}

// whole tells whether the usage is of the whole answer, not a running figure of
// one that broke off.
func (r *Response) whole() bool {
	a := &r.answer
	if r.complete || a.Terminated && a.Error == "" {
		return true
	}
	return !a.Finish.IsZero() && a.Finish.Choices() >= max(int(r.n), r.outputs.choices())
}
