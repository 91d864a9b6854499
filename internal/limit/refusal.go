package limit

import (
	"math"
	"time"
)

// Refusal says which limit a call met. Of several it is the one with the longest
// wait.
type Refusal struct {
	Scope     Scope
	Dimension Dimension
	// Subject is whose limit it is: a key, a model, both, or the pool's name.
	Subject string

	// Limit is this gateway's part of the limit: per minute for a rate, at once for a cap.
	Limit int64
	// Burst is what a rate's bucket holds, equal to Limit unless the rule says otherwise.
	Burst int64
	// Used is what is gone of the burst, or in flight; more than it in debt.
	Used int64
	// Requested is what the call would have taken, after clamping.
	Requested int64

	// RetryAfter is how long until a rate can pay, if nobody else takes from it:
	// (used + requested − burst)·60/limit seconds. It is 0 when nobody can know it: for
	// a cap, which waits for a call to end, and for what can never pass.
	RetryAfter time.Duration
	// TooLarge: the call can never pass, however long it waits. It asks for more than
	// the limit ever holds, or the limit is 0.
	TooLarge bool
}

// Wall returns scope and dimension, such as "key tokens_per_minute".
func (r *Refusal) Wall() string {
	if r.Scope >= numScopes || r.Dimension >= Dimension(numDimensions) {
		return "invalid"
	}
	return walls[r.Scope][r.Dimension]
}

var walls = func() (w [numScopes][numDimensions]string) {
	for s := range w {
		for d := range w[s] {
			w[s][d] = Scope(s).String() + " " + Dimension(d).String()
		}
	}
	return w
}()

// wall is a limit that a call meets.
type wall struct {
	set  *set // nil: none
	dim  Dimension
	wait float64 // ns; 0: a cap, +Inf: for ever
}

// meet keeps the higher of two walls; of equal ones the first.
func (w *wall) meet(s *set, d Dimension, wait float64) {
	if w.set == nil || wait > w.wait {
		*w = wall{s, d, wait}
	}
}

// refusal tells of the wall for a call of this cost.
func (w *wall) refusal(now time.Time, c cost) Refusal {
	s := w.set
	z := s.sizes[w.dim]
	r := Refusal{Scope: s.scope, Dimension: w.dim, Subject: s.text, Limit: z.limit, Burst: z.burst,
		Used: s.used(w.dim, now), Requested: c.of(w.dim), TooLarge: math.IsInf(w.wait, 1)}
	if !r.TooLarge {
		r.RetryAfter = nanoseconds(w.wait)
	}
	return r
}
