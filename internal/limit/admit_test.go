package limit

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// TestRefusal: what a refusal says of each dimension, and that waiting as long helps.
func TestRefusal(t *testing.T) {
	limits := map[Dimension]call.Limits{
		Requests:       rpm(2),
		Tokens:         tpm(100),
		InputTokens:    {InputTokensPerMinute: call.Known(100)},
		OutputTokens:   {OutputTokensPerMinute: call.Known(100)},
		Concurrency:    atOnce(2),
		TokensInFlight: {TokensInFlight: call.Known(100)},
	}
	for _, tt := range []struct {
		dim    Dimension
		in     int64 // of each of the two calls before
		out    int64
		want   Refusal
		reason string
	}{
		{Requests, 0, 0, Refusal{Limit: 2, Burst: 2, Used: 2, Requested: 1, RetryAfter: 30 * time.Second}, "(2+1-2)*60/2"},
		{Tokens, 30, 20, Refusal{Limit: 100, Burst: 100, Used: 100, Requested: 30, RetryAfter: 18 * time.Second}, "(100+30-100)*60/100"},
		{InputTokens, 45, 20, Refusal{Limit: 100, Burst: 100, Used: 90, Requested: 20, RetryAfter: 6 * time.Second}, "(90+20-100)*60/100"},
		{OutputTokens, 45, 50, Refusal{Limit: 100, Burst: 100, Used: 100, Requested: 10, RetryAfter: 6 * time.Second}, "(100+10-100)*60/100"},
		{Concurrency, 1, 1, Refusal{Limit: 2, Burst: 2, Used: 2, Requested: 1}, "unknown"},
		{TokensInFlight, 20, 29, Refusal{Limit: 100, Burst: 100, Used: 98, Requested: 30}, "unknown"},
	} {
		t.Run(tt.dim.String(), func(t *testing.T) {
			p, c := newPool(t, enforced(perKey(limits[tt.dim])))
			r := Request{Key: "k", Input: tt.in, Output: tt.out}
			first := admit(t, p, r)
			admit(t, p, r)
			tt.want.Scope, tt.want.Dimension, tt.want.Subject = PerKey, tt.dim, "k"
			r.Input, r.Output = 20, 10
			if got := refuse(t, p, r); got != tt.want {
				t.Errorf("got\n%+v, want %s\n%+v", got, tt.reason, tt.want)
			}
			if tt.want.RetryAfter > 0 {
				c.pass(tt.want.RetryAfter - time.Microsecond)
				if got := refuse(t, p, r).RetryAfter - time.Microsecond; got < -1 || got > 1 {
					t.Errorf("1 µs before the time, retry after 1 µs and %d ns", got)
				}
				c.pass(time.Microsecond)
			} else {
				first.Cancel()
			}
			admit(t, p, r)
		})
	}
}

// TestWaitAsToldHelps: after RetryAfter the same call passes, whatever the figures.
func TestWaitAsToldHelps(t *testing.T) {
	for seed := range int64(300) {
		rng := newRand(seed)
		l := six(1+rng.Int64N(1e6), 1+rng.Int64N(1e9), 1+rng.Int64N(1e9), 1+rng.Int64N(1e9), MaxLimit, MaxLimit)
		policy := enforced(perKey(l))
		policy.Replicas = 1 + rng.IntN(4)
		p, c := newPool(t, policy)
		for range 50 {
			r := Request{Key: "k", Input: rng.Int64N(1e9), Output: rng.Int64N(1e9)}
			var ticket Ticket
			if ref := p.Admit(&r, &ticket); ref == nil {
				ticket.Settle(known(rng.Int64N(1e9), rng.Int64N(1e9)))
			} else if !ref.TooLarge {
				if ref.RetryAfter <= 0 || ref.Used+ref.Requested <= ref.Burst {
					t.Fatalf("seed %d: %+v", seed, *ref)
				}
				c.pass(ref.RetryAfter)
				if ref := p.Admit(&r, &ticket); ref != nil {
					t.Fatalf("seed %d: refused after the wait: %+v", seed, *ref)
				}
			}
		}
	}
}

func TestTooLarge(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits call.Limits
		dim    Dimension
		r      Request
	}{
		{"more than the rate", tpm(100), Tokens, Request{Input: 51, Output: 50}},
		{"more than the cap", call.Limits{TokensInFlight: call.Known(100)}, TokensInFlight, Request{Input: 51, Output: 50}},
		{"input alone, though clamped", tpm(100), Tokens, Request{Input: 101, Output: 50, Clamp: true}},
		{"absurd", tpm(100), Tokens, Request{Input: math.MaxInt64, Output: math.MaxInt64}},
		{"no requests", rpm(0), Requests, Request{}},
		{"no tokens, and a call of none", tpm(0), Tokens, Request{}},
		{"no calls", atOnce(0), Concurrency, Request{}},
		{"no tokens in flight", call.Limits{TokensInFlight: call.Known(0)}, TokensInFlight, Request{}},
	} {
		p, c := newPool(t, enforced(perKey(tt.limits)))
		c.pass(time.Hour)
		ref := refuse(t, p, tt.r)
		if !ref.TooLarge || ref.RetryAfter != 0 || ref.Dimension != tt.dim {
			t.Errorf("%s: %+v", tt.name, ref)
		}
	}
	p, _ := newPool(t, enforced(perKey(tpm(100))))
	admit(t, p, Request{Input: 50, Output: 50})
}

// TestBurstIsNotTheLimit: the formula with a burst of its own.
func TestBurstIsNotTheLimit(t *testing.T) {
	p, _ := newPool(t, enforced(Rule{Limits: tpm(100), Burst: Burst{Tokens: call.Known(300)}}))
	admit(t, p, Request{Key: "k", Input: 250})
	want := Refusal{Subject: "k", Dimension: Tokens, Limit: 100, Burst: 300, Used: 250, Requested: 150,
		RetryAfter: time.Minute} // (250+150-300)*60/100
	if got := refuse(t, p, Request{Key: "k", Input: 150}); got != want {
		t.Errorf("got\n%+v, want\n%+v", got, want)
	}
	if got := refuse(t, p, Request{Key: "k", Input: 301}); !got.TooLarge {
		t.Errorf("got %+v", got)
	}
}

// TestLongestWait: of several walls the one with the longest wait is named.
func TestLongestWait(t *testing.T) {
	p, c := newPool(t, enforced(
		perKey(atOnce(1)),
		Rule{Scope: PerModel, Limits: rpm(60)},
		Rule{Scope: PerKeyModel, Limits: tpm(60)},
		Rule{Scope: PerPool, Limits: tpm(1000)}))
	r := Request{Key: "k", Model: "m", Input: 50}
	wall := func(want, subject string) {
		t.Helper()
		ref := refuse(t, p, r)
		if ref.Wall() != want || ref.Subject != subject {
			t.Errorf("met %s of %q, want %s of %q", ref.Wall(), ref.Subject, want, subject)
		}
	}
	first := admit(t, p, r)
	wall("key_model tokens_per_minute", "k m") // 40 s; the key's concurrency is unknown
	c.pass(40 * time.Second)
	wall("key concurrency", "k")
	r.Input = 1001 // of two that never pass the first
	wall("key_model tokens_per_minute", "k m")
	first.Settle(known(50, 0))
	r.Input = 50
	for range 59 {
		admit(t, p, Request{Key: "other", Model: "m"}).Settle(known(0, 0))
	}
	admit(t, p, Request{Key: "other", Model: "m"}).Settle(known(1940, 0))
	wall("pool tokens_per_minute", "test")
}

// TestRefusedTakesNothing: a refusal by any one bucket leaves all as they were, to
// the last bit.
func TestRefusedTakesNothing(t *testing.T) {
	for seed := range int64(300) {
		rng := newRand(seed)
		limits := func() call.Limits {
			return six(1+rng.Int64N(30), 1+rng.Int64N(3000), 1+rng.Int64N(2000), 1+rng.Int64N(2000), 1+rng.Int64N(9), 1+rng.Int64N(3000))
		}
		p, c := newPool(t, enforced(perKey(limits()), Rule{Scope: PerModel, Limits: limits()},
			Rule{Scope: PerKeyModel, Limits: limits()}, Rule{Scope: PerPool, Limits: limits()}))
		r := Request{Key: "k", Model: "m"}
		refused := 0
		for range 60 {
			c.pass(time.Duration(rng.Int64N(int64(3 * time.Second))))
			r.Input, r.Output = rng.Int64N(400), rng.Int64N(400)
			before := capture(p)
			var ticket Ticket
			if p.Admit(&r, &ticket) == nil {
				if rng.IntN(3) > 0 {
					ticket.Settle(known(rng.Int64N(400), rng.Int64N(400)))
				}
				continue
			}
			refused++
			for _, end := range []func(){func() { ticket.Charge(1 << 20) }, func() { ticket.Settle(known(5, 5)) }, ticket.Cancel} {
				if end(); len(before) > 0 && !slices.Equal(capture(p), before) {
					t.Fatalf("seed %d: a refused call changed\n%v into\n%v", seed, before, capture(p))
				}
			}
		}
		if refused == 0 {
			t.Errorf("seed %d: nothing was refused", seed)
		}
	}
}

// TestClamp is case 32: the very first call without max_tokens passes, whatever was
// guessed for it.
func TestClamp(t *testing.T) {
	for _, tt := range []struct {
		name    string
		limits  call.Limits
		in, out int64
		want    int64
	}{
		{"tokens", tpm(100), 20, 4000, 80},
		{"nothing is left", tpm(100), 100, 4000, 0},
		{"output", call.Limits{OutputTokensPerMinute: call.Known(60)}, 200, 4000, 60},
		{"in flight", call.Limits{TokensInFlight: call.Known(90)}, 20, 4000, 70},
		{"the smallest of all", six(1, 100, 100, 60, 1, 70), 20, 4000, 50},
		{"fits", tpm(100), 20, 30, 30},
		{"input tokens are no matter", call.Limits{InputTokensPerMinute: call.Known(20)}, 20, 4000, 4000},
		{"no limit", rpm(1), 20, 4000, 4000},
	} {
		p, _ := newPool(t, enforced(perKey(tt.limits)))
		in, out := admit(t, p, Request{Key: "k", Input: tt.in, Output: tt.out, Clamp: true}).Reserved()
		if in != call.Known(tt.in) || out != call.Known(tt.want) {
			t.Errorf("%s: reserved %v and %v, want %d and %d", tt.name, in, out, tt.in, tt.want)
		}
	}
	// A burst is what counts, and the tightest of all scopes.
	p, _ := newPool(t, enforced(Rule{Limits: tpm(100), Burst: Burst{Tokens: call.Known(70)}}, Rule{Scope: PerPool, Limits: tpm(90)}))
	if _, out := admit(t, p, Request{Key: "k", Input: 10, Output: 4000, Clamp: true}).Reserved(); out != call.Known(60) {
		t.Errorf("reserved %v, want 60", out)
	}
}

// TestParallel is case 31: calls that come at once cannot all see the same room.
func TestParallel(t *testing.T) {
	p, _ := newPool(t, enforced(perKey(tpm(100))))
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			var ticket Ticket
			if p.Admit(&Request{Key: "k", Input: 13, Output: 20}, &ticket) == nil {
				admitted.Add(33)
				ticket.Settle(known(13, 20))
			}
		})
	}
	wg.Wait()
	if got := admitted.Load(); got != 99 {
		t.Errorf("%d tokens admitted, want 3 calls of 33", got)
	}
}

// TestWindowEdge is case 36: a bucket has no window, so neither is a call refused for
// what was used long before, nor are two windows' worth admitted around an edge.
func TestWindowEdge(t *testing.T) {
	p, c := newPool(t, enforced(perKey(tpm(60))))
	c.pass(59 * time.Second)
	admit(t, p, Request{Key: "k", Input: 60}).Settle(known(60, 0))
	c.pass(2 * time.Second) // into the next minute
	if ref := refuse(t, p, Request{Key: "k", Input: 60}); ref.RetryAfter != 58*time.Second {
		t.Errorf("got %+v", ref)
	}
	admit(t, p, Request{Key: "k", Input: 2}).Settle(known(2, 0))
	for range 60 { // all through: what has come in is there
		c.pass(time.Second)
		admit(t, p, Request{Key: "k", Input: 1}).Settle(known(1, 0))
	}
}

// TestBackwards: a clock that runs back mints nothing.
func TestBackwards(t *testing.T) {
	p, c := newPool(t, enforced(perKey(tpm(60))))
	admit(t, p, Request{Key: "k", Input: 60}).Settle(known(60, 0))
	got := 0
	for range 100 {
		c.pass(10 * time.Second)
		for p.Admit(&Request{Key: "k", Input: 1}, new(Ticket)) == nil {
			got++
		}
		c.pass(-10 * time.Second)
		for p.Admit(&Request{Key: "k", Input: 1}, new(Ticket)) == nil {
			got++
		}
		p.Snapshot(9)
		apply(t, p, enforced(perKey(tpm(60))))
		p.Standing(&Request{Key: "k"})
	}
	if got != 10 {
		t.Errorf("%d admitted in 10 s at one a second", got)
	}
}

func TestOff(t *testing.T) {
	p, _ := newPool(t, Policy{Rules: []Rule{perKey(six(0, 0, 0, 0, 0, 0))}})
	ticket := admit(t, p, Request{Key: "k", Input: 5})
	ticket.Charge(500)
	ticket.Settle(known(5, 500))
	if in, out := ticket.Reserved(); in.IsKnown() || out.IsKnown() || ticket.WouldRefuse() != nil || ticket.Standing() != (Standing{}) {
		t.Error("a call in mode off knows of limits")
	}
	if got := spent(p); len(got) != 0 {
		t.Errorf("mode off made %v", got)
	}
}

// TestNameless: callers without a key are one caller, models without a name one model.
func TestNameless(t *testing.T) {
	p, _ := newPool(t, enforced(perKey(rpm(1)), Rule{Scope: PerModel, Limits: rpm(2)}))
	admit(t, p, Request{Model: "m"})
	if ref := refuse(t, p, Request{Model: "n"}); ref.Wall() != "key requests_per_minute" || ref.Subject != "" {
		t.Errorf("got %+v", ref)
	}
	admit(t, p, Request{Key: "k"})
	admit(t, p, Request{Key: "l"})
	if ref := refuse(t, p, Request{Key: "n"}); ref.Wall() != "model requests_per_minute" {
		t.Errorf("got %+v", ref)
	}
}
