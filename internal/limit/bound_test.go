package limit

import (
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// traffic is what clients do to a pool, each in its own goroutine and in virtual time:
// they ask, wait as they are told, stream, and settle.
type traffic struct {
	clients int
	every   time.Duration // between two events of a stream
	until   time.Duration
	call    func(rng func(int64) int64) (r Request, actualIn, actualOut int64)

	mu       sync.Mutex // guards all below
	actual   int64      // tokens of calls that have settled
	calls    int64
	now      int64 // calls under way
	atOnce   int64 // the most of those at any time
	excess   int64 // the most that any call cost beyond its reservation
	refusals int64
}

// run runs the clients to their end. After each call that has settled, it checks
// Σ actual against the bound for a bucket of this limit and burst.
func (tr *traffic) run(t *testing.T, p *Pool, seed, limit, burst int64) {
	start := time.Now()
	var wg sync.WaitGroup
	for client := range tr.clients {
		wg.Go(func() {
			rng := newRand(seed<<16 + int64(client))
			var ticket Ticket
			for time.Since(start) < tr.until {
				r, in, out := tr.call(func(n int64) int64 { return rng.Int64N(n) })
				if ref := p.Admit(&r, &ticket); ref != nil {
					tr.mu.Lock()
					tr.refusals++
					tr.mu.Unlock()
					time.Sleep(max(ref.RetryAfter, 10*time.Millisecond))
					continue
				}
				tr.begin(&ticket, in, out)
				for n := int64(0); n < out; n += 20 {
					ticket.Charge(n)
					time.Sleep(tr.every)
				}
				ticket.Settle(known(in, out))
				tr.end(t, in+out, limit, burst, time.Since(start))
			}
		})
	}
	wg.Wait()
}

func (tr *traffic) begin(ticket *Ticket, in, out int64) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.now++
	tr.calls++
	tr.atOnce = max(tr.atOnce, tr.now)
	i, o := ticket.Reserved()
	tr.excess = max(tr.excess, in+out-i.Plus(o).Or(0))
}

func (tr *traffic) end(t *testing.T, actual, limit, burst int64, elapsed time.Duration) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.now--
	tr.actual += actual
	bound := float64(burst) + float64(limit)*elapsed.Minutes() + float64(tr.atOnce*tr.excess)
	// Each admission may come a nanosecond's worth early.
	if slack := 1e-9 * float64(limit) / 60 * float64(tr.calls); float64(tr.actual) > bound+slack+1e-6 {
		t.Errorf("%d tokens after %v: above the bound of %v (%d at once, %d in excess)", tr.actual, elapsed, bound, tr.atOnce, tr.excess)
	}
}

// TestBound: Σ actual ≤ burst + rate·T + concurrent·(largest output − reservation).
func TestBound(t *testing.T) {
	for seed := range int64(300) {
		rng := newRand(seed)
		limit, burst := 200+rng.Int64N(5000), 200+rng.Int64N(2000)
		tr := &traffic{clients: 1 + rng.IntN(24), every: time.Duration(1+rng.IntN(100)) * time.Millisecond, until: 5 * time.Minute,
			call: func(n func(int64) int64) (Request, int64, int64) {
				in := n(100)
				return Request{Key: "k", Input: in, Output: n(100), Clamp: n(2) == 0}, in, n(400)
			}}
		synctest.Test(t, func(t *testing.T) {
			p := New("test", time.Now)
			apply(t, p, enforced(Rule{Limits: tpm(limit), Burst: Burst{Tokens: call.Known(burst)}}))
			tr.run(t, p, seed, limit, burst)
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		if tr.calls == 0 {
			t.Fatalf("seed %d: no calls", seed)
		}
	}
}

// TestBoundReservedWhole: with max_tokens reserved whole the last term is 0: 64
// parallel clients against 100 tokens per minute get no more than burst + rate·T.
func TestBoundReservedWhole(t *testing.T) {
	seeds := int64(300)
	refusals := int64(0)
	for seed := range seeds {
		tr := &traffic{clients: 64, every: 50 * time.Millisecond, until: 3 * time.Minute,
			call: func(n func(int64) int64) (Request, int64, int64) {
				in, out := 1+n(20), 1+n(60)
				return Request{Key: "k", Input: in, Output: out}, in, n(out + 1)
			}}
		synctest.Test(t, func(t *testing.T) {
			p := New("test", time.Now)
			apply(t, p, enforced(perKey(tpm(100))))
			tr.run(t, p, seed, 100, 100)
		})
		if t.Failed() || tr.excess > 0 || tr.calls == 0 {
			t.Fatalf("seed %d: %d calls, %d in excess", seed, tr.calls, tr.excess)
		}
		refusals += tr.refusals
	}
	if refusals < 64*seeds {
		t.Errorf("%d refusals: hardly any wall was met", refusals)
	}
}

// TestLongRun: over an hour at the wall, what was charged is what was used, and is the
// rate, however wrong the estimates are.
func TestLongRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 60_000
		p := New("test", time.Now)
		apply(t, p, enforced(perKey(tpm(limit))))
		start := time.Now()
		admit(t, p, Request{Key: "k", Input: limit}).Settle(known(limit, 0)) // empty: nothing can spill over
		tr := &traffic{clients: 16, every: time.Millisecond, until: time.Hour, actual: limit,
			call: func(n func(int64) int64) (Request, int64, int64) {
				return Request{Key: "k", Input: n(400), Output: n(400)}, n(400), n(2000)
			}}
		tr.run(t, p, 1, limit, limit)
		charged := limit + limit*time.Since(start).Minutes() - keyTokens(t, p, "k")
		if ratio := charged / float64(tr.actual); math.Abs(ratio-1) > 1e-9 {
			t.Errorf("charged/actual is %v after %d calls", ratio, tr.calls)
		}
		if ratio := float64(tr.actual) / (limit * time.Since(start).Minutes()); ratio < 0.99 || ratio > 1.02 {
			t.Errorf("used/allowed is %v", ratio)
		}
	})
}

// TestManyGoroutines: the clock of the system, many keys and models, and every method at once.
// The race detector and the counts at the end are the judges.
func TestManyGoroutines(t *testing.T) {
	p := New("test", nil)
	policy := everywhere()
	policy.MaxBuckets = 100
	apply(t, p, policy)
	var refused atomic.Int64
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			rng := newRand(int64(g))
			var ticket Ticket
			for i := range 300 {
				r := Request{Key: strconv.Itoa(rng.IntN(9)), Model: strconv.Itoa(rng.IntN(5)), Input: rng.Int64N(100), Output: rng.Int64N(100), Clamp: true}
				if p.Admit(&r, &ticket) != nil {
					refused.Add(1)
				}
				var both sync.WaitGroup // a call is ended from two sides
				both.Go(func() { ticket.Settle(known(10, 10)) })
				both.Go(ticket.Cancel)
				ticket.Charge(1000)
				both.Wait()
				switch i % 50 {
				case 0:
					if err := p.Apply(policy); err != nil {
						t.Error(err)
					}
				case 10:
					p.Snapshot(10)
				case 20:
					p.SetOverride(i%100 == 20)
				default:
					p.Standing(&r)
				}
			}
		})
	}
	wg.Wait()
	consistent(t, p)
	sum := int64(0)
	for _, r := range p.Snapshot(0).Refused {
		if r.Mode == Enforce {
			sum += r.Calls
		}
	}
	if sum != refused.Load() {
		t.Errorf("%d refusals counted, %d were given", sum, refused.Load())
	}
	for _, s := range p.order {
		if s.calls != 0 || s.tokens != 0 {
			t.Errorf("%s %q still has %d calls with %d tokens", s.scope, s.text, s.calls, s.tokens)
		}
	}
}
