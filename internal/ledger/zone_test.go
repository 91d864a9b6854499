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

// TestBuckets pins the days that are not 24 hours, and the zones whose days do
// not begin on an hour.
func TestBuckets(t *testing.T) {
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
		all := buckets(at(c.from).Add(-50*time.Hour).Unix(), at(c.until).Add(50*time.Hour).Unix(), zone(t, c.zone), ByDay)
		found := false
		for i, b := range all {
			if i > 0 && b.from != all[i-1].until || b.from >= b.until {
				t.Errorf("%s: %v is not what follows", c.zone, b)
			}
			if b.label.Format(time.RFC3339) == c.label {
				found = true
				if b.from != at(c.from).Unix() || b.until != at(c.until).Unix() {
					t.Errorf("%s %s takes %s … %s", c.zone, c.label,
						time.Unix(b.from, 0).UTC().Format("2006-01-02T15:04"), time.Unix(b.until, 0).UTC().Format("2006-01-02T15:04"))
				}
			}
		}
		if !found {
			t.Errorf("%s has no day %s, but %v", c.zone, c.label, all)
		}
	}
	months := buckets(at("2026-01-01T00").Unix(), at("2027-01-01T00").Unix(), zone(t, "Europe/Berlin"), ByMonth)
	if len(months) != 13 || months[0].label.Format(time.RFC3339) != "2026-01-01T00:00:00+01:00" || months[6].label.Format(time.RFC3339) != "2026-07-01T00:00:00+02:00" ||
		months[12].label.Format(time.RFC3339) != "2027-01-01T00:00:00+01:00" || months[12].until-months[12].from != hour {
		t.Errorf("%v", months)
	}
}

func TestHourOf(t *testing.T) {
	for ns, want := range map[int64]int64{0: 0, 1: 0, int64(time.Hour) - 1: 0, int64(time.Hour): 3600, -1: -3600, -int64(time.Hour): -3600} {
		if got := hourOf(time.Unix(0, ns)); got != want {
			t.Errorf("%d ns: %d, want %d", ns, got, want)
		}
	}
}
