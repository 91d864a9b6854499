package diagnose

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/weirgate/weir/internal/call"
)

// judge applies the rules and comes to the verdict. The primary finding is the
// surest, then the one nearest to the root: a code goes before those that it may
// cause.
func (p *pair) judge(c *Comparison) {
	c.Findings = []Finding{}
	if !p.rows {
		if few := p.tooFew(); len(few) > 0 {
			c.Verdict, c.Reasons = TooFewCalls, few
			return
		}
	}
	for _, rule := range changeRules {
		for _, f := range rule(p) {
			c.Findings = append(c.Findings, *f)
		}
	}
	rank := func(f *Finding) int {
		n := changePlaces[f.Code]
		if f.Source == call.Unattributed {
			n += len(changeMeanings)
		}
		return n
	}
	slices.SortStableFunc(c.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Summary, b.Summary))
	})
	say := func(v Verdict, reasons ...string) { c.Verdict, c.Reasons = v, reasons }
	switch {
	case len(c.Findings) > 0 && c.Findings[0].Source != call.Unattributed:
		f := &c.Findings[0]
		v := Found
		if f.Code == CodeTrafficMix {
			v = NotAFault
		}
		say(v, f.Summary)
		c.Code, c.Layer = f.Code, f.Layer
		if c.Scope != nil {
			c.Reasons = append(c.Reasons, p.scoped(c.Scope))
		}
	case len(c.Findings) > 0:
		say(Undetermined, append([]string{"Nothing is certain: " + c.Findings[0].Summary}, p.open()...)...)
	case p.slower():
		say(Undetermined, append([]string{"Calls are slower, and no layer can be shown to be at fault."}, p.open()...)...)
	default:
		say(NothingFound, p.steady()...)
	}
}

func (p *pair) scoped(s *Scope) string {
	n := len(s.Names)
	name := clean(s.Names[0])
	if n > 1 {
		name = fmt.Sprintf("%s and %d more", name, n-1)
	}
	for i := range p.siblings {
		if o := &p.siblings[i]; o.Dimension == s.Dimension && !o.Changed {
			return fmt.Sprintf("Only %s %s has changed; %s, among others, has not.", s.Dimension, name, o.Name)
		}
	}
	return fmt.Sprintf("Only %s %s has changed.", s.Dimension, name)
}

// steady says that nothing is slower, in figures.
func (p *pair) steady() []string {
	text := ""
	for m := range measures {
		if p.ratios[m].IsKnown() {
			if text != "" {
				text += ", "
			}
			text += p.took(m)
		}
	}
	if text == "" {
		return []string{"There is nothing to compare: no time is known in both windows."}
	}
	reasons := []string{"Nothing is slower than it was: " + text + "."}
	if rate := by(p.b.Rate, p.a.Rate); rate.IsKnown() && rate.Or(1)*Rise < 1 {
		reasons = append(reasons, "Fewer calls come: "+p.figure("calls_per_second").arrow()+".")
	}
	return reasons
}

// open says what changed and what is missing to name the layer.
func (p *pair) open() (reasons []string) {
	for m := range measures {
		if p.trends[m] != up {
			continue
		}
		text := p.took(m)
		c := p.change[m]
		var largest *ChangePart
		for i := range c.Parts {
			if part := &c.Parts[i]; largest == nil || part.Change.Or(0) > largest.Change.Or(0) {
				largest = part
			}
		}
		if largest != nil && largest.Change.Or(0) > 0 {
			text += ": most of it is " + largest.Phase + " (" + signed(largest.Change.Or(0)) + ")"
			if largest.SourceAfter == call.Unattributed {
				text += ", which nobody splits"
			}
		}
		reasons = append(reasons, text+".")
	}
	if p.rerouted {
		reasons = append(reasons, "No upstream is slower by itself: calls went to slower ones.")
	}
	if l := p.level(p.first(), byShape); l != nil && !l.Determined {
		reasons = append(reasons, "Whether it is the traffic mix is undetermined: "+percent(l.Overlap.Or(0))+" of the calls have equals in both windows.")
	}
	if p.unsplit(p.first()) && p.trends[p.first()] == up {
		reasons = append(reasons, nextUnattributed(&group{scene: p.scene}))
	}
	if p.trends[ofTPOT] == up && len(p.clocks) == 0 && !math.IsNaN(p.decode.change) {
		reasons = append(reasons, "The GPUs' clocks are not known in both windows (the gpu option of the global block).")
	}
	return reasons
}
