package slo

import (
	"slices"
	"time"
)

// burnWindows are those of ObjectiveStatus.Burn, in minutes.
var burnWindows = [...]int64{5, 30, 60, 6 * 60, 3 * minutesPerDay}

// windows are the windows up to one minute that a status needs.
type windows struct {
	now    time.Time
	minute int64
	second int64
	// lengths are in minutes, ascending, without repetition.
	lengths []int64
	// The period: its first minute, and the first hour of those not kept by minutes.
	from, fromHour int64
	period         PeriodStatus
}

// newWindows returns the windows that end with the minute of now, which is part of
// them.
func newWindows(now time.Time, period Period, burn []BurnRule) *windows {
	w := &windows{now: now, minute: minuteOf(now), second: now.Unix()}
	w.lengths = append(w.lengths, burnWindows[:]...)
	for _, r := range burn {
		w.lengths = append(w.lengths, int64(r.Long/time.Minute), int64(r.Short/time.Minute))
	}
	slices.Sort(w.lengths)
	w.lengths = slices.Compact(w.lengths)
	w.period.Name = period.Name()
	w.period.From, w.period.To = period.At(now)
	switch length := int64(period.Rolling / time.Minute); {
	case length == 0:
		w.from = minuteOf(w.period.From)
		w.fromHour = floorDiv(w.from, 60)
		return w
	case length <= burnWindows[len(burnWindows)-1]:
		w.from = w.minute - length + 1
		w.fromHour = floorDiv(w.from+59, 60)
	default:
		// Beyond three days counts are kept by the hour.
		w.fromHour = floorDiv(w.minute-length+1, 60)
		w.from = w.fromHour * 60
	}
	w.period.From = time.Unix(w.from*60, 0).In(now.Location())
	return w
}

// index returns which of lengths a window is.
func (w *windows) index(length time.Duration) int {
	i, _ := slices.BinarySearch(w.lengths, int64(length/time.Minute))
	return i
}

// figures are the sums of a series, or of several, over all windows.
type figures struct {
	windows     [][]int64 // inside the envelope, by count
	in, out     []int64   // of the period
	minutes     int64     // outside the envelope in the period
	seconds     []int64   // of an outage's window: good and bad of each column
	hour, five  [Success]Histogram
	acc, ignore []int64 // room to work in
	scratch     []int64
}

func newFigures(w *windows, l *layout) *figures {
	f := &figures{windows: make([][]int64, len(w.lengths))}
	for i := range f.windows {
		f.windows[i] = make([]int64, l.counts)
	}
	f.in, f.out = make([]int64, l.counts), make([]int64, l.counts)
	f.acc, f.ignore = make([]int64, l.counts), make([]int64, l.counts)
	f.scratch = make([]int64, 2*l.counts+1)
	f.seconds = make([]int64, 2*len(l.keys))
	return f
}

func (f *figures) reset() {
	for _, s := range f.windows {
		clear(s)
	}
	clear(f.in)
	clear(f.out)
	clear(f.seconds)
	f.minutes = 0
	for i := range f.hour {
		f.hour[i].Reset()
		f.five[i].Reset()
	}
}

// read takes the sums of a series. Its class's lock is held.
func (f *figures) read(s *series, a *aging, w *windows, numbers []Number) {
	f.reset()
	clear(f.acc)
	to := w.minute
	for i, length := range w.lengths {
		from := w.minute - length + 1
		s.sum(a, from, to, floorDiv(from+59, 60), f.acc, f.ignore, f.scratch)
		copy(f.windows[i], f.acc)
		to = from - 1
	}
	f.minutes = s.sum(a, w.from, w.minute, w.fromHour, f.in, f.out, f.scratch)
	s.seconds.sum(w.second, f.seconds)
	for _, n := range numbers {
		s.display.hour(n, a.part, &f.hour[n], &f.five[n])
	}
}

// add adds the sums of another series.
func (f *figures) add(o *figures, numbers []Number) {
	for i := range f.windows {
		addTo(f.windows[i], o.windows[i])
	}
	addTo(f.in, o.in)
	addTo(f.out, o.out)
	addTo(f.seconds, o.seconds)
	f.minutes += o.minutes
	for _, n := range numbers {
		f.hour[n].Merge(&o.hour[n])
		f.five[n].Merge(&o.five[n])
	}
}

func addTo(to, from []int64) {
	for i, n := range from {
		to[i] += n
	}
}

// countsOf returns the counts of a column.
func countsOf(s []int64, col int) Counts {
	return Counts{Good: s[kinds*col], Bad: s[kinds*col+1], Unknown: s[kinds*col+2]}
}
