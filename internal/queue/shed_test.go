package queue

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// crowd is the calls of one class that come to an overloaded pool.
type crowd struct {
	class   string
	share   float64       // of the pool, by the weights
	service time.Duration // of each call, in a slot
	due     time.Duration // its objective for the first token
	ttft    time.Duration // from admission
	reserve int64         // how many times the used tokens are reserved
}

// arrivals returns when calls come that ask for times as much as the share.
func (c *crowd) arrivals(rng *rand.Rand, slots int, times float64, span time.Duration) (at []time.Duration) {
	gap := c.service.Seconds() / (float64(slots) * c.share * times)
	for t := rng.ExpFloat64() * gap; t < span.Seconds(); t += rng.ExpFloat64() * gap {
		at = append(at, seconds(t))
	}
	return at
}

// tokens are what one call uses: a microsecond for a unit of cost and a hundred slots.
func (c *crowd) tokens() Tokens { return Tokens{Input: c.service.Microseconds() / 100} }

// useful offers the crowds to the queue and returns, for each, the slot time of its
// calls admitted within their objective, over its share of the pool's.
func useful(q *Queue, crowds []crowd, slots int, times float64, span time.Duration) []float64 {
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := make([]float64, len(crowds))
	for i, c := range crowds {
		rng := rand.New(rand.NewPCG(7, uint64(i)))
		at := c.arrivals(rng, slots, times, span)
		begin := time.Now()
		wg.Go(func() {
			for n, t := range at {
				time.Sleep(t - time.Since(begin))
				used := c.tokens()
				ask := Ask{Class: c.class, Key: string('a' + rune(n%5)), Tokens: Tokens{Input: used.Input * c.reserve},
					Deadline: time.Now().Add(c.due), PredictedTTFT: c.ttft}
				wg.Go(func() {
					var s Slot
					if q.Enter(context.Background(), &ask, &s) != nil {
						return
					}
					defer s.Release()
					if now := time.Now(); now.Sub(begin) < span && !now.Add(c.ttft).After(ask.Deadline) {
						mu.Lock()
						got[i] += c.service.Seconds()
						mu.Unlock()
					}
					time.Sleep(c.service)
					s.Settle(used)
				})
			}
		})
	}
	wg.Wait()
	for i, c := range crowds {
		got[i] /= c.share * float64(slots) * span.Seconds()
	}
	return got
}

// fifo returns the same for a queue in order of arrival that sheds nothing,
// over all crowds together.
func fifo(crowds []crowd, slots int, times float64, span time.Duration) (got float64) {
	type arrival struct {
		at time.Duration
		c  *crowd
	}
	var all []arrival
	for i := range crowds {
		for _, t := range crowds[i].arrivals(rand.New(rand.NewPCG(7, uint64(i))), slots, times, span) {
			all = append(all, arrival{t, &crowds[i]})
		}
	}
	slices.SortFunc(all, func(a, b arrival) int { return int(a.at - b.at) })
	free := make([]time.Duration, slots) // when each slot is free
	for _, a := range all {
		slot := slices.Index(free, slices.Min(free))
		start := max(a.at, free[slot])
		free[slot] = start + a.c.service
		if start < span && start+a.c.ttft <= a.at+a.c.due {
			got += a.c.service.Seconds()
		}
	}
	return got / (float64(slots) * span.Seconds())
}

// TestOverload: at three times what the pool can serve, nearly all that each
// class's share of it can do is done in time.
func TestOverload(t *testing.T) {
	const slots, times, span = 16, 3, 15 * time.Minute
	for name, crowds := range map[string][]crowd{
		"alike": {
			{Interactive, 16. / 21, time.Second, 2 * time.Second, 200 * time.Millisecond, 1},
			{Completion, 4. / 21, time.Second, 4 * time.Second, 200 * time.Millisecond, 1},
			{Batch, 1. / 21, time.Second, time.Minute, 200 * time.Millisecond, 1},
		},
		"short completions, long batch": {
			{Interactive, 16. / 21, time.Second, 3 * time.Second, 200 * time.Millisecond, 1},
			{Completion, 4. / 21, 200 * time.Millisecond, time.Second, 100 * time.Millisecond, 1},
			{Batch, 1. / 21, 4 * time.Second, 2 * time.Minute, time.Second, 1},
		},
		"reserved far above use": {
			{Interactive, 16. / 21, time.Second, 3 * time.Second, 200 * time.Millisecond, 4},
			{Completion, 4. / 21, 500 * time.Millisecond, 3 * time.Second, 200 * time.Millisecond, 2},
			{Batch, 1. / 21, time.Second, 2 * time.Minute, time.Second, 10},
		},
		"one class": {{Batch, 1, time.Second, 5 * time.Second, time.Second, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, Config{Calls: slots, Shed: true, MaxWait: 5 * time.Minute})
				got := useful(q, crowds, slots, times, span)
				for i, c := range crowds {
					st := classState(t, q, c.class)
					t.Logf("%-11s useful %.3f of its share; shed at the door %d, at the pop %d", c.class, got[i], st.Rejected[ShedDoor], st.Rejected[ShedPop])
					if got[i] < 0.95 {
						t.Errorf("%s: useful work is %.3f of its share, want at least 0.95", c.class, got[i])
					}
				}
			})
			byArrival := fifo(crowds, slots, times, span)
			t.Logf("in order of arrival, nothing shed: %.3f of all", byArrival)
			if byArrival > 0.1 {
				t.Errorf("a plain queue does %.3f of the work in time, so the load proves nothing", byArrival)
			}
		})
	}
}

// TestShedIsASwitch: without it no deadline refuses a call.
func TestShedIsASwitch(t *testing.T) {
	for _, shed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, Config{Calls: 1, Shed: shed, MaxWait: 2 * time.Minute})
			soon := Ask{Deadline: time.Now().Add(time.Second), PredictedTTFT: 2 * time.Second}
			cur := enter(t, q, soon) // lost, but nobody else wants the slot
			cur.want(t, "admitted")
			for range enough { // until the queue knows its pace: a call in ten seconds
				next := enter(t, q, Ask{})
				time.Sleep(10 * time.Second)
				cur.slot.Release()
				next.want(t, "admitted")
				cur = next
			}
			ask := func(due time.Duration) Ask {
				return Ask{Deadline: time.Now().Add(due), PredictedTTFT: time.Second}
			}
			tooLate := enter(t, q, ask(10*time.Second))
			inTime := enter(t, q, ask(11*time.Second))
			if !shed {
				for _, v := range []*visit{tooLate, inTime} {
					time.Sleep(20 * time.Second)
					cur.slot.Release()
					v.want(t, "admitted")
					cur = v
				}
				cur.slot.Release()
				return
			}
			tooLate.want(t, "shed_door")
			if r := new(Rejection); !errors.As(tooLate.err, &r) || r.RetryAfter != 10*time.Second {
				t.Errorf("rejection is %+v", r)
			}
			inTime.want(t, "waiting")
			time.Sleep(10 * time.Second) // the last moment
			cur.slot.Release()
			inTime.want(t, "admitted")
			lost, next := enter(t, q, ask(45*time.Second)), enter(t, q, Ask{})
			lost.want(t, "waiting")
			time.Sleep(44*time.Second + 1)
			inTime.slot.Release()
			lost.want(t, "shed_pop")
			next.want(t, "admitted")
			next.slot.Release()
		})
	}
}

// TestReleaseBeforeEnterReturns does nothing: the slot is not the caller's yet.
func TestReleaseBeforeEnterReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, Config{Calls: 1})
		first, v := enter(t, q, Ask{}), enter(t, q, Ask{})
		v.slot.Release()
		first.slot.Release()
		v.slot.Release() // granted, but the goroutine has hardly run
		v.want(t, "admitted")
		v.slot.Release()
		if n := q.State().InFlight; n != 0 {
			t.Errorf("%d in flight", n)
		}
	})
}

// TestForecast: nothing is said before enough has left; then the pace, the
// share of the class and the turns of the key count.
func TestForecast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, Config{Calls: 2, MaxWait: time.Hour})
		a, b := enter(t, q, Ask{Key: "x"}), enter(t, q, Ask{Key: "x"})
		if w := q.State().PredictedWait; w.IsKnown() {
			t.Errorf("full, and nothing has left, yet the wait is %v", w)
		}
		for i := range 40 {
			next := enter(t, q, Ask{Key: "x"})
			if known := q.State().PredictedWait.IsKnown(); known != (i >= enough) {
				t.Errorf("after %d departures the wait is known: %v", i, known)
			}
			time.Sleep(time.Second)
			a.slot.Release()
			a, b = b, next
		}
		want := func(class string, n float64) {
			t.Helper()
			got := q.State().PredictedWait
			if class != "" {
				got = classState(t, q, class).PredictedWait
			}
			d, known := got.Get()
			if !known || (d-seconds(n)).Abs() > 10*time.Millisecond {
				t.Errorf("%s: the wait is %v (%v), want %v s", class, d, known, n)
			}
		}
		want("", 1)
		want(Batch, 1)
		var vs []*visit
		for range 10 {
			vs = append(vs, enter(t, q, Ask{Key: "x"}))
		}
		want("", 11)
		want(Interactive, 2) // a new key goes after one of the ten
		want(Batch, 11)      // 17 by its share, but all will have left before
		for range 2 {
			vs = append(vs, enter(t, q, Ask{Key: "x", Class: Completion}))
		}
		want(Interactive, 2.5) // two calls at 16/20 of the pace
		time.Sleep(5 * time.Second)
		if oldest := q.State().OldestWait.Or(0); oldest != 5*time.Second {
			t.Errorf("the oldest waits %v", oldest)
		}
		if d := q.State().PredictedWait.Or(0); d <= 13*time.Second {
			t.Errorf("nothing has left for 5 s, and the wait is still %v", d)
		}
		for _, v := range vs {
			v.cancel()
		}
		synctest.Wait()
		a.slot.Release()
		want("", 0)
		b.slot.Release()
	})
}

// TestForecastSizes: a class of small calls gets more of them through.
func TestForecastSizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, Config{Calls: 1})
		large := Ask{Class: Interactive, Tokens: Tokens{Input: 100}}
		small := Ask{Class: Completion, Tokens: Tokens{Input: 10}}
		cur := enter(t, q, large)
		for i := range 1000 {
			ask := small
			if i%2 == 1 {
				ask = large
			}
			next := enter(t, q, ask)
			time.Sleep(time.Second)
			cur.slot.Release()
			next.want(t, "admitted")
			cur = next
		}
		var vs []*visit
		for range 10 {
			vs = append(vs, enter(t, q, large))
		}
		// A second for 55 on average, 10 to go, with 4 of the 20 parts.
		want := seconds(10. / 55 * 20 / 4)
		if got := classState(t, q, Completion).PredictedWait.Or(0); (got - want).Abs() > 20*time.Millisecond {
			t.Errorf("a small call waits %v, want %v", got, want)
		}
		// All ten, and one of the average.
		want = seconds(1055. / 55)
		if got := q.State().PredictedWait.Or(0); (got - want).Abs() > 200*time.Millisecond {
			t.Errorf("all wait %v, want %v", got, want)
		}
		for _, v := range vs {
			v.cancel()
		}
		synctest.Wait()
		cur.slot.Release()
	})
}

// TestRetryAfter is within a second and a minute, whatever the pace.
func TestRetryAfter(t *testing.T) {
	for service, want := range map[time.Duration]time.Duration{
		time.Millisecond: time.Second, 3 * time.Second: 9 * time.Second, time.Hour: time.Minute,
	} {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, Config{Calls: 1, MaxWaiting: 2, MaxPerKey: 2, MaxWait: maxMaxWait, MaxPerClass: 2})
			cur, next := enter(t, q, Ask{}), enter(t, q, Ask{})
			for range 20 {
				time.Sleep(service)
				cur.slot.Release()
				next.want(t, "admitted")
				cur, next = next, enter(t, q, Ask{})
			}
			last := enter(t, q, Ask{})
			v := enter(t, q, Ask{})
			v.want(t, "full")
			if got := v.err.(*Rejection).RetryAfter; (got - want).Abs() > time.Millisecond {
				t.Errorf("calls of %v: retry after %v, want %v", service, got, want)
			}
			cur.slot.Release()
			next.want(t, "admitted")
			next.slot.Release()
			last.want(t, "admitted")
			last.slot.Release()
		})
	}
}
