package gateway

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/weirgate/weir/internal/call"
)

const (
	// historyMinutes is how far back the sample reaches: a fault that began within it has
	// a healthy window beside it.
	historyMinutes = 120
	// historyCalls is how many calls of a minute are kept: the median of 30 stands within
	// some percent of the minute's own, and all minutes together take some 7 MiB.
	historyCalls = 30
)

// history keeps a sample of the calls of each minute: any call of a minute is as
// likely to be kept as another (reservoir sampling), so that means and shares
// of the sample are those of the minute, but for chance. Its zero value is empty.
type history struct {
	mu      sync.Mutex
	minutes [historyMinutes]sampledMinute
}

// sampledMinute is one minute by the time at which calls ended.
type sampledMinute struct {
	number int64 // minutes since 1970; what is older has been written over
	seen   int64
	calls  []*call.Record
}

// add takes a record into the sample of the minute in which its call ended.
func (h *history) add(rec *call.Record, ended time.Time) {
	number := ended.Unix() / 60
	h.mu.Lock()
	defer h.mu.Unlock()
	m := &h.minutes[int(number%historyMinutes+historyMinutes)%historyMinutes]
	if m.number != number {
		m.number, m.seen, m.calls = number, 0, m.calls[:0]
	}
	m.seen++
	if len(m.calls) < historyCalls {
		m.calls = append(m.calls, rec)
	} else if i := rand.Int64N(m.seen); i < historyCalls {
		m.calls[i] = rec
	}
}

// replace puts an amended record in the place of the one it was made of.
func (h *history) replace(old, rec *call.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.minutes {
		for j, r := range h.minutes[i].calls {
			if r == old {
				h.minutes[i].calls[j] = rec
				return
			}
		}
	}
}

// between returns the sampled calls received in [from, to).
func (h *history) between(from, to time.Time) []*call.Record {
	h.mu.Lock()
	defer h.mu.Unlock()
	var picked []*call.Record
	for i := range h.minutes {
		for _, rec := range h.minutes[i].calls {
			if !rec.Time.Before(from) && rec.Time.Before(to) {
				picked = append(picked, rec)
			}
		}
	}
	return picked
}

// Sample returns calls that f picks and that were received before to: all that are
// in memory, and for older minutes of the last two hours a sample of 30 calls
// each. Load tests and probes are left out. The order means nothing.
func (g *Gateway) Sample(f Filter, to time.Time) []*call.Record {
	f.Limit, f.Failed = 0, false
	recent := g.Calls(f)
	have := make(map[*call.Record]bool, len(recent))
	var picked []*call.Record
	take := func(rec *call.Record) {
		if rec.Time.Before(to) && !rec.Bench && !rec.Probe && !have[rec] && f.picks(rec) {
			have[rec] = true
			picked = append(picked, rec)
		}
	}
	for _, rec := range recent {
		take(rec)
	}
	for _, rec := range g.history.between(f.Since, to) {
		take(rec)
	}
	return picked
}
