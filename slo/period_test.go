package slo

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"
)

func TestParsePeriod(t *testing.T) {
	for in, want := range map[string]string{
		"rolling 30d": "rolling 30d", " rolling  1d ": "rolling 1d", "rolling 36h": "rolling 36h", "rolling 1d12h": "rolling 36h", "rolling 31d": "rolling 31d",
		"calendar_month": "calendar_month UTC", "calendar_month UTC": "calendar_month UTC", "calendar_month Europe/Berlin": "calendar_month Europe/Berlin",
	} {
		p, err := ParsePeriod(in)
		if p.Name() != want || err != nil {
			t.Errorf("ParsePeriod(%q) = %q, %v; want %q", in, p.Name(), err, want)
		}
		if again, err := ParsePeriod(p.Name()); again.Name() != want || err != nil {
			t.Errorf("%q is read as %q, %v", want, again.Name(), err)
		}
		if _, _, err := (Config{Period: p}).Complete(); err != nil {
			t.Error(err)
		}
	}
	// UTC by name is not the zero Period, which Complete makes rolling.
	if p, _ := ParsePeriod("calendar_month"); p == (Period{}) {
		t.Error("calendar_month is the zero Period")
	}
	if got := (Period{}).Name(); got != "calendar_month UTC" {
		t.Errorf("got %q", got)
	}
	for in, want := range map[string]string{
		"":                            "unknown kind",
		"monthly":                     "unknown kind",
		"rolling":                     "the time is missing",
		"rolling x":                   "not a time",
		"rolling 32d":                 "not between 1d and 31d",
		"rolling 1h":                  "not between 1d and 31d",
		"rolling 24.5h":               "not a number of whole hours",
		"rolling 30d UTC":             "too much of it",
		"calendar_month Local":        "Local is another zone on another machine",
		"calendar_month Moon/Sea":     "unknown time zone",
		"calendar_month ../etc":       "unknown time zone",
		"calendar_month UTC and more": "too much of it",
	} {
		if p, err := ParsePeriod(in); err == nil || p != (Period{}) || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "30d") && !strings.Contains(err.Error(), "Europe/Berlin") {
			t.Errorf("ParsePeriod(%q) = %+v, %v; want %q and an example", in, p, err, want)
		}
	}
}

func TestPeriodAt(t *testing.T) {
	for _, tt := range []struct{ period, now, from, to string }{
		{"calendar_month", "2025-01-31T23:59:59Z", "2025-01-01T00:00:00Z", "2025-02-01T00:00:00Z"},
		{"calendar_month", "2025-02-01T00:00:00Z", "2025-02-01T00:00:00Z", "2025-03-01T00:00:00Z"},
		{"calendar_month", "2024-02-29T12:00:00Z", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"},
		{"calendar_month", "2025-12-31T23:59:59.999999999Z", "2025-12-01T00:00:00Z", "2026-01-01T00:00:00Z"},
		{"calendar_month", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"},
		{"calendar_month", "2025-07-01T01:00:00+02:00", "2025-06-01T00:00:00Z", "2025-07-01T00:00:00Z"},
		// Berlin is ahead of UTC, by one hour and by two: March 2025 is an hour short,
		// October an hour long.
		{"calendar_month Europe/Berlin", "2025-02-28T22:59:59Z", "2025-01-31T23:00:00Z", "2025-02-28T23:00:00Z"},
		{"calendar_month Europe/Berlin", "2025-02-28T23:00:00Z", "2025-02-28T23:00:00Z", "2025-03-31T22:00:00Z"},
		{"calendar_month Europe/Berlin", "2025-03-30T01:00:00Z", "2025-02-28T23:00:00Z", "2025-03-31T22:00:00Z"},
		{"calendar_month Europe/Berlin", "2025-10-26T01:00:00Z", "2025-09-30T22:00:00Z", "2025-10-31T23:00:00Z"},
		{"calendar_month America/Los_Angeles", "2026-01-01T07:59:59Z", "2025-12-01T08:00:00Z", "2026-01-01T08:00:00Z"},
		{"calendar_month Asia/Kolkata", "2025-06-30T18:30:00Z", "2025-06-30T18:30:00Z", "2025-07-31T18:30:00Z"},
		// Paraguay left out the first hour of October 2017: the month begins at one o'clock.
		{"calendar_month America/Asuncion", "2017-10-15T00:00:00Z", "2017-10-01T04:00:00Z", "2017-11-01T03:00:00Z"},
		// Newfoundland set its clocks back one minute into November 2009, and had the last
		// hour of October once more. The month begins with that minute.
		{"calendar_month America/St_Johns", "2009-11-01T02:30:30Z", "2009-11-01T02:30:00Z", "2009-12-01T03:30:00Z"},
		{"calendar_month America/St_Johns", "2009-11-01T02:45:00Z", "2009-11-01T02:30:00Z", "2009-12-01T03:30:00Z"},
		{"calendar_month America/St_Johns", "2009-11-01T02:29:59Z", "2009-10-01T02:30:00Z", "2009-11-01T02:30:00Z"},
		// Kiritimati never had the last day of 1994.
		{"calendar_month Pacific/Kiritimati", "1994-12-31T09:59:59Z", "1994-12-01T10:00:00Z", "1994-12-31T10:00:00Z"},
		{"rolling 30d", "2025-03-31T12:00:00.5Z", "2025-03-01T12:00:00.5Z", "2025-03-31T12:00:00.5Z"},
		{"rolling 36h", "2025-01-01T06:00:00Z", "2024-12-30T18:00:00Z", "2025-01-01T06:00:00Z"},
	} {
		p, err := ParsePeriod(tt.period)
		if err != nil {
			t.Fatal(err)
		}
		from, to := p.At(instant(t, tt.now))
		if !from.Equal(instant(t, tt.from)) || !to.Equal(instant(t, tt.to)) {
			t.Errorf("%s at %s: %s to %s, want %s to %s", tt.period, tt.now, from.UTC().Format(time.RFC3339Nano), to.UTC().Format(time.RFC3339Nano), tt.from, tt.to)
		}
	}
}

func instant(tb testing.TB, text string) time.Time {
	tb.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		tb.Fatal(err)
	}
	return at
}

// TestMonthsPartitionTime: whatever the zone does to its clocks, each moment is in just one
// month, of 27 to 32 days, whose first day has begun on the zone's clocks and no sooner.
func TestMonthsPartitionTime(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for _, name := range []string{"UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "America/Asuncion", "America/Havana", "Atlantic/Azores",
		"Australia/Lord_Howe", "Asia/Amman", "Asia/Beirut", "Asia/Gaza", "Asia/Tehran", "Asia/Kathmandu", "Africa/Cairo", "Africa/Casablanca", "Pacific/Apia",
		"Pacific/Kiritimati", "Pacific/Chatham", "America/Sao_Paulo", "America/Santiago", "America/Scoresbysund", "Antarctica/Troll", "America/Caracas"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		p := Period{Zone: zone}
		for range 400 {
			now := time.Unix(rng.Int64N(2_200_000_000), rng.Int64N(1e9))
			if rng.IntN(2) == 0 { // around the first of a month
				now = time.Date(1975+rng.IntN(65), time.Month(1+rng.IntN(12)), 1, 0, rng.IntN(300)-150, 0, 0, zone)
			}
			from, to := p.At(now)
			if now.Before(from) || !now.Before(to) {
				t.Fatalf("%s: %s is not within %s to %s", name, now, from, to)
			}
			if d := to.Sub(from); d < 27*24*time.Hour || d > 32*24*time.Hour {
				t.Fatalf("%s: %s to %s are %s", name, from, to, d)
			}
			for _, at := range []time.Time{from, to.Add(-1)} {
				if f, o := p.At(at); !f.Equal(from) || !o.Equal(to) {
					t.Fatalf("%s: at %s the month is %s to %s, not %s to %s", name, at, f, o, from, to)
				}
			}
			if f, _ := p.At(to); !f.Equal(to) {
				t.Fatalf("%s: after the month up to %s comes the one from %s", name, to, f)
			}
			if from.In(zone).Day() != 1 || from.Add(-1).In(zone).Day() == 1 {
				t.Fatalf("%s: the month begins at %s, after %s", name, from.In(zone), from.Add(-1).In(zone))
			}
		}
	}
}
