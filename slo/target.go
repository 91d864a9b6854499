package slo

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// million is a share of 1 as a Target counts it.
const million = 1_000_000

const targetExample = "write it like p99, p99.9 or 99.9%"

// ParseTarget reads a share as people write it: "p99" and "p99.9", or "99%" and "99.9%",
// which mean the same. At most four decimals are read, so the result is exact; it lies
// between 0.0001 % and 99.9999 %, because a promise about all calls leaves no budget. Errors
// name an example.
func ParseTarget(text string) (Target, error) {
	text = strings.TrimSpace(text)
	var number string
	switch {
	case strings.HasPrefix(text, "p"):
		number = text[1:]
	case strings.HasSuffix(text, "%"):
		number = strings.TrimSpace(text[:len(text)-1])
	default:
		return 0, fmt.Errorf("%.20q is not a target: it has neither a p before it nor a %% behind; %s", text, targetExample)
	}
	n, err := scaled(number, million/100, 1)
	switch {
	case errors.Is(err, errNotWhole):
		return 0, fmt.Errorf("%.20q is not a target: it has more than four decimals; %s", text, targetExample)
	case err != nil:
		return 0, fmt.Errorf("%.20q is not a target: %w; %s", text, err, targetExample)
	case n >= million:
		return 0, fmt.Errorf("%.20q is not a target: 100%% or more leaves no call that may fail; %s", text, targetExample)
	case n == 0:
		return 0, fmt.Errorf("%.20q is not a target: it promises nothing; %s", text, targetExample)
	}
	return Target(n), nil
}

// String returns the target as a percentile, "p99.9", as timed objectives write it.
func (t Target) String() string { return "p" + t.digits() }

// Percent returns the target as a percentage, "99.9%", as success and goodput write it.
func (t Target) Percent() string { return t.digits() + "%" }

// digits writes the percentage, exactly.
func (t Target) digits() string {
	n, sign := int64(t), ""
	if n < 0 {
		n, sign = -n, "-"
	}
	text := fmt.Sprintf("%s%d.%04d", sign, n/(million/100), n%(million/100))
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// Share returns the target as a share of 1: 0.99 for p99.
func (t Target) Share() float64 { return float64(t) / million }

// BudgetShare returns the share of calls that may be bad, 1 − target: 0.01 for p99, to the
// last bit.
func (t Target) BudgetShare() float64 { return float64(million-t) / million }

// MaxBurn returns the largest burn rate that there can be, 1/(1 − target): that of an
// outage, in which all calls are bad. It is 20 for p95, 100 for p99, and infinite for a
// target that leaves no budget, which Validate refuses.
func (t Target) MaxBurn() float64 {
	if t >= million {
		return math.Inf(1)
	}
	return million / float64(million-t)
}

func (t Target) valid() bool { return 0 < t && t < million }

var (
	errNotNumber = errors.New("it does not begin with a number")
	errNotWhole  = errors.New("it is not a whole number")
	errTooLarge  = errors.New("it is too large")
)

// scaled returns a decimal number times mul/div, which must be whole and below 2⁶³.
// Underscores may stand between digits. A sign or an exponent is no number.
func scaled(text string, mul, div int64) (int64, error) {
	whole, fraction, point := strings.Cut(text, ".")
	if !isDigits(whole, true) || point && !isDigits(fraction, false) {
		return 0, errNotNumber
	}
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) > 18 {
		return 0, errNotWhole
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(whole, "_", "")+fraction, 10, 64)
	if err != nil {
		return 0, errTooLarge
	}
	for range fraction {
		// Powers of ten go into mul where they can, so that nothing overflows.
		if mul%10 == 0 {
			mul /= 10
		} else {
			div *= 10
		}
		if div > math.MaxInt64/1000 {
			return 0, errNotWhole
		}
	}
	if n > math.MaxInt64/mul {
		return 0, errTooLarge
	}
	if n *= mul; n%div != 0 {
		return n / div, errNotWhole
	}
	return n / div, nil
}

// isDigits tells whether there are digits, with single underscores between where they may
// be.
func isDigits(text string, underscores bool) bool {
	if text == "" || text[0] == '_' || text[len(text)-1] == '_' {
		return false
	}
	for i := range len(text) {
		switch c := text[i]; {
		case '0' <= c && c <= '9':
		case c == '_' && underscores && text[i-1] != '_':
		default:
			return false
		}
	}
	return true
}
