package limit

import (
	"strings"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// Other is the key or model that stands for all those for which there is no room.
const Other = "_other"

const (
	// idleShare of the room may lie idle. Without it a pool of some tens of keys that
	// stay well below their limits would drop the set of each between two of its calls,
	// and make it anew.
	idleShare = 100
	// sweepAlways is how many sets are looked at whenever one is made beyond that, so
	// that what is idle goes faster than new ones come.
	sweepAlways = 4
	// sweepFull is the same when there is no room: a bound on the time under the lock.
	sweepFull = 32
)

// subject is whose buckets a set holds.
type subject struct {
	scope Scope
	names
}

// set holds all buckets of one subject. The pool's mutex is held for all of it.
type set struct {
	subject
	text string      // as shown to people
	own  call.Limits // the limits of the key's own that it was made with

	sizes sizes
	// rates are the buckets of those rates that apply, and of those that applied to a
	// call still in flight.
	rates [numRates]*bucket

	calls  int64 // in flight; counted whether limited or not
	tokens int64 // what those hold

	at      int    // where the pool's order has it
	found   uint64 // the admission that found it last
	count   int    // the buckets it counts for
	dropped bool   // from the pool
}

// subjectOf returns whose bucket of the scope a call takes from.
func subjectOf(scope Scope, key, model string) subject {
	switch scope {
	case PerKey:
		return subject{scope, names{key: key}}
	case PerModel:
		return subject{scope, names{model: model}}
	case PerKeyModel:
		return subject{scope, names{key, model}}
	}
	return subject{scope: scope}
}

// text returns the subject as people read it; a pool's is its name.
func (p *Pool) text(id subject) string {
	switch id.scope {
	case PerKey:
		return id.key
	case PerModel:
		return id.model
	case PerKeyModel:
		return id.key + " " + id.model
	}
	return p.name
}

// applies tells whether the scope can limit a call at all.
func (p *Pool) applies(scope Scope, own *call.Limits) bool {
	return len(p.rules[scope].rules) > 0 || scope == PerKey && !own.IsZero()
}

// find returns the set of the scope for a call, made if need be; nil when no limit
// of the scope applies to it.
func (p *Pool) find(scope Scope, r *Request, own *call.Limits, now time.Time) *set {
	if !p.applies(scope, own) {
		return nil
	}
	id, mine := subjectOf(scope, r.Key, r.Model), ownOf(scope, own)
	s := p.lookup(id, mine, now)
	if s == nil {
		if s = p.create(id, mine, now); s == nil {
			return nil
		}
	}
	s.found = p.admissions
	if s.count == 0 { // its limits are gone, and calls from before are in flight
		return nil
	}
	return s
}

// lookup returns the set of a subject if it is there, with the limits of the key's
// own that hold now.
func (p *Pool) lookup(id subject, own call.Limits, now time.Time) *set {
	s := p.sets[id]
	if s == nil || s.own == own {
		return s
	}
	s.own = own
	p.resize(s, now)
	if s.count == 0 && s.calls == 0 {
		p.drop(s)
		return nil
	}
	return s
}

// ownOf returns the limits of the key's own as far as they concern the scope.
func ownOf(scope Scope, own *call.Limits) call.Limits {
	if scope == PerKey {
		return *own
	}
	return call.Limits{}
}

// create makes the set of a subject, or returns the shared one when there is no room.
func (p *Pool) create(id subject, own call.Limits, now time.Time) *set {
	z := p.effective(id, own)
	n := z.count()
	if n == 0 {
		return nil
	}
	if p.buckets+n > p.maxBuckets/idleShare {
		p.sweep(now, sweepAlways)
	}
	if p.crowded(id, own, n) {
		p.sweep(now, sweepFull)
		if p.crowded(id, own, n) {
			p.overflowed++
			id, own = p.other(id), call.Limits{}
			if s := p.sets[id]; s != nil {
				return s
			}
		}
	}
	// Names are cut out of requests; a copy does not keep the rest of one alive.
	id.key, id.model = strings.Clone(id.key), strings.Clone(id.model)
	s := &set{subject: id, text: p.text(id), own: own, at: len(p.order)}
	p.sets[id] = s
	p.order = append(p.order, s)
	p.resize(s, now)
	return s
}

// crowded tells whether there is no room for n more buckets. Whom the configuration
// names always has room: the configuration bounds their number.
func (p *Pool) crowded(id subject, own call.Limits, n int) bool {
	return p.buckets+n > p.maxBuckets && own.IsZero() && p.other(id) != id
}

// other returns the shared subject in the place of one without room: a name that no
// rule names becomes Other. Whoever has no name at all is one subject, and keeps it.
func (p *Pool) other(id subject) subject {
	rules := &p.rules[id.scope]
	if id.key != "" && !rules.keys[id.key] {
		id.key = Other
	}
	if id.model != "" && !rules.models[id.model] {
		id.model = Other
	}
	return id
}

// resize gives a set the limits that hold now. A limit taken away lets go of its
// bucket, unless a call in flight has yet to settle there.
func (p *Pool) resize(s *set, now time.Time) {
	s.sizes = p.effective(s.subject, s.own)
	for d, b := range s.rates {
		switch z := s.sizes[d]; {
		case z.applies && b == nil:
			s.rates[d] = newBucket(z)
		case z.applies:
			b.resize(now, z)
		case s.calls == 0:
			s.rates[d] = nil
		}
	}
	n := s.sizes.count()
	p.buckets += n - s.count
	s.count = n
}

// release lets go of one call's place in the set.
func (p *Pool) release(s *set, tokens int64) {
	s.calls--
	s.tokens -= tokens
	if s.calls > 0 {
		return
	}
	if s.count == 0 {
		p.drop(s)
		return
	}
	for d := range s.rates {
		if !s.sizes[d].applies {
			s.rates[d] = nil
		}
	}
}

// idle tells whether a set says no more than one made anew would.
func (s *set) idle(now time.Time) bool {
	if s.calls > 0 {
		return false
	}
	for _, b := range s.rates {
		if b != nil && !b.full(now) {
			return false
		}
	}
	return true
}

// sweep looks at the next n sets in turn and drops those that are idle, but for what
// the admission under way has found and not taken from yet.
func (p *Pool) sweep(now time.Time, n int) {
	for range min(n, len(p.order)) {
		if p.hand >= len(p.order) {
			p.hand = 0
		}
		if s := p.order[p.hand]; s.found != p.admissions && s.idle(now) {
			p.drop(s) // the last one takes its place
		} else {
			p.hand++
		}
	}
}

// drop forgets a set.
func (p *Pool) drop(s *set) {
	last := len(p.order) - 1
	p.order[s.at] = p.order[last]
	p.order[s.at].at = s.at
	p.order[last] = nil
	p.order = p.order[:last]
	delete(p.sets, s.subject)
	p.buckets -= s.count
	s.dropped = true
}
