package slo

import (
	"math"
	"runtime"
	"time"
)

// End judges what has not been judged, and lets the call go. For a call that was not followed, Watch may come
// directly before; then all is judged by f.
//
// What a call is for an objective, and in which minute it counts:
//
//   - ttft, ttft_visible, e2e: from received on, and ttft_upstream from when it was sent, as
//     far as that is known. Good in the minute in which the value was reached, bad
//     in that in which the threshold passed, whether by a value that is known, or because a streamed call had no token (for
//     e2e: had not ended) by then, whatever came later. Without a token, a call that
//     ended before the threshold is judged by f.Values, normally as not counted.
//   - queue: bad in the minute in which the gateway's own part, from Queued to Admitted, passed
//     the threshold; else by f.Values in the minute of the end.
//   - all other numbers, and all with conditions: by f.Values in the minute of the end. Where
//     the number gives no verdict the fallback is judged.
//   - success: by f.Ending in the minute of the end.
//   - goodput: bad in the minute of the first objective that is bad; else, in that of the end,
//     not counted if success is not, unknown if any objective is unknown, and else
//     good. A class without a success objective is treated as if it had one.
//
// The time from received to ended is f.Ended less what Watch was told; f.Received is not looked at.
func (t *Tracker) End(p *Pending, f *Facts) {
	c := t.enter(p)
	if c == nil {
		return
	}
	defer c.mu.Unlock()
	p.letGo()
	p.ended = true
	p.unlink()
	a := t.clock.state.Load()
	s := t.proving(c, a, p, f.Ending == Answered)
	if s == nil {
		return
	}
	out := &c.decisions
	p.endSecond = p.decide(a, f, f.Ended.Sub(p.received), out)
	x := spot{second: math.MinInt64} // none
	for i := range p.def.cols {
		o := &out[i]
		if p.marks[i].decided() {
			continue
		}
		p.mark(i, o)
		switch {
		case o.verdict == NotCounted:
		case p.def != c.def:
			c.count(a, s, p.def, i, o.verdict, o.second, 1)
		default:
			if x.second != o.second {
				s.spot(&x, a, o.second)
			}
			s.count(a, &x, i, o.verdict, 1)
		}
	}
	p.input, p.output = -1, -1
	t.tokens(c, a, s, p, f)
	p.display(a, s, f)
}

func (p *Pending) mark(i int, o *decision) {
	p.marks[i], p.at[i] = markOf(o.verdict), o.second
	if o.early {
		p.marks[i] |= early
	}
}

// tokens counts what the envelope is judged by. What p.input and p.output say
// has been counted already.
func (t *Tracker) tokens(c *class, a *aging, s *series, p *Pending, f *Facts) {
	input, output := max(f.Input, -1), max(f.Output, -1)
	if c.tallies(p.def) && (input != p.input || output != p.output) {
		c.tally(a, s, InputTokens, p.endSecond, p.input, input)
		c.tally(a, s, OutputTokens, p.endSecond, p.output, output)
		s.judgeMinute(a, p.endSecond, c.since)
	}
	p.input, p.output = input, output
}

// tally replaces one figure of a call, -1 for none, by another.
func (c *class) tally(a *aging, s *series, q Quantity, second, was, is int64) {
	for _, x := range [...]struct{ n, sign int64 }{{was, -1}, {is, 1}} {
		if x.n < 0 {
			continue
		}
		s.tally(a, tallyOf(q), second, x.sign)
		for i, term := range c.layout.envelope.Terms {
			if term.Quantity == q && x.n <= term.AtMost {
				s.tally(a, tallyTerms+i, second, x.sign)
			}
		}
	}
}

// display adds times that were not known before to those that are shown.
func (p *Pending) display(a *aging, s *series, f *Facts) {
	for _, n := range p.def.numbers {
		if v := &f.Values[n]; v.kind == exact && p.shown>>n&1 == 0 {
			p.shown |= 1 << n
			s.display.current(n, a.part).Add(v.d)
		}
	}
}

// Correct judges anew, once after End, when a late report makes figures known
// that were not. A call moves in the minute in which it counted already; one that
// did not count for an objective and does now counts in the minute of its end. What was decided before the end
// stays, and so does good or bad where f would say unknown. If the minute is no longer kept as one nothing is
// changed, and Status.Lost counts it.
func (t *Tracker) Correct(p *Pending, f *Facts) {
	c := p.class
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !p.ended || p.corrected || p.series == nil || c.def == nil {
		return
	}
	p.corrected = true
	a := t.clock.state.Load()
	s := p.series
	if s.dead {
		t.clock.lost.Add(1)
		return
	}
	s.age(a)
	out := &c.decisions
	p.decide(a, f, f.Ended.Sub(p.received), out)
	lost := !a.byMinute(p.endSecond)
	for i := range p.def.cols {
		was, is := p.marks[i].verdict(), out[i].verdict
		if p.marks[i]&early != 0 || was == is || is == UnknownKept && was != NotCounted {
			continue
		}
		second := p.at[i]
		if was == NotCounted {
			second = p.endSecond
		}
		if !a.byMinute(second) {
			lost = true
			continue
		}
		c.count(a, s, p.def, i, was, second, -1)
		c.count(a, s, p.def, i, is, second, 1)
		p.marks[i], p.at[i] = markOf(is), second
	}
	if lost {
		t.clock.lost.Add(1)
		return
	}
	t.tokens(c, a, s, p, f)
	p.display(a, s, f)
}

// Forget makes a call count nowhere, as for load tests and probes: what has been judged of
// it already is taken back, as long as its minutes are kept as such. It may come instead of End, or after.
func (t *Tracker) Forget(p *Pending) {
	c := p.class
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p.unlink()
	p.class = nil
	s := p.series
	if s == nil || s.dead || c.def == nil {
		return
	}
	a := t.clock.state.Load()
	s.age(a)
	for i := range p.def.cols {
		if p.marks[i].decided() && a.byMinute(p.at[i]) {
			c.count(a, s, p.def, i, p.marks[i].verdict(), p.at[i], -1)
		}
	}
	if !c.tallies(p.def) {
		return
	}
	received := a.place(p.second)
	s.tally(a, tallyReceived, received, -1)
	s.judgeMinute(a, received, c.since)
	if p.ended {
		t.tokens(c, a, s, p, &Facts{Input: -1, Output: -1})
	}
}

// scan calls look with every call of the class that has not ended, some at a time, so that
// nobody waits long for the lock.
func (c *class) scan(look func(*Pending)) {
	const some = 256
	cursor := Pending{cursor: true}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer cursor.unlink()
	cursor.next, cursor.prev = c.waiting.next, &c.waiting
	cursor.next.prev, c.waiting.next = &cursor, &cursor
	for n := 1; cursor.next != &c.waiting; n++ {
		p := cursor.next
		// The cursor goes behind the call.
		cursor.unlink()
		cursor.next, cursor.prev = p.next, p
		p.next.prev, p.next = &cursor, &cursor
		if !p.cursor {
			look(p)
		}
		if n%some == 0 {
			c.pause()
		}
	}
}

// pause lets others have the class's lock, which is held again afterwards.
func (c *class) pause() {
	c.mu.Unlock()
	runtime.Gosched() // else nobody who waits comes in between
	c.mu.Lock()
}

// Tick judges what is awaited: what has passed its threshold by now. It is called every
// second or so. When it is late, decisions still count in the minute in which they fell.
func (t *Tracker) Tick(now time.Time) {
	now, _ = t.clock.tell(now)
	for _, c := range *t.classes.Load() {
		c.scan(func(p *Pending) { t.expire(c, p, now.Sub(p.received)) })
	}
}
