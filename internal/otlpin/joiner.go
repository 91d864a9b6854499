package otlpin

import (
	"sync"
	"time"
)

const (
	// DefaultWindow is how long after its end a call waits for its engine's span.
	DefaultWindow = 2 * time.Second
	// maxWindow bounds what may be asked for: the phases of a call cannot be open forever.
	maxWindow = time.Minute
	// maxTickets bounds the calls that run or wait for their span.
	maxTickets = 65_536
	// maxPast bounds those that are remembered afterwards: at 500 calls a second for
	// all of linger, at more for less.
	maxPast = 16_384
	// maxKept bounds the spans that are kept of all traces together: one for each
	// open call, and as many for what else there may be.
	maxKept = 2 * maxTickets
	// maxAllLinks bounds the spans whose parents are remembered, of all traces.
	maxAllLinks = 4 * maxTickets
	// linger is how long a call is remembered after its window, so that late
	// spans are told from foreign ones: longer than any exporter waits by default.
	linger = 30 * time.Second
	// slack is how late a window may close: many are closed in one go.
	slack = 5 * time.Millisecond
)

// Joiner finds the call to which an engine's span belongs. It is safe for
// concurrent use, and none of its methods waits for anything but a short lock.
type Joiner struct {
	window time.Duration
	start  time.Time // of instants

	mu      sync.Mutex
	traces  map[TraceID]*trace
	open    int     // tickets that are not closed
	waiting tickets // by the end of their window
	ready   tickets // whose span is to be delivered
	past    tickets // closed, by the end of their memory
	kept    int     // spans: at most maxKept
	links   int     // at most maxAllLinks
	closed  bool
	count   JoinCounts
	latest  time.Duration

	wake  chan struct{} // of one place
	ended chan struct{}
}

// NewJoiner returns a Joiner whose calls wait for window, 0 to one minute, after
// their end; 0 or less is DefaultWindow. Close ends it.
func NewJoiner(window time.Duration) *Joiner {
	if window <= 0 {
		window = DefaultWindow
	}
	j := &Joiner{
		window: min(window, maxWindow), start: time.Now(),
		traces: map[TraceID]*trace{}, wake: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	go j.loop()
	return j
}

// Window is how long after its end a call waits for its engine's span.
func (j *Joiner) Window() time.Duration { return j.window }

// Track tells that a call is about to be sent upstream with this trace id and this
// CLIENT span in its traceparent. It returns nil, and the call counts as untracked,
// when either is zero, when too many calls are open (65,536, or 256 of one trace),
// or after Close. Every ticket must be ended by Done.
func (j *Joiner) Track(id TraceID, span SpanID) *Ticket {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed || j.open >= maxTickets || id == (TraceID{}) || span == (SpanID{}) {
		j.count.Untracked++
		return nil
	}
	tr := j.traces[id]
	var t *Ticket
	if tr == nil {
		tr = &trace{id: id, joiner: j, details: &noDetails}
		j.traces[id] = tr
		t = &tr.only
	} else {
		if !j.makeRoom(tr) {
			j.count.Untracked++
			return nil
		}
		t = &Ticket{}
		d := tr.detail()
		if d.tickets == nil {
			d.tickets = append(make([]*Ticket, 0, 4), &tr.only)
		}
		d.tickets = append(d.tickets, t)
	}
	t.trace, t.span = tr, span
	tr.tracked++
	tr.open++
	j.open++
	j.count.Tracked++
	return t
}

// makeRoom forgets the oldest call of a trace that has too many. The caller holds mu.
func (j *Joiner) makeRoom(tr *trace) bool {
	if len(tr.tickets) < maxCalls {
		return true
	}
	for _, t := range tr.tickets {
		if t.state == ticketClosed {
			j.forget(t)
			return true
		}
	}
	return false
}

// instant is a time on the monotonic clock, since the Joiner's start.
type instant int64

func (j *Joiner) at(now time.Time) instant { return instant(now.Sub(j.start)) }

// forget drops a closed ticket, and its trace with the last. The caller holds mu.
func (j *Joiner) forget(t *Ticket) {
	j.past.remove(t)
	tr := t.trace
	for i, other := range tr.tickets {
		if other == t {
			tr.tickets = append(tr.tickets[:i], tr.tickets[i+1:]...)
			break
		}
	}
	if len(tr.tickets) == 0 {
		delete(j.traces, tr.id)
		j.links -= len(tr.links)
	}
}

// keep takes room for one span, and tells whether there is any; what does not fit
// is counted. The caller holds mu.
func (j *Joiner) keep() bool {
	if j.kept >= maxKept {
		j.count.Overflow++
		return false
	}
	j.kept++
	return true
}

// wants tells whether a trace has calls; spans of others are only counted.
func (j *Joiner) wants(id TraceID) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.traces[id] == nil {
		j.count.Foreign++
		return false
	}
	return true
}

// take takes a span of a tracked trace.
func (j *Joiner) take(s *seen) {
	j.mu.Lock()
	defer j.mu.Unlock()
	tr := j.traces[s.TraceID]
	if tr == nil { // forgotten since it was asked for
		j.count.Foreign++
		return
	}
	if tr.ticketOf(s.SpanID) != nil {
		return // the call's own span
	}
	engine := s.engine()
	if engine {
		j.count.EngineSpans++
	}
	if tr.remember(s, j) {
		j.count.Duplicate++
		return
	}
	if engine {
		kept := *s
		tr.give(&kept, j)
	}
	tr.settle(s.SpanID)
}

// Close ends the Joiner: what is there is delivered, calls that still wait get
// nothing, and those that are still open get None when they are done. It returns
// when the last delivery has.
func (j *Joiner) Close() {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.wakeUp()
	<-j.ended
}
