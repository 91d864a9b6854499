package limit

import (
	"slices"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// TestReload: levels, debts and counts outlive a policy, and a changed limit holds at
// once.
func TestReload(t *testing.T) {
	p, c := newPool(t, enforced(perKey(six(60, 600, 600, 600, 3, 1000))))
	r := Request{Key: "k", Input: 100, Output: 100}
	running := admit(t, p, r)
	admit(t, p, r).Settle(known(100, 1000)) // 700 in debt for tokens, 500 for output
	apply(t, p, enforced(perKey(six(60, 1200, 600, 600, 1, 1000))))
	if got := keyTokens(t, p, "k"); got != -700 {
		t.Errorf("level %v after a reload, want the debt of 700", got)
	}
	c.pass(30 * time.Second) // at the new rate of 20 a second
	if got := keyTokens(t, p, "k"); !near(got, -100) {
		t.Errorf("level %v after 30 s, want -100", got)
	}
	c.pass(time.Hour)
	if ref := refuse(t, p, r); ref.Dimension != Concurrency || ref.Used != 1 || ref.Limit != 1 {
		t.Errorf("got %+v", ref)
	}
	running.Settle(known(100, 100))
	admit(t, p, r).Cancel()

	apply(t, p, enforced(perKey(six(60, 150, 600, 600, 1, 1000))))
	if ref := refuse(t, p, r); !ref.TooLarge || ref.Limit != 150 {
		t.Errorf("got %+v", ref)
	}
	apply(t, p, enforced(perKey(tpm(0))))
	if ref := refuse(t, p, r); !ref.TooLarge || ref.Limit != 0 {
		t.Errorf("got %+v", ref)
	}
}

// TestReloadSame: a reload that changes nothing changes nothing, to the last bit.
func TestReloadSame(t *testing.T) {
	p, c := newPool(t, everywhere())
	admit(t, p, Request{Key: "k", Model: "m", Input: 333, Output: 77})
	c.pass(1234567)
	before := capture(p)
	apply(t, p, everywhere())
	if got := capture(p); !slices.Equal(got, before) {
		t.Errorf("got\n%v, want\n%v", got, before)
	}
}

// TestRuleGone: a rule's buckets go with it, but not before the calls in flight; if
// the rule comes back before, it finds them as they were.
func TestRuleGone(t *testing.T) {
	pool := Rule{Scope: PerPool, Limits: six(1000, 1000, 1000, 1000, 10, 1000)}
	p, c := newPool(t, enforced(pool, perKey(six(1, 100, 100, 100, 1, 100))))
	r := Request{Key: "k", Input: 50, Output: 20}
	running := admit(t, p, r)
	apply(t, p, enforced(pool))
	admit(t, p, r).Settle(known(10, 10)) // the key has no limits now
	if uses := spent(p); len(uses) != numDimensions || uses[0].Scope != PerPool {
		t.Errorf("uses without the rule: %+v", uses)
	}
	running.Charge(200)
	apply(t, p, enforced(pool, perKey(six(1, 100, 100, 100, 1, 100))))
	if got := keyTokens(t, p, "k"); got != -150 {
		t.Errorf("level %v when the rule is back, want -150", got)
	}
	if ref := refuse(t, p, r); ref.Wall() != "key tokens_per_minute" || ref.Used != 250 {
		t.Errorf("got %+v", ref)
	}
	apply(t, p, enforced(pool))
	running.Settle(known(50, 200))
	if len(p.sets) != 1 || len(p.order) != 1 || p.buckets != numDimensions {
		t.Errorf("%d sets with %d buckets are left", len(p.sets), p.buckets)
	}
	apply(t, p, enforced(pool, perKey(six(1, 100, 100, 100, 1, 100))))
	admit(t, p, r) // with new buckets
	c.pass(0)

	apply(t, p, Policy{Mode: Enforce})
	if uses := spent(p); len(uses) != 0 {
		t.Errorf("uses without rules: %+v", uses)
	}
}

// TestDimensionGone: the same where the subject keeps other limits; and what is new
// neither charges nor repays calls from before.
func TestDimensionGone(t *testing.T) {
	p, _ := newPool(t, enforced(perKey(tpm(100))))
	r := Request{Key: "k", Input: 50, Output: 20}
	running := admit(t, p, r)
	apply(t, p, enforced(perKey(atOnce(1)))) // knows of the call: the subject was limited before
	if ref := refuse(t, p, r); ref.Dimension != Concurrency || ref.Used != 1 {
		t.Errorf("got %+v", ref)
	}
	apply(t, p, enforced(perKey(call.Limits{TokensPerMinute: call.Known(100), OutputTokensPerMinute: call.Known(100)})))
	running.Settle(known(50, 10))
	if tokens, output := keyTokens(t, p, "k"), level(t, p, PerKey, "k", "", OutputTokens); tokens != 40 || output != 100 {
		t.Errorf("levels %v and %v, want 40 and 100", tokens, output)
	}
	apply(t, p, enforced(perKey(atOnce(1))))
	apply(t, p, enforced(perKey(tpm(100))))
	if got := keyTokens(t, p, "k"); got != 100 {
		t.Errorf("level %v of a bucket that was gone and is new", got)
	}
}

// TestOwnLimits: a key's own limits replace those dimensions that they name, from the
// next call on.
func TestOwnLimits(t *testing.T) {
	p, _ := newPool(t, enforced(perKey(call.Limits{TokensPerMinute: call.Known(100), Concurrency: call.Known(2)})))
	own := tpm(1000)
	r := Request{Key: "k", KeyLimits: &own, Input: 500}
	running := admit(t, p, r)
	if ref := refuse(t, p, Request{Key: "l", Input: 500}); ref.Limit != 100 {
		t.Errorf("another key: %+v", ref)
	}
	own = tpm(2000)
	r.Input = 700
	if ref := refuse(t, p, r); ref.Limit != 2000 || ref.Used != 1500 {
		t.Errorf("a raised limit: %+v", ref)
	}
	r.Input = 500
	admit(t, p, r)
	if ref := refuse(t, p, Request{Key: "k", KeyLimits: &own}); ref.Dimension != Concurrency || ref.Limit != 2 {
		t.Errorf("the rule's own: %+v", ref)
	}
	running.Cancel()
	r.KeyLimits = nil
	if ref := refuse(t, p, r); !ref.TooLarge || ref.Limit != 100 {
		t.Errorf("own limits taken away: %+v", ref)
	}

	// Without any rule, and with nothing in flight, the set goes with the limits.
	q, _ := newPool(t, Policy{Mode: Enforce})
	admit(t, q, Request{Key: "k", KeyLimits: &own, Input: 10}).Settle(known(10, 0))
	apply(t, q, enforced(Rule{Scope: PerKey, Key: "l", Limits: tpm(1)}))
	if len(q.sets) != 1 {
		t.Fatalf("%d sets", len(q.sets))
	}
	admit(t, q, Request{Key: "k", Input: 5000})
	if len(q.sets) != 0 || q.buckets != 0 {
		t.Errorf("%d sets and %d buckets are left", len(q.sets), q.buckets)
	}
}

// TestOverride: the switch turns enforcing into measuring and back, without a reload.
func TestOverride(t *testing.T) {
	p, _ := newPool(t, enforced(perKey(tpm(100))))
	r := Request{Key: "k", Input: 60}
	admit(t, p, r)
	refuse(t, p, r)
	p.SetOverride(true)
	if got := p.Mode(); got != Shadow {
		t.Errorf("mode %v", got)
	}
	ticket := admit(t, p, r)
	if ref := ticket.WouldRefuse(); ref == nil || ref.Wall() != "key tokens_per_minute" || ref.Used != 60 {
		t.Errorf("got %+v", ref)
	}
	ticket.Charge(1000)
	ticket.Settle(known(60, 1000))
	if got := keyTokens(t, p, "k"); got != 40 {
		t.Errorf("level %v", got)
	}
	p.SetOverride(false)
	refuse(t, p, r)
	want := []Refused{{"k", PerKey, Tokens, Shadow, 1}, {"k", PerKey, Tokens, Enforce, 2}}
	if got := p.Snapshot(0).Refused; len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v, want %+v", got, want)
	}
	apply(t, p, Policy{})
	p.SetOverride(true)
	if got := p.Mode(); got != Off {
		t.Errorf("mode %v: the switch must not switch anything on", got)
	}
}

// TestEndAcrossModes: calls settle where they took, whatever the mode has become.
func TestEndAcrossModes(t *testing.T) {
	rule := perKey(six(10, 100, 100, 100, 2, 100))
	p, _ := newPool(t, enforced(rule))
	ticket := admit(t, p, Request{Key: "k", Input: 50, Output: 40})
	apply(t, p, Policy{Mode: Off, Rules: []Rule{rule}})
	ticket.Settle(known(50, 10))
	for _, u := range spent(p) {
		if u.InFlight != 0 || u.Dimension == Tokens && u.Used != 60 {
			t.Errorf("got %+v", u)
		}
	}
}
