package slo

import "time"

// Value is what is known of one number of a call. The zero value is undefined: the
// number does not exist for this call (TPOT of one token, TTFT of a JSON
// answer), and the call does not count for objectives about it.
type Value struct {
	d    time.Duration
	kind valueKind
}

type valueKind uint8

const (
	undefined valueKind = iota
	unknown
	exact
	atLeast
	atMost
)

// Exactly is a number that is known.
func Exactly(d time.Duration) Value { return Value{d, exact} }

// Unknown is a number that exists and that nobody told.
func Unknown() Value { return Value{kind: unknown} }

// AtLeast is a number of which a lower bound is known: it can make a call bad,
// never good.
func AtLeast(d time.Duration) Value { return Value{d, atLeast} }

// AtMost is a number of which an upper bound is known: it can make a call good,
// never bad.
func AtMost(d time.Duration) Value { return Value{d, atMost} }

// Verdict is what a call is for one objective.
type Verdict uint8

// The verdicts. The zero value is that the call does not count for the objective.
const (
	NotCounted  Verdict = iota
	Good                // the objective holds
	Bad                 // it was missed
	UnknownKept         // it counts, and nobody knows whether the objective holds
)

// Against judges a value by a threshold, which still holds it.
func (v Value) Against(threshold time.Duration) Verdict {
	switch v.kind {
	case exact:
		if v.d <= threshold {
			return Good
		}
		return Bad
	case atLeast:
		if v.d > threshold {
			return Bad
		}
		return UnknownKept
	case atMost:
		if v.d <= threshold {
			return Good
		}
		return UnknownKept
	case unknown:
		return UnknownKept
	}
	return NotCounted
}

// Ending is how a call ended, as success is judged by it.
type Ending uint8

// The endings.
const (
	// Answered: the service did what it should.
	Answered Ending = iota
	// Failed: 5xx, overload (429 or 503 that is not the caller's own limit), a time-out, a
	// broken stream. Bad for success.
	Failed
	// Excused: the client's own mistake (4xx), or refused by the caller's own limits. Not
	// counted for success.
	Excused
	// Left: the client went away. Bad for success when an objective had been missed
	// by then, else not counted.
	Left
)

// Facts is what is known of a call at its end. Times are the wall clock's.
type Facts struct {
	Received time.Time
	// Ended decides the minute of whatever was not decided before.
	Ended time.Time
	// Values has what is known of each timed number.
	Values [Numbers]Value
	Ending Ending
	// Input and Output are tokens; below 0 is unknown. Conditions and envelopes go
	// by them.
	Input, Output int64
}
