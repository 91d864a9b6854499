package slo

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// leap is how many minutes a clock may be told to go at once; more is believed
	// only when it stays so for patience minutes.
	leap     = minutesPerDay
	patience = 5
	// maxMinute bounds minutes, a million years off, so that no sum of them overflows.
	maxMinute = 1 << 39
)

// aging is what the clock says: which minute is the current one, and so what is
// kept how. It does not change; the clock makes another.
type aging struct {
	minute int64 // since 1970: the largest plausible one
	second int64 // the last plausible one
	part   int64 // of the display, that the minute is in
	period Period
	lost   *atomic.Int64
}

// firstHour and lastHour are those that are kept by minutes.
func (a *aging) firstHour() int64 { return floorDiv(a.minute, 60) - keptHours + 1 }
func (a *aging) lastHour() int64  { return floorDiv(a.minute+leap, 60) }

// byMinute tells whether the minute of a second is kept as such.
func (a *aging) byMinute(second int64) bool {
	hour := floorDiv(second, 3600)
	return hour >= a.firstHour() && hour <= a.lastHour()
}

// keeps tells whether a day is kept by hours.
func (a *aging) keeps(day int64) bool {
	today := floorDiv(a.minute, minutesPerDay)
	return day > today-keptDays && day <= today+1
}

// place returns the second in which a decision counts: its own, or the current one
// if that is more than a day ahead or older than all that is kept, as when the wall clock
// has been set.
func (a *aging) place(second int64) int64 {
	if now := a.minute * 60; second > now-(keptDays-2)*86400 && second < now+86400 {
		return second // as nearly always; below is the same, exactly
	}
	minute := floorDiv(second, 60)
	if minute > a.minute+leap || !a.keeps(floorDiv(minute, minutesPerDay)) {
		return a.second
	}
	return second
}

// split returns at which minute of an hour a month begins, 0 if at its first, or none.
func (a *aging) split(hour int64) int64 {
	if a.period.Rolling != 0 {
		return 0
	}
	_, to := a.period.At(time.Unix(hour*3600, 0))
	if m := floorDiv(to.Unix(), 60) - hour*60; m > 0 && m < 60 {
		return m
	}
	return 0
}

// clock follows the time that is told.
type clock struct {
	mu    sync.Mutex
	state atomic.Pointer[aging] // nil until a time was told
	now   time.Time             // the last plausible one
	lost  atomic.Int64          // see Status.Lost
	// A time far off that was told, and since when; both are minutes. far is false
	// without.
	far          bool
	first, again int64
}

// minuteOf returns the minute that a time is in, counted from 1970.
func minuteOf(t time.Time) int64 {
	return min(max(floorDiv(t.Unix(), 60), -maxMinute), maxMinute)
}

// tell takes the time, and returns the one to go by: this one, or while it is not
// believed the last that was.
func (c *clock) tell(now time.Time) (time.Time, *aging) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.state.Load()
	if a == nil {
		return now, nil
	}
	m := minuteOf(now)
	if m > a.minute+leap || m < a.minute-leap {
		if !c.far || m < c.first || m > c.again+leap {
			c.far, c.first = true, m
		}
		c.again = m
		if m < c.first+patience {
			return c.now, a
		}
		return now, c.set(now, m, a.period)
	}
	return now, c.set(now, max(m, a.minute), a.period)
}

// begin takes the time as it is.
func (c *clock) begin(now time.Time, period Period) *aging {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.set(now, minuteOf(now), period)
}

// set sets the time. The lock is held.
func (c *clock) set(now time.Time, minute int64, period Period) *aging {
	c.far, c.now = false, now
	a := &aging{minute: minute, second: max(min(now.Unix(), maxMinute*60), -maxMinute*60), part: floorDiv(minute, partMinutes), period: period, lost: &c.lost}
	c.state.Store(a)
	return a
}

// adopt takes the newest minute of counts that come from elsewhere. Where nobody has told
// the time yet, it is believed, and so is the period.
func (c *clock) adopt(minute int64, period Period, told bool) *aging {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.state.Load()
	switch {
	case a == nil:
		return c.set(time.Unix(minute*60, 0), minute, period)
	case !told:
		return c.set(c.now, max(minute, a.minute), period)
	case minute > a.minute && minute <= a.minute+leap:
		return c.set(c.now, minute, a.period)
	}
	return a
}
