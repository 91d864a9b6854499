package slo

import "encoding/binary"

// series is the counts of one model of a class. The class's lock is held.
type series struct {
	model  string
	layout *layout
	hours  [hourSlots]*hourCells
	days   [daySlots]*dayCells
	recent *hourCells // what was counted last; one of hours
	// dead says that calls on their way find another series in its place.
	dead bool
	// seen is the newest minute that aging has looked at, closed the first that is not
	// in life of a class with an envelope, and adopted the last that may
	// hold counts of an earlier process.
	seen, closed, adopted int64
	// life is what was counted since the process began, inside the envelope, and
	// lifeOut outside, both by count; shown is the most that Totals showed of
	// them, for each column good, bad, unknown and outside.
	life, lifeOut, shown []int64
	seconds              seconds
	display              display
}

// longAgo stands for no minute at all.
const longAgo = -1 << 50

func newSeries(model string, l *layout) *series {
	s := &series{model: model, layout: l, seen: longAgo, closed: longAgo, adopted: longAgo}
	s.life, s.lifeOut = make([]int64, l.counts), make([]int64, l.counts)
	s.shown = make([]int64, 4*len(l.keys))
	s.seconds.init(len(l.keys))
	return s
}

// spot is where the counts of one second go.
type spot struct {
	second, minute int64
	hour           *hourCells // nil: not kept by minutes
	row            int
	wide           []byte // of hour and row, if it is so
	// life is the part of series.life that they join at once; nil: when the minute has closed.
	life []int64
	// seconds is the part of series.seconds; nil: it is too long ago.
	seconds []uint32
}

// spot returns where the counts of a second go. It holds until anything else is done to the series.
func (s *series) spot(x *spot, a *aging, second int64) {
	x.second, x.wide, x.life, x.seconds = second, nil, s.life, s.seconds.at(a.second, second)
	x.minute, x.hour = s.at(a, second)
	if x.hour == nil {
		return
	}
	x.row = int(x.minute - x.hour.hour*60)
	x.wide = x.hour.wide(x.row)
	switch {
	case s.layout.qualified() && x.minute >= s.closed && x.minute > s.adopted:
		x.life = nil
	case x.hour.outside>>x.row&1 == 1:
		x.life = s.lifeOut
	}
}

// count adds n calls of a verdict to a column. a is what the tracker's clock says.
func (s *series) count(a *aging, x *spot, col int, v Verdict, n int64) {
	c := kinds*col + int(v) - 1
	if cell := openWidth * c; cell < len(x.wide) {
		// As nearly always: it is the hour that is being counted.
		is := int64(binary.LittleEndian.Uint32(x.wide[cell:])) + n
		if uint64(is) < 1<<32 {
			binary.LittleEndian.PutUint32(x.wide[cell:], uint32(is))
			x.hour.added(x.row, c, n)
		} else {
			x.wide = nil
			x.hour.add(x.row, c, n)
		}
	} else if x.hour != nil {
		x.hour.add(x.row, c, n)
	} else {
		s.coarse(a, x.minute, c, n)
	}
	if x.life != nil {
		x.life[c] += n
	}
	if x.seconds != nil {
		i := 2 * col // good, or unknown: nobody can say that it is part of an outage
		if v == Bad {
			i++
		}
		x.seconds[i] = uint32(min(max(int64(x.seconds[i])+n, 0), 1<<32-1))
	}
}

// at returns the minute of a second, and the cells of its hour, nil if it is not kept by minutes.
func (s *series) at(a *aging, second int64) (minute int64, h *hourCells) {
	minute = floorDiv(second, 60)
	if h = s.recent; h == nil || minute-h.hour*60 < 0 || minute-h.hour*60 >= 60 {
		h = s.hour(a, floorDiv(minute, 60))
		s.recent = h
	}
	return minute, h
}

// tally adds to what the envelope is judged by.
func (s *series) tally(a *aging, tally int, second, n int64) {
	if minute, h := s.at(a, second); h != nil {
		row := int(minute - h.hour*60)
		h.add(row, s.layout.counts+tally, n)
	}
}

// judgeMinute finds out anew whether the minute of a second is outside the
// envelope. since is the first minute for which this envelope holds.
func (s *series) judgeMinute(a *aging, second, since int64) {
	minute, h := s.at(a, second)
	if h == nil || minute < since {
		return
	}
	row := int(minute - h.hour*60)
	outside := s.layout.outside(&h.cells, row)
	if h.outside>>row&1 == 1 == outside {
		return
	}
	living := minute < s.closed && minute > s.adopted
	if living {
		s.live(h, row, -1)
	}
	h.turn(row, outside)
	if living {
		s.live(h, row, 1)
	}
}

// live adds a minute to what was counted since the process began.
func (s *series) live(h *hourCells, row int, sign int64) {
	to := s.life
	if h.outside>>row&1 == 1 {
		to = s.lifeOut
	}
	for c := range to {
		to[c] += sign * h.cells.get(row, c)
	}
}

// hour returns the cells of an hour that is kept by minutes, nil for one that is not.
func (s *series) hour(a *aging, hour int64) *hourCells {
	if hour < a.firstHour() || hour > a.lastHour() {
		return nil
	}
	at := &s.hours[slot(hour, hourSlots)]
	if *at != nil && (*at).hour != hour {
		s.merge(a, *at) // a clock that was set wrong has been here
		*at = nil
	}
	if *at == nil {
		*at = newHour(hour, s.layout, openWidth)
	}
	return *at
}

// age closes minutes, and folds hours that are no longer kept by minutes into
// days. Every operation on the series begins with it.
func (s *series) age(a *aging) {
	if s.seen == a.minute {
		return
	}
	if s.closed == longAgo {
		s.closed = a.minute
	}
	s.close(a.minute)
	if hour := floorDiv(a.minute, 60); floorDiv(s.seen, 60) != hour {
		for i, h := range s.hours {
			switch {
			case h == nil:
			case h.hour < a.firstHour():
				s.merge(a, h)
				s.hours[i] = nil
			case h.hour < hour && !h.packed:
				h.pack()
			}
		}
		s.recent = nil
	}
	s.seen = a.minute
}

// close lets the minutes before one join what was counted since the process began.
func (s *series) close(before int64) {
	if s.layout.qualified() && before > s.closed {
		for _, h := range s.hours {
			if h == nil || h.hour*60+60 <= s.closed || h.hour*60 >= before {
				continue
			}
			for m := max(s.closed, s.adopted+1, h.hour*60); m < min(before, h.hour*60+60); m++ {
				s.live(h, int(m-h.hour*60), 1)
			}
		}
	}
	s.closed = max(s.closed, before)
}

// settle lets all that has been counted so far join what was counted since the
// process began, as inside or outside as it stands. It comes before counts that are not this
// process's own are added, or another envelope holds: they could not be told apart later.
func (s *series) settle(a *aging) {
	s.close(s.last(a) + 1)
	s.adopt(a)
}

// adopt takes all minutes that have counts as having joined.
func (s *series) adopt(a *aging) {
	s.adopted = max(s.adopted, s.last(a))
	s.closed = a.minute
}

// last returns the last minute that has counts, or the current one if that is later.
func (s *series) last(a *aging) int64 {
	last := a.minute
	for _, h := range s.hours {
		if h == nil || h.hour*60+59 <= last || h.hour > a.lastHour() {
			continue
		}
		for r := 59; h.hour*60+int64(r) > last; r-- {
			if !h.empty(r) {
				last = h.hour*60 + int64(r)
			}
		}
	}
	return last
}

// merge folds an hour into its day. Where a month begins within the hour, the minutes
// before go to the hour before, so that no hour belongs to two months.
func (s *series) merge(a *aging, h *hourCells) {
	n := s.layout.counts
	sums := make([]int64, 2*n)
	split := int(a.split(h.hour))
	for _, part := range [...]struct {
		hour     int64
		from, to int
	}{{h.hour - 1, 0, split}, {h.hour, split, 60}} {
		clear(sums)
		minutes := h.sum(part.from, part.to, sums[:n], sums[n:])
		for c, v := range sums {
			if v != 0 {
				s.hourly(a, part.hour, c, v)
			}
		}
		if minutes != 0 {
			s.hourly(a, part.hour, 2*n, minutes)
		}
	}
	if s.recent == h {
		s.recent = nil
	}
}

// coarse adds to the hour of a minute that is not kept as one, as inside the envelope: what would
// tell is not kept.
func (s *series) coarse(a *aging, minute int64, col int, n int64) {
	hour := floorDiv(minute, 60)
	if minute-hour*60 < a.split(hour) {
		hour--
	}
	s.hourly(a, hour, col, n)
}

// hourly adds to a column of an hour. What has no place is lost, and counted so.
func (s *series) hourly(a *aging, hour int64, col int, n int64) {
	day := floorDiv(hour, 24)
	at := &s.days[slot(day, daySlots)]
	if *at == nil || (*at).day != day {
		// Another day has this place: one older than what is kept, or one of a clock that
		// was set wrong, which gives way to what is right.
		if *at != nil && !a.keeps(day) {
			a.lost.Add(max(n, 0))
			return
		}
		if *at != nil && (*at).day > day {
			a.lost.Add(sumOf((*at).total[:2*s.layout.counts]))
		}
		*at = newDay(day, s.layout.counts)
	}
	(*at).add(int(slot(hour, 24)), col, n)
}

func sumOf(s []int64) (n int64) {
	for _, v := range s {
		n += v
	}
	return n
}

// sum adds the minutes from from up to to, both included, to in and out, which have
// a place for each count, and returns how many minutes were outside. Hours that are not kept
// by minutes count if they begin at or after fromHour.
func (s *series) sum(a *aging, from, to, fromHour int64, in, out, scratch []int64) (minutes int64) {
	for h := max(floorDiv(from, 60), a.firstHour()); h <= floorDiv(to, 60); h++ {
		x := s.hours[slot(h, hourSlots)]
		if x == nil || x.hour != h {
			continue
		}
		minutes += x.sum(int(max(from-h*60, 0)), int(min(to-h*60, 59))+1, in, out)
	}
	last := floorDiv(to, 60)
	for d := max(floorDiv(fromHour, 24), floorDiv(last, 24)-daySlots); d <= floorDiv(last, 24); d++ {
		x := s.days[slot(d, daySlots)]
		if x == nil || x.day != d {
			continue
		}
		minutes += x.sum(int(max(fromHour-d*24, 0)), int(min(last-d*24, 23))+1, in, out, scratch)
	}
	return minutes
}
