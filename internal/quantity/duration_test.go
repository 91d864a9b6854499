package quantity

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "2s": 2 * time.Second, "1h30m": 90 * time.Minute, "250ms": 250 * time.Millisecond, "1.5s": 1500 * time.Millisecond,
		"1d": 24 * time.Hour, "2w": 14 * Day, "1d12h": 36 * time.Hour, "1.5d": 36 * time.Hour, "12h1d": 36 * time.Hour, "1w1d1h1m1s1ms1us1ns": 8*Day + time.Hour + time.Minute + time.Second + time.Millisecond + time.Microsecond + 1,
		"3µs": 3000, "3μs": 3000, " 5m ": 5 * time.Minute, "1_000ms": time.Second, "0.25d": 6 * time.Hour, "0.0000000012h": 4320,
		"9223372036854775807ns": math.MaxInt64,
	} {
		if got, err := ParseDuration(in); got != want || err != nil {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", in, got, err, want)
		}
	}
	for in, why := range map[string]string{
		"": "begin with a number", "-1h": "begin with a number", "+1h": "begin with a number", "s": "begin with a number", "forever": "begin with a number",
		"30": "without a unit", "1h30": "without a unit", "00": "without a unit", "1e3": "without a unit", "1D": "unit is none", "1y": "unit is none", "1 h": "unit is none",
		"1h-5m": "unit is none", "1M": "unit is none", "1e3s": "unit is none", "1h.": "other than a number",
		"1.5ns": "whole number", "300000w": "whole number", "9223372036854775807ns1ns": "292 years", strings.Repeat("1h", 40): "too long",
	} {
		got, err := ParseDuration(in)
		if err == nil || got != 0 {
			t.Errorf("ParseDuration(%q) = %v, %v", in, got, err)
		} else if !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "1h30m") {
			t.Errorf("ParseDuration(%q) says %q: want %q and an example", in, err, why)
		}
	}
}

func TestFormatDuration(t *testing.T) {
	for in, want := range map[time.Duration]string{
		0: "0s", 1: "1ns", 1500 * time.Microsecond: "1.5ms", 1500 * time.Millisecond: "1.5s", 30 * time.Second: "30s", 10 * time.Minute: "10m",
		10 * time.Hour: "10h", 20*time.Hour + 30*time.Minute: "20h30m", time.Hour + time.Second: "1h0m1s", 90 * time.Second: "1m30s",
		Day: "1d", 30 * Day: "30d", 36 * time.Hour: "1d12h", Day + time.Minute: "1d1m", 2*Day + 1: "2d1ns", 30*Day + 10*time.Hour: "30d10h", -time.Hour: "-1h0m0s",
	} {
		if got := FormatDuration(in); got != want {
			t.Errorf("FormatDuration(%d) = %q, want %q", in, got, want)
		}
	}
}

func TestDurationRoundTrip(t *testing.T) {
	check := func(n int64) {
		d := time.Duration(n)
		if got, err := ParseDuration(FormatDuration(d)); got != d || err != nil {
			t.Fatalf("%d ns is written %q and read as %d, %v", d, FormatDuration(d), got, err)
		}
	}
	magnitudes(func(n int64) {
		check(n)
		check(n % 1e6 * int64(time.Second)) // up to eleven days, in whole seconds
	})
}

// FuzzDuration: the round trip, and agreement with the standard library, which
// computes fractions in floating point and so may be a nanosecond off for each
// of them.
func FuzzDuration(f *testing.F) {
	for _, in := range []string{"1h30m", "2w", "1d12h", "1.5s", "0", "3µs", "1.1h", "9223372036854775807ns", "-1h"} {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		d, err := ParseDuration(in)
		if err != nil {
			return
		}
		if again, err := ParseDuration(FormatDuration(d)); d < 0 || again != d || err != nil {
			t.Fatalf("%q is %d, written %q, read as %d, %v", in, d, FormatDuration(d), again, err)
		}
		if std, err := time.ParseDuration(strings.Trim(in, " \t")); err == nil {
			if diff := (std - d).Abs(); diff > time.Duration(strings.Count(in, ".")) {
				t.Fatalf("%q is %d ns, in the standard library %d ns", in, d, std)
			}
		}
	})
}
