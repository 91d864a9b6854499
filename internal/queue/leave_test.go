package queue

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, Config{Calls: 1, MaxWaiting: 1})
		dead, cancel := context.WithCancel(t.Context())
		cancel()
		if err := q.Enter(dead, &Ask{}, new(Slot)); !errors.Is(err, context.Canceled) {
			t.Errorf("a dead context enters: %v", err)
		}
		first, v := enter(t, q, Ask{}), enter(t, q, Ask{Bytes: 5})
		enter(t, q, Ask{}).want(t, "full")
		v.cancel()
		v.want(t, "left")
		if st := q.State(); st.Waiting != 0 || st.Bytes != 0 {
			t.Errorf("who left is still there: %+v", st)
		}
		next := enter(t, q, Ask{})
		next.want(t, "waiting")
		if n := classState(t, q, Interactive).Left; n != 1 {
			t.Errorf("%d have left", n)
		}
		first.slot.Release()
		next.want(t, "admitted")
		next.slot.Release()
	})
}

// TestFreedWithContext: a holder whose client leaves frees its slot from
// whatever goroutine notices first, and only once.
func TestFreedWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, Config{Calls: 1})
		ctx, cancel := context.WithCancel(t.Context())
		var slot Slot
		if err := q.Enter(ctx, &Ask{}, &slot); err != nil {
			t.Fatal(err)
		}
		context.AfterFunc(ctx, slot.Release)
		next, third := enter(t, q, Ask{}), enter(t, q, Ask{})
		cancel()
		next.want(t, "admitted")
		slot.Release() // the handler returns
		slot.Settle(Tokens{Input: 1e6})
		third.want(t, "waiting")
		next.slot.Release()
		third.want(t, "admitted")
		third.slot.Release()
	})
}

// TestGrantToTheDead: a slot granted to a caller whose context has ended, but who
// has not run since, goes to the next, and costs its key nothing.
func TestGrantToTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, Config{Calls: 1})
		first, v := enter(t, q, Ask{Key: "f"}), enter(t, q, Ask{Key: "a", Tokens: Tokens{Output: 500}})
		next := enter(t, q, Ask{Key: "b", Tokens: Tokens{Output: 500}})
		q.mu.Lock()
		v.cancel()
		q.release(&first.slot)
		if v.slot.state != granted {
			t.Error("the slot was not granted")
		}
		q.mu.Unlock()
		v.want(t, "left")
		next.want(t, "admitted")
		st := classState(t, q, Interactive)
		if st.Left != 1 || st.Waits.Count != 2 {
			t.Errorf("%d left, %d admitted", st.Left, st.Waits.Count)
		}
		if k := q.byName[Interactive].keys["a"]; k.counter() != 0 {
			t.Errorf("the dead call cost %v", k.counter())
		}
		next.slot.Release()
		if v.slot.Release(); q.State().InFlight != 0 {
			t.Error("a slot leaked")
		}
	})
}

// TestReuseAfterCrossing: a decision that crossed with the caller's leaving is not
// taken for that of the slot's next wait, nor does it stand in its way.
func TestReuseAfterCrossing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, Config{Calls: 2, Tokens: 10, Shed: true})
		ask := Ask{Tokens: Tokens{Input: 10}}
		first := enter(t, q, ask)
		v := &visit{}
		wait := func(ask Ask) {
			ctx, cancel := context.WithCancel(t.Context())
			v.done, v.cancel = make(chan struct{}), cancel
			go func() {
				defer close(v.done)
				v.err = q.Enter(ctx, &ask, &v.slot)
			}()
			synctest.Wait()
		}
		cross := func() {
			wait(ask)
			q.mu.Lock()
			v.cancel()
			q.release(&first.slot) // grants it to v
			q.flow.samples = 0     // no forecast: the door sheds nothing
			q.mu.Unlock()
			v.want(t, "left")
			if err := q.Enter(t.Context(), &ask, &first.slot); err != nil {
				t.Fatal(err)
			}
		}
		for range 20 { // which of the two the caller sees first is a matter of luck
			cross()
			wait(ask)
			v.want(t, "waiting")
			time.Sleep(time.Second)
			v.want(t, "waiting")
			first.slot.Release()
			v.want(t, "admitted")
			v.slot.Release()
			v.cancel()
			if err := q.Enter(t.Context(), &ask, &first.slot); err != nil {
				t.Fatal(err)
			}
			cross()
			lost := ask
			lost.Deadline = time.Now().Add(-1)
			wait(lost) // refused while it still enters
			v.want(t, "shed_pop")
			v.cancel()
		}
		first.slot.Release()
	})
}
