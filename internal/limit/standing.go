package limit

import (
	"math"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// Window tells how one kind of rate stands, for the headers that clients expect. Of
// all buckets of that kind that apply it is the one with the least left; of those with
// equally little, the one that takes longest to fill.
type Window struct {
	// Applies is whether there is any such limit; if not, all else is zero.
	Applies bool
	Scope   Scope
	// Limit is this gateway's part of the limit, per minute.
	Limit int64
	// Remaining is what is in the bucket, rounded down; 0 in debt.
	Remaining int64
	// Reset is the time until the bucket is full; unknown when it never will be.
	Reset call.Duration
}

// Standing is how the rates stand that apply to one call.
type Standing struct{ Requests, Tokens, InputTokens, OutputTokens Window }

// of returns the window of a rate.
func (s *Standing) of(d int) *Window {
	return [...]*Window{Requests: &s.Requests, Tokens: &s.Tokens,
		InputTokens: &s.InputTokens, OutputTokens: &s.OutputTokens}[d]
}

// meet keeps the tighter of two windows.
func (w *Window) meet(other Window) {
	if w.Applies {
		if other.Remaining > w.Remaining {
			return
		}
		if other.Remaining == w.Remaining &&
			other.Reset.Or(math.MaxInt64) <= w.Reset.Or(math.MaxInt64) {
			return
		}
	}
	*w = other
}

// window tells how a bucket stands.
func (b *bucket) window(scope Scope, now time.Time) Window {
	level := b.level(now)
	w := Window{Applies: true, Scope: scope, Limit: b.limit, Remaining: max(b.whole(level), 0)}
	if b.limit > 0 {
		w.Reset = call.Lasting(nanoseconds(max(float64(b.burst)-level, 0) / b.perSecond * 1e9))
	}
	return w
}

// meet tightens a standing by all rates of a set.
func (s *Standing) meet(set *set, now time.Time) {
	for d, b := range set.rates {
		if set.sizes[d].applies {
			s.of(d).meet(b.window(set.scope, now))
		}
	}
}

// untouched tightens a standing by rates that nobody has taken from.
func (s *Standing) untouched(scope Scope, z *sizes) {
	for d := range numRates {
		if !z[d].applies {
			continue
		}
		w := Window{Applies: true, Scope: scope, Limit: z[d].limit, Remaining: z[d].burst}
		if z[d].limit > 0 {
			w.Reset = call.Lasting(0)
		}
		s.of(d).meet(w)
	}
}

// Standing tells how the rates stand now that apply to such a call, without taking
// anything. In mode Off none applies. It does not allocate.
func (p *Pool) Standing(r *Request) (st Standing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mode == Off {
		return st
	}
	now := p.now()
	own := r.KeyLimits
	if own == nil {
		own = &noLimits
	}
	for i := range numScopes {
		scope := Scope(i)
		if !p.applies(scope, own) {
			continue
		}
		id, own := subjectOf(scope, r.Key, r.Model), ownOf(scope, own)
		s := p.lookup(id, own, now)
		if s == nil {
			z := p.effective(id, own)
			if p.crowded(id, own, z.count()) {
				s = p.sets[p.other(id)]
			}
			if s == nil {
				st.untouched(scope, &z)
				continue
			}
		}
		st.meet(s, now)
	}
	return st
}

// Standing tells how the rates stand now that the ticket's call has taken from. It
// is zero when the ticket holds nothing. It does not allocate.
func (t *Ticket) Standing() (st Standing) {
	if t.pool == nil {
		return st
	}
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	if !t.held {
		return st
	}
	now := t.pool.now()
	for i := range t.holds {
		if s := t.holds[i].set; s != nil {
			st.meet(s, now)
		}
	}
	return st
}
