package saturation

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// What Verdict.Say may hold.
const (
	Add          = "add"          // the safe rate lies below the target
	Enough       = "enough"       // it lies between the target and one and a half times that
	Shrink       = "shrink"       // it is at least one and a half times the target
	Undetermined = "undetermined" // it cannot be told
)

const (
	// allowance is the share of the objective within which the TTFT p99 of a safe
	// rate stays: the rest is for what the measurement did not meet.
	allowance = 0.8
	// roomy is the multiple of the target from which on capacity can shrink.
	roomy = 1.5
	// carried is the share of an offered rate that must be achieved for a stair to
	// show anything.
	carried = 0.9
)

// Judge says what a staircase shows of a target rate, in calls a second. A rate is
// safe when its TTFT p99 stayed within 80 % of the objective and at most 1 %
// of its calls failed, and so did all lower ones. Windows may come in any order.
//
// A window that is distorted, whose TTFT p99 is not known, or of whose rate less than
// 90 % was achieved though no limit was passed, shows nothing, and neither do those above it. The
// verdict is undetermined when the safe rate lies below the target without a
// limit above it having been seen, and without a target, an objective or windows.
// Reasons are never empty.
func Judge(target float64, objective time.Duration, windows []Window) Verdict {
	v := Verdict{Target: target, Objective: milliseconds(objective), Say: Undetermined}
	switch {
	case !positive(target):
		v.Target = 0
		v.Reasons = []string{"There is no target to judge by: give the rate that the service must carry, in calls a second."}
		return v
	case objective <= 0:
		v.Objective = 0
		v.Reasons = []string{"There is no objective to judge by: give the time within which the first token must come, such as 2s."}
		return v
	case len(windows) == 0:
		v.Reasons = []string{"Nothing was measured: run the staircase, from half of the target upwards."}
		return v
	}
	// Of several stairs at one rate those that did not keep it come first, so
	// that the rate is safe only if all kept it.
	stairs := make([]stair, len(windows))
	for i, w := range windows {
		stairs[i] = v.step(w)
	}
	slices.SortStableFunc(stairs, func(a, b stair) int {
		return cmp.Or(cmp.Compare(a.Rate, b.Rate), cmp.Compare(a.rank(), b.rank()))
	})
	ends := v.climb(stairs)
	v.Say = v.verdict()
	v.Reasons = append([]string{v.why(stairs)}, ends...)
	return v
}

// stair is a window and why it was not kept, "" if it was; over is whether a limit
// was passed, so that it is known not to be safe.
type stair struct {
	Window
	end  string
	over bool
}

func (s stair) rank() int {
	if s.end != "" {
		return 0
	}
	return 1
}

// step judges one window by itself.
func (v *Verdict) step(w Window) stair {
	limit := allowance * v.Objective
	at := plain(w.Rate) + "/s"
	p99 := known(w.TTFTP99)
	switch {
	case !positive(w.Rate):
		return stair{w, "A stair without a rate shows nothing.", false}
	case w.Distorted:
		return stair{w, fmt.Sprintf("At %s the load test itself was too slow, so this stair and those above show nothing: run it from a machine with more to spare.", at), false}
	case !(w.Succeeded >= goodShare):
		return stair{w, fmt.Sprintf("At %s %s %% of calls failed, and 1 %% is the most.", at, plain(100*(1-w.Succeeded))), true}
	case p99 == nil:
		return stair{w, fmt.Sprintf("At %s the TTFT p99 is not known: measure with streamed answers.", at), false}
	case *p99 > limit:
		return stair{w, fmt.Sprintf("At %s the TTFT p99 was %s, above %s, which is 80 %% of the objective of %s.", at, span(*p99), span(limit), span(v.Objective)), true}
	case !(w.Achieved >= carried*w.Rate):
		return stair{w, fmt.Sprintf("At %s only %s/s came to a good end, though the TTFT p99 was kept: the load test held calls back by its own bound, or the stair is too short for calls this long. Raise the bound or lengthen the stairs.",
			at, plain(w.Achieved)), false}
	}
	return stair{Window: w}
}

// climb goes up the stairs as far as they were kept, sets Safe and Reached, and
// says in sentences where it ended.
func (v *Verdict) climb(stairs []stair) []string {
	end := "The 80 % were not passed on any stair, so that the safe rate may be higher."
	var last *stair
	for i := range stairs {
		if s := &stairs[i]; s.end != "" {
			end, v.Reached = s.end, s.over
			break
		}
		v.Safe, last = stairs[i].Rate, &stairs[i]
	}
	if last == nil {
		return []string{end}
	}
	return []string{fmt.Sprintf("At %s/s and below the TTFT p99 stayed within 80 %% of the objective of %s: at %s/s it was %s, which is %.0f %% of it.",
		plain(last.Rate), span(v.Objective), plain(last.Rate), span(*last.TTFTP99), 100**last.TTFTP99/v.Objective), end}
}

// near spares a comparison of rates from what rounding did to them.
const near = 1 - 1e-9

func (v *Verdict) verdict() string {
	switch {
	case v.Safe >= roomy*v.Target*near:
		return Shrink
	case v.Safe >= v.Target*near:
		return Enough
	case v.Reached:
		return Add
	}
	return Undetermined
}

// why says the verdict in a sentence with its headroom.
func (v *Verdict) why(stairs []stair) string {
	target, safe := plain(v.Target)+"/s", plain(v.Safe)+"/s"
	switch v.Say {
	case Shrink:
		return fmt.Sprintf("Capacity can shrink: the safe rate of %s is %s times the target of %s, which needs %.0f %% of it. Keep a replica in reserve all the same.",
			safe, plain(v.Safe/v.Target), target, math.Ceil(100*v.Target/v.Safe*near))
	case Enough:
		text := fmt.Sprintf("Capacity is enough: the safe rate of %s leaves %.0f %% above the target of %s.", safe, math.Floor(100*(v.Safe/v.Target-1)/near), target)
		if !v.Reached {
			text += fmt.Sprintf(" Whether it could shrink would show at %s/s.", plain(roomy*v.Target))
		}
		return text
	case Add:
		if v.Safe == 0 {
			return fmt.Sprintf("Capacity must be added: not even %s/s is safe, and the target is %s.", plain(stairs[0].Rate), target)
		}
		text := fmt.Sprintf("Capacity must be added: the safe rate of %s is %.0f %% of the target of %s, which needs %s times the capacity if it grows in proportion.",
			safe, math.Floor(100*v.Safe/v.Target/near), target, plain(digits(v.Target/v.Safe, math.Ceil)))
		if next := above(stairs, v.Safe); next > v.Target {
			text += fmt.Sprintf(" The limit lies between %s and %s/s, so it may be close: measure the target itself to be sure.", safe, plain(next))
		}
		return text
	}
	return fmt.Sprintf("It cannot be told: up to %s was shown to be safe, less than the target of %s, and no limit above it was seen. Run the staircase to the target at least.", safe, target)
}

// above returns the lowest rate greater than rate, 0 when there is none.
func above(stairs []stair, rate float64) float64 {
	for _, w := range stairs {
		if w.Rate > rate {
			return w.Rate
		}
	}
	return 0
}
