package queue

import (
	"fmt"
	"time"
)

// Reason is why a queue refused a call. Its text is fit for a metric's label.
type Reason uint8

const (
	Full      Reason = iota // MaxWaiting calls wait already
	FullClass               // MaxPerClass calls of the class wait already
	FullKey                 // MaxPerKey calls of the key wait already
	FullBytes               // the bodies of the waiting calls, with this one, pass MaxBytes
	Waited                  // MaxWait is over
	ShedDoor                // the predicted wait outlasts what the deadline leaves
	ShedPop                 // the turn came when the deadline was lost
	Closed                  // the queue is closed
	reasons                 // how many there are
)

var reasonNames = [reasons]string{"full", "full_class", "full_key", "full_bytes", "waited", "shed_door", "shed_pop", "closed"}

// Reasons holds all reasons in order.
var Reasons = [reasons]Reason{Full, FullClass, FullKey, FullBytes, Waited, ShedDoor, ShedPop, Closed}

// String returns the reason as a label: "full_key".
func (r Reason) String() string {
	if r < reasons {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason_%d", uint8(r))
}

// Rejection is the error of a call that a queue refused. The call was charged
// with nothing and holds nothing.
type Rejection struct {
	Queue  string
	Class  string // as queued: DefaultClass when the call named none that is known
	Reason Reason
	// Limit is the bound that was met: calls for Full, FullClass and FullKey,
	// bytes for FullBytes, nanoseconds for Waited; 0 for the others.
	Limit int64
	// RetryAfter is when to try again: 1 s to 60 s. It is an estimate, made
	// from how fast calls left lately and how much waits; while too little has
	// left to tell, it is the longest wait of the queue; where nobody may wait,
	// and when the queue is closed, 1 s.
	RetryAfter time.Duration
}

// Error says what was met and what to do next. It names no key.
func (r *Rejection) Error() string {
	var what string
	switch r.Reason {
	case Full:
		what = fmt.Sprintf("%d calls wait already", r.Limit)
		if r.Limit == 0 {
			what = "all slots are taken and nobody may wait"
		}
	case FullClass:
		what = fmt.Sprintf("%d calls of class %s wait already", r.Limit, r.Class)
	case FullKey:
		what = fmt.Sprintf("%d calls of this key wait already", r.Limit)
	case FullBytes:
		what = fmt.Sprintf("waiting calls may hold %d bytes of requests in all", r.Limit)
	case Waited:
		what = fmt.Sprintf("no slot came free within %v", time.Duration(r.Limit))
	case ShedDoor:
		what = "the wait would be too long for the call's objective"
	case ShedPop:
		what = "the call's objective was lost while it waited"
	case Closed:
		what = "closed"
	default:
		what = r.Reason.String()
	}
	return fmt.Sprintf("queue %q: %s: retry in about %v", r.Queue, what, r.RetryAfter.Round(time.Second))
}
