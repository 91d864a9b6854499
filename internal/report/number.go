package report

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// number writes v with three or more significant digits: all digits before the
// point, and as many after it as a reader can use. What is not finite is unknown,
// and what is not 0 is never shown as 0.
func number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return unknown
	}
	decimals := 0
	switch a := math.Abs(v); {
	case a == 0:
		return "0"
	case a >= 1e15:
		return strconv.FormatFloat(v, 'e', 3, 64)
	case a < 0.0005:
		if v < 0 {
			return ">-0.001"
		}
		return "<0.001"
	case a < 0.9995:
		decimals = 3
	case a < 9.995:
		decimals = 2
	case a < 999.95:
		decimals = 1
	}
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	whole, rest, _ := strings.Cut(s, ".")
	if rest != "" {
		rest = "." + rest
	}
	return grouped(whole) + rest
}

// maybe is number for a figure that may be unknown.
func maybe(v *float64) string {
	if v == nil {
		return unknown
	}
	return number(*v)
}

// tidy is number without zeros at its end, for what a person has set.
func tidy(v float64) string {
	s := number(v)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// whole writes a figure without decimals in groups of three digits, for figures
// that are sums and counts.
func whole(v *float64) string {
	if v == nil || math.IsNaN(*v) || math.IsInf(*v, 0) {
		return unknown
	}
	if a := math.Abs(*v); a < 100 || a >= 1e15 {
		return number(*v)
	}
	return grouped(strconv.FormatFloat(*v, 'f', 0, 64))
}

// count writes a number of things.
func count(n int) string { return grouped(strconv.Itoa(n)) }

// grouped puts a comma between groups of three digits.
func grouped(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	var b strings.Builder
	b.WriteString(sign)
	for i, c := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// percent writes a share of 0–1 in per cent, without the sign, and neither a part
// as all nor something as nothing.
func percent(share float64) string {
	switch {
	case math.IsNaN(share) || math.IsInf(share, 0):
		return unknown
	case share == 0:
		return "0"
	case share == 1:
		return "100"
	case share > 0 && share < 0.0005:
		return "<0.1"
	case share < 1 && share >= 0.9995:
		return ">99.9"
	}
	return strconv.FormatFloat(share*100, 'f', 1, 64)
}

// percentOf is percent of a share of things; of none it is unknown.
func percentOf(part, all int) string {
	if all <= 0 {
		return unknown
	}
	return percent(float64(part) / float64(all))
}

// change writes how much b is more or less than a, in per cent with its sign.
func change(a, b *float64) string {
	if a == nil || b == nil || *a == 0 {
		return unknown
	}
	v := (*b / *a - 1) * 100
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return unknown
	case math.Abs(v) < 0.05:
		return "0.0"
	}
	s := strconv.FormatFloat(v, 'f', 1, 64)
	if math.Abs(v) >= 999.5 {
		s = whole(&v)
	}
	if v > 0 {
		return "+" + s
	}
	return s
}

// span writes a duration that a person has set: 500 ms, 2.5 s, 30m0s.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return tidy(float64(d)/float64(time.Millisecond)) + " ms"
	case d < time.Minute:
		return tidy(d.Seconds()) + " s"
	}
	return d.Round(time.Second).String()
}
