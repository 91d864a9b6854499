package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Queue admits calls to one pool. Make it with New; it may be used by many
// goroutines at once. Whenever its lock is free, nobody waits who could be let in.
type Queue struct {
	name string

	mu     sync.Mutex // guards all below, and the slots, classes and keys in the queue
	cfg    Config     // filled
	closed bool

	inFlight int64 // calls
	tokens   int64 // reserved by them
	waiting  int
	bytes    int64  // held by the waiting
	arrivals uint64 // that waited, ever
	// oldest and newest are the ends of the list of the waiting.
	oldest, newest *Slot
	// chosen is the call whose turn it is while its tokens do not fit.
	chosen *Slot

	classes []*class // heaviest first, then by name
	byName  map[string]*class
	// floor is the level to which classes are lifted, as class.floor is for keys.
	floor float64
	flow  flow
}

var errSlotInUse = errors.New("queue: enter: the slot is in use: give each call its own")

// New returns a queue of that name, which errors and State carry. The error is
// Config.Validate's.
func New(name string, cfg Config) (*Queue, error) {
	q := &Queue{name: name, byName: make(map[string]*class)}
	if err := q.Configure(cfg); err != nil {
		return nil, err
	}
	return q, nil
}

// Configure changes the queue as it runs, as a reload does; on an error, which is
// Config.Validate's, nothing changes. It takes effect at once: room that it makes is given to
// those who wait, whose longest wait becomes the new one. Calls in flight stay counted, also
// above a cap that was lowered, and calls that wait above a lowered
// bound stay: only new ones are refused. A class that is gone keeps its
// calls, at its old weight, to their end.
func (q *Queue) Configure(cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	cfg = cfg.filled()
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if cfg.MaxWait != q.cfg.MaxWait {
		for s := q.oldest; s != nil; s = s.next {
			s.timer.Reset(s.entered.Add(cfg.MaxWait).Sub(now))
		}
	}
	q.cfg = cfg
	for _, c := range q.classes {
		_, stays := cfg.Classes[c.name]
		c.retired = !stays
	}
	for name, want := range cfg.Classes {
		i := slices.IndexFunc(q.classes, func(c *class) bool { return c.name == name })
		if i < 0 {
			i = len(q.classes)
			q.classes = append(q.classes, &class{name: name, keys: make(map[string]*key)})
		}
		q.classes[i].weight = float64(want.Weight)
		q.byName[name] = q.classes[i]
	}
	slices.SortFunc(q.classes, func(a, b *class) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.name, b.name))
	})
	q.bury()
	q.dispatch(now)
	return nil
}

// bury drops the retired classes that have no calls left.
func (q *Queue) bury() {
	q.classes = slices.DeleteFunc(q.classes, func(c *class) bool {
		if !c.retired {
			return false
		}
		if q.byName[c.name] == c {
			delete(q.byName, c.name) // new calls of it go to DefaultClass
		}
		return c.waiting == 0 && c.inFlight == 0
	})
}

// Close refuses all who wait and all who come. Calls in flight go on, and may
// still be settled and released. Closing again does nothing.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	now := time.Now()
	for q.oldest != nil {
		q.refuse(q.oldest, Closed, now)
	}
}

// Enter takes a slot for a call and returns nil when the call may go; the
// caller must then Release it. It returns at once, and without allocating for
// a key that was seen lately, when there is room and nobody waits.
//
// Else it waits for its turn. The error is a *Rejection, or ctx's own when
// ctx ended first: the call's place is free again at once, and a slot that was given to it
// in the same moment went to the next one.
func (q *Queue) Enter(ctx context.Context, ask *Ask, s *Slot) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	q.mu.Lock()
	if s.state != outside {
		q.mu.Unlock()
		return errSlotInUse
	}
	c := q.byName[ask.Class]
	if c == nil {
		c = q.byName[DefaultClass]
	}
	s.fill(q, c, ask)
	if !q.closed && q.waiting == 0 && q.fits(s) {
		q.pass(s, ask.Key)
		q.mu.Unlock()
		return nil
	}
	now := time.Now()
	if r := q.door(c, ask, now); r != nil {
		q.mu.Unlock()
		return r
	}
	q.join(s, ask, now)
	q.dispatch(now) // the turn may be its own, if only to wait for room
	q.mu.Unlock()
	return q.await(ctx, s)
}

func (s *Slot) fill(q *Queue, c *class, ask *Ask) {
	s.q, s.class = q, c
	s.reserved, s.bytes = ask.Tokens.Sum(), max(ask.Bytes, 0)
	s.price, s.keyWeight = ask.Tokens.price(), ask.weight()
	s.deadline, s.ttft = ask.Deadline, ask.PredictedTTFT
	s.refusal, s.waited = nil, 0
}

// door refuses a call that may not even wait.
func (q *Queue) door(c *class, ask *Ask, now time.Time) *Rejection {
	cfg, k := &q.cfg, c.keys[ask.Key]
	held := max(ask.Bytes, 0)
	switch {
	case q.closed:
		return q.rejection(c, k, Closed, 0, now)
	case q.waiting >= cfg.MaxWaiting:
		return q.rejection(c, k, Full, int64(max(cfg.MaxWaiting, 0)), now)
	case c.waiting >= cfg.MaxPerClass:
		return q.rejection(c, k, FullClass, int64(cfg.MaxPerClass), now)
	case q.waitingOf(ask.Key) >= cfg.MaxPerKey:
		return q.rejection(c, k, FullKey, int64(cfg.MaxPerKey), now)
	case held > cfg.MaxBytes-q.bytes:
		return q.rejection(c, k, FullBytes, cfg.MaxBytes, now)
	case cfg.Shed && !ask.Deadline.IsZero():
		wait, known := q.predict(c, k, now).Get()
		slack := ask.Deadline.Sub(now) - ask.PredictedTTFT
		if known && wait > slack {
			return q.rejection(c, k, ShedDoor, 0, now)
		}
	}
	return nil
}

// waitingOf counts the waiting calls of a key in all classes.
func (q *Queue) waitingOf(name string) (calls int) {
	for _, c := range q.classes {
		if k := c.keys[name]; k != nil {
			calls += k.calls.len()
		}
	}
	return calls
}

// await waits for the decision about a slot that has joined.
func (q *Queue) await(ctx context.Context, s *Slot) error {
	for {
		select {
		case <-s.ready:
		case <-ctx.Done():
		case <-s.timer.C:
		}
		if decided, err := q.decided(ctx, s); decided {
			return err
		}
	}
}

// decided ends the wait of a slot for whatever reason holds now. None does when
// the timer ran out just as Configure allowed for more time, or when the slot was
// poked in an earlier wait that ended otherwise at that moment.
func (q *Queue) decided(ctx context.Context, s *Slot) (decided bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	gone, c := ctx.Err(), s.class
	switch {
	case s.refusal != nil:
		err = s.refusal
	case gone != nil:
		if s.state == granted { // and nobody will use it
			q.charge(s, 0)
			q.release(s)
		} else {
			q.leave(s)
			q.dispatch(time.Now())
		}
		c.tally.left++
		err = gone
	case s.state == granted:
		s.state = admitted
		c.tally.admit(s.waited)
	default:
		now := time.Now()
		if rest := s.entered.Add(q.cfg.MaxWait).Sub(now); rest > 0 {
			s.timer.Reset(rest)
			return false, nil
		}
		q.refuse(s, Waited, now)
		q.dispatch(now)
		err = s.refusal
	}
	s.timer.Stop()
	return true, err
}
