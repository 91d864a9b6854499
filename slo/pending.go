package slo

import "time"

// Sender says when a call was sent upstream, last attempt, and false while it has not been. It is asked
// while a lock is held: it must be quick, and must not call the Tracker.
type Sender interface {
	SentAt() (at time.Time, sent bool)
}

// Pending is a call as a Tracker follows it. The zero value is ready for Watch. It belongs into
// whatever holds the call, must not be copied, and must stay as it is until End or
// Forget, since the Tracker refers to it until then. Its methods are the Tracker's;
// for one call they come in the order of time, and never two at once.
type Pending struct {
	class  *class
	def    *definition
	series *series // nil until the first objective is judged
	model  string
	sent   Sender

	next, prev *Pending // in class.waiting; nil for one that is not in it
	cursor     bool     // no call, but a place in the ring

	received time.Time
	second   int64         // of received, since 1970
	nanos    int64         // behind it
	body     time.Duration // received to body read
	admitted time.Duration // received to admitted
	due      time.Duration // before it no objective is missed

	stage

	marks [MaxObjectives]mark  // of each column
	at    [MaxObjectives]int64 // in which second it counts
	shown uint16               // a bit for each timed number that is in display

	wasSent time.Duration // received to sent, below 0 if it was not; once sent is let go

	endSecond     int64
	input, output int64
}

// stage is how far a call has come.
type stage struct {
	streamed, queued, let, token, visible, ended, corrected bool
}

// mark is what a call is for a column: 0 while that is not decided, else a verdict + 1.
type mark uint8

const (
	// early is set with what was decided before the end: it stays so.
	early       mark = 1 << 7
	verdictMask mark = 7
)

func markOf(v Verdict) mark { return mark(v) + 1 }

func (m mark) decided() bool { return m != 0 }

func (m mark) verdict() Verdict {
	if m == 0 {
		return NotCounted
	}
	return Verdict(m&verdictMask) - 1
}

// instant returns the second that is some time after received.
func (p *Pending) instant(d time.Duration) int64 {
	return p.second + floorDiv(p.nanos+int64(d%time.Second), int64(time.Second)) + int64(d/time.Second)
}

// Watch begins to follow a call of a class: once it is known what it asks for. streamed is
// whether it may have a first token. sent may be nil, if nothing is told before
// the end. A call of a class that is not configured counts nowhere.
func (t *Tracker) Watch(p *Pending, class, model string, received time.Time, streamed bool, sent Sender) {
	if p.class != nil && !p.ended {
		t.Forget(p)
	}
	// What at, input and output hold of an earlier call is not looked at.
	p.class, p.series, p.model, p.sent, p.wasSent = nil, nil, model, sent, -1
	p.received, p.second, p.nanos = received, received.Unix(), int64(received.Nanosecond())
	p.stage, p.marks, p.shown = stage{streamed: streamed}, [MaxObjectives]mark{}, 0
	c := t.class(class)
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.def != nil {
		p.class, p.def = c, c.def
		p.due = c.def.due(streamed, sent != nil)
		p.next, p.prev = &c.waiting, c.waiting.prev
		p.prev.next, c.waiting.prev = p, p
	}
}

// letGo remembers when the call was sent, so that nobody asks for it after the end. The
// class's lock is held.
func (p *Pending) letGo() {
	if p.sent != nil {
		if base, known := p.sentAt(); known {
			p.wasSent = base
		}
		p.sent = nil
	}
}

// unlink takes the call off its class's ring. The class's lock is held.
func (p *Pending) unlink() {
	if p.next != nil {
		p.next.prev, p.prev.next = p.prev, p.next
		p.next, p.prev = nil, nil
	}
}

// Queued tells when the body had been read, so that the call waits in the gateway's
// queue until Admitted. Without it the queue objective is judged at the end alone.
func (t *Tracker) Queued(p *Pending, bodyRead time.Time) {
	if c := t.enter(p); c != nil {
		defer c.mu.Unlock()
		p.queued, p.body = true, bodyRead.Sub(p.received)
		p.due = p.nextDue()
	}
}

// Admitted tells when the call left the gateway's queue.
func (t *Tracker) Admitted(p *Pending, at time.Time) {
	if c := t.enter(p); c != nil {
		defer c.mu.Unlock()
		p.admitted = at.Sub(p.received)
		t.expire(c, p, p.admitted)
		p.let = true
	}
}

// FirstToken tells when the first token came. For a call that is not streamed it says
// nothing.
func (t *Tracker) FirstToken(p *Pending, at time.Time) {
	c := t.enter(p)
	if c == nil {
		return
	}
	defer c.mu.Unlock()
	if !p.streamed {
		return
	}
	d := at.Sub(p.received)
	t.expire(c, p, d)
	p.token = true
	for _, i := range p.def.awaited {
		col := &p.def.cols[i]
		if p.marks[i].decided() {
			continue
		}
		switch col.number {
		case TTFT:
			t.early(c, p, i, Good, d)
		case TTFTUpstream:
			if _, known := p.sentAt(); known {
				t.early(c, p, i, Good, d)
			}
		}
	}
}

// FirstVisible tells when the first token came that is not reasoning.
func (t *Tracker) FirstVisible(p *Pending, at time.Time) {
	c := t.enter(p)
	if c == nil {
		return
	}
	defer c.mu.Unlock()
	if !p.streamed {
		return
	}
	d := at.Sub(p.received)
	t.expire(c, p, d)
	p.visible = true
	for _, i := range p.def.awaited {
		if p.def.cols[i].number == TTFTVisible && !p.marks[i].decided() {
			t.early(c, p, i, Good, d)
		}
	}
}

// enter returns the class of a call that is followed and has not ended, locked; else
// nil.
func (t *Tracker) enter(p *Pending) *class {
	if p.class == nil {
		return nil
	}
	p.class.mu.Lock()
	if p.ended {
		p.class.mu.Unlock()
		return nil
	}
	return p.class
}
