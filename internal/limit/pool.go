package limit

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Pool holds the buckets of one set of rules. It outlives configurations: make it
// once and give it each new Policy. A Pool may be used by many goroutines at once.
type Pool struct {
	name  string
	clock func() time.Time

	// holds is effectiveMode, for Mode alone: each call asks for it, some of them
	// twice, and none must wait for that.
	holds atomic.Uint32

	mu sync.Mutex // guards all below, and every Ticket that the pool admitted

	last        time.Time // the latest time seen
	mode        Mode
	measureOnly bool
	replicas    int64
	maxBuckets  int
	rules       [numScopes]ruleset

	sets    map[subject]*set
	order   []*set // all of sets, for the sweep
	hand    int    // where the sweep goes on
	buckets int    // in sets
	// admissions counts the calls of Admit, so that a set just found is told from others.
	admissions uint64

	overflowed int64
	refusals   tally
}

// New returns a Pool without limits. The name is what refusals by the whole pool
// show as their subject. A clock of nil is time.Now.
func New(name string, clock func() time.Time) *Pool {
	if clock == nil {
		clock = time.Now
	}
	return &Pool{name: name, clock: clock, replicas: 1, maxBuckets: DefaultMaxBuckets,
		rules: newRulesets(nil, 1), sets: make(map[subject]*set), refusals: newTally()}
}

// now returns the time, which never runs back: what an earlier time would add to a
// bucket now it would add once more later. The mutex is held.
func (p *Pool) now() time.Time {
	if t := p.clock(); t.After(p.last) {
		p.last = t
	}
	return p.last
}

// Apply makes a policy hold at once. Debts, levels and counts of calls in flight
// stay; rules that are gone take their buckets with them as soon as no call in flight
// has to settle there. A limit that is new starts full, and where its subject had no
// limit before, its caps do not know of the calls that were already running. An error is
// that of Validate, and then nothing has changed.
func (p *Pool) Apply(policy Policy) error {
	if err := policy.Validate(); err != nil {
		return fmt.Errorf("apply limits to pool %s: %w", p.name, err)
	}
	replicas := max(int64(policy.Replicas), 1)
	rules := newRulesets(policy.Rules, replicas)

	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	p.mode, p.replicas, p.rules = policy.Mode, replicas, rules
	p.holds.Store(uint32(p.effectiveMode()))
	if p.maxBuckets = policy.MaxBuckets; p.maxBuckets == 0 {
		p.maxBuckets = DefaultMaxBuckets
	}
	for i := len(p.order) - 1; i >= 0; i-- { // from the end: drop moves only what was seen
		s := p.order[i]
		p.resize(s, now)
		if s.count == 0 && s.calls == 0 {
			p.drop(s)
		}
	}
	return nil
}

// SetOverride switches measuring only on or off: with it nothing is refused,
// whatever the policy's mode, and Enforce counts as Shadow does.
func (p *Pool) SetOverride(measureOnly bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.measureOnly = measureOnly
	p.holds.Store(uint32(p.effectiveMode()))
}

// Mode returns the mode that holds now, the override included. It takes no lock.
func (p *Pool) Mode() Mode { return Mode(p.holds.Load()) }

// effectiveMode is Mode for whoever holds the mutex.
func (p *Pool) effectiveMode() Mode {
	if p.measureOnly {
		return min(p.mode, Shadow)
	}
	return p.mode
}
