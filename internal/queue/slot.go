package queue

import "time"

// Slot is a call's place, first in the queue and then in flight. Its memory is the
// caller's: one for each call, not to be copied. The zero value is ready for
// Enter, and so is a Slot that was released or refused.
type Slot struct {
	_ noCopy

	// Set by Enter before anybody else sees the slot.
	q         *Queue
	class     *class
	key       *key
	reserved  int64 // tokens in flight, unweighted
	bytes     int64
	price     float64 // what the call is charged with
	keyWeight float64
	// classWeight is the class's at admission, which a reload may change.
	classWeight float64
	due         time.Time // orders the calls of a key
	deadline    time.Time // or zero
	ttft        time.Duration

	// Guarded by the queue's lock.
	state      state
	number     uint64 // of arrival, among those that waited
	entered    time.Time
	waited     time.Duration
	refusal    *Rejection // of a waiting call, when it was refused
	prev, next *Slot      // in order of arrival
	at         int        // in the heap of the key

	// ready has a token when the queue may have decided. It and the timer are
	// kept for the next wait.
	ready chan struct{}
	timer *time.Timer
}

type state uint8

const (
	outside  state = iota // not entered, refused, or released
	waiting               // in the queue
	granted               // in flight, but Enter has not returned yet
	admitted              // in flight, and the caller's to release
)

// noCopy lets vet find copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

func (s *Slot) place() *int { return &s.at }

func (s *Slot) before(other *Slot) bool {
	if c := s.due.Compare(other.due); c != 0 {
		return c < 0
	}
	return s.number < other.number
}

// poke wakes the caller. It never blocks: a token that is there already will do.
func (s *Slot) poke() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// lost tells whether the first token can no longer come in time.
func (s *Slot) lost(now time.Time) bool {
	return !s.deadline.IsZero() && now.Add(s.ttft).After(s.deadline)
}

// Settle charges the call with what it really used in place of what was charged
// before, so that its key and class pay no more and no less. It may be called
// often: while a stream runs past its reservation, and once before Release; the last one
// counts. A call that is never settled pays its reservation. Tokens in
// flight rise with a use above the reservation, and fall with Release only.
//
// A call that failed without using anything is still charged 1. If failing
// takes long, settle the tokens of its prompt instead: a key whose calls
// occupy slots for next to nothing is served before all others.
//
// Settle may be called on any goroutine after Enter has returned. On a slot
// that is not held it does nothing.
func (s *Slot) Settle(used Tokens) {
	q := s.q
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.state != admitted {
		return
	}
	q.charge(s, used.price())
	if sum := used.Sum(); sum > s.reserved {
		q.tokens += sum - s.reserved
		s.reserved = sum
	}
}

// Release gives the slot back and lets in whoever fits now. It may be called
// on any goroutine after Enter has returned, and more than once: on a slot that is not
// held it does nothing. A slot is never taken from a call by age, so
// every path out of the call must release it.
func (s *Slot) Release() {
	q := s.q
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.state == admitted {
		q.release(s)
	}
}
