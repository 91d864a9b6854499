package limit

import (
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

func window(scope Scope, limit, remaining int64, reset time.Duration) Window {
	return Window{true, scope, limit, remaining, call.Lasting(reset)}
}

func TestStanding(t *testing.T) {
	p, c := newPool(t, enforced(
		perKey(call.Limits{RequestsPerMinute: call.Known(60), TokensPerMinute: call.Known(600), Concurrency: call.Known(9)}),
		Rule{Scope: PerPool, Limits: call.Limits{TokensPerMinute: call.Known(1200), InputTokensPerMinute: call.Known(300)}}))
	r := Request{Key: "k", Model: "m", Input: 100, Output: 200}
	check := func(name string, got, want Standing) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got\n%+v, want\n%+v", name, got, want)
		}
	}
	full := Standing{Requests: window(PerKey, 60, 60, 0), Tokens: window(PerKey, 600, 600, 0), InputTokens: window(PerPool, 300, 300, 0)}
	check("before any call", p.Standing(&r), full)
	if len(p.sets) != 0 {
		t.Error("Standing made a set")
	}
	ticket := admit(t, p, r)
	after := Standing{Requests: window(PerKey, 60, 59, time.Second), Tokens: window(PerKey, 600, 300, 30*time.Second),
		InputTokens: window(PerPool, 300, 200, 20*time.Second)}
	check("of the ticket", ticket.Standing(), after)
	check("of the next call", p.Standing(&r), after)
	c.pass(10 * time.Second)
	check("10 s later", ticket.Standing(), Standing{Requests: window(PerKey, 60, 60, 0), Tokens: window(PerKey, 600, 400, 20*time.Second),
		InputTokens: window(PerPool, 300, 250, 10*time.Second)})
	ticket.Settle(known(100, 1100))
	check("settled", ticket.Standing(), Standing{})
	// The key owes 500, and the pool still holds 200.
	debt := Standing{Requests: window(PerKey, 60, 60, 0), Tokens: window(PerKey, 600, 0, 110*time.Second), InputTokens: window(PerPool, 300, 250, 10*time.Second)}
	check("in debt", p.Standing(&r), debt)
	l := r
	l.Key = "l"
	check("of another key", p.Standing(&l), Standing{Requests: window(PerKey, 60, 60, 0), Tokens: window(PerPool, 1200, 200, 50*time.Second),
		InputTokens: window(PerPool, 300, 250, 10*time.Second)})
	if ref := p.Admit(&r, ticket); ref == nil || ticket.Standing() != (Standing{}) {
		t.Errorf("a refused ticket stands at %+v", ticket.Standing())
	}
	check("after a refusal", p.Standing(&r), debt)

	own := call.Limits{TokensPerMinute: call.Known(0), OutputTokensPerMinute: call.Known(50)}
	r.KeyLimits = &own
	got := p.Standing(&r)
	check("own limits", got, Standing{Requests: window(PerKey, 60, 60, 0), Tokens: Window{true, PerKey, 0, 0, call.Duration{}},
		InputTokens: window(PerPool, 300, 250, 10*time.Second), OutputTokens: window(PerKey, 50, 50, 0)})
	r.Key = "n"
	if got := p.Standing(&r).Tokens; got != (Window{true, PerKey, 0, 0, call.Duration{}}) {
		t.Errorf("own limits, new: got %+v", got)
	}

	apply(t, p, Policy{Rules: []Rule{perKey(tpm(5))}})
	check("off", p.Standing(&r), Standing{})
}

// TestStandingShared: whoever has no room of its own sees how the shared bucket stands.
func TestStandingShared(t *testing.T) {
	p, _ := newPool(t, small(1, perKey(tpm(60))))
	admit(t, p, Request{Key: "a", Input: 10})
	r := Request{Key: "b", Input: 25}
	if got := p.Standing(&r).Tokens; got != window(PerKey, 60, 60, 0) {
		t.Errorf("got %+v", got)
	}
	admit(t, p, r)
	r.Key = "c"
	if got := p.Standing(&r).Tokens; got != window(PerKey, 60, 35, 25*time.Second) {
		t.Errorf("got %+v", got)
	}
}

// TestStandingTie: of two that are empty the one that takes longer to fill counts.
func TestStandingTie(t *testing.T) {
	for _, tt := range []struct {
		key, pool int64
		want      Window
	}{
		{60, 120, window(PerKey, 60, 0, 180*time.Second)},
		{120, 60, window(PerPool, 60, 0, 180*time.Second)},
		{0, 60, Window{true, PerKey, 0, 0, call.Duration{}}},
		{60, 0, Window{true, PerPool, 0, 0, call.Duration{}}},
	} {
		p, _ := newPool(t, enforced(perKey(tpm(200)), Rule{Scope: PerPool, Limits: tpm(200)}))
		r := Request{Key: "k", Input: 200}
		admit(t, p, r).Settle(known(320, 0)) // 120 in debt
		apply(t, p, enforced(perKey(tpm(tt.key)), Rule{Scope: PerPool, Limits: tpm(tt.pool)}))
		if got := p.Standing(&r).Tokens; got != tt.want {
			t.Errorf("%d and %d: got %+v, want %+v", tt.key, tt.pool, got, tt.want)
		}
	}
}

// TestRemainingIsAdmitted: what a standing says remains can be taken at once, and not one more.
func TestRemainingIsAdmitted(t *testing.T) {
	for seed := range int64(300) {
		rng := newRand(seed)
		p, c := newPool(t, enforced(perKey(tpm(1+rng.Int64N(1e6)))))
		r := Request{Key: "k"}
		for range 30 {
			c.pass(time.Duration(rng.Int64N(int64(time.Minute))))
			r.Input = p.Standing(&r).Tokens.Remaining + 1
			refuse(t, p, r)
			r.Input--
			ticket := admit(t, p, r)
			if got := ticket.Standing().Tokens.Remaining; got != 0 {
				t.Fatalf("seed %d: %d remain", seed, got)
			}
			ticket.Settle(known(rng.Int64N(r.Input+1), 0))
		}
	}
}
