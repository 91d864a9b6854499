package queue

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// newQueue returns a queue that is checked when the test ends.
func newQueue(t testing.TB, cfg Config) *Queue {
	t.Helper()
	q, err := New("pool", cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, q) })
	return q
}

// visit is one call of Enter in a goroutine of its own.
type visit struct {
	slot   Slot
	err    error
	done   chan struct{}
	cancel context.CancelFunc
}

// enter starts a visit and returns when it is decided or waits.
func enter(t testing.TB, q *Queue, ask Ask) *visit {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	v := &visit{done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(v.done)
		v.err = q.Enter(ctx, &ask, &v.slot)
	}()
	synctest.Wait()
	return v
}

// outcome is "waiting", "admitted", "left" or the reason of the rejection.
func (v *visit) outcome(t testing.TB) string {
	t.Helper()
	synctest.Wait()
	select {
	case <-v.done:
	default:
		return "waiting"
	}
	var r *Rejection
	switch {
	case v.err == nil:
		return "admitted"
	case errors.As(v.err, &r):
		return r.Reason.String()
	case errors.Is(v.err, context.Canceled):
		return "left"
	}
	t.Fatalf("Enter returned %v", v.err)
	return ""
}

func (v *visit) want(t testing.TB, outcome string) {
	t.Helper()
	if got := v.outcome(t); got != outcome {
		t.Fatalf("the call is %q, want %q", got, outcome)
	}
}

// check holds what must be true of a queue whenever its lock is free.
func check(t testing.TB, q *Queue) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	listed, bytes := 0, int64(0)
	for s := q.oldest; s != nil; s = s.next {
		listed++
		bytes += s.bytes
		if s.state != waiting || s.at == 0 || s.next != nil && s.next.prev != s {
			t.Errorf("a listed slot is in state %d at %d", s.state, s.at)
		}
	}
	classWaiting, classInFlight := 0, 0
	for _, c := range q.classes {
		classWaiting += c.waiting
		classInFlight += c.inFlight
		keyWaiting, keyInFlight, resting := 0, 0, 0
		for name, k := range c.keys {
			if k.name != name {
				t.Errorf("key %q is filed as %q", k.name, name)
			}
			keyWaiting += k.calls.len()
			keyInFlight += k.inFlight
			if k.idle() {
				resting++
			}
			checkHeap(t, &k.calls)
		}
		if keyWaiting != c.waiting || keyInFlight != c.inFlight || resting != c.idle.len() {
			t.Errorf("class %s has %d waiting, %d in flight, %d idle; its keys %d, %d, %d", c.name, c.waiting, c.inFlight, c.idle.len(), keyWaiting, keyInFlight, resting)
		}
		checkHeap(t, &c.active)
		checkHeap(t, &c.idle)
	}
	if listed != q.waiting || classWaiting != q.waiting || bytes != q.bytes || int64(classInFlight) != q.inFlight {
		t.Errorf("%d wait, %d listed, %d in classes; %d bytes, %d listed; %d in flight, %d in classes",
			q.waiting, listed, classWaiting, q.bytes, bytes, q.inFlight, classInFlight)
	}
	if q.inFlight == 0 && (q.tokens != 0 || q.waiting != 0) {
		t.Errorf("nothing is in flight, yet %d tokens are and %d calls wait", q.tokens, q.waiting)
	}
	if q.waiting > 0 && q.vacant() && (q.chosen == nil || q.fits(q.chosen)) {
		t.Errorf("%d calls wait while there is room", q.waiting)
	}
}

func checkHeap[T member[T]](t testing.TB, h *heap[T]) {
	t.Helper()
	for i, x := range h.items {
		if *x.place() != i+1 {
			t.Errorf("member %d believes to be at %d", i, *x.place()-1)
		}
		if i > 0 && x.before(h.items[(i-1)/2]) {
			t.Errorf("member %d should go before its parent", i)
		}
	}
}

// classState returns the state of one class.
func classState(t testing.TB, q *Queue, name string) ClassState {
	t.Helper()
	for _, c := range q.State().Classes {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no class %q", name)
	return ClassState{}
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
