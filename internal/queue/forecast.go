package queue

import (
	"math"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// All of this file runs under the queue's lock.

const (
	// memory is over how many calls a mean reaches back: it halves the weight of what
	// was 44 calls ago.
	memory = 64
	forget = 1 - 1.0/memory
	// enough is how many calls must have left before their rate says anything.
	enough = 8

	leastRetry, mostRetry = time.Second, time.Minute
	longestForecast       = 24 * time.Hour
)

// mean is the mean of what was added, the latest most. The zero value has none.
type mean struct {
	sum, n float64
}

func (m *mean) add(x float64) {
	m.sum = m.sum*forget + x
	m.n = m.n*forget + 1
}

// or returns the mean, or def when nothing was added.
func (m *mean) or(def float64) float64 {
	if m.n == 0 {
		return def
	}
	return m.sum / m.n
}

// flow measures how fast calls leave while others wait. When nobody waits, the
// pace is that of the arrivals and says nothing of the pool.
type flow struct {
	gap, price mean // seconds between departures, and the cost of each
	samples    int  // up to enough
	last       time.Time
}

// watch begins a measurement: somebody waits now.
func (f *flow) watch(now time.Time) { f.last = now }

func (f *flow) depart(now time.Time, price float64) {
	f.gap.add(now.Sub(f.last).Seconds())
	f.price.add(price)
	f.samples = min(f.samples+1, enough)
	f.last = now
}

// seconds returns the time that a unit of cost takes to leave. A departure that is overdue
// counts as if it came now, so that a pool that stands still is not taken for a quick one.
func (f *flow) seconds(now time.Time, waiting bool) (perUnit float64, known bool) {
	if f.samples < enough {
		return 0, false
	}
	gap := f.gap
	if open := now.Sub(f.last).Seconds(); waiting && open > gap.or(0) {
		gap.add(open)
	}
	return gap.or(0) / f.price.or(1), true
}

// predict says how long a new call of a key (nil for one that has none
// waiting) would wait, given that it must; unknown while too little has left. The class gets
// its share of the flow against the other classes that wait, and the key its turns
// against other keys; but nobody waits longer than it takes everything that
// waits now to leave. What comes later, deadlines within the key and calls
// that will be shed are not considered, so a light class among heavy ones is
// promised too much: shedding at the door errs towards letting wait.
func (q *Queue) predict(c *class, k *key, now time.Time) call.Duration {
	perUnit, known := q.flow.seconds(now, q.waiting > 0)
	if !known {
		return call.Duration{}
	}
	all, weights := q.backlog()
	if c.waiting == 0 {
		weights += c.weight
	}
	own := c.size.or(q.flow.price.or(1))
	fair := float64(c.ahead(k)+1) * own * weights / c.weight
	return span(perUnit * min(fair, all+own))
}

// predictAll says how long it takes all who wait, and one more, to be let in, given
// that there is no room.
func (q *Queue) predictAll(now time.Time) call.Duration {
	perUnit, known := q.flow.seconds(now, q.waiting > 0)
	if !known {
		return call.Duration{}
	}
	all, _ := q.backlog()
	return span(perUnit * (all + q.flow.price.or(1)))
}

// backlog returns what the waiting calls will cost, as calls of their class
// lately did, and the weights of the classes that have some.
func (q *Queue) backlog() (cost, weights float64) {
	typical := q.flow.price.or(1)
	for _, c := range q.classes {
		if c.waiting > 0 {
			cost += float64(c.waiting) * c.size.or(typical)
			weights += c.weight
		}
	}
	return cost, weights
}

// span turns seconds into a duration, at most longestForecast.
func span(seconds float64) call.Duration {
	return call.Lasting(time.Duration(math.Min(seconds, longestForecast.Seconds()) * float64(time.Second)))
}

// rejection makes the error of a refused call, and counts it.
func (q *Queue) rejection(c *class, k *key, why Reason, limit int64, now time.Time) *Rejection {
	c.tally.rejected[why]++
	retry := q.cfg.MaxWait
	if why == Closed || q.cfg.MaxWaiting == NoWaiting {
		retry = leastRetry // another queue is taking over; or nothing is known, and soon a slot may be free
	} else if wait, known := q.predict(c, k, now).Get(); known {
		retry = wait
	}
	return &Rejection{Queue: q.name, Class: c.name, Reason: why, Limit: limit, RetryAfter: min(max(retry, leastRetry), mostRetry)}
}
