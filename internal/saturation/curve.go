package saturation

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// curve is what a ladder measured: the usable steps by rising load.
type curve struct {
	unit  Unit
	steps []Step
	// figure names what through holds: TPM, or throughput in calls a second.
	figure  string
	through []float64 // one a step; 0 where no call succeeded
	left    []string  // sentences on what was left out
	spoilt  int       // steps left out because the client was too slow
}

func newCurve(unit Unit, steps []Step) curve {
	c := curve{unit: unit, figure: "TPM"}
	var distorted, unusable, double []string
	for _, s := range slices.SortedStableFunc(slices.Values(steps), func(a, b Step) int { return cmp.Compare(a.Load, b.Load) }) {
		switch last := len(c.steps) - 1; {
		case s.Distorted:
			distorted = append(distorted, c.at(s.Load)+late(s.Delay, s.TTFTP95, "the TTFT p95"))
		case !positive(s.Load) || s.Achieved != 0 && !positive(s.Achieved):
			unusable = append(unusable, c.at(s.Load))
		case last >= 0 && c.steps[last].Load == s.Load:
			double = append(double, c.at(s.Load))
			c.steps[last] = s
		default:
			c.steps = append(c.steps, s)
		}
	}
	for _, out := range []struct {
		loads []string
		why   string
	}{
		{distorted, "the load test itself was too slow there, so its times are not the service's"},
		{unusable, "load or throughput is not a positive number there"},
		{double, "an earlier measurement at the same load; the last one counts"},
	} {
		if len(out.loads) > 0 {
			c.left = append(c.left, fmt.Sprintf("Left out: %s (%s).", strings.Join(out.loads, ", "), out.why))
		}
	}
	c.spoilt = len(distorted)
	if used := c.bearable(); len(used) > 0 {
		c.left = append(c.left, fmt.Sprintf("Used although the load test itself was late there, by p99: %s.", strings.Join(used, ", ")))
	}
	for _, s := range c.steps {
		if s.Achieved > 0 && (s.TPM == nil || !positive(*s.TPM)) {
			c.figure = "throughput"
		}
	}
	for _, s := range c.steps {
		switch {
		case s.Achieved > 0 && c.figure == "TPM":
			c.through = append(c.through, *s.TPM)
		default:
			c.through = append(c.through, s.Achieved)
		}
	}
	return c
}

// bearable names the steps that are used though the client's delay was more than
// is always tolerated.
func (c *curve) bearable() []string {
	var used []string
	for _, s := range c.steps {
		if s.Delay != nil && *s.Delay > TolerableDelay {
			used = append(used, c.at(s.Load)+late(s.Delay, s.TTFTP95, "the TTFT p95"))
		}
	}
	return used
}

// late says of a delay how long it was, and how much of a time, in milliseconds.
func late(delay, of *float64, name string) string {
	d, t := known(delay), known(of)
	switch {
	case d == nil:
		return ""
	case t == nil:
		return " by " + span(*d)
	}
	return fmt.Sprintf(" by %s, %s %% of %s", span(*d), plain(100**d / *t), name)
}

// fair returns a figure of step i as it would have been had exactly the rate
// asked for fallen due: chance, which makes it a few calls more or less, is no
// doing of the service.
func (c *curve) fair(i int, v float64) float64 {
	s := c.steps[i]
	if o := known(s.Offered); c.unit == Rate && o != nil {
		return v * s.Load / *o
	}
	return v
}

// offered is the rate that fell due on step i.
func (c *curve) offered(i int) float64 {
	if o := known(c.steps[i].Offered); o != nil {
		return *o
	}
	return c.steps[i].Load
}

// at names a load within a sentence.
func (c *curve) at(load float64) string {
	if c.unit == Rate {
		return plain(load) + "/s"
	}
	return plain(load)
}

// amount writes a throughput with its unit.
func (c *curve) amount(v float64) string {
	if c.figure == "TPM" {
		return plain(v)
	}
	return plain(v) + "/s"
}

// latency picks the figure that stands for the response time of an open loop:
// the first of TTFT and TPOT at p95 that every step knows; nil if none is.
func (c *curve) latency() func(Step) *float64 {
	for _, figure := range []func(Step) *float64{ttft, tpot} {
		if !slices.ContainsFunc(c.steps, func(s Step) bool { return figure(s) == nil }) {
			return figure
		}
	}
	return nil
}

// ttft and tpot return a figure in milliseconds that is a positive number, or nil.
func ttft(s Step) *float64 { return known(s.TTFTP95) }
func tpot(s Step) *float64 { return known(s.TPOTP95) }

func known(v *float64) *float64 {
	if v == nil || !positive(*v) {
		return nil
	}
	return v
}

func positive(v float64) bool { return v > 0 && !math.IsInf(v, 1) }
