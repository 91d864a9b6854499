package limit

import (
	"math"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// Request is a call that asks to be admitted.
type Request struct {
	// Key is the caller's alias or id, never the key itself. All callers without one are
	// one caller.
	Key string
	// Model as the call names it, at most call.MaxName bytes.
	Model string
	// KeyLimits are the key's own: each dimension that they name replaces that of the
	// rules for keys. nil: none. Values are used as they are when the call comes.
	KeyLimits *call.Limits
	// Input and Output are the tokens that the call is expected to cost; Output is the
	// sum over all choices that were asked for. Below 0 is 0.
	Input, Output int64
	// Clamp says that Output is a guess rather than the call's own word, and lowers it
	// to what the smallest burst and cap can hold. Otherwise a guess could refuse for
	// ever what may well fit. Input is never lowered: it is there.
	Clamp bool
}

// cost is what a call takes from the buckets.
type cost struct{ requests, input, output int64 }

// of returns what a call takes from one dimension.
func (c cost) of(d Dimension) int64 {
	switch d {
	case Requests, Concurrency:
		return c.requests
	case InputTokens:
		return c.input
	case OutputTokens:
		return c.output
	}
	return c.input + c.output
}

// bounded returns a number of tokens that sums can take.
func bounded(n int64) int64 { return min(max(n, 0), MaxLimit) }

var noLimits call.Limits

// Admit takes what the call is expected to cost from every bucket that applies to
// it, or from none, and returns nil when the call may go on. The ticket is the
// caller's memory, and must be settled or cancelled on every path from then on; one
// that still holds an earlier admission cancels that first.
//
// A refusal has taken nothing. It lies in the ticket, and is good until the ticket
// is used again. In mode Shadow, Admit always returns nil, and a call that would have
// been refused takes nothing then and later: it must not be seen by the calls that
// Enforce would have admitted in its place. Ticket.WouldRefuse tells.
//
// Admit allocates nothing for a key and a model whose buckets are there.
func (p *Pool) Admit(r *Request, t *Ticket) *Refusal {
	t.Cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	t.clear()
	mode := p.effectiveMode()
	if mode == Off {
		return nil
	}
	p.admissions++
	now := p.now()
	own := r.KeyLimits
	if own == nil {
		own = &noLimits
	}
	var sets [numScopes]*set
	for scope := range sets {
		sets[scope] = p.find(Scope(scope), r, own, now)
	}
	c := cost{1, bounded(r.Input), bounded(r.Output)}
	if r.Clamp {
		c.output = clamp(&sets, c)
	}
	if w := check(&sets, c, now); w.set != nil {
		t.refused, t.refusal = true, w.refusal(now, c)
		p.refusals.add(r.Key, !own.IsZero(), mode, w.set.scope, w.dim)
		if mode == Enforce {
			return &t.refusal
		}
		return nil
	}
	t.take(p, &sets, c, now)
	return nil
}

// clamp returns the output that the smallest bucket can hold beside the input.
func clamp(sets *[numScopes]*set, c cost) int64 {
	room := c.output
	for _, s := range sets {
		if s == nil {
			continue
		}
		for _, d := range [...]Dimension{Tokens, OutputTokens, TokensInFlight} {
			if z := &s.sizes[d]; z.applies {
				room = min(room, z.burst-(c.of(d)-c.output))
			}
		}
	}
	return max(room, 0)
}

// check returns the highest wall in the way of a call. It changes nothing, so that a
// call that is refused never took anything, not even for a moment.
func check(sets *[numScopes]*set, c cost, now time.Time) (w wall) {
	for _, s := range sets {
		if s == nil {
			continue
		}
		for d, b := range s.rates {
			if !s.sizes[d].applies {
				continue
			}
			if ns := b.wait(b.level(now), c.of(Dimension(d))); ns > 0 {
				w.meet(s, Dimension(d), ns)
			}
		}
		s.checkCap(&w, Concurrency, s.calls, c)
		s.checkCap(&w, TokensInFlight, s.tokens, c)
	}
	return w
}

// checkCap is check for one cap.
func (s *set) checkCap(w *wall, d Dimension, used int64, c cost) {
	z := &s.sizes[d]
	if !z.applies {
		return
	}
	switch n := c.of(d); {
	case z.limit == 0 || n > z.limit:
		w.meet(s, d, math.Inf(1))
	case used+n > z.limit:
		w.meet(s, d, 0)
	}
}
