package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/weirgate/weir/internal/stats"
)

const (
	// delayEvery is how often this process looks at how late it is.
	delayEvery = 10 * time.Millisecond
	// maxDelays is how many of these figures are kept: three hours' worth.
	maxDelays = 1 << 20
	// distorted is the delay at p99 beyond which the client itself shows in the
	// figures.
	distortedMillis = 2.0
)

// sampleDelay records how late this process comes to a timer, in milliseconds,
// until ctx is done. What keeps it from running (too few processors, garbage
// collection, another process) also makes it read the bytes of answers late.
func sampleDelay(ctx context.Context, into *pool) {
	timer := time.NewTimer(delayEvery)
	defer timer.Stop()
	due := time.Now().Add(delayEvery)
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		now := time.Now()
		into.add(milliseconds(now.Sub(due)))
		due = now.Add(delayEvery)
		timer.Reset(delayEvery)
	}
}

// evenShare is the share of the median TTFT that a call may go out late, beyond
// what is always tolerated, before the times themselves are in doubt.
const evenShare = 0.05

// client says whether the load test itself stood in the way of f.
func (t *take) client(calls []*point, f *Figures) Client {
	c := Client{Delay: t.delay.quantiles()}
	if c.Delay != nil && c.Delay.P99 > distortedMillis {
		c.Distorted = true
		c.Reason = fmt.Sprintf("this process came to its timers up to %.1f ms late (p99; %.1f ms at most), so times are too long by about as much: give it more processors, or fewer streams", c.Delay.P99, c.Delay.Max)
	}
	// Calls that waited for the bound on calls in flight are late on purpose.
	var late column
	for _, p := range calls {
		if p.timed && !p.held {
			late.add(span(p.late).milliseconds())
		}
	}
	s, ok := stats.Describe(late, false)
	if !ok || s.P99 <= distortedMillis {
		return c
	}
	by := fmt.Sprintf("%.1f ms after they were due (p99; %.1f ms at most)", s.P99, s.Max)
	if s.N < enoughForLate {
		by = fmt.Sprintf("%.1f ms after they were due (the most of %d calls)", s.Max, s.N)
	}
	c.Uneven = "calls went out up to " + by + ", so the load was less even than planned"
	typical, ok := p50(f.TTFT)
	if !ok {
		typical, ok = p50(f.E2E)
	}
	if ok && s.P99 > evenShare*typical {
		c.Distorted = true
		c.Reason = joined(c.Reason, c.Uneven)
	}
	return c
}

// enoughForLate calls have a p99 that is not just the greatest of them.
const enoughForLate = 100
