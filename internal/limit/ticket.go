package limit

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// chargeStep is the number of output tokens beyond what is booked after which a
// call that streams is charged again: few enough that a limit is not passed by much,
// and so many that the lock is taken once in tens of events.
const chargeStep = 64

// Ticket is what one call holds of a pool. The zero value holds nothing, and so
// does the ticket of a call that was refused, would have been, or met mode Off: all
// methods may be called on it and do nothing. It must not be copied once used.
//
// One goroutine calls Admit; after it has returned, any may call the other methods.
type Ticket struct {
	// next is the output at which Charge does something. It is written under the pool's
	// mutex and read without.
	next atomic.Int64

	pool *Pool // nil: nothing was admitted. Set by Admit alone.

	// The pool's mutex is held for these.
	held   bool
	booked cost
	holds  [numScopes]hold

	// These are set by Admit alone.
	reserved cost
	refused  bool
	refusal  Refusal
}

// hold is what a ticket took from one set.
type hold struct {
	set  *set           // nil: nothing
	took [numRates]bool // the rates that applied then; one that is newer was not paid
}

// clear makes the ticket one that holds nothing.
func (t *Ticket) clear() {
	t.next.Store(math.MaxInt64)
	t.pool, t.held, t.refused = nil, false, false
}

// take books a call that has passed the check. The mutex is held.
func (t *Ticket) take(p *Pool, sets *[numScopes]*set, c cost, now time.Time) {
	t.pool, t.held, t.reserved, t.booked = p, true, c, cost{}
	t.next.Store(c.output + chargeStep)
	for i, s := range sets {
		h := &t.holds[i]
		h.set = s
		if s == nil {
			continue
		}
		s.calls++
		for d := range h.took {
			h.took[d] = s.sizes[d].applies
		}
	}
	t.book(c, now)
}

// book brings what is booked to c. The mutex is held.
func (t *Ticket) book(c cost, now time.Time) {
	more := cost{c.requests - t.booked.requests, c.input - t.booked.input, c.output - t.booked.output}
	if more == (cost{}) {
		return
	}
	t.booked = c
	for i := range t.holds {
		h := &t.holds[i]
		if h.set == nil {
			continue
		}
		h.set.tokens += more.of(TokensInFlight)
		for d, took := range h.took {
			if took {
				h.set.rates[d].book(now, more.of(Dimension(d)))
			}
		}
	}
}

// end books the last figures and frees what the call held at once. The mutex is held.
func (t *Ticket) end(c cost) {
	t.book(c, t.pool.now())
	t.held = false
	t.next.Store(math.MaxInt64)
	for i := range t.holds {
		if s := t.holds[i].set; s != nil {
			t.pool.release(s, t.booked.of(TokensInFlight))
			t.holds[i].set = nil
		}
	}
}

// Charge tells how many tokens of output, in all, the call has produced so far. From
// chargeStep (64) tokens past the reservation on, it books them in steps of at least
// as many. Call it at each event: below the next step it is a comparison, without a
// lock.
func (t *Ticket) Charge(output int64) {
	if output < t.next.Load() || t.pool == nil {
		return
	}
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	output = bounded(output)
	if !t.held || output < t.booked.output+chargeStep {
		return
	}
	c := t.booked
	c.output = output
	t.book(c, t.pool.now())
	t.next.Store(output + chargeStep)
}

// Settle ends the call: it books the difference between what is booked and the true
// figures, either way, and frees the place among the calls and the tokens in flight. A
// second Settle, or one after Cancel, does nothing.
//
// An unknown figure leaves what is booked. It is not 0: the upstream has read a
// prompt and written something, and were it given back, whoever hangs up before the
// usage arrives would pay nothing. Who has a better guess passes it as known.
func (t *Ticket) Settle(input, output call.Count) {
	if t.pool == nil {
		return
	}
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	if !t.held {
		return
	}
	c := t.booked
	c.input = bounded(input.Or(c.input))
	c.output = bounded(output.Or(c.output))
	t.end(c)
}

// Cancel ends a call that was never sent to the upstream: it gives back all that was
// taken, the request too. A second Cancel, or one after Settle, does nothing.
func (t *Ticket) Cancel() {
	if t.pool == nil {
		return
	}
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	if t.held {
		t.end(cost{})
	}
}

// Reserved returns the tokens taken at admission, after clamping; unknown when the
// call was not admitted by limits.
func (t *Ticket) Reserved() (input, output call.Count) {
	if t.pool == nil {
		return call.Count{}, call.Count{}
	}
	return call.Known(t.reserved.input), call.Known(t.reserved.output)
}

// WouldRefuse returns the refusal that Enforce would have answered with where Admit
// in mode Shadow returned nil; nil when there is none. After a refusal it returns
// the same as Admit did.
func (t *Ticket) WouldRefuse() *Refusal {
	if !t.refused {
		return nil
	}
	return &t.refusal
}
