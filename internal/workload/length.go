package workload

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// The kinds of Length.
const (
	KindFixed     = "fixed"
	KindUniform   = "uniform"   // every whole number from Min to Max is as likely
	KindLognormal = "lognormal" // many short, few very long, as people's prompts are
	KindTrace     = "trace"     // those of a trace, row by row
)

const lengthExample = `write "128", "uniform 64-512", "lognormal 256 sd 128 max 2048" or "trace"`

// IsNone tells whether no length is asked for.
func (l Length) IsNone() bool { return l.Kind == "" }

// Validate tells whether lengths can be drawn. The zero value is valid: there are
// none to draw.
func (l Length) Validate() error {
	if l.Min < 0 || l.Max < 0 || l.Min > MaxTokens || l.Max > MaxTokens {
		return fmt.Errorf("length: min and max must lie between 1 and %d tokens", MaxTokens)
	}
	if l.Max != 0 && l.Min > l.Max {
		return fmt.Errorf("length: min %d is above max %d", l.Min, l.Max)
	}
	switch l.Kind {
	case KindFixed:
		if !(l.Mean >= 1 && l.Mean <= MaxTokens) || l.Mean != math.Trunc(l.Mean) {
			return fmt.Errorf("length: a fixed length must be a whole number of tokens between 1 and %d", MaxTokens)
		}
		if l.Deviation != 0 || l.Min != 0 || l.Max != 0 {
			return errors.New("length: a fixed length has no deviation, min or max")
		}
	case KindUniform:
		if l.Min < 1 || l.Max < 1 {
			return errors.New(`length: uniform needs both ends, at least 1 token each, as in "uniform 64-512"`)
		}
		if l.Mean != 0 || l.Deviation != 0 {
			return errors.New("length: uniform has two ends, and no mean or deviation")
		}
	case KindLognormal:
		if !(l.Mean >= 1 && l.Mean <= MaxTokens) || !(l.Deviation > 0 && l.Deviation <= MaxTokens) {
			return fmt.Errorf(`length: lognormal needs a mean of 1 to %d tokens and a deviation above 0, as in "lognormal 256 sd 128"`, MaxTokens)
		}
	case KindTrace:
		if l.Mean != 0 || l.Deviation != 0 {
			return errors.New("length: those of a trace have no mean or deviation of their own")
		}
	case "":
		if l != (Length{}) {
			return fmt.Errorf("length: no kind given: %s", lengthExample)
		}
	default:
		return fmt.Errorf("length: unknown kind: %s", lengthExample)
	}
	return nil
}

// String writes a length as ParseLength reads it.
func (l Length) String() string {
	switch l.Kind {
	case "":
		return "none"
	case KindFixed:
		return number(l.Mean)
	case KindUniform:
		return fmt.Sprintf("uniform %d-%d", l.Min, l.Max)
	}
	text := l.Kind
	if l.Kind == KindLognormal {
		text += " " + number(l.Mean) + " sd " + number(l.Deviation)
	}
	if l.Min != 0 {
		text += " min " + strconv.Itoa(l.Min)
	}
	if l.Max != 0 {
		text += " max " + strconv.Itoa(l.Max)
	}
	return text
}

// ParseLength reads a length as people write it, in tokens:
//
//	128                             always 128
//	uniform 64-512                  as often one as another, both ends included
//	lognormal 256 sd 128            mean and standard deviation of the lengths themselves
//	lognormal 256 sd 128 max 2048   the same; what lies outside min and max is moved to them
//	trace                           those of the trace; min and max may follow as well
//	none                            no length asked for
func ParseLength(text string) (Length, error) {
	words := strings.Fields(text)
	fail := func(why string) (Length, error) {
		return Length{}, fmt.Errorf("read length: %s: %s", why, lengthExample)
	}
	if len(words) == 0 {
		return fail("nothing there")
	}
	l := Length{Kind: words[0]}
	rest := words[1:]
	ok := true
	switch words[0] {
	case "none":
		l.Kind = ""
	case KindUniform:
		if len(rest) != 1 {
			return fail("uniform has two ends")
		}
		low, high, _ := strings.Cut(rest[0], "-")
		var ok1, ok2 bool
		l.Min, ok1 = parseTokens(low)
		l.Max, ok2 = parseTokens(high)
		ok, rest = ok1 && ok2, nil
	case KindLognormal:
		if len(rest) < 3 || rest[1] != "sd" {
			return fail("lognormal has a mean and a deviation")
		}
		var ok1, ok2 bool
		l.Mean, ok1 = parseNumber(rest[0])
		l.Deviation, ok2 = parseNumber(rest[2])
		ok, rest = ok1 && ok2, rest[3:]
	case KindTrace:
	default:
		l.Kind = KindFixed
		l.Mean, ok = parseNumber(words[0])
	}
	if !ok {
		return fail("not a number where one belongs")
	}
	if l.Kind == KindLognormal || l.Kind == KindTrace {
		for _, bound := range []struct {
			name string
			to   *int
		}{{"min", &l.Min}, {"max", &l.Max}} {
			if len(rest) >= 2 && rest[0] == bound.name {
				if *bound.to, ok = parseTokens(rest[1]); !ok {
					return fail("behind " + bound.name + " goes a number of tokens")
				}
				rest = rest[2:]
			}
		}
	}
	if len(rest) > 0 {
		return fail("something left at its end")
	}
	if err := l.Validate(); err != nil {
		return Length{}, fmt.Errorf("read %w", err)
	}
	return l, nil
}

// parseTokens reads a whole number of tokens, at least 1.
func parseTokens(text string) (int, bool) {
	v, ok := parseNumber(text)
	return int(v), ok && v >= 1 && v <= MaxTokens && v == math.Trunc(v)
}

// draw returns one length, at least 1. Its kind is not trace, nor none.
func (l Length) draw(rng *rand.Rand) int {
	switch l.Kind {
	case KindUniform:
		return l.Min + rng.IntN(l.Max-l.Min+1)
	case KindLognormal:
		// The lognormal with this mean m and standard deviation s is exp of the
		// normal with σ² = ln(1 + s²/m²) and µ = ln m − σ²/2.
		ratio := l.Deviation / l.Mean
		variance := math.Log1p(ratio * ratio)
		return l.clamp(math.Exp(math.Log(l.Mean) - variance/2 + math.Sqrt(variance)*rng.NormFloat64()))
	default:
		return int(l.Mean)
	}
}

// clamp rounds to a whole number of tokens within the bounds.
func (l Length) clamp(v float64) int {
	high := l.Max
	if high == 0 {
		high = MaxTokens
	}
	return int(math.Round(min(max(v, float64(l.Min), 1), float64(high))))
}
