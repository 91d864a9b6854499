package ledger

import "time"

// Seconds.
const (
	hour = int64(time.Hour / time.Second)
	day  = 24 * hour
)

// hourOf returns the beginning of the UTC hour in which t lies, in seconds
// since 1970.
func hourOf(t time.Time) int64 {
	s := t.Unix()
	rest := s % hour
	if rest < 0 {
		rest += hour
	}
	return s - rest
}

// bucket is a run of UTC hours that belong to one day or month of a zone.
type bucket struct {
	from, until int64     // seconds since 1970, until not included
	label       time.Time // when the day or month begins, in the zone
}

// buckets divides the hours from … until among the days or months of a zone.
//
// An hour belongs to the day in which its middle lies. Where the zone's offset
// is a whole number of hours that is the day itself; elsewhere the day's edge is
// the nearest hour, the earlier one of two that are as near: a day of
// Asia/Kolkata (UTC+5:30), which begins at 18:30 UTC, takes the hours from 18:00.
// Days on which clocks change have 23 or 25 hours.
func buckets(from, until int64, zone *time.Location, period Grouping) []bucket {
	var all []bucket
	lastYear, lastMonth, lastDay := 0, time.Month(0), 0
	for h := from; h < until; h += hour {
		y, m, d := time.Unix(h+hour/2, 0).In(zone).Date()
		if period == ByMonth {
			d = 1
		}
		if y != lastYear || m != lastMonth || d != lastDay {
			lastYear, lastMonth, lastDay = y, m, d
			all = append(all, bucket{from: h, label: dayStart(y, m, d, zone)})
		}
		all[len(all)-1].until = h + hour
	}
	return all
}

// dayStart returns the first moment of a day in a zone: midnight, but where
// clocks were set forward over it, when they had been.
func dayStart(y int, m time.Month, d int, zone *time.Location) time.Time {
	t := time.Date(y, m, d, 0, 0, 0, 0, zone)
	if t.Day() != d {
		// There was no midnight, and Date took the offset of the day before.
		if _, end := t.ZoneBounds(); !end.IsZero() {
			return end
		}
		return t
	}
	if start, _ := t.ZoneBounds(); !start.IsZero() {
		// Where there were two midnights, Date may have taken the second.
		_, before := start.Add(-time.Second).Zone()
		_, after := t.Zone()
		if first := t.Add(time.Duration(after-before) * time.Second); before > after && first.Before(start) && first.In(zone).Day() == d {
			return first
		}
	}
	return t
}
