package saturation

import (
	"fmt"
	"math"
)

// DefaultHeadroom is the share of the last good load that is left free unless
// told otherwise: for bursts, longer prompts than were measured, and a replica less.
const DefaultHeadroom = 0.25

// headroom returns the share to leave free; one outside 0–1 counts as none given.
func (o Options) headroom() float64 {
	if o.Headroom > 0 && o.Headroom < 1 {
		return o.Headroom
	}
	return DefaultHeadroom
}

// recommend takes the headroom off a load: down to a whole number of calls and
// at least 1, or to three digits of a rate.
func (o Options) recommend(unit Unit, load float64) float64 {
	v := load * (1 - o.headroom()) * (1 + 1e-12) // 18 that came out as 17.999999999999996 is 18
	if unit == Rate {
		return digits(v, math.Floor)
	}
	return max(1, math.Floor(v))
}

// atLeast says so where the least setting stands for a lower one.
func (o Options) atLeast(unit Unit, load float64) string {
	if unit != Rate && load*(1-o.headroom()) < 1 {
		return ", and at least 1"
	}
	return ""
}

// promise writes the sentence that can be said in public of the recommended
// load: figures of the last good step, which carries more, rounded up; "" when it knows
// none. The two figures are two promises: each holds for 95 % of calls, not both for the
// same ones.
func promise(unit Unit, good Step, load float64, o Options) string {
	part := func(got *float64, goal float64) string {
		switch {
		case got == nil:
			return ""
		case goal > 0:
			return fmt.Sprintf("%s (measured: %s)", span(goal), spanUp(*got))
		}
		return spanUp(*got)
	}
	first, pace := part(ttft(good), milliseconds(o.TTFT)), part(tpot(good), milliseconds(o.TPOT))
	var text string
	switch {
	case first == "" && pace == "":
		return ""
	case pace == "":
		text = "95 % of calls get their first token within " + first
	case first == "":
		text = "95 % of calls get a token every " + pace + " or faster"
	default:
		text = "95 % of calls get their first token within " + first + ", and 95 % then a token every " + pace + " or faster"
	}
	switch {
	case unit == Rate:
		return text + ", at up to " + plain(load) + " calls a second."
	case load == 1:
		return text + ", at one call at a time."
	}
	return text + ", at up to " + plain(load) + " concurrent calls."
}
