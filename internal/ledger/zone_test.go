package ledger

import (
	"testing"
	"time"
	_ "time/tzdata"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// TestCalendar pins the days that are not 24 hours, and the zones whose days do
// not begin on an hour.
func TestCalendar(t *testing.T) {
	at := func(s string) time.Time {
		x, err := time.Parse("2006-01-02T15", s)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	for _, c := range []struct {
		zone, label string // a day, by its beginning in the zone
		from, until string // UTC hours
	}{
		{"UTC", "2026-11-02T00:00:00Z", "2026-11-02T00", "2026-11-03T00"},
		{"Europe/Berlin", "2026-03-29T00:00:00+01:00", "2026-03-28T23", "2026-03-29T22"},       // 23 hours
		{"Europe/Berlin", "2026-10-25T00:00:00+02:00", "2026-10-24T22", "2026-10-25T23"},       // 25 hours
		{"America/New_York", "2026-11-01T00:00:00-04:00", "2026-11-01T04", "2026-11-02T05"},    // 25 hours
		{"Asia/Kolkata", "2026-11-02T00:00:00+05:30", "2026-11-01T18", "2026-11-02T18"},        // begins at 18:30 UTC
		{"Asia/Kathmandu", "2026-11-02T00:00:00+05:45", "2026-11-01T18", "2026-11-02T18"},      // at 18:15
		{"Australia/Eucla", "2026-11-02T00:00:00+08:45", "2026-11-01T15", "2026-11-02T15"},     // at 15:15
		{"Pacific/Marquesas", "2026-11-02T00:00:00-09:30", "2026-11-02T09", "2026-11-03T09"},   // at 09:30
		{"America/Sao_Paulo", "2018-11-04T01:00:00-02:00", "2018-11-04T03", "2018-11-05T02"},   // no midnight
		{"America/Havana", "2026-11-01T00:00:00-04:00", "2026-11-01T04", "2026-11-02T05"},      // two midnights
		{"Australia/Lord_Howe", "2026-04-05T00:00:00+11:00", "2026-04-04T13", "2026-04-05T13"}, // back by half an hour: ends at 13:30
		{"Pacific/Apia", "2011-12-31T00:00:00+14:00", "2011-12-30T10", "2011-12-31T10"},        // after a day that never was
	} {
		cal := newCalendar(ByDay, zone(t, c.zone))
		first, last, n, before := int64(0), int64(0), none, none
		for h := at(c.from).Add(-50 * time.Hour).Unix(); h < at(c.until).Add(50*time.Hour).Unix(); h += hour {
			of := cal.of(h)
			if of < before || of > before+1 {
				t.Errorf("%s: span %d follows %d", c.zone, of, before)
			}
			before = of
			if cal.starts[of].Format(time.RFC3339) == c.label {
				if n == none {
					n, first = of, h
				}
				last = h + hour
			}
		}
		switch {
		case n == none:
			t.Errorf("%s has no day %s, but %v", c.zone, c.label, cal.starts)
		case first != at(c.from).Unix() || last != at(c.until).Unix():
			t.Errorf("%s %s takes %s … %s", c.zone, c.label,
				time.Unix(first, 0).UTC().Format("2006-01-02T15:04"), time.Unix(last, 0).UTC().Format("2006-01-02T15:04"))
		}
	}
	months := newCalendar(ByMonth, zone(t, "Europe/Berlin"))
	last := make(map[int]int64)
	for h := at("2026-01-01T00").Unix(); h < at("2027-01-01T00").Unix(); h += hour {
		last[months.of(h)] = h
	}
	if s := months.starts; len(s) != 13 || s[0].Format(time.RFC3339) != "2026-01-01T00:00:00+01:00" || s[6].Format(time.RFC3339) != "2026-07-01T00:00:00+02:00" ||
		s[12].Format(time.RFC3339) != "2027-01-01T00:00:00+01:00" || last[11] != at("2026-12-31T22").Unix() || last[12] != at("2026-12-31T23").Unix() {
		t.Errorf("%v, last hours %v", s, last)
	}
}

func TestHourOf(t *testing.T) {
	for ns, want := range map[int64]int64{0: 0, 1: 0, int64(time.Hour) - 1: 0, int64(time.Hour): 3600, -1: -3600, -int64(time.Hour): -3600} {
		if got := hourOf(time.Unix(0, ns)); got != want {
			t.Errorf("%d ns: %d, want %d", ns, got, want)
		}
	}
}
