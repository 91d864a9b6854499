package limit

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// clock is a clock that tests set.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

// pass moves the clock on, or back where d is negative.
func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// six is a limit in each dimension.
func six(requests, tokens, input, output, concurrency, inFlight int64) call.Limits {
	return call.Limits{RequestsPerMinute: call.Known(requests), TokensPerMinute: call.Known(tokens),
		InputTokensPerMinute: call.Known(input), OutputTokensPerMinute: call.Known(output),
		Concurrency: call.Known(concurrency), TokensInFlight: call.Known(inFlight)}
}

func tpm(n int64) call.Limits { return call.Limits{TokensPerMinute: call.Known(n)} }
func rpm(n int64) call.Limits { return call.Limits{RequestsPerMinute: call.Known(n)} }
func atOnce(n int64) call.Limits {
	return call.Limits{Concurrency: call.Known(n)}
}

// enforced returns a policy of rules that holds.
func enforced(rules ...Rule) Policy { return Policy{Mode: Enforce, Rules: rules} }

// perKey is a rule for each key.
func perKey(l call.Limits) Rule { return Rule{Scope: PerKey, Limits: l} }

// newPool returns a pool with a policy, and its clock.
func newPool(t testing.TB, policy Policy) (*Pool, *clock) {
	t.Helper()
	c := newClock()
	p := New("test", c.now)
	apply(t, p, policy)
	return p, c
}

func apply(t testing.TB, p *Pool, policy Policy) {
	t.Helper()
	if err := p.Apply(policy); err != nil {
		t.Fatal(err)
	}
}

// admit admits a call that must pass.
func admit(t testing.TB, p *Pool, r Request) *Ticket {
	t.Helper()
	ticket := new(Ticket)
	if ref := p.Admit(&r, ticket); ref != nil {
		t.Fatalf("%+v was refused: %+v", r, *ref)
	}
	return ticket
}

// refuse asks for a call that must not pass.
func refuse(t testing.TB, p *Pool, r Request) Refusal {
	t.Helper()
	ref := p.Admit(&r, new(Ticket))
	if ref == nil {
		t.Fatalf("%+v was admitted", r)
	}
	return *ref
}

// level returns what is in a bucket of a set that must be there.
func level(t testing.TB, p *Pool, scope Scope, key, model string, d Dimension) float64 {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sets[subjectOf(scope, key, model)]
	if s == nil || s.rates[d] == nil {
		t.Fatalf("there is no bucket %s %s of %q %q", scope, d, key, model)
	}
	return s.rates[d].level(p.now())
}

// keyTokens is the level of a key's tokens_per_minute.
func keyTokens(t testing.TB, p *Pool, key string) float64 {
	t.Helper()
	return level(t, p, PerKey, key, "", Tokens)
}

// near tells whether two levels are the same but for the error of their sums.
func near(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 }

// known is a pair of known figures for Settle.
func known(input, output int64) (call.Count, call.Count) {
	return call.Known(input), call.Known(output)
}

// spent tells what is used of every bucket, as a snapshot shows it.
func spent(p *Pool) []Use { return p.Snapshot(1 << 20).Uses }

func newRand(seed int64) *rand.Rand { return rand.New(rand.NewPCG(uint64(seed), 4)) }

// capture lists all that the sets hold, in their order; it is empty while there are none.
func capture(p *Pool) (all []float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	for _, s := range p.order {
		all = append(all, float64(s.calls), float64(s.tokens))
		for _, b := range s.rates {
			if b != nil {
				all = append(all, float64(b.burst), b.level(now))
			}
		}
	}
	return all
}
