package spend

import (
	"time"

	"github.com/weirgate/weir/internal/keys"
)

// periodOf returns the day or month of the zone's calendar that holds now, as
// two instants, the second not part of it; zone nil is UTC. It is 23 or 25 hours
// long where a clock is put forward or back on that day.
//
// The edges are full hours of UTC, because that is how the ledger sums: where a
// zone's midnight is none (Kolkata, Kathmandu), the nearest one is taken, and of
// two that are as near the earlier one, as the ledger does.
func periodOf(per keys.Period, zone *time.Location, now time.Time) (start, end time.Time) {
	if zone == nil {
		zone = time.UTC
	}
	// An edge that was rounded moves minutes from one period to the next to it, so
	// the calendar is asked for the periods around, too.
	y, m, d := now.In(zone).Date()
	for step := -1; ; step++ {
		if per == keys.Daily {
			start, end = midnight(y, m, d+step, zone), midnight(y, m, d+step+1, zone)
		} else {
			start, end = midnight(y, m+time.Month(step), 1, zone), midnight(y, m+time.Month(step)+1, 1, zone)
		}
		if now.Before(end) {
			return start, end
		}
	}
}

// midnight returns when a day begins: the first instant with its date, or with
// a later one where the calendar leaves it out, to the nearest full hour of UTC.
func midnight(y int, m time.Month, d int, zone *time.Location) time.Time {
	day := time.Date(y, m, d, 0, 0, 0, 0, time.UTC) // overflowing days and months put right
	reached := func(t time.Time) bool {
		y, m, d := t.In(zone).Date()
		return !time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Before(day)
	}
	// Where clocks are changed at midnight, it may not exist or come twice, and
	// time.Date says of neither which it takes. What it takes is never further
	// from the day's beginning than a change of the clock.
	t := time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, zone)
	if !reached(t) { // it took the hour before the change, which skips midnight
		_, t = t.ZoneBounds()
	} else if change, _ := t.ZoneBounds(); !change.IsZero() && reached(change.Add(-1)) {
		// The day had begun before clocks were put back in its first hour.
		_, was := change.Add(-1).Zone()
		_, is := change.Zone()
		t = t.Add(time.Duration(is-was) * time.Second)
	}
	return nearest(t)
}

// nearest returns the full hour of UTC that is nearest, of two the earlier.
func nearest(t time.Time) time.Time { return t.Add(-1).Round(time.Hour).UTC() }
