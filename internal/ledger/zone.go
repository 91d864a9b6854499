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

// calendar numbers the spans of time into which a report divides its period: hours,
// days or months of a zone, as far as there are sums in them, from 0 in their order.
//
// An hour of UTC belongs to the day in which its middle lies. Where the zone's
// offset is a whole number of hours that is the day itself; elsewhere the day's
// edge is the nearest hour, the earlier one of two that are as near: a day of
// Asia/Kolkata (UTC+5:30), which begins at 18:30 UTC, takes the hours from 18:00.
// Days on which clocks change have 23 or 25 hours.
type calendar struct {
	period Grouping // "": all time is one span
	zone   *time.Location
	starts []time.Time // in the zone; zero for all time
	known  map[date]int
	last   date // the one looked for last, and its number
	lastN  int
}

// date is a day of a calendar.
type date struct {
	year  int
	month time.Month
	day   int // 0: the whole month
}

func newCalendar(period Grouping, zone *time.Location) *calendar {
	return &calendar{period: period, zone: zone, known: make(map[date]int), lastN: none}
}

// none is the number of no span.
const none = -1

// of returns the number of the span to which an hour belongs. Hours are to be
// asked for in their order.
func (s *calendar) of(h int64) int {
	switch s.period {
	case "":
		if len(s.starts) == 0 {
			s.starts = append(s.starts, time.Time{})
		}
		return 0
	case ByHour:
		if start := time.Unix(h, 0).In(s.zone); len(s.starts) == 0 || !start.Equal(s.starts[len(s.starts)-1]) {
			s.starts = append(s.starts, start)
		}
		return len(s.starts) - 1
	}
	var d date
	d.year, d.month, d.day = time.Unix(h+hour/2, 0).In(s.zone).Date()
	if s.period == ByMonth {
		d.day = 0
	}
	if s.lastN != none && d == s.last {
		return s.lastN
	}
	// A day may come in two pieces, where a clock was set back over midnight.
	n, known := s.known[d]
	if !known {
		n = len(s.starts)
		s.known[d] = n
		s.starts = append(s.starts, dayStart(d.year, d.month, max(d.day, 1), s.zone))
	}
	s.last, s.lastN = d, n
	return n
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
