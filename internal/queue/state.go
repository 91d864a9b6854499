package queue

import (
	"sort"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// WaitEdges are the upper edges of the buckets of Waits, inclusive.
var WaitEdges = [...]time.Duration{
	0, time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second,
	10 * time.Second, 30 * time.Second, time.Minute,
}

// Waits is a histogram of waits.
type Waits struct {
	Count int64
	Sum   time.Duration
	// Buckets counts the waits up to each of WaitEdges and above the one before,
	// and those above all edges at the end.
	Buckets [len(WaitEdges) + 1]int64
}

func (w *Waits) add(d time.Duration) {
	w.Count++
	w.Sum += d
	i := 0
	if d > 0 {
		i = sort.Search(len(WaitEdges), func(i int) bool { return d <= WaitEdges[i] })
	}
	w.Buckets[i]++
}

// tally counts what became of the calls of a class. Guarded by the queue's lock.
type tally struct {
	waits    Waits
	left     int64
	rejected [reasons]int64
}

func (t *tally) admit(waited time.Duration) { t.waits.add(waited) }

// State is what a queue is at one moment.
type State struct {
	Name     string
	Waiting  int
	Bytes    int64 // held by the waiting
	InFlight int64 // calls
	Tokens   int64 // reserved by the calls in flight
	// OldestWait is how long the oldest waiting call has waited; unknown when none waits.
	OldestWait call.Duration
	// PredictedWait is how long it would take all who wait, and one more, to be
	// let in; 0 when there is room, unknown while too little has left to tell. It is an estimate.
	PredictedWait call.Duration
	Classes       []ClassState // heaviest first, then by name
}

// ClassState is what a class is at one moment, and what became of its calls
// since the class was configured. A call is counted once: as admitted, rejected or left.
type ClassState struct {
	Name     string
	Weight   int
	Waiting  int
	InFlight int
	// PredictedWait is how long a new call would wait whose key has none
	// waiting, as State.PredictedWait is for all.
	PredictedWait call.Duration
	// Waits holds the waits of the admitted calls, 0 for those who had none: its
	// Count is how many were admitted.
	Waits Waits
	// Left is how many callers went away while they waited.
	Left int64
	// Rejected counts by Reason.
	Rejected [reasons]int64
}

// State returns the queue's state. It takes the lock for some microseconds with
// a thousand keys waiting, which is cheap enough for a scrape.
func (q *Queue) State() State {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	st := State{Name: q.name, Waiting: q.waiting, Bytes: q.bytes, InFlight: q.inFlight, Tokens: q.tokens,
		PredictedWait: call.Lasting(0), Classes: make([]ClassState, len(q.classes))}
	// With room by both caps and nobody waiting, a call of ordinary size goes at once.
	room := q.waiting == 0 && q.vacant() && (q.cfg.Tokens == 0 || q.tokens < q.cfg.Tokens)
	if !room {
		st.PredictedWait = q.predictAll(now)
	}
	if q.oldest != nil {
		st.OldestWait = call.Lasting(now.Sub(q.oldest.entered))
	}
	for i, c := range q.classes {
		st.Classes[i] = ClassState{Name: c.name, Weight: int(c.weight), Waiting: c.waiting, InFlight: c.inFlight,
			PredictedWait: call.Lasting(0), Waits: c.tally.waits, Left: c.tally.left, Rejected: c.tally.rejected}
		if !room {
			st.Classes[i].PredictedWait = q.predict(c, nil, now)
		}
	}
	return st
}
