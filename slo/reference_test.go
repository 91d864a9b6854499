package slo

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"
)

// This file recomputes what a Tracker counts in the plainest way: it keeps what every
// call was for every objective, and adds up anew for every question.

// trueCall is what is known of a call.
type trueCall struct {
	class, model       string
	received, bodyRead time.Time
	admitted, sentAt   time.Time // zero: never
	token, visible     time.Time
	streamed           bool
	noSender           bool
	facts, corrected   Facts
	objectives         []Objective // when it began
	keys               []string    // of objectives
	envelope           Envelope

	pending      Pending
	told         struct{ queued, admitted, sent, token, visible, ended, corrected, forgotten bool }
	label        string // "" until its first judgement
	decided      map[string]*trueDecision
	tally        *trueTally
	joined, dead bool
}

func (c *trueCall) SentAt() (time.Time, bool) { return c.sentAt, c.told.sent }

type trueDecision struct {
	key     string
	verdict Verdict
	at      time.Time
	early   bool
}

// trueTally is what the envelope is judged by.
type trueTally struct {
	received, ended int64 // minutes
	input, output   int64
}

type reference struct {
	config  Config
	keys    map[string][]string // of each class's objectives
	proven  map[string]bool
	calls   []*trueCall
	current []trueRow
}

// trueRow is one decision that counts.
type trueRow struct {
	class, label, key string
	d                 *trueDecision
	call              *trueCall
}

func trueKey(class Class, o Objective) string {
	key := func(o Objective) string {
		return fmt.Sprint(o.Number, o.Threshold, o.Fallback, slices.SortedFunc(slices.Values(o.When), func(a, b Condition) int { return cmp.Compare(a.Quantity, b.Quantity) }))
	}
	if o.Number != Goodput {
		return key(o)
	}
	var others []string
	for _, p := range class.Objectives {
		if p.Number != Goodput {
			others = append(others, key(p))
		}
	}
	slices.Sort(others)
	return key(o) + fmt.Sprint(slices.Compact(others))
}

func (r *reference) configure(config Config) {
	r.config, r.keys = config, make(map[string][]string)
	for _, class := range config.Classes {
		for _, o := range class.Objectives {
			r.keys[class.Name] = append(r.keys[class.Name], trueKey(class, o))
		}
	}
}

func (r *reference) class(name string) (Class, bool) {
	i := slices.IndexFunc(r.config.Classes, func(c Class) bool { return c.Name == name })
	if i < 0 {
		return Class{}, false
	}
	return r.config.Classes[i], true
}

// decide takes a decision, and counts it if its objective is still there.
func (r *reference) decide(c *trueCall, key string, v Verdict, at time.Time, early bool) {
	if c.decided[key] != nil {
		return
	}
	d := &trueDecision{key, v, at, early}
	c.decided[key] = d
	if c.dead {
		return
	}
	class, ok := r.class(c.class)
	if !ok {
		return
	}
	if early && v == Good && c.model != "" {
		r.proven[c.model] = true
	}
	r.join(c)
	if slices.Contains(r.keys[class.Name], key) {
		r.current = append(r.current, trueRow{c.class, c.label, key, d, c})
	}
}

// join gives the call its model's label.
func (r *reference) join(c *trueCall) {
	if c.joined {
		return
	}
	c.joined = true
	c.label = OtherModel
	if r.proven[c.model] {
		c.label = c.model
	}
	class, _ := r.class(c.class)
	if slices.Equal(class.Valid.Terms, c.envelope.Terms) && class.Valid.CallsPerMinute == c.envelope.CallsPerMinute {
		c.tally = &trueTally{received: minuteOf(c.received), ended: math.MinInt64, input: -1, output: -1}
	}
}

// unconditional yields the objectives about a number without conditions, with their keys.
func (c *trueCall) unconditional(n Number) iter.Seq2[string, Objective] {
	return func(yield func(string, Objective) bool) {
		for i, o := range c.objectives {
			if o.Number == n && len(o.When) == 0 && !yield(c.keys[i], o) {
				return
			}
		}
	}
}

// until judges what is missed before some time, and goodput with it.
func (r *reference) until(c *trueCall, now time.Time) {
	type missed struct {
		key string
		at  time.Time
	}
	var all []missed
	look := func(n Number, base time.Time, awaited bool) {
		for key, o := range c.unconditional(n) {
			if at := base.Add(o.Threshold); awaited && at.Before(now) && c.decided[key] == nil {
				all = append(all, missed{key, at})
			}
		}
	}
	look(TTFT, c.received, c.streamed && !c.told.token)
	look(TTFTUpstream, c.sentAt, c.streamed && !c.told.token && c.told.sent && !c.noSender)
	look(TTFTVisible, c.received, c.streamed && !c.told.visible)
	look(E2E, c.received, true)
	look(Queue, c.bodyRead, c.told.queued && !c.told.admitted)
	if len(all) == 0 {
		return
	}
	first := all[0].at
	for _, m := range all {
		r.decide(c, m.key, Bad, m.at, true)
		if m.at.Before(first) {
			first = m.at
		}
	}
	for key := range c.unconditional(Goodput) {
		r.decide(c, key, Bad, first, true)
	}
}

// came judges good what has come in time.
func (r *reference) came(c *trueCall, n Number, at time.Time) {
	r.until(c, at)
	for key := range c.unconditional(n) {
		if n != TTFTUpstream || c.told.sent && !c.noSender {
			r.decide(c, key, Good, at, true)
		}
	}
}

// final returns all decisions of a call that has ended, by the facts.
func (r *reference) final(c *trueCall, f *Facts) map[string]*trueDecision {
	all := make(map[string]*trueDecision)
	bad, unknown := false, false
	var first time.Time
	note := func(key string, v Verdict, at time.Time) {
		d := &trueDecision{key: key, verdict: v, at: at}
		if old := c.decided[key]; old != nil && old.early {
			d = old
		}
		all[key] = d
		if d.verdict == Bad && (!bad || d.at.Before(first)) {
			bad, first = true, d.at
		}
		unknown = unknown || d.verdict == UnknownKept
	}
	conditions := func(o Objective, v Verdict) Verdict {
		if v == NotCounted {
			return v
		}
		open := false
		for _, w := range o.When {
			n := map[Quantity]int64{InputTokens: f.Input, OutputTokens: f.Output}[w.Quantity]
			if n > w.AtMost {
				return NotCounted
			}
			open = open || n < 0
		}
		if open {
			return UnknownKept
		}
		return v
	}
	for i, o := range c.objectives {
		if !o.Number.Timed() {
			continue
		}
		v, at := r.timed(c, o, f)
		if len(o.When) > 0 {
			v, at = conditions(o, v), f.Ended
		}
		note(c.keys[i], v, at)
	}
	kept := map[Ending]Verdict{Answered: Good, Failed: Bad, Excused: NotCounted, Left: NotCounted}[f.Ending]
	if f.Ending == Left && bad {
		kept = Bad
	}
	missed, since := bad, first
	for i, o := range c.objectives {
		if o.Number == Success {
			note(c.keys[i], conditions(o, kept), f.Ended)
		}
	}
	if kept == Bad && !missed {
		since = f.Ended
	} else if kept == Bad && f.Ended.Before(since) {
		since = f.Ended
	}
	for i, o := range c.objectives {
		if o.Number != Goodput {
			continue
		}
		v, at := Good, f.Ended
		switch {
		case missed || kept == Bad:
			v, at = Bad, since
		case kept == NotCounted:
			v = NotCounted
		case unknown:
			v = UnknownKept
		}
		if len(o.When) > 0 {
			v, at = conditions(o, v), f.Ended
		}
		note(c.keys[i], v, at)
	}
	return all
}

// timed judges an objective about a time by the facts.
func (r *reference) timed(c *trueCall, o Objective, f *Facts) (Verdict, time.Time) {
	v := f.Values[o.Number]
	base, known, came := c.received, true, c.told.token
	switch o.Number {
	case TTFTUpstream:
		base, known = c.sentAt, c.told.sent && !c.noSender
	case TTFTVisible:
		came = c.told.visible
	}
	switch o.Number {
	case TTFT, TTFTUpstream, TTFTVisible, E2E:
		if !known {
			break
		}
		if v.kind == exact && v.d <= o.Threshold {
			return Good, base.Add(v.d)
		}
		if v.kind == exact || (o.Number == E2E || c.streamed && !came) && f.Ended.After(base.Add(o.Threshold)) {
			return Bad, base.Add(o.Threshold)
		}
	case Queue:
		left := f.Ended
		if c.told.admitted {
			left = c.admitted
		}
		if c.told.queued && left.After(c.bodyRead.Add(o.Threshold)) {
			return Bad, c.bodyRead.Add(o.Threshold)
		}
	}
	verdict := v.Against(o.Threshold)
	if w := f.Values[o.Fallback].Against(o.Threshold); verdict == UnknownKept && o.Fallback != o.Number && (w == Good || w == Bad) {
		verdict = w
	}
	return verdict, f.Ended
}

// end judges the rest.
func (r *reference) end(c *trueCall) {
	if c.facts.Ending == Answered && c.model != "" {
		r.proven[c.model] = true
	}
	if _, ok := r.class(c.class); !ok || c.dead {
		return
	}
	r.join(c)
	for key, d := range r.final(c, &c.facts) {
		r.decide(c, key, d.verdict, d.at, false)
	}
	if c.tally != nil {
		c.tally.ended, c.tally.input, c.tally.output = minuteOf(c.facts.Ended), c.facts.Input, c.facts.Output
	}
}

// correct judges anew by other facts.
func (r *reference) correct(c *trueCall) {
	for key, d := range r.final(c, &c.corrected) {
		old := c.decided[key]
		if old == nil || old.early || d.verdict == UnknownKept && old.verdict != NotCounted {
			continue
		}
		if old.verdict == NotCounted {
			old.at = c.facts.Ended
		}
		old.verdict = d.verdict
	}
	if c.tally != nil {
		c.tally.input, c.tally.output = c.corrected.Input, c.corrected.Output
	}
}

// forget drops a call.
func (r *reference) forget(c *trueCall) {
	r.calls = slices.DeleteFunc(r.calls, func(d *trueCall) bool { return d == c })
	r.current = slices.DeleteFunc(r.current, func(d trueRow) bool { return d.call == c })
}

// reload drops the counts of objectives that are gone, and all that classes had that are.
func (r *reference) reload(config Config) {
	r.configure(config)
	r.calls = slices.DeleteFunc(r.calls, func(c *trueCall) bool {
		_, ok := r.class(c.class)
		c.dead = c.dead || !ok
		return c.dead
	})
	r.current = slices.DeleteFunc(r.current, func(d trueRow) bool {
		return !slices.Contains(r.keys[d.class], d.key)
	})
}
