package spend

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/keys"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func instantOf(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestPeriods(t *testing.T) {
	for _, tt := range []struct {
		name, zone      string
		per             keys.Period
		now, start, end string
	}{
		{"a day of UTC", "UTC", keys.Daily, "2026-11-30T12:00:00Z", "2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z"},
		{"its first instant", "UTC", keys.Daily, "2026-11-30T00:00:00Z", "2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z"},
		{"a month of UTC", "UTC", keys.Monthly, "2026-12-31T23:59:59Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"February", "UTC", keys.Monthly, "2028-02-29T12:00:00Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"},
		{"another period is a month", "UTC", "", "2026-11-30T12:00:00Z", "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"},
		{"a day of 23 hours", "Europe/Berlin", keys.Daily, "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"a day of 25 hours", "Europe/Berlin", keys.Daily, "2026-10-25T22:30:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
		{"a month with a change", "Europe/Berlin", keys.Monthly, "2026-10-05T00:00:00Z", "2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z"},
		{"behind UTC", "America/Los_Angeles", keys.Daily, "2026-11-30T07:59:59Z", "2026-11-29T08:00:00Z", "2026-11-30T08:00:00Z"},
		{"no midnight", "Africa/Cairo", keys.Daily, "2026-04-24T06:00:00Z", "2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z"},
		{"the day before no midnight", "Africa/Cairo", keys.Daily, "2026-04-23T20:00:00Z", "2026-04-22T22:00:00Z", "2026-04-23T22:00:00Z"},
		{"no midnight, south", "America/Sao_Paulo", keys.Daily, "2018-11-04T15:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"},
		{"two midnights", "America/Havana", keys.Daily, "2026-11-01T12:00:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},
		{"eleven o'clock twice", "America/Sao_Paulo", keys.Daily, "2018-02-17T12:00:00Z", "2018-02-17T02:00:00Z", "2018-02-18T03:00:00Z"},
		{"a day that was left out", "Pacific/Apia", keys.Daily, "2011-12-30T09:00:00Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},
		{"half an hour off", "Asia/Kolkata", keys.Daily, "2026-11-30T12:00:00Z", "2026-11-29T18:00:00Z", "2026-11-30T18:00:00Z"},
		{"half an hour off: 23:45 there", "Asia/Kolkata", keys.Daily, "2026-11-30T18:15:00Z", "2026-11-30T18:00:00Z", "2026-12-01T18:00:00Z"},
		{"a quarter off: 23:50 there", "Asia/Kathmandu", keys.Monthly, "2026-11-30T18:05:00Z", "2026-11-30T18:00:00Z", "2026-12-31T18:00:00Z"},
	} {
		start, end := periodOf(tt.per, zone(t, tt.zone), instantOf(t, tt.now))
		if !start.Equal(instantOf(t, tt.start)) || !end.Equal(instantOf(t, tt.end)) {
			t.Errorf("%s: %v to %v, want %s to %s", tt.name, start, end, tt.start, tt.end)
		}
	}
	if start, _ := periodOf(keys.Daily, nil, instantOf(t, "2026-11-30T12:00:00Z")); !start.Equal(instantOf(t, "2026-11-30T00:00:00Z")) {
		t.Errorf("no zone is not UTC: %v", start)
	}
}

// TestPeriodsPartitionTime: whatever the zone and the time, periods hold it, they
// follow each other without gap or overlap, and a day of a zone with full hours
// begins where a walk through the quarters of an hour finds its date first.
func TestPeriodsPartitionTime(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "America/Havana", "Africa/Cairo", "Pacific/Apia",
		"Asia/Tehran", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Chatham", "America/St_Johns", "Asia/Beirut", "Asia/Amman", "America/Asuncion"}
	from, to := instantOf(t, "2000-01-01T00:00:00Z").Unix(), instantOf(t, "2030-01-01T00:00:00Z").Unix()
	for range 1500 {
		z := zone(t, zones[rng.IntN(len(zones))])
		now := time.Unix(from+rng.Int64N(to-from), rng.Int64N(1e9))
		for _, per := range []keys.Period{keys.Daily, keys.Monthly} {
			start, end := periodOf(per, z, now)
			if now.Before(start) || !now.Before(end) || start != start.Truncate(time.Hour) {
				t.Fatalf("%s %v: %v is not in %v to %v", z, per, now, start, end)
			}
			if _, e := periodOf(per, z, start.Add(-1)); !e.Equal(start) {
				t.Fatalf("%s %v: before %v ends %v", z, per, start, e)
			}
			if s, _ := periodOf(per, z, end); !s.Equal(end) {
				t.Fatalf("%s %v: after %v begins %v", z, per, end, s)
			}
		}
		y, m, d := now.In(z).Date()
		first := now
		for walk := now.Truncate(15 * time.Minute); now.Sub(walk) < 30*time.Hour; walk = walk.Add(-15 * time.Minute) {
			if yy, mm, dd := walk.In(z).Date(); yy == y && mm == m && dd == d {
				first = walk
			}
		}
		if got := midnight(y, m, d, z); !got.Equal(nearest(first)) {
			t.Fatalf("%s: %v-%v-%v begins %v, want %v", z, y, m, d, got, first)
		}
	}
}
