package bench

import (
	"fmt"
	"time"
)

// slowerBy is the change from first to last window that counts as one: more than
// what a service that does nothing else varies by.
const slowerBy = 0.03

// thermal compares the first window of a long repeat with the last, nil when it
// was too short for two.
//
// The first begins with the first end of a call, so that it does not hold the
// silence before; the last ends with the last send, after which there is less
// and less to do. A call belongs to the window in which it ended.
func (t *take) thermal(window time.Duration) *Thermal {
	from, to := time.Duration(-1), time.Duration(0)
	for i := range t.points {
		if p := &t.points[i]; !p.discarded {
			if from < 0 || p.end < from {
				from = p.end
			}
			to = max(to, p.sent)
		}
	}
	if from < 0 || to-from < 2*window {
		return nil
	}
	th := &Thermal{Window: window, First: t.window(from, from+window), Last: t.window(to-window, to)}
	th.judge()
	return th
}

// window sums up the calls that ended after from, and not after to. Gaps are not
// kept by time, so they are absent.
func (t *take) window(from, to time.Duration) Figures {
	var calls []*point
	sent := 0
	for i := range t.points {
		p := &t.points[i]
		if p.discarded {
			continue
		}
		if p.end > from && p.end <= to {
			calls = append(calls, p)
		}
		if p.sent > from && p.sent <= to {
			sent++
		}
	}
	f := t.of(calls, from, to)
	f.Sent = float64(sent) / (to - from).Seconds()
	return f
}

func (th *Thermal) judge() {
	unit := "output tokens/s"
	first, ok1 := known(th.First.OutputPerSecond)
	last, ok2 := known(th.Last.OutputPerSecond)
	if !ok1 || !ok2 {
		unit, first, last = "calls/s", th.First.CallsPerSecond, th.Last.CallsPerSecond
	}
	if first <= 0 {
		th.Verdict = "undetermined: no call succeeded in the first window"
		return
	}
	change := last/first - 1
	text := fmt.Sprintf("throughput went from %.4g to %.4g %s (%+.1f %%)", first, last, unit, 100*change)
	th.Slower = change < -slowerBy
	if a, b := th.First.TPOT, th.Last.TPOT; a != nil && b != nil && a.P50 > 0 {
		rise := b.P50/a.P50 - 1
		text += fmt.Sprintf(", TPOT p50 from %.4g to %.4g ms (%+.1f %%)", a.P50, b.P50, 100*rise)
		th.Slower = th.Slower || rise > slowerBy
	}
	if th.Slower {
		th.Verdict = "slower when warm: " + text + "; judge this service by the last window"
		return
	}
	th.Verdict = "steady: " + text
}
