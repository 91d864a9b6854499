package slo

import (
	"math"
	"time"
)

// deadline returns when a column that is not decided is missed, and false if nothing
// is awaited for it.
func (p *Pending) deadline(col *column) (time.Duration, bool) {
	switch col.number {
	case TTFT:
		return col.threshold, p.streamed && !p.token
	case TTFTVisible:
		return col.threshold, p.streamed && !p.visible
	case TTFTUpstream:
		if !p.streamed || p.token {
			return 0, false
		}
		base, known := p.sentAt()
		return base + col.threshold, known
	case E2E:
		return col.threshold, true
	case Queue:
		return p.body + col.threshold, p.queued && !p.let
	}
	return 0, false
}

// sentAt returns how long after its arrival the call was sent.
func (p *Pending) sentAt() (time.Duration, bool) {
	if p.sent == nil {
		return p.wasSent, p.ended && p.wasSent >= 0
	}
	at, sent := p.sent.SentAt()
	if !sent {
		return 0, false
	}
	return at.Sub(p.received), true
}

// due returns what nextDue does for a call that has just begun.
func (d *definition) due(streamed, sender bool) time.Duration {
	switch {
	case !streamed:
		return d.dueEnd
	case sender && d.upstream:
		return math.MinInt64
	}
	return d.dueToken
}

// nextDue returns the earliest time at which something may be missed. When a call is sent may
// change, so what depends on it is always due.
func (p *Pending) nextDue() time.Duration {
	due := time.Duration(math.MaxInt64)
	for _, i := range p.def.awaited {
		col := &p.def.cols[i]
		if p.marks[i].decided() {
			continue
		}
		if col.number == TTFTUpstream {
			if p.streamed && !p.token && p.sent != nil {
				return math.MinInt64
			}
			continue
		}
		if d, awaited := p.deadline(col); awaited {
			due = min(due, d)
		}
	}
	return due
}

// expire judges bad what has been missed before some time. The class's lock is held.
func (t *Tracker) expire(c *class, p *Pending, until time.Duration) {
	if until <= p.due {
		return
	}
	first := time.Duration(math.MaxInt64)
	for _, i := range p.def.awaited {
		col := &p.def.cols[i]
		if p.marks[i].decided() {
			continue
		}
		if d, awaited := p.deadline(col); awaited && d < until {
			t.early(c, p, i, Bad, d)
			first = min(first, d)
		}
	}
	p.due = p.nextDue()
	if first == math.MaxInt64 {
		return
	}
	for _, i := range p.def.goodput {
		if len(p.def.cols[i].when) == 0 && !p.marks[i].decided() {
			t.early(c, p, i, Bad, first)
		}
	}
}

// early decides a column before the call has ended.
func (t *Tracker) early(c *class, p *Pending, col int, v Verdict, d time.Duration) {
	a := t.clock.state.Load()
	p.marks[col], p.at[col] = markOf(v)|early, a.place(p.instant(d))
	// What is good before the end is so because a token came: the model answers.
	if s := t.proving(c, a, p, v == Good); s != nil {
		c.count(a, s, p.def, col, v, p.at[col], 1)
	}
}

// proving is resolve for a call that may prove its model: where the call itself counts
// under OtherModel already, the calls that come do not.
func (t *Tracker) proving(c *class, a *aging, p *Pending, answered bool) *series {
	judged := p.series != nil
	s := t.resolve(c, a, p, answered)
	if s != nil && judged && answered && s.model == OtherModel && c.series[p.model] == nil {
		t.admit(c, a, p.model, true)
	}
	return s
}

// resolve returns the series that the call counts in, nil if its class is not
// configured any more. The first time the call counts as received.
func (t *Tracker) resolve(c *class, a *aging, p *Pending, answered bool) *series {
	if c.def == nil {
		return nil
	}
	if p.series != nil && !p.series.dead {
		if p.series.seen != a.minute {
			p.series.age(a)
		}
		return p.series
	}
	first := p.series == nil
	p.series = t.at(c, a, p.model, answered)
	if first && c.tallies(p.def) {
		second := a.place(p.second)
		p.series.tally(a, tallyReceived, second, 1)
		p.series.judgeMinute(a, second, c.since)
	}
	return p.series
}

// tallies tells whether a call that began under a definition counts for the envelope.
func (c *class) tallies(d *definition) bool {
	return c.layout.qualified() && (c.def == d || c.layout.sameEnvelope(d.layout))
}

// count adds n calls to the column of a definition, which may be an older one.
func (c *class) count(a *aging, s *series, d *definition, col int, v Verdict, second, n int64) {
	if v == NotCounted {
		return
	}
	if d != c.def {
		if col = c.layout.index(d.cols[col].key); col < 0 {
			return
		}
	}
	var x spot
	s.spot(&x, a, second)
	s.count(a, &x, col, v, n)
}

// judge returns what the call is for a column about a time, after how long that fell, and whether
// it would have been judged the same had nobody told of the end.
func (p *Pending) judge(col *column, f *Facts, ended time.Duration) (v Verdict, at time.Duration, sure bool) {
	value := f.Values[col.number]
	switch col.number {
	case TTFT, TTFTVisible, TTFTUpstream, E2E:
		base, known := time.Duration(0), true
		if col.number == TTFTUpstream {
			base, known = p.sentAt()
		}
		came := col.number == TTFTVisible && p.visible || col.number != TTFTVisible && p.token
		awaited := col.number == E2E || p.streamed && !came
		switch {
		case !known:
		case value.kind == exact && value.d <= col.threshold:
			return Good, base + value.d, false
		case value.kind == exact, awaited && ended > base+col.threshold:
			return Bad, base + col.threshold, true
		}
	case Queue:
		left := ended
		if p.let {
			left = p.admitted
		}
		if p.queued && left > p.body+col.threshold {
			return Bad, p.body + col.threshold, true
		}
	}
	v = value.Against(col.threshold)
	if v == UnknownKept && col.fallback != col.number {
		if w := f.Values[col.fallback].Against(col.threshold); w != NotCounted {
			v = w
		}
	}
	return v, ended, false
}

// applies returns what a verdict is under conditions: it stands where all are met, does
// not count where one is not, and else is unknown.
func (col *column) applies(v Verdict, f *Facts) Verdict {
	if v == NotCounted {
		return v
	}
	known := true
	for _, w := range col.when {
		n := f.Input
		if w.Quantity == OutputTokens {
			n = f.Output
		}
		switch {
		case n < 0:
			known = false
		case n > w.AtMost:
			return NotCounted
		}
	}
	if !known {
		return UnknownKept
	}
	return v
}

// decision is what the end of a call says for one column.
type decision struct {
	second  int64
	verdict Verdict
	early   bool
}

// decide judges all columns by the facts, those that were decided early as they
// were, and returns the second of the end.
func (p *Pending) decide(a *aging, f *Facts, ended time.Duration, out *[MaxObjectives]decision) (end int64) {
	d := p.def
	end = a.place(p.instant(ended))
	bad, unknown := false, false
	first := int64(math.MaxInt64)
	for _, i := range d.timed {
		o, col := &out[i], &d.cols[i]
		if m := p.marks[i]; m&early != 0 {
			*o = decision{p.at[i], m.verdict(), true}
		} else if col.plain {
			*o = decision{end, f.Values[col.number].Against(col.threshold), false}
		} else {
			v, at, sure := p.judge(col, f, ended)
			*o = decision{end, v, sure && col.awaited}
			switch {
			case len(col.when) > 0:
				o.verdict = col.applies(v, f)
			case at != ended:
				o.second = a.place(p.instant(at))
			}
		}
		switch o.verdict {
		case Bad:
			bad, first = true, min(first, o.second)
		case UnknownKept:
			unknown = true
		}
	}
	kept := success(f.Ending, bad)
	for _, i := range d.success {
		out[i] = decision{end, d.cols[i].applies(kept, f), false}
		unknown = unknown || out[i].verdict == UnknownKept
	}
	good := Good
	switch {
	case bad || kept == Bad:
		good, first = Bad, min(first, end)
	case kept == NotCounted:
		good = NotCounted
	case unknown:
		good = UnknownKept
	}
	for _, i := range d.goodput {
		o := &out[i]
		*o = decision{end, good, false}
		switch {
		case p.marks[i]&early != 0:
			*o = decision{p.at[i], Bad, true}
		case len(d.cols[i].when) > 0:
			o.verdict = d.cols[i].applies(good, f)
		case good == Bad:
			o.second = first
		}
	}
	return end
}

// success judges how a call ended.
func success(e Ending, missed bool) Verdict {
	switch e {
	case Answered:
		return Good
	case Excused:
		return NotCounted
	case Left:
		if !missed {
			return NotCounted
		}
	}
	return Bad
}
