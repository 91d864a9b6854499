package alert

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestDrain: at the end what waits is told, for a bounded time.
func TestDrain(t *testing.T) {
	t.Run("what was not told yet", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &scribe{name: "webhook"}
			m := New(Options{Receivers: []Receiver{s}})
			m.Observe(time.Now(), statusAt(time.Now(), standing{page: true}))
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			m.Run(ctx)
			hears(t, s, "page firing interactive/ttft_p99")
		})
	})
	t.Run("what waits for a pause", func(t *testing.T) {
		var line switchable
		line.set(errDead)
		s := &scribe{name: "webhook", answer: line.answer}
		within(t, Options{Receivers: []Receiver{s}}, func(t *testing.T, r *rig) {
			r.see(standing{page: true})
			pass(10 * time.Minute)
			line.set(nil)
			began := time.Now()
			r.cancel()
			hears(t, s, "page firing interactive/ttft_p99")
			if took := time.Since(began); took != 0 {
				t.Errorf("it took %v", took)
			}
		})
	})
	t.Run("a dead one", func(t *testing.T) {
		dead := &scribe{name: "dead", answer: func(context.Context, Batch) error { return errDead }}
		within(t, Options{Receivers: []Receiver{dead}}, func(t *testing.T, r *rig) {
			r.see(standing{page: true})
			began := time.Now()
			r.cancel()
			if took := time.Since(began); took != drainTime {
				t.Errorf("it took %v", took)
			}
			if n := len(dead.tried()); n < 5 || n > 8 {
				t.Errorf("it was tried %d times", n)
			}
		})
	})
	t.Run("one that asked for patience", func(t *testing.T) {
		busy := &scribe{name: "busy", answer: func(context.Context, Batch) error { return &failure{err: errDead, after: time.Minute} }}
		within(t, Options{Receivers: []Receiver{busy}}, func(t *testing.T, r *rig) {
			r.see(standing{page: true})
			began := time.Now()
			r.cancel()
			if took := time.Since(began); took != 0 || len(busy.tried()) != 2 {
				t.Errorf("it took %v and %d attempts", took, len(busy.tried()))
			}
		})
	})
	t.Run("one that answers nothing", func(t *testing.T) {
		mute := &scribe{name: "mute", answer: func(ctx context.Context, _ Batch) error { <-ctx.Done(); return ctx.Err() }}
		within(t, Options{Receivers: []Receiver{mute}}, func(t *testing.T, r *rig) {
			r.see(standing{page: true})
			began := time.Now()
			r.cancel()
			if took := time.Since(began); took != drainTime {
				t.Errorf("it took %v", took)
			}
		})
	})
	t.Run("one that does not even end", func(t *testing.T) {
		free := make(chan struct{})
		stuck := &scribe{name: "stuck", answer: func(context.Context, Batch) error { <-free; return nil }}
		within(t, Options{Receivers: []Receiver{stuck}}, func(t *testing.T, r *rig) {
			free = make(chan struct{}) // of the bubble
			r.see(standing{page: true})
			began := time.Now()
			r.cancel()
			if took := time.Since(began); took != drainTime+time.Second {
				t.Errorf("it took %v", took)
			}
			close(free)
			synctest.Wait()
		})
	})
}

// TestRunAgain: a Manager that stopped can go on.
func TestRunAgain(t *testing.T) {
	s := &scribe{name: "webhook"}
	synctest.Test(t, func(t *testing.T) {
		m := New(Options{Receivers: []Receiver{s}})
		for i := range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			m.Observe(time.Now(), statusAt(time.Now(), standing{objective: fmt.Sprint(i), page: true}))
			m.Run(ctx)
			cancel()
			hears(t, s, fmt.Sprintf("page firing interactive/%d", i))
		}
	})
}
