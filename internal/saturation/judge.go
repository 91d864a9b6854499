package saturation

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
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
	// drawn is the share of its rate that must have fallen due on a stair for it to
	// show anything of that rate.
	drawn = 0.8
	// mostFail is the share of calls that fail beyond which no higher stair is
	// worth its time.
	mostFail = 0.5
)

// Judge says what a staircase shows of a target rate, in calls a second. A rate is
// safe when its TTFT p99 stayed within 80 % of the objective and at most 1 %
// of its calls failed, and so did all lower ones. Windows may come in any order.
//
// A window that is distorted, whose TTFT p99 is not known, of whose rate less than
// 80 % fell due by chance, or less than 90 % of that was achieved though no limit was
// passed, shows nothing. It is passed over when
// the one above shows something, for a service that carries a higher rate carries a lower
// one; two of them in a row end the climb.
//
// The verdict is undetermined when the safe rate lies below the target without a
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
	var used []string
	for _, s := range stairs {
		if d := known(s.Delay); d != nil && *d > TolerableDelay && !s.blank() {
			used = append(used, plain(s.Rate)+"/s"+late(d, &v.Objective, "the objective"))
		}
	}
	if len(used) > 0 {
		v.Reasons = append(v.Reasons, fmt.Sprintf("Used although the load test itself was late there, by p99: %s.", strings.Join(used, ", ")))
	}
	return v
}

// Ended tells whether a staircase need not go higher, by the windows climbed so far
// in their order: the last one passed 80 % of the objective or had more than half of its
// calls fail, or the last two showed nothing.
func Ended(objective time.Duration, windows []Window) bool {
	if len(windows) == 0 {
		return false
	}
	v := Verdict{Objective: milliseconds(objective)}
	last := windows[len(windows)-1]
	if p99 := known(last.TTFTP99); p99 != nil && *p99 > allowance*v.Objective || last.Succeeded < 1-mostFail {
		return true
	}
	return len(windows) > 1 && v.step(last).blank() && v.step(windows[len(windows)-2]).blank()
}

// stair is a window and why it was not kept, "" if it was; over is whether a limit
// was passed, so that it is known not to be safe.
type stair struct {
	Window
	end  string
	over bool
}

// blank tells whether the stair showed nothing.
func (s stair) blank() bool { return s.end != "" && !s.over }

// rank puts what was passed before what shows nothing, and both before what was kept.
func (s stair) rank() int {
	switch {
	case s.over:
		return 0
	case s.blank():
		return 1
	}
	return 2
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
		return stair{w, fmt.Sprintf("At %s the load test itself was too late%s, so that stair shows nothing: run it from a machine with more to spare.", at, late(w.Delay, &v.Objective, "the objective")), false}
	case !(w.Succeeded >= goodShare):
		return stair{w, fmt.Sprintf("At %s %s %% of calls failed, and 1 %% is the most.", at, plain(100*(1-w.Succeeded))), true}
	case p99 == nil:
		return stair{w, fmt.Sprintf("At %s the TTFT p99 is not known: measure with streamed answers.", at), false}
	case *p99 > limit:
		return stair{w, fmt.Sprintf("At %s the TTFT p99 was %s, above %s, which is 80 %% of the objective of %s.", at, span(*p99), span(limit), span(v.Objective)), true}
	}
	// What ended in time, the drain included, is a bound from below.
	got, due := w.PerSecond, w.offered()
	if w.Achieved != nil {
		got = *w.Achieved
	}
	switch {
	case due < drawn*w.Rate:
		return stair{w, fmt.Sprintf("At %s chance made only %s/s fall due, so that stair shows nothing of its rate: lengthen the stairs, or use a constant rate.", at, plain(due)), false}
	case got >= carried*due:
	case w.Achieved == nil:
		return stair{w, fmt.Sprintf("At %s it cannot be told which rate was achieved, for calls take too long beside the stair: lengthen the stairs.", at), false}
	default:
		return stair{w, fmt.Sprintf("At %s only %s/s of %s/s offered came to a good end, though the TTFT p99 was kept: the load test held calls back by its own bound, or the stair is too short for calls this long. Raise the bound or lengthen the stairs.",
			at, plain(got), plain(due)), false}
	}
	return stair{Window: w}
}

// climb goes up the stairs as far as they were kept, sets Safe and Reached, and
// says in sentences where it ended.
func (v *Verdict) climb(stairs []stair) []string {
	var last *stair
	var says []string
	end, blanks := "The 80 % were not passed on any stair, so that the safe rate may be higher.", 0
climb:
	for i := range stairs {
		switch s := &stairs[i]; {
		case s.over:
			end, v.Reached = s.end, true
			break climb
		case s.blank():
			says = append(says, s.end)
			if blanks++; blanks == 2 {
				end = "Two stairs in a row showed nothing, so the climb ended there."
				break climb
			}
		default:
			v.Safe, last, blanks = s.Rate, s, 0
		}
	}
	if last != nil {
		says = append([]string{fmt.Sprintf("At %s/s and below the TTFT p99 stayed within 80 %% of the objective of %s: at %s/s it was %s, which is %.0f %% of it.",
			plain(last.Rate), span(v.Objective), plain(last.Rate), span(*last.TTFTP99), 100**last.TTFTP99/v.Objective)}, says...)
	}
	return append(says, end)
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
			over := stairs[slices.IndexFunc(stairs, func(s stair) bool { return s.over })] // there is one, or it would not be Add
			text := fmt.Sprintf("Capacity must be added: even %s is too much.", v.share(over.Rate))
			if over.Rate > v.Target {
				text += " No lower rate was shown to be safe, so the limit may be close: measure the target itself to be sure."
			}
			return text
		}
		text := fmt.Sprintf("Capacity must be added: the safe rate of %s is %.0f %% of the target of %s, which needs %s times the capacity if it grows in proportion.",
			safe, math.Floor(100*v.Safe/v.Target/near), target, plain(digits(v.Target/v.Safe, math.Ceil)))
		if next := limit(stairs, v.Safe); next > v.Target {
			text += fmt.Sprintf(" The limit lies between %s and %s/s, so it may be close: measure the target itself to be sure.", safe, plain(next))
		}
		return text
	}
	text := fmt.Sprintf("It cannot be told: up to %s was shown to be safe, less than the target of %s, and no limit above it was seen.", safe, target)
	if v.Safe == 0 {
		text = fmt.Sprintf("It cannot be told: even %s is unmeasured.", v.share(stairs[0].Rate))
	}
	// Where it got there, or ended on a stair that showed nothing, what is said of the
	// stairs says what to do instead.
	if top := stairs[len(stairs)-1]; top.Rate < v.Target*near && !top.blank() {
		text += " Run the staircase to the target at least."
	}
	return text
}

// share names a rate as a share of the target.
func (v *Verdict) share(rate float64) string {
	target := plain(v.Target) + "/s"
	switch share := rate / v.Target; {
	case !positive(share):
		return "the lowest stair"
	case math.Abs(share-0.5) < 0.005:
		return fmt.Sprintf("%s/s, half of the target of %s,", plain(rate), target)
	default:
		return fmt.Sprintf("%s/s, %.0f %% of the target of %s,", plain(rate), 100*share, target)
	}
}

// limit returns the lowest rate above another on which a limit was passed, 0 when there
// is none.
func limit(stairs []stair, rate float64) float64 {
	for _, s := range stairs {
		if s.over && s.Rate > rate {
			return s.Rate
		}
	}
	return 0
}
