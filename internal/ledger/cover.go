package ledger

import "iter"

// piece is a run of hours or days whose sums are added to one span and taken
// off another; either may be none.
type piece struct {
	days        bool  // from usage_days, not usage_hours
	from, until int64 // seconds since 1970, until not included
	to, off     int
}

// cover divides the hours from … until among spans, so that little is read: of
// a day that spans share, one takes the whole day's sums, and the hours of the
// others are taken off it again. Since all sums are whole numbers, that is exact.
// days are the beginnings of the UTC days that have sums, in their order.
func cover(days []int64, from, until int64, s *calendar) iter.Seq[piece] {
	return func(yield func(piece) bool) {
		var last piece
		for _, d := range days {
			for p := range coverDay(d, from, until, s) {
				if last.until == p.from && last.days == p.days && last.to == p.to && last.off == p.off {
					last.until = p.until
					continue
				}
				if last.from < last.until && !yield(last) {
					return
				}
				last = p
			}
		}
		if last.from < last.until {
			yield(last)
		}
	}
}

// coverDay is cover for one day.
func coverDay(d, from, until int64, s *calendar) iter.Seq[piece] {
	var of [day / hour]int // the span of each hour
	for i := range of {
		of[i] = none
		if h := d + int64(i)*hour; from <= h && h < until {
			of[i] = s.of(h)
		}
	}
	// Whose the whole day's sums are: those who have most of it, unless the
	// hours alone are less to read.
	whole, best := none, count(of[:], none)
	for i, n := range of {
		if n != none && (i == 0 || n != of[i-1]) {
			if c := count(of[:], n) - 1; c > best {
				whole, best = n, c
			}
		}
	}
	return func(yield func(piece) bool) {
		if whole != none && !yield(piece{days: true, from: d, until: d + day, to: whole, off: none}) {
			return
		}
		for i, n := range of {
			h := d + int64(i)*hour
			if n != whole && !yield(piece{from: h, until: h + hour, to: n, off: whole}) {
				return
			}
		}
	}
}

func count(all []int, n int) int {
	c := 0
	for _, m := range all {
		if m == n {
			c++
		}
	}
	return c
}
