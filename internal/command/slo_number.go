package command

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weirgate/weir/slo"
)

// fewTimes is how many times the calls that can show a target kept are enough to do
// without an interval: the budget is then some 30 bad calls.
const fewTimes = 10

// keptText is the share of good calls. It is rounded down, so that what is below the
// target never looks like it, nor a part like all.
func keptText(o slo.ObjectiveStatus) string {
	total := o.Total()
	if total <= 0 || o.Good < 0 || o.Bad < 0 {
		return absent
	}
	decimals := shareDecimals(o.Objective.Target)
	scale := uint64(100)
	for range decimals {
		scale *= 10
	}
	high, low := bits.Mul64(uint64(o.Good), scale)
	n, _ := bits.Div64(high, low, uint64(total)) // below scale: good is no more than total
	if n == 0 && o.Good > 0 {
		return "<" + decimalText(1, decimals) + "%"
	}
	return decimalText(n, decimals) + "%"
}

// shareDecimals is one more than the target has as a percentage, and two at least.
func shareDecimals(target slo.Target) int {
	decimals := 5 // of a target with four
	for n := int(target); decimals > 2 && n%10 == 0; n /= 10 {
		decimals--
	}
	return decimals
}

// decimalText writes n / 10^decimals.
func decimalText(n uint64, decimals int) string {
	text := fmt.Sprintf("%0*d", decimals+1, n)
	return text[:len(text)-decimals] + "." + text[len(text)-decimals:]
}

// intervalText is the interval of the share where calls are few, rounded to the
// outside, else "".
func intervalText(o slo.ObjectiveStatus) string {
	if o.Total() == 0 || o.ComplianceLow == nil || o.ComplianceHigh == nil ||
		o.Total() >= fewTimes*slo.CallsNeeded(o.Objective.Target, 0.95) {
		return ""
	}
	scale, decimals := 1000.0, 1
	if o.Objective.Target > 990_000 {
		scale, decimals = 10_000, 2
	}
	end := func(n float64) string {
		text := strconv.FormatFloat(n/scale*100, 'f', decimals, 64)
		return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return end(math.Floor(*o.ComplianceLow*scale)) + absent + end(math.Ceil(*o.ComplianceHigh*scale)) + "%"
}

func shareText(share *float64) string {
	if share == nil {
		return absent
	}
	return percent(*share)
}

// leftText is what is left of the budget; far below nothing its decimals say nothing.
func leftText(left *float64) string {
	switch {
	case left == nil:
		return absent
	case *left < 0 && *left > -0.0005:
		return "<0%"
	case *left < -99.995:
		return "<-9999%"
	case *left <= -9.9995:
		return strconv.FormatFloat(*left*100, 'f', 0, 64) + "%"
	}
	return percent(*left)
}

// burnOver returns the burn rate over a window, nil when nothing is known.
func burnOver(o slo.ObjectiveStatus, window time.Duration) *float64 {
	for i := range o.Burn {
		if o.Burn[i].Window == window {
			return o.Burn[i].Rate
		}
	}
	return nil
}

// burnText writes a burn rate with three digits or so.
func burnText(rate *float64) string {
	switch {
	case rate == nil:
		return absent
	case *rate == 0:
		return "0"
	case *rate < 0.01:
		return "<0.01"
	case *rate < 9.995:
		return strconv.FormatFloat(*rate, 'f', 2, 64)
	case *rate < 99.95:
		return strconv.FormatFloat(*rate, 'f', 1, 64)
	case *rate < 9999.5:
		return strconv.FormatFloat(*rate, 'f', 0, 64)
	}
	return strconv.FormatFloat(*rate/1000, 'f', 0, 64) + "k"
}

// shortCount writes a count in seven characters or less; --json has it in full.
func shortCount(n int64) string {
	if n < 1e6 {
		return thousands(n)
	}
	for _, unit := range []struct {
		size float64
		name string
	}{{1e6, "M"}, {1e9, "G"}, {1e12, "T"}} {
		if v := float64(n) / unit.size; v < 999.95 || unit.name == "T" {
			return strconv.FormatFloat(v, 'f', 1, 64) + unit.name
		}
	}
	return ""
}

// wrapped breaks a text into lines of at most width characters, at blanks; all but
// the first are indented. A word that is longer is cut.
func wrapped(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		word = cutName(word, width-len(sloIndent))
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = sloIndent + word
		}
	}
	return append(lines, line)
}

// cutName shortens a name to width characters.
func cutName(name string, width int) string {
	if utf8.RuneCountInString(name) <= width {
		return name
	}
	return string([]rune(name)[:width-1]) + "…"
}
