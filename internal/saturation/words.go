package saturation

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// digits rounds to three significant digits.
func digits(v float64, round func(float64) float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	place := math.Pow(10, 2-math.Floor(math.Log10(math.Abs(v))))
	scaled := v * place
	if whole := math.Round(scaled); math.Abs(scaled-whole) < 1e-9*math.Abs(whole) {
		scaled = whole // what only rounding keeps from being whole
	}
	return round(scaled) / place
}

// plain writes a number with at most three significant digits, or all of those
// before the point, thousands apart.
func plain(v float64) string {
	if math.Abs(v) < 1000 {
		v = digits(v, math.Round)
	} else {
		v = math.Round(v)
	}
	text := strconv.FormatFloat(v, 'f', -1, 64)
	if math.Abs(v) >= 1e15 || strings.Contains(text, ".") {
		return text
	}
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// span writes milliseconds as people do; spanUp rounds up where it rounds.
func span(ms float64) string   { return spanOf(digits(ms, math.Round)) }
func spanUp(ms float64) string { return spanOf(digits(ms, math.Ceil)) }

func spanOf(ms float64) string {
	if ms >= 1000 {
		return strconv.FormatFloat(ms/1000, 'f', -1, 64) + " s"
	}
	return strconv.FormatFloat(ms, 'f', -1, 64) + " ms"
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// changed says how a figure went from a to b.
func changed(a, b float64) string {
	r := b / a
	switch whole := math.Round(r); {
	case math.IsNaN(r) || math.IsInf(r, 0):
		return "changed"
	case whole == 2 && math.Abs(r-whole) < 0.02:
		return "doubled"
	case whole > 2 && math.Abs(r-whole) < 0.02:
		return fmt.Sprintf("rose %.0f-fold", whole)
	case math.Abs(r-1) < 0.005:
		return "stayed the same"
	case r >= 2:
		return "rose " + strconv.FormatFloat(digits(r, math.Round), 'f', -1, 64) + "-fold"
	case r > 1:
		return fmt.Sprintf("rose by %.0f %%", 100*(r-1))
	}
	return fmt.Sprintf("fell by %.0f %%", 100*(1-r))
}

// upper writes the first letter of a sentence large.
func upper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
