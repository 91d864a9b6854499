package slo

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Text writes the objective as ParseObjective reads it, without its name: "ttft p99 <= 2s",
// "success 99.9%".
func (o Objective) Text() string {
	var b strings.Builder
	b.WriteString(o.Number.String())
	if o.Number.Timed() {
		fmt.Fprintf(&b, " %s <= %s", o.Target, spanText(o.Threshold))
		if o.hasFallback() {
			b.WriteString(" else " + o.Fallback.String())
		}
	} else {
		b.WriteString(" " + o.Target.Percent())
	}
	for i, c := range o.When {
		separator := ", "
		if i == 0 {
			separator = " when "
		}
		fmt.Fprintf(&b, "%s%s <= %d", separator, c.Quantity, c.AtMost)
	}
	return b.String()
}

// hasFallback tells whether another number is judged where the first is unknown. TTFT stands
// in for nothing, so that the zero Fallback is none.
func (o Objective) hasFallback() bool { return o.Fallback != o.Number && o.Fallback != TTFT }

// Text writes the envelope as ParseEnvelope reads it, the rate last; "" for one that is
// always inside.
func (e Envelope) Text() string {
	var parts []string
	for _, t := range e.Terms {
		parts = append(parts, fmt.Sprintf("%s %s <= %d", t.Quantity, t.Target, t.AtMost))
	}
	switch n := e.CallsPerMinute; {
	case n == 0:
	case n%60 == 0:
		parts = append(parts, fmt.Sprintf("rate <= %d/s", n/60))
	default:
		parts = append(parts, fmt.Sprintf("rate <= %d/min", n))
	}
	return strings.Join(parts, ", ")
}

// String writes the rule in words: "1h/5m x 14.4 page".
func (r BurnRule) String() string {
	kind := "ticket"
	if r.Page {
		kind = "page"
	}
	return fmt.Sprintf("%s/%s x %s %s", spanText(r.Long), spanText(r.Short), shortFloat(r.Factor), kind)
}

// spanText writes a time as parseSpan reads it: 2s, 1m, 1h30m, 30d. The empty parts that
// time.Duration writes (1m0s) are left out, and whole days are days.
func spanText(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = text[:len(text)-2]
	}
	if strings.HasSuffix(text, "h0m") {
		text = text[:len(text)-2]
	}
	return text
}

// shortFloat writes a figure with at most four significant digits.
func shortFloat(f float64) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'g', 4, 64), 64) // what is written so is read
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}
