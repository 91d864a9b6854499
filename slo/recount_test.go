package slo

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

// outside returns the minutes of a label that are outside the envelope.
func (r *reference) outside(class Class, label string) map[int64]bool {
	type sums struct {
		received      int64
		known, within [MaxTerms]int64
	}
	minutes := make(map[int64]*sums)
	at := func(m int64) *sums {
		if minutes[m] == nil {
			minutes[m] = new(sums)
		}
		return minutes[m]
	}
	for _, c := range r.calls {
		if c.class != class.Name || c.label != label || c.tally == nil {
			continue
		}
		at(c.tally.received).received++
		for i, term := range class.Valid.Terms {
			n := c.tally.input
			if term.Quantity == OutputTokens {
				n = c.tally.output
			}
			if n >= 0 && c.tally.ended != math.MinInt64 {
				at(c.tally.ended).known[i]++
				if n <= term.AtMost {
					at(c.tally.ended).within[i]++
				}
			}
		}
	}
	out := make(map[int64]bool)
	for m, s := range minutes {
		if class.Valid.CallsPerMinute > 0 && s.received > class.Valid.CallsPerMinute {
			out[m] = true
		}
		for i, term := range class.Valid.Terms {
			if s.known[i] > 0 && float64(s.within[i])/float64(s.known[i]) < float64(term.Target)/million-1e-12 {
				out[m] = true
			}
		}
	}
	return out
}

// sums are what one objective has of one model, or of all.
type sums struct {
	in, out Counts
	windows [len(burnWindows)]Counts
	some    bool // there is a count in the period
}

// check compares a status with what is recomputed.
func (r *reference) check(t *testing.T, now time.Time, s Status) {
	t.Helper()
	type entry struct{ class, label, key string }
	all := make(map[entry]*sums)
	outside := make(map[entry]map[int64]bool)
	minute, from := minuteOf(now), minuteOf(s.Period.From)
	for _, class := range r.config.Classes {
		labels := map[string]bool{}
		for _, c := range r.calls {
			if c.class == class.Name && c.label != "" {
				labels[c.label] = true
			}
		}
		for label := range labels {
			outside[entry{class.Name, label, ""}] = r.outside(class, label)
		}
	}
	for _, row := range r.current {
		m := minuteOf(row.d.at)
		if m > minute || row.d.verdict == NotCounted {
			continue
		}
		out := outside[entry{row.class, row.label, ""}][m]
		for _, label := range []string{AllModels, row.label} {
			e := entry{row.class, label, row.key}
			if all[e] == nil {
				all[e] = new(sums)
			}
			all[e].add(m, minute, from, out, row.d.verdict)
		}
	}
	for i := range s.Objectives {
		o := &s.Objectives[i]
		var minutes int64
		for e, set := range outside {
			if e.class != o.Class || o.Model != AllModels && e.label != o.Model {
				continue
			}
			for m := range set {
				if m <= minute && m >= from {
					minutes++
				}
			}
		}
		class, _ := r.class(o.Class)
		e := entry{o.Class, o.Model, r.keys[o.Class][slices.IndexFunc(class.Objectives, func(p Objective) bool { return p.Name == o.Objective.Name })]}
		want := all[e]
		if want == nil {
			want = new(sums)
		}
		want.check(t, now, o, minutes)
		want.some = false
	}
	for e, n := range all {
		if n.some && e.label != AllModels {
			t.Fatalf("at %s: %s %s %s has counts and is not in the status", now, e.class, e.label, e.key)
		}
	}
}

func (n *sums) add(m, minute, from int64, out bool, v Verdict) {
	if m >= from {
		n.some = true
		if out {
			add(&n.out, v)
		} else {
			add(&n.in, v)
		}
	}
	for i, w := range burnWindows {
		if m > minute-w && !out {
			add(&n.windows[i], v)
		}
	}
}

func (n *sums) check(t *testing.T, now time.Time, o *ObjectiveStatus, outMinutes int64) {
	t.Helper()
	in, out, windows := n.in, n.out, n.windows
	name := fmt.Sprintf("%s/%s/%s at %s", o.Class, o.Model, o.Text, now)
	if o.Counts != in || o.Outside != out {
		t.Fatalf("%s: counts %+v and outside %+v, want %+v and %+v", name, o.Counts, o.Outside, in, out)
	}
	if o.OutsideMinutes != outMinutes {
		t.Fatalf("%s: %d minutes outside, want %d", name, o.OutsideMinutes, outMinutes)
	}
	for i, w := range windows {
		if o.Burn[i].Counts != w {
			t.Fatalf("%s: window %s: %+v, want %+v", name, o.Burn[i].Window, o.Burn[i].Counts, w)
		}
		if (o.Burn[i].Rate == nil) != (w.All() == 0) || w.All() > 0 && !near(*o.Burn[i].Rate, float64(w.Bad)/float64(w.All())/(1-o.Objective.Target.Share())) {
			t.Fatalf("%s: window %s: rate %v", name, o.Burn[i].Window, o.Burn[i].Rate)
		}
	}
	if n := in.Total(); n > 0 {
		if *o.Compliance != float64(in.Good)/float64(n) {
			t.Fatalf("%s: compliance %v", name, *o.Compliance)
		}
	} else if o.Compliance != nil {
		t.Fatalf("%s: compliance without known calls: %+v", name, o)
	}
	if n := in.All(); n > 0 {
		if !near(*o.Budget.Consumed, float64(in.Bad)/(float64(n)*(1-o.Objective.Target.Share()))) {
			t.Fatalf("%s: consumed %v", name, *o.Budget.Consumed)
		}
	} else if o.Budget.Consumed != nil || o.Budget.State != StateOK {
		t.Fatalf("%s: figures without calls: %+v", name, o)
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(1, math.Abs(b)) }

func add(c *Counts, v Verdict) {
	switch v {
	case Good:
		c.Good++
	case Bad:
		c.Bad++
	case UnknownKept:
		c.Unknown++
	}
}
