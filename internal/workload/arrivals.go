package workload

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bounds of what arrivals may ask for: beyond them is a slip of the pen.
const (
	MaxConcurrency = 100_000 // calls at a time, and calls of a burst
	MaxRate        = 1e6     // calls a second, and the factor of a replay
	MinRate        = 1e-6    // the same: a call in eleven days
)

const arrivalsExample = `write "concurrency 8", "rate 4/s", "rate 240/min", "poisson 4/s", "constant 4/s", "burst 10 at 2/s" or "replay 2x"`

// Validate tells whether calls can be sent that way. The zero value cannot: it
// has no shape.
func (a Arrivals) Validate() error {
	rate := a.Rate
	switch a.Shape {
	case Closed:
		if a.Concurrency < 1 {
			return errors.New(`arrivals: a closed loop needs a concurrency of at least 1, as in "concurrency 8"`)
		}
		if a.Rate != 0 {
			return errors.New("arrivals: a closed loop has no rate: the end of a call brings the next; for a rate use poisson or constant")
		}
		rate = 1
	case Poisson, Constant, Burst:
	case Replay:
		if rate == 0 {
			rate = 1
		}
	case "":
		return fmt.Errorf("arrivals: no shape given: %s", arrivalsExample)
	default:
		return fmt.Errorf("arrivals: unknown shape: %s", arrivalsExample)
	}
	if !(rate >= MinRate && rate <= MaxRate) { // a NaN too
		return fmt.Errorf("arrivals: the rate of %s must lie between %g and %g calls a second", a.Shape, MinRate, float64(MaxRate))
	}
	if a.Concurrency < 0 || a.Concurrency > MaxConcurrency {
		return fmt.Errorf("arrivals: a concurrency must lie between 1 and %d", MaxConcurrency)
	}
	if a.Shape == Burst && (a.Group < 1 || a.Group > MaxConcurrency) {
		return fmt.Errorf(`arrivals: a burst must have between 1 and %d calls, as in "burst 10 at 2/s"`, MaxConcurrency)
	}
	if a.Shape != Burst && a.Group != 0 {
		return fmt.Errorf("arrivals: only a burst has a group, not %s", a.Shape)
	}
	return nil
}

// Open tells whether calls come by the clock rather than when another ends.
func (a Arrivals) Open() bool { return a.Shape != Closed }

// String writes arrivals as ParseArrivals reads them.
func (a Arrivals) String() string {
	var b strings.Builder
	switch a.Shape {
	case Closed:
		return "concurrency " + strconv.Itoa(a.Concurrency)
	case Replay:
		b.WriteString("replay")
		if a.Rate != 0 {
			b.WriteString(" " + number(a.Rate) + "x")
		}
	case Burst:
		fmt.Fprintf(&b, "burst %d at %s", a.Group, rateText(a.Rate))
	default:
		fmt.Fprintf(&b, "%s %s", a.Shape, rateText(a.Rate))
	}
	if a.Concurrency != 0 {
		fmt.Fprintf(&b, " max %d", a.Concurrency)
	}
	return b.String()
}

// ParseArrivals reads arrivals as people write them:
//
//	concurrency 8      a closed loop of 8 calls at a time
//	rate 4/s           the same as poisson 4/s
//	poisson 4/s        independent arrivals, 4 calls a second on average
//	constant 240/min   one call every 250 ms
//	burst 10 at 2/s    10 calls at once every 5 seconds: 2 calls a second on average
//	replay, replay 2x  the arrivals of a trace, or the same twice as fast
//
// Rates are per s, min or h. Behind all but the first, "max 64" bounds the calls
// in flight.
func ParseArrivals(text string) (Arrivals, error) {
	words := strings.Fields(text)
	fail := func(why string) (Arrivals, error) {
		return Arrivals{}, fmt.Errorf("read arrivals: %s: %s", why, arrivalsExample)
	}
	if len(words) == 0 {
		return fail("nothing there")
	}
	var a Arrivals
	if n := len(words); n > 3 && words[n-2] == "max" || n == 3 && words[0] == string(Replay) && words[1] == "max" {
		most, err := strconv.Atoi(words[n-1])
		if err != nil || most < 1 {
			return fail("behind max goes the number of calls in flight")
		}
		a.Concurrency, words = most, words[:n-2]
	}
	kind, rest := words[0], words[1:]
	ok := true
	switch {
	case kind == "concurrency" && len(rest) == 1 && a.Concurrency == 0:
		n, err := strconv.Atoi(rest[0])
		a.Shape, a.Concurrency, ok = Closed, n, err == nil
	case (kind == "rate" || kind == string(Poisson)) && len(rest) == 1:
		a.Shape = Poisson
		a.Rate, ok = parseRate(rest[0])
	case kind == string(Constant) && len(rest) == 1:
		a.Shape = Constant
		a.Rate, ok = parseRate(rest[0])
	case kind == string(Burst) && len(rest) == 3 && rest[1] == "at":
		n, err := strconv.Atoi(rest[0])
		a.Shape, a.Group = Burst, n
		a.Rate, ok = parseRate(rest[2])
		ok = ok && err == nil
	case kind == string(Replay) && len(rest) == 0:
		a.Shape = Replay
	case kind == string(Replay) && len(rest) == 1 && strings.HasSuffix(rest[0], "x"):
		a.Shape = Replay
		a.Rate, ok = parseNumber(strings.TrimSuffix(rest[0], "x"))
		ok = ok && a.Rate != 0
	default:
		return fail("not a form of it")
	}
	if !ok {
		return fail("not a number where one belongs")
	}
	if err := a.Validate(); err != nil {
		return Arrivals{}, fmt.Errorf("read %w", err)
	}
	return a, nil
}

// per are the units of a rate, in seconds.
var per = []struct {
	name    string
	seconds float64
}{{"/s", 1}, {"/min", 60}, {"/h", 3600}}

// parseRate reads "4/s" as calls a second.
func parseRate(text string) (float64, bool) {
	for _, unit := range per {
		if n, is := strings.CutSuffix(text, unit.name); is {
			v, ok := parseNumber(n)
			return v / unit.seconds, ok
		}
	}
	return 0, false
}

// rateText writes a rate per second, or by a longer unit where that is exactly the
// same number in at least three characters less.
func rateText(rate float64) string {
	best := number(rate) + "/s"
	for _, unit := range per[1:] {
		// A rate read as n a minute is n/60 rounded, so n comes back only rounded.
		n := math.Round(rate*unit.seconds*1e6) / 1e6
		if text := number(n) + unit.name; n/unit.seconds == rate && len(text)+3 <= len(best) {
			best = text
		}
	}
	return best
}

// number writes the shortest text that reads back as the same number.
func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// parseNumber reads a decimal number that is not negative, and none of the other
// forms that Go has.
func parseNumber(text string) (float64, bool) {
	if text == "" || len(text) > 40 || strings.Trim(text, "0123456789.") != "" {
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil
}
