package capacity

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A plan computes with fractions, so that a floor or a ceiling never falls on the
// wrong side of a whole number by a rounding of floating point.

func planInt(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func planQuo(a, b *big.Rat) *big.Rat { return new(big.Rat).Quo(a, b) }

// planDecimal is the decimal number that a person wrote and f stands for: 0.9 is 9/10,
// not the nearest binary fraction. f is finite.
func planDecimal(f float64) *big.Rat {
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	return r
}

func planFloor(r *big.Rat) *big.Int {
	return new(big.Int).Div(r.Num(), r.Denom()) // Euclidean, and the denominator is positive
}

func planCeil(r *big.Rat) *big.Int {
	up := planFloor(new(big.Rat).Neg(r))
	return up.Neg(up)
}

func planFloat(r *big.Rat) float64 {
	f, _ := r.Float64()
	return f
}

// planRounding says which way a number is rounded to be shown.
type planRounding int

const (
	planNearest planRounding = iota
	planDown                 // where a floor follows: 19.99999 is not shown as 20
	planUp                   // where a ceiling follows
)

// planNumber writes a number that is not negative with at least five significant
// digits, no closing zeros, and thousands apart.
func planNumber(r *big.Rat, rounding planRounding) string {
	whole := planFloor(r).String()
	decimals := max(0, 5-len(whole))
	if whole == "0" && r.Sign() > 0 {
		// Skip the zeros behind the point.
		decimals = 5
		for s := new(big.Rat).Mul(r, planInt(10)); planFloor(s).Sign() == 0 && decimals < 12; s.Mul(s, planInt(10)) {
			decimals++
		}
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
	scaled := new(big.Rat).Mul(r, new(big.Rat).SetInt(scale))
	var n *big.Int
	switch rounding {
	case planDown:
		n = planFloor(scaled)
	case planUp:
		n = planCeil(scaled)
	default:
		n = planFloor(scaled.Add(scaled, big.NewRat(1, 2)))
	}
	digits := n.String()
	if len(digits) <= decimals {
		digits = strings.Repeat("0", decimals+1-len(digits)) + digits
	}
	text := planGroups(digits[:len(digits)-decimals])
	if fraction := strings.TrimRight(digits[len(digits)-decimals:], "0"); fraction != "" {
		text += "." + fraction
	}
	return text
}

// planSigned is planNumber for a number that may be negative.
func planSigned(r *big.Rat) string {
	if r.Sign() < 0 {
		return "−" + planNumber(new(big.Rat).Neg(r), planNearest)
	}
	return planNumber(r, planNearest)
}

// planGroups sets digits apart in threes.
func planGroups(digits string) string {
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

func planCount(n int64) string { return planGroups(strconv.FormatInt(n, 10)) }

// planMany writes a number of things.
func planMany(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return planCount(n) + " " + many
}

// planKey is what of a name counts: its letters and digits, in lower case.
func planKey(name string) string {
	return strings.Map(func(r rune) rune {
		if r = unicode.ToLower(r); unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, name)
}

// planQuote shows a name that came from outside, cut to what can be meant.
func planQuote(name string) string {
	const most = 48
	if cut := []rune(name); len(cut) > most {
		return fmt.Sprintf("%q…", string(cut[:most]))
	}
	return fmt.Sprintf("%q", name)
}

// planSome lists the names that begin as wanted does, and all of them when none does.
func planSome(names []string, wanted string) string {
	const most = 32 // bytes; no preset has a longer name
	for length := min(len(wanted), most); length >= 3; length-- {
		begun := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.HasPrefix(planKey(n), wanted[:length]) })
		if len(begun) > 0 {
			return strings.Join(begun, ", ")
		}
	}
	return strings.Join(names, ", ")
}
