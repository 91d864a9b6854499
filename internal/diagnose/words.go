package diagnose

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// digits rounds to three significant digits.
func digits(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	place := math.Pow(10, 2-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*place) / place
}

// plain writes a number with three significant digits, or all of those before
// the point, thousands apart.
func plain(v float64) string {
	if math.Abs(v) < 1000 {
		v = digits(v)
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

// span writes a time as people do.
func span(d time.Duration) string { return spanOf(milliseconds(d)) }

func spanOf(ms float64) string {
	switch ms = digits(ms); {
	case ms >= 1000:
		return plain(ms/1000) + " s"
	case ms >= 1 || ms == 0:
		return plain(ms) + " ms"
	}
	return plain(ms*1000) + " µs"
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// percent writes a share. What is not all is never 100 %, and what is not
// nothing never 0 %.
func percent(share float64) string {
	p := math.Round(100 * share)
	switch {
	case share > 0 && p == 0:
		return "<1 %"
	case share < 1 && p == 100:
		return ">99 %"
	}
	return strconv.FormatFloat(p, 'f', -1, 64) + " %"
}

// amount writes a figure with its unit.
func amount(v float64, unit Unit) string {
	switch unit {
	case InMilliseconds:
		return spanOf(v)
	case InShare:
		return percent(v)
	case InCalls, InTokens:
		noun := string(unit)
		if v == 1 {
			noun = strings.TrimSuffix(noun, "s")
		}
		return plain(v) + " " + noun
	case InMegahertz:
		return plain(v) + " MHz"
	case InBytes:
		return size(v)
	case InBytesASecond:
		return size(v) + "/s"
	}
	return plain(v)
}

// size writes a number of bytes in units of 1000.
func size(v float64) string {
	for _, unit := range []string{" B", " kB", " MB"} {
		if v < 999.5 {
			return plain(v) + unit
		}
		v /= 1000
	}
	return plain(v) + " GB"
}

// cardinal writes a number of calls, such as "1 call" or "1,200 calls".
func cardinal(n int) string { return amount(float64(n), InCalls) }

// clean keeps what comes from outside from reaching a terminal as more than
// text. Such names are short already.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return -1
		}
		return r
	}, s)
}
