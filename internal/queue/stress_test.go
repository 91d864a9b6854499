package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestStress: many goroutines on the wall clock, callers leaving at any
// moment, settles and releases from other goroutines, reloads in between. The caps
// hold, nobody is forgotten, and in the end nothing is left.
func TestStress(t *testing.T) {
	const calls, tokens = 5, 600
	cfg := Config{Calls: calls, Tokens: tokens, MaxWait: time.Minute, MaxPerKey: 1000}
	q := newQueue(t, cfg)
	var inFlight, inTokens, admitted, left atomic.Int64
	var wg sync.WaitGroup
	for g := range 24 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 5))
			var slot Slot // used again and again, as a careful caller may
			for range 400 {
				ask := Ask{Key: fmt.Sprint(rng.IntN(6)), Class: []string{Interactive, Completion, Batch}[rng.IntN(3)],
					Tokens: Tokens{Input: rng.Int64N(200)}, Bytes: rng.Int64N(1000)}
				ctx, cancel := context.WithCancel(context.Background())
				if rng.IntN(2) == 0 {
					after := rng.IntN(60)
					wg.Go(func() {
						spin(after)
						cancel()
					})
				}
				err := q.Enter(ctx, &ask, &slot)
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Errorf("Enter: %v", err)
					}
					left.Add(1)
					cancel()
					continue
				}
				admitted.Add(1)
				if n := inFlight.Add(1); n > calls {
					t.Errorf("%d calls in flight", n)
				}
				if n := inTokens.Add(ask.Tokens.Input); n > tokens {
					t.Errorf("%d tokens in flight", n)
				}
				spin(rng.IntN(20))
				inTokens.Add(-ask.Tokens.Input)
				inFlight.Add(-1)
				done := make(chan struct{})
				go func() {
					slot.Settle(Tokens{Input: ask.Tokens.Input / 2})
					slot.Release()
					close(done)
				}()
				slot.Release()
				<-done
				cancel()
			}
		})
	}
	stop := make(chan struct{})
	reloads := make(chan struct{})
	go func() {
		defer close(reloads)
		for i := int64(0); ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			c := cfg
			c.Calls, c.MaxWait = 1+i%calls, time.Duration(50+i%10)*time.Second
			if err := q.Configure(c); err != nil {
				t.Error(err)
			}
			q.State()
		}
	}()
	wg.Wait()
	close(stop)
	<-reloads
	st := q.State()
	if st.InFlight != 0 || st.Waiting != 0 || st.Tokens != 0 || st.Bytes != 0 {
		t.Errorf("all have gone, yet %+v", st)
	}
	t.Logf("%d admitted, %d left", admitted.Load(), left.Load())
}

// spin lets others run, n times.
func spin(n int) {
	for range n {
		runtime.Gosched()
	}
}

// TestLeavingAtTheGrant: in virtual time cancels, grants and the ends of waits
// fall on the same instants, in whatever order the scheduler likes. No slot leaks.
func TestLeavingAtTheGrant(t *testing.T) {
	outcomes := map[string]int{}
	var mu sync.Mutex
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, Config{Calls: 2, Tokens: 50, MaxWait: 7 * time.Millisecond, MaxPerKey: 1000})
			rng := rand.New(rand.NewPCG(seed, 6))
			var wg sync.WaitGroup
			for range 100 {
				begin := time.Duration(rng.IntN(20)) * time.Millisecond
				patience := time.Duration(1+rng.IntN(10)) * time.Millisecond
				work := time.Duration(rng.IntN(3)) * time.Millisecond
				ask := Ask{Key: fmt.Sprint(rng.IntN(3)), Tokens: Tokens{Input: rng.Int64N(40)}}
				wg.Go(func() {
					time.Sleep(begin)
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					var s Slot
					err := q.Enter(ctx, &ask, &s)
					mu.Lock()
					var r *Rejection
					switch {
					case err == nil:
						outcomes["admitted"]++
					case errors.As(err, &r):
						outcomes[r.Reason.String()]++
					case errors.Is(err, context.DeadlineExceeded):
						outcomes["left"]++
					default:
						t.Errorf("Enter: %v", err)
					}
					mu.Unlock()
					if err == nil {
						time.Sleep(work)
					}
					s.Release()
				})
			}
			wg.Wait()
			if st := q.State(); st.InFlight != 0 || st.Waiting != 0 || st.Tokens != 0 {
				t.Errorf("seed %d: all have gone, yet %+v", seed, st)
			}
		})
	}
	for _, o := range []string{"admitted", "waited", "left"} {
		if outcomes[o] == 0 {
			t.Errorf("nobody is %s: %v", o, outcomes)
		}
	}
}
