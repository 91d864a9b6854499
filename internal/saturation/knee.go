package saturation

import (
	"fmt"
	"math"
)

// What tells a knee from noise: repeats of a run differ by a few per cent, so that
// power, with throughput squared in it, must have fallen by more than a tenth. A
// p95 of latencies scatters more.
const (
	closedFall = 1.1
	openFall   = 1.25
	// capped is the share of the greatest power that the cap of a summit has at least.
	capped = 0.8
	// keepsUp is the share of an offered rate that must be achieved. A rate that is
	// not achieved must show in the latency as well, grown by slower, for calls
	// still running when the measurement ends look the same.
	keepsUp = 0.95
	slower  = 1.5
	// A first step beyond which throughput rises by no more than this share is
	// past the knee itself.
	flat = 0.08
	// goodShare is the least share of calls that succeed on a good step.
	goodShare = 0.99
)

// FindKnee finds the load at which throughput stops growing and waiting begins. Steps
// may come in any order; distorted ones are left out, and of several at one load the
// last counts. Throughput is TPM where every step knows it, else Achieved.
//
// In a closed loop (Concurrency) the knee lies behind the step of greatest power, or
// behind the middle of several with nearly as much, provided that power then falls by more
// than noise does: single steps that stand out are no knee. In an open loop (Rate) it lies
// behind the last step before the service no longer achieves 95 % of what is offered and is
// slower for it, or behind the step from which latency (TTFT p95, or TPOT p95 where that is
// not known) rises faster than the rate, whichever comes first. For this Achieved must be
// the rate during the offering, not that of a run with the time to drain in it; it is held
// against Offered.
//
// When throughput is no higher anywhere than on the first step, the knee lies
// before it: After is 0, Before is that step, and no step is good. Only at a concurrency
// of 1 nothing can wait, and it is good. Without a knee, After is the highest load.
//
// LastGood is the highest load not beyond the knee up to which every step
// kept the objectives at p95 and had at most 1 % failures. An objective whose figure is not
// known is not kept. Of fewer than two steps that can be used nothing is
// recommended and nothing promised. Reasons are never empty.
func FindKnee(unit Unit, steps []Step, o Options) Knee {
	c := newCurve(unit, steps)
	k := Knee{Unit: unit}
	top := 0.0
	for _, t := range c.through {
		top = max(top, t)
	}
	if top == 0 {
		why := "No step of the ladder can be used" + c.again()
		if len(c.steps) > 0 {
			why = "No call succeeded on any step: run weir doctor against the endpoint first."
		}
		k.Reasons = append([]string{why}, c.left...)
		return k
	}
	last, saturated := c.knee()
	k.Saturated = saturated
	if last >= 0 {
		k.After = c.steps[last].Load
	}
	if saturated {
		k.Before = c.steps[last+1].Load
		k.Reasons = c.whyKnee(last)
	} else {
		k.Reasons = c.whyNone()
	}

	good, why := c.good(last, o)
	if why != "" {
		k.Reasons = append(k.Reasons, why)
	}
	if good >= 0 {
		k.LastGood = c.steps[good].Load
	}
	switch {
	case good >= 0 && len(c.steps) < 2:
		k.Reasons = append(k.Reasons, "One usable step is too few to recommend a load"+c.again())
	case good >= 0:
		k.Recommended = o.recommend(unit, k.LastGood)
		k.Reasons = append(k.Reasons, fmt.Sprintf("%s is recommended: %s less %s %% of headroom%s.", upper(c.at(k.Recommended)),
			c.at(k.LastGood), plain(100*o.headroom()), o.atLeast(unit, k.LastGood)))
		k.Promise = promise(unit, c.steps[good], k.Recommended, o)
	}
	k.Reasons = append(k.Reasons, c.left...)
	return k
}

// again ends a sentence on too few usable steps with what to do about it.
func (c *curve) again() string {
	if c.spoilt > 0 {
		return ": run the ladder again on a quieter machine."
	}
	return "."
}

// knee returns the last step before the knee, -1 when the first is beyond it, and
// whether there is a knee at all; if not, the step is the highest.
func (c *curve) knee() (last int, saturated bool) {
	power := c.power()
	fall := closedFall
	if c.unit == Rate {
		fall = openFall
	}
	last, saturated = len(c.steps)-1, false
	if power != nil {
		greatest, summit := c.summit(power)
		for _, p := range power[greatest:] {
			if p*fall < power[greatest] {
				last, saturated = min(summit, len(c.steps)-2), true
			}
		}
	}
	if c.unit == Rate {
		for i := range c.steps[:last+1] {
			if c.overloaded(i) {
				last, saturated = i-1, true
				break
			}
		}
		return last, saturated
	}
	if saturated && last == 0 && c.steps[0].Load > 1 && c.highest(1) <= c.through[0]*(1+flat) {
		last = -1
	}
	return last, saturated
}

// summit returns the step of greatest power, and the step nearest to the summit.
// Where a curve is round on top, noise decides which of several steps has the
// greatest. The summit is therefore the centre of gravity of its cap, the steps
// around the greatest that have at least 80 % of it, on a logarithmic scale of loads.
func (c *curve) summit(power []float64) (greatest, summit int) {
	for i, p := range power {
		if p > power[greatest] {
			greatest = i
		}
	}
	top := power[greatest]
	low, high := greatest, greatest
	for low > 0 && power[low-1] > capped*top {
		low--
	}
	for high < len(power)-1 && power[high+1] > capped*top {
		high++
	}
	x := func(i int) float64 { return math.Log(c.steps[i].Load) }
	var moment, mass float64
	for i := low; i <= high; i++ {
		// A step counts by its height above the cap's rim, and by how much of the
		// scale is its own: close to each other steps count less.
		m := (power[i]/top - capped) * (x(min(i+1, len(power)-1)) - x(max(i-1, 0)))
		moment += m * x(i)
		mass += m
	}
	summit = greatest
	if mass > 0 { // 0 where there is only one step
		for i := low; i <= high; i++ {
			if math.Abs(x(i)-moment/mass) < math.Abs(x(summit)-moment/mass) {
				summit = i
			}
		}
	}
	return greatest, summit
}

// power returns throughput divided by response time for each step, in units of no
// matter; nil if the response time is not known.
func (c *curve) power() []float64 {
	power := make([]float64, len(c.steps))
	if c.unit != Rate {
		for i, s := range c.steps {
			power[i] = c.through[i] * c.through[i] / s.Load
		}
		return power
	}
	latency := c.latency()
	if latency == nil {
		return nil
	}
	for i, s := range c.steps {
		power[i] = c.fair(i, c.through[i]) / *latency(s)
	}
	return power
}

// overloaded tells whether the service did not keep up with the rate of step i.
func (c *curve) overloaded(i int) bool {
	s := c.steps[i]
	if s.Achieved >= keepsUp*c.offered(i) {
		return false
	}
	// A higher rate of which much more was achieved shows that it could have.
	for j := i + 1; j < len(c.steps); j++ {
		if c.fair(j, c.steps[j].Achieved) > c.fair(i, s.Achieved)*closedFall {
			return false
		}
	}
	if i == 0 {
		return true // nothing below to be slower than
	}
	knows := false
	for _, figure := range []func(Step) *float64{ttft, tpot} {
		if before, now := figure(c.steps[0]), figure(s); before != nil && now != nil {
			if knows = true; *now > slower**before {
				return true
			}
		}
	}
	return !knows
}

// highest returns the highest throughput from step i on.
func (c *curve) highest(i int) float64 {
	top := 0.0
	for _, t := range c.through[i:] {
		top = max(top, t)
	}
	return top
}

// good returns the last good step up to last, -1 when there is none, and a
// sentence on what ended it before.
func (c *curve) good(last int, o Options) (int, string) {
	for i, s := range c.steps[:last+1] {
		if why := o.bad(s); why != "" {
			return i - 1, fmt.Sprintf("From %s on steps are not good: %s.", c.at(s.Load), why)
		}
	}
	return last, ""
}

// bad says why a step is not good, "" if it is.
func (o Options) bad(s Step) string {
	if !(s.Succeeded >= goodShare) {
		return fmt.Sprintf("%s %% of calls failed there, and 1 %% is the most", plain(100*(1-s.Succeeded)))
	}
	for _, goal := range []struct {
		name string
		most float64
		got  *float64
	}{
		{"TTFT", milliseconds(o.TTFT), ttft(s)},
		{"TPOT", milliseconds(o.TPOT), tpot(s)},
	} {
		switch {
		case !(goal.most > 0):
		case goal.got == nil:
			return fmt.Sprintf("the %s p95 is not known there, so the objective of %s cannot be shown to be kept", goal.name, span(goal.most))
		case *goal.got > goal.most:
			return fmt.Sprintf("the %s p95 is %s there, and the objective %s", goal.name, span(*goal.got), span(goal.most))
		}
	}
	return ""
}
