package quantity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Day is what "d" stands for in a duration: 24 hours. It is not a day of the
// calendar, which may have 23 or 25.
const Day = 24 * time.Hour

const durationExample = `write it like 30s, 1h30m, 1d12h or 2w`

var durationUnits = map[string]time.Duration{
	"ns": time.Nanosecond, "us": time.Microsecond, "µs": time.Microsecond, "μs": time.Microsecond,
	"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": Day, "w": 7 * Day,
}

// ParseDuration reads a time span: Go's form ("1h30m", "250ms") with the units d,
// 24 hours, and w, 7 days, in addition. Several units are added, in any order.
// A bare 0 is no time; any other number needs its unit. The result is from 0 to
// 2⁶³−1 ns, about 292 years; a sign, and a fraction of a nanosecond, is an error.
func ParseDuration(text string) (time.Duration, error) {
	bad := func(why string) (time.Duration, error) {
		return 0, fmt.Errorf("%s is not a duration: %s; %s", quote(text), why, durationExample)
	}
	if len(text) > maxText {
		return bad("it is too long")
	}
	rest := trim(text)
	if rest == "0" {
		return 0, nil
	}
	var total time.Duration
	for first := true; first || rest != ""; first = false {
		value, after, ok := number(rest)
		if !ok && first {
			return bad("it does not begin with a number")
		}
		if !ok {
			return bad("it has something other than a number after a unit")
		}
		end := strings.IndexFunc(after, func(r rune) bool { return '0' <= r && r <= '9' || r == '.' })
		if end < 0 {
			end = len(after)
		}
		unit, ok := durationUnits[after[:end]]
		if !ok && after[:end] == "" {
			return bad("it has a number without a unit")
		}
		if !ok {
			return bad("its unit is none of ns, us, ms, s, m, h, d and w")
		}
		n, ok := whole(value, int64(unit))
		if !ok {
			return bad("it is not a whole number of nanoseconds below 2⁶³")
		}
		if time.Duration(n) > math.MaxInt64-total {
			return bad("it is longer than 292 years")
		}
		total += time.Duration(n)
		rest = after[end:]
	}
	return total, nil
}

// FormatDuration writes a duration as ParseDuration reads it, exactly and without
// the parts that are 0: 30d, 1d12h, 1h30m, 1.5s. There are no weeks, because 30d
// says more than 4w2d. A negative one, which ParseDuration would not read, has
// Go's form.
func FormatDuration(d time.Duration) string {
	if d <= 0 {
		return d.String()
	}
	days, rest := d/Day, d%Day
	text := ""
	if days > 0 {
		text = strconv.FormatInt(int64(days), 10) + "d"
	}
	if rest > 0 {
		text += rest.String()
	}
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
