package gpu

import "math"

const (
	// hold is how long a sample speaks for what was before and comes after it,
	// ns: the sample period and as much again for one that comes late.
	hold = int64(2e9)
	// powerGap is the longest gap between two readings of power that is bridged
	// by their mean, and counterGap the same for two readings of the energy
	// counter: what was used between these is known, only when is not. An exporter
	// collects every 30 s.
	powerGap, counterGap = int64(5e9), int64(90e9)
	// longestTail bounds how far beyond the last point power is held.
	longestTail = int64(60e9)
)

// curve is the energy that one GPU has used over time: points between which it
// is interpolated. A new segment starts where it is not known what was used
// since the point before.
//
// The driver's counter of energy is exact. Without one, energy is the integral
// of power by the trapezoid rule. A reading that repeats the counter is no point:
// an exporter shows the same figures until it collects anew.
type curve struct {
	times
	points [ring]energyPoint
	// power is the last reading, W, at powerAt; counter is that of the last
	// point, J, at its time. NaN is unknown.
	power, counter float64
	powerAt        int64
}

type energyPoint struct {
	joules  float64 // since the first point, gaps left out
	segment int32
}

func (c *curve) point(i int) *energyPoint { return &c.points[place(i)] }

// add takes a reading of power and counter, NaN where there is none. Times rise.
func (c *curve) add(at int64, power, counter float64) {
	if c.n == 0 {
		if !math.IsNaN(power) || !math.IsNaN(counter) {
			c.push(at, 0, true)
			c.power, c.powerAt, c.counter = power, at, counter
		}
		return
	}
	last := c.last()
	gap := at - last
	joules, known := 0.0, false
	switch {
	case !math.IsNaN(counter) && !math.IsNaN(c.counter):
		if counter == c.counter && gap <= counterGap {
			c.power, c.powerAt = power, at // held until the counter moves
			return
		}
		// Backwards: the driver was loaded anew.
		joules = counter - c.counter
		known = gap <= counterGap && joules >= 0 && joules <= mostWatts*seconds(gap)
	case math.IsNaN(counter) && !math.IsNaN(c.counter) && gap <= powerGap:
		c.power, c.powerAt = power, at // the counter may be back with the next
		return
	case !math.IsNaN(power) && !math.IsNaN(c.power):
		joules = (power + c.power) / 2 * seconds(gap)
		known = gap <= powerGap && c.powerAt == last
	case math.IsNaN(power) && math.IsNaN(counter):
		return // the next reading may bridge it
	}
	if !known {
		joules = 0
	}
	c.push(at, c.point(c.n-1).joules+joules, !known)
	c.power, c.powerAt, c.counter = power, at, counter
}

func (c *curve) push(at int64, joules float64, fresh bool) {
	var segment int32
	if c.n > 0 {
		segment = c.point(c.n - 1).segment
	}
	if fresh {
		segment++
	}
	*c.point(c.n) = energyPoint{joules, segment}
	c.times.at[place(c.n)] = at
	c.n++
}

// to returns the energy at t, where i is the first point at or after t, and the
// segment that t lies in.
func (c *curve) to(t int64, i int) (joules float64, segment int32, ok bool) {
	if c.n == 0 {
		return 0, 0, false
	}
	if i >= c.n {
		last := c.point(c.n - 1)
		tail, watts := c.tail()
		beyond := t - c.last()
		if beyond > tail {
			return 0, 0, false
		}
		return last.joules + watts*seconds(beyond), last.segment, true
	}
	p := c.point(i)
	if c.of(i) == t {
		return p.joules, p.segment, true
	}
	if i == c.first() {
		return 0, 0, false
	}
	before := c.point(i - 1)
	if before.segment != p.segment {
		return 0, 0, false // a gap
	}
	share := float64(t-c.of(i-1)) / float64(c.of(i)-c.of(i-1))
	return before.joules + share*(p.joules-before.joules), p.segment, true
}

// tail is how far beyond the last point the energy is known, ns, if the last
// power is held: as far as a sample may speak, or half as long again as the
// exporter's last two collections were apart. What really was used replaces it
// with the next point.
func (c *curve) tail() (length int64, watts float64) {
	last := c.point(c.n - 1)
	length, watts = hold, c.power
	if c.n-1 > c.first() {
		if before := c.point(c.n - 2); before.segment == last.segment {
			gap := c.last() - c.of(c.n-2)
			length = min(max(hold, gap+gap/2), longestTail)
			if math.IsNaN(watts) {
				watts = (last.joules - before.joules) / seconds(gap)
			}
		}
	}
	if math.IsNaN(watts) {
		return 0, 0
	}
	return length, watts
}

// between returns the energy from a to b, J; ok is false where any of it is
// unknown.
func (c *curve) between(a, b int64) (joules float64, ok bool) {
	from, segment, ok := c.to(a, c.seek(a))
	if !ok {
		return 0, false
	}
	to, same, ok := c.to(b, c.seek(b))
	if !ok || same != segment {
		return 0, false
	}
	return to - from, true
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }
