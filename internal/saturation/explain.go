package saturation

import (
	"fmt"
	"strings"
)

// between says what happened from step i to step i+1, in figures.
func (c *curve) between(i int) string {
	a, b := c.steps[i], c.steps[i+1]
	var t strings.Builder
	fmt.Fprintf(&t, "from %s to %s the load %s, %s %s (%s → %s)", c.at(a.Load), c.at(b.Load), changed(a.Load, b.Load),
		c.figure, changed(c.through[i], c.through[i+1]), c.amount(c.through[i]), c.amount(c.through[i+1]))
	for _, f := range []struct {
		name   string
		before *float64
		now    *float64
	}{{"TTFT", ttft(a), ttft(b)}, {"TPOT", tpot(a), tpot(b)}} {
		if f.before != nil && f.now != nil {
			fmt.Fprintf(&t, ", %s p95 %s → %s", f.name, span(*f.before), span(*f.now))
		}
	}
	return t.String()
}

// whyKnee says in figures why the knee lies behind step last.
func (c *curve) whyKnee(last int) []string {
	if last < 0 {
		return c.whyFirst()
	}
	a, b := c.steps[last], c.steps[last+1]
	reasons := []string{fmt.Sprintf("The knee lies between %s and %s: %s.", c.at(a.Load), c.at(b.Load), c.between(last))}
	if last > 0 {
		reasons = append(reasons, fmt.Sprintf("Before it, %s.", c.between(last-1)))
	} else if a.Load > 1 || c.unit == Rate {
		reasons = append(reasons, fmt.Sprintf("It may lie lower still, for nothing was measured below %s: add lower loads to be sure.", c.at(a.Load)))
	}
	if c.unit == Rate {
		if due := c.offered(last + 1); b.Achieved < keepsUp*due {
			reasons = append(reasons, fmt.Sprintf("Of %s offered, %s were achieved (%.0f %%), so calls pile up.", c.at(due), c.at(b.Achieved), 100*b.Achieved/due))
		} else {
			reasons = append(reasons, "From there on latency rises faster than the rate, which is how a queue grows.")
		}
		return reasons
	}
	// Little's law: what the mean call takes, waiting included.
	if b.Achieved > 0 && a.Achieved > 0 {
		reasons = append(reasons, fmt.Sprintf("By Little's law the mean call took %s at %s and takes %s at %s: what is added waits.",
			span(1000*a.Load/a.Achieved), c.at(a.Load), span(1000*b.Load/b.Achieved), c.at(b.Load)))
	}
	return append(reasons, c.unslowed(last)...)
}

// whyFirst says why even the first step is beyond the knee.
func (c *curve) whyFirst() []string {
	first := c.steps[0]
	if c.unit == Rate {
		text := fmt.Sprintf("The knee lies below %s, the lowest rate measured: of %s offered %s were achieved (%.0f %%). Run the ladder with lower rates.",
			c.at(first.Load), c.at(c.offered(0)), c.at(first.Achieved), 100*first.Achieved/c.offered(0))
		if len(c.steps) == 1 {
			text += " It is a single step: calls that still run at the end of a short measurement can look the same."
		}
		return []string{text}
	}
	return append([]string{fmt.Sprintf("The knee lies at or below %s, the lowest load measured: no higher load brought more (%s %s there, %s at the most above). Run the ladder with lower loads.",
		c.at(first.Load), c.figure, c.amount(c.through[0]), c.amount(c.highest(1)))}, c.unslowed(0)...)
}

// unslowed remarks on what keeps throughput from growing and is not a busy
// engine: calls that fail, or calls that are no slower than before.
func (c *curve) unslowed(last int) []string {
	for _, s := range c.steps[last+1:] {
		if !(s.Succeeded >= goodShare) {
			return []string{fmt.Sprintf("At %s %s %% of calls failed, so what ends the growth may be a limit before the engine: look at the kinds of failure.", c.at(s.Load), plain(100*(1-s.Succeeded)))}
		}
	}
	if last+1 >= len(c.steps) {
		return nil
	}
	a, b := c.steps[last], c.steps[len(c.steps)-1]
	knows := false
	for _, figure := range []func(Step) *float64{ttft, tpot} {
		if before, now := figure(a), figure(b); before != nil && now != nil {
			if knows = true; *now > *before*closedFall {
				return nil
			}
		}
	}
	if !knows {
		return nil
	}
	return []string{"Yet neither TTFT nor TPOT rose: what stands in the way may not be the engine but a limit before it, or the load test itself."}
}

// whyNone says that no knee was seen, and what to do.
func (c *curve) whyNone() []string {
	n := len(c.steps)
	top := c.steps[n-1].Load
	if n == 1 {
		return []string{fmt.Sprintf("One step, %s, shows no knee: measure at least three loads.", c.at(top))}
	}
	return []string{
		fmt.Sprintf("The service did not saturate: %s.", c.between(n-2)),
		fmt.Sprintf("The knee lies above %s: add higher loads, such as %s and %s.", c.at(top), c.at(2*top), c.at(4*top)),
	}
}
