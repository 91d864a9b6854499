package otlpin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// script is a collector whose answers a test decides.
type script struct {
	answer func(context.Context, *batch) error
	mu     sync.Mutex
	sent   []time.Time
	closed bool
}

func (s *script) send(ctx context.Context, b *batch) error {
	s.mu.Lock()
	s.sent = append(s.sent, time.Now())
	s.mu.Unlock()
	return s.answer(ctx, b)
}
func (s *script) overGRPC() bool { return false }
func (s *script) close()         { s.closed = true }
func (s *script) attempts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sent)
}

var errDown = errors.New("down")

// forwarding runs a test with a forwarder on a clock of its own, and looks at what it leaves.
func forwarding(t *testing.T, o Options, answer func(context.Context, *batch) error, test func(*testing.T, *forwarder, *script)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &script{answer: answer}
		f := newForwarder(s, o)
		test(t, f, s)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = f.close(ctx)
		if got := f.state(); got.Queued != 0 || got.QueuedBytes != 0 || !s.closed {
			t.Errorf("something is left: %+v", got)
		}
	})
}

// something is an export of n spans.
func something(n int) *batch { return &batch{what: signals[0], body: make([]byte, 100), spans: n} }

func forwarded(t *testing.T, f *forwarder, want ForwardState) {
	t.Helper()
	synctest.Wait() // until the senders are at rest
	if got := *f.state(); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestRetry: a collector that is down for a while gets everything, once.
func TestRetry(t *testing.T) {
	var up atomic.Bool
	var reports []string
	report := func(err error) { reports = append(reports, fmt.Sprint(err)) }
	forwarding(t, Options{Report: report}, func(context.Context, *batch) error {
		if !up.Load() {
			return errDown
		}
		return nil
	}, func(t *testing.T, f *forwarder, s *script) {
		for range 10 {
			if !f.offer(something(3)) {
				t.Error("no room")
			}
		}
		time.Sleep(time.Minute)
		attempts := s.attempts()
		if got := f.state(); got.Forwarded != 0 || got.Error != "down" || got.Queued != 10 || got.Failures != int64(attempts) || got.Dropped() != 0 {
			t.Errorf("%+v after %d attempts", got, attempts)
		}
		// The pauses grow from 50 ms to at most 7.5 s each, for each of four senders.
		if attempts < senders*10 || attempts > senders*30 {
			t.Errorf("%d attempts in a minute", attempts)
		}
		up.Store(true)
		time.Sleep(10 * time.Second)
		forwarded(t, f, ForwardState{Forwarded: 10, ForwardedSpans: 30, Failures: int64(attempts)})
		up.Store(false)
		f.offer(something(1))
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := "[pass spans on to the collector: down <nil> pass spans on to the collector: down]"; fmt.Sprint(reports) != want {
			t.Errorf("reported %v", reports)
		}
	})
}

// TestGiveUp: nothing is kept for ever.
func TestGiveUp(t *testing.T) {
	forwarding(t, Options{}, func(context.Context, *batch) error { return errDown }, func(t *testing.T, f *forwarder, s *script) {
		for range 20 {
			f.offer(something(2))
		}
		time.Sleep(giveUp + time.Second)
		got := f.state()
		if got.Expired < senders || got.Queued > 20-senders || got.DroppedSpans != 2*got.Expired {
			t.Errorf("%+v", got)
		}
		time.Sleep(time.Minute) // what waited behind is as old, and gets one attempt each
		if got := f.state(); got.Expired != 20 || got.Queued != 0 || got.Error != "down" {
			t.Errorf("%+v", got)
		}
	})
}

func TestRefusals(t *testing.T) {
	reports := 0
	var answer error
	forwarding(t, Options{Report: func(error) { reports++ }}, func(context.Context, *batch) error { return answer }, func(t *testing.T, f *forwarder, s *script) {
		answer = &refusal{err: errDown, batch: true}
		f.offer(something(2))
		time.Sleep(time.Minute)
		synctest.Wait()
		if reports != 0 || s.attempts() != 1 {
			t.Errorf("a bad batch was reported %d times, sent %d times", reports, s.attempts())
		}
		forwarded(t, f, ForwardState{Refused: 1, Failures: 1, DroppedSpans: 2})
		answer = &refusal{err: errDown}
		f.offer(something(2))
		f.offer(something(2))
		time.Sleep(time.Minute)
		synctest.Wait()
		if reports != 1 {
			t.Errorf("a collector that refuses was reported %d times", reports)
		}
		forwarded(t, f, ForwardState{Refused: 3, Failures: 3, DroppedSpans: 6, Error: "down"})
	})
}

// TestPauses: the collector's wish counts, up to a point.
func TestPauses(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{10 * time.Second: 10 * time.Second, time.Hour: maxPause} {
		first := true
		forwarding(t, Options{}, func(context.Context, *batch) error {
			if first {
				first = false
				return &pause{err: errDown, after: asked}
			}
			return nil
		}, func(t *testing.T, f *forwarder, s *script) {
			f.offer(something(1))
			time.Sleep(time.Minute)
			synctest.Wait()
			if s.attempts() != 2 || s.sent[1].Sub(s.sent[0]) != want {
				t.Errorf("asked for %v: %v", asked, s.sent)
			}
		})
	}
}

// TestBlackHole: a collector that never answers holds as many exports as there
// are senders, each for the time of an attempt, and the queue fills to its bounds.
func TestBlackHole(t *testing.T) {
	hole := func(ctx context.Context, _ *batch) error { <-ctx.Done(); return ctx.Err() }
	for name, o := range map[string]Options{"batches": {QueueBatches: 50}, "bytes": {QueueBytes: 50 * (overhead + 100)}} {
		t.Run(name, func(t *testing.T) {
			forwarding(t, o, hole, func(t *testing.T, f *forwarder, s *script) {
				for i := range 80 {
					before := time.Now()
					if took := f.offer(something(1)); took != (i < 50) {
						t.Fatalf("offer %d: %v", i, took)
					}
					if time.Since(before) != 0 {
						t.Fatal("an offer took time")
					}
				}
				synctest.Wait()
				if got := f.state(); got.Queued != 50 || got.Full != 30 || got.DroppedSpans != 30 || s.attempts() != senders {
					t.Errorf("%+v, %d attempts", got, s.attempts())
				}
				time.Sleep(attemptTime + time.Second)
				if got := f.state(); got.Failures != senders || got.Queued != 50 {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

// TestClose: what is queued is sent once, or dropped at ctx's end, and counted.
func TestCloseForwarder(t *testing.T) {
	slow := func(ctx context.Context, _ *batch) error {
		select {
		case <-time.After(time.Second):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for name, test := range map[string]struct {
		answer             func(context.Context, *batch) error
		sent, cut, expired int64
		fails              bool
	}{
		"quick": {func(context.Context, *batch) error { return nil }, 40, 0, 0, false},
		"slow":  {slow, 16, 24, 0, true}, // four at a time, a second each, in 4.5 s
		"dead":  {func(context.Context, *batch) error { return errDown }, 0, 40, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{answer: test.answer}
				f := newForwarder(s, Options{})
				for range 40 {
					f.offer(something(1))
				}
				ctx, cancel := context.WithTimeout(context.Background(), 4500*ms)
				defer cancel()
				before := time.Now()
				err := f.close(ctx)
				if (err != nil) != test.fails || time.Since(before) > 4500*ms {
					t.Errorf("%v after %v", err, time.Since(before))
				}
				got := f.state()
				if got.Forwarded != test.sent || got.Cut != test.cut || got.Queued != 0 || got.QueuedBytes != 0 {
					t.Errorf("%+v", got)
				}
				if f.offer(something(1)) {
					t.Error("something was taken after the end")
				}
			})
		})
	}
}

// TestAttemptPanics: it costs that batch, and nothing else.
func TestAttemptPanics(t *testing.T) {
	forwarding(t, Options{}, func(_ context.Context, b *batch) error {
		if b.spans == 1 {
			panic("no")
		}
		return nil
	}, func(t *testing.T, f *forwarder, s *script) {
		f.offer(something(1))
		f.offer(something(2))
		synctest.Wait()
		forwarded(t, f, ForwardState{Forwarded: 1, ForwardedSpans: 2, Refused: 1, DroppedSpans: 1, Failures: 1})
	})
}
