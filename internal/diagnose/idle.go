package diagnose

import (
	"math/bits"
	"slices"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// What a queue that is inferred from other calls rests on.
var (
	idleTook    = &figure{name: "window_idle_first_token_ms", unit: InMilliseconds, label: "calls of its model and size that met an idle engine took to the first token"}
	idleCount   = &figure{name: "window_idle_calls", unit: InCalls, label: "that met an idle engine in this window"}
	leastTook   = &figure{name: "window_least_first_token_ms", unit: InMilliseconds, label: "the quickest call of its model and size in this window took to the first token"}
	itTook      = &figure{name: "phases.prefill_ms", unit: InMilliseconds, label: "it took, from when it was sent"}
	notTold     = &figure{label: "the engine itself tells neither queue nor prefill: this is inferred from the other calls", bare: true}
	cacheUntold = &figure{label: "what came from the prefix cache is not known: the quick ones may have found more in it", bare: true}
)

// idle is what calls of one model and size take to the first token without a queue,
// where a window shows it, and shows that its slow calls waited. The zero value is
// that nothing is shown.
type idle struct {
	took  time.Duration
	calls int // that met an idle engine; 0 when took is of the quickest call
}

// likeness tells calls apart by what the time to the first token depends on: the
// model, and the tokens or, those unknown, the bytes of the prompt to within a
// factor of two.
type likeness struct {
	cell
	bytes bool
}

func (l *look) likeness() (likeness, bool) {
	if at, known := l.cell(); known {
		return likeness{cell: at}, true
	}
	n, known := l.rec.BytesIn.Get()
	if !known || n <= 0 {
		return likeness{}, false
	}
	return likeness{cell{model: l.rec.Model, size: bits.Len64(uint64(n))}, true}, true
}

// undivided returns the time from sent to the first token of a streamed call whose
// engine did not divide it, and the most of it that the queue can have taken.
func (l *look) undivided() (d, most time.Duration, known bool) {
	d, known = l.took(prefill)
	if !known || !l.split {
		return 0, 0, false
	}
	switch l.sources[prefill] {
	case call.Unattributed:
		return d, d, true
	case call.Inferred: // gauges bound the queue
		if l.spans[queueEngine].IsKnown() {
			return 0, 0, false
		}
		most, known = l.rec.QueueBound.Get()
		return d, min(max(most, 0), d), known
	}
	return 0, 0, false
}

// start is a call that the engine did not divide.
type start struct {
	took         time.Duration
	whole        time.Duration
	running      int64 // at dispatch, with this one; 0 is unknown
	busy         int64 // the same, or at the first token if more ran then
	none, waited bool  // nothing waited at dispatch; some did then, or at the first token
	upstream     string
	sent         time.Time
	age          time.Duration
}

// firsts gathers them by likeness.
type firsts map[likeness][]start

func (f firsts) add(l *look) {
	d, _, known := l.undivided()
	at, alike := l.likeness()
	if !known || !alike {
		return
	}
	then := fresh(l.rec.AtDispatch)
	n, read := then.Waiting.Get()
	running := then.Running.Or(-1) + 1
	busy := max(running, fresh(l.rec.AtFirstToken).Running.Or(0))
	f[at] = append(f[at], start{took: d, whole: l.whole, running: running, busy: busy, none: read && n == 0, waited: n > 0 || l.waitedLater(),
		upstream: l.rec.Upstream, sent: l.dispatched(), age: then.Age.Or(0)})
}

// idles says for each likeness what a call takes without a queue. It costs n log n
// in the calls.
func (f firsts) idles(sent arrivals) map[likeness]idle {
	m := make(map[likeness]idle)
	for at, calls := range f {
		if i := idleOf(calls, sent); i.took > 0 {
			m[at] = i
		}
	}
	return m
}

func idleOf(calls []start, sent arrivals) idle {
	slices.SortFunc(calls, func(a, b start) int { return int(min(max(a.took-b.took, -1), 1)) })
	var found idle
	// Calls that met an idle engine: nothing waited, fewer ran than beside half of
	// all calls, and no other call came since that was read.
	var busy []int64
	for i := range calls {
		busy = append(busy, calls[i].busy)
	}
	slices.Sort(busy)
	var met []time.Duration
	for i := range calls {
		c := &calls[i]
		gap, known := sent.between(c.upstream, c.sent)
		if c.none && c.running > 0 && c.running < busy[len(busy)/2] && !(known && c.age > gap) {
			met = append(met, c.took)
		}
	}
	if len(met) >= IdleCalls {
		found = idle{took: met[(len(met)-1)/2], calls: len(met)}
	} else if least, median := calls[0].took, calls[(len(calls)-1)/2].took; float64(least) <= IdleShare*float64(median) {
		found = idle{took: least}
	}
	// Half of those which that makes slow have to have waited.
	slow, waited := 0, 0
	for i := range calls {
		if c := &calls[i]; c.took >= Slow && stands(c.took-found.took, QueueShare, c.whole) {
			slow++
			if c.waited {
				waited++
			}
		}
	}
	if slow == 0 || 2*waited < slow {
		return idle{}
	}
	return found
}

// besideIdle finds a queue by what other calls took that met an idle engine: this
// one took much longer, and calls waited. It is inferred.
func besideIdle(l *look, s *sheet) bool {
	d, most, known := l.undivided()
	queue := min(d-l.idle.took, most)
	if !known || l.idle.took <= 0 || d < Slow || !stands(queue, QueueShare, l.whole) {
		return false
	}
	then := fresh(l.rec.AtDispatch).Waiting
	later := fresh(l.rec.AtFirstToken).Waiting
	if then == call.Known(0) && later == call.Known(0) && !l.missed() {
		return false // this one met no queue
	}
	s.span(CodeEngineQueue, call.Inferred, queue, l.of, l.whole)
	if l.idle.calls > 0 {
		s.pro(idleTook, milliseconds(l.idle.took))
		s.pro(itTook, milliseconds(d))
		s.pro(idleCount, float64(l.idle.calls))
	} else {
		s.pro(leastTook, milliseconds(l.idle.took))
		s.pro(itTook, milliseconds(d))
	}
	noneThen(l, s, noneWaiting)
	gauges(l, s)
	s.con(notTold, 0)
	if _, exact, counted := l.computed(); !counted || !exact {
		s.con(cacheUntold, 0)
	}
	return true
}

// arrivals are the instants at which calls were sent, by upstream.
type arrivals map[string][]time.Time

// dispatched is when the call was sent upstream.
func (l *look) dispatched() time.Time {
	return l.rec.Time.Add(l.spans[upload].Or(0) + l.spans[queueGateway].Or(0) + l.spans[connect].Or(0))
}

func (a arrivals) add(l *look) { a[l.rec.Upstream] = append(a[l.rec.Upstream], l.dispatched()) }

// sort ends the gathering.
func (a arrivals) sort() arrivals {
	for _, list := range a {
		slices.SortFunc(list, time.Time.Compare)
	}
	return a
}

func (a arrivals) gap(l *look) call.Duration {
	if d, known := a.between(l.rec.Upstream, l.dispatched()); known {
		return call.Lasting(d)
	}
	return call.Duration{}
}

// between returns the time from the call before one that was sent at an instant; 0
// when another was sent at the same.
func (a arrivals) between(upstream string, at time.Time) (time.Duration, bool) {
	list := a[upstream]
	i, _ := slices.BinarySearchFunc(list, at, time.Time.Compare)
	switch {
	case i+1 < len(list) && list[i+1].Equal(at):
		return 0, true
	case i == 0 || i >= len(list):
		return 0, false
	}
	return at.Sub(list[i-1]), true
}
