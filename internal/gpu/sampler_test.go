package gpu

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// script is a source that does what a function says.
type script struct {
	sample func(ctx context.Context, n int, now time.Time) ([]Reading, error)
	times  []time.Time // when it was asked
}

func (s *script) Name() string { return "script" }
func (s *script) Close() error { return nil }
func (s *script) Sample(ctx context.Context, now time.Time) ([]Reading, error) {
	s.times = append(s.times, now)
	return s.sample(ctx, len(s.times)-1, now)
}

// run lets a sampler run for so long and returns it with what it reported.
func run(t *testing.T, src *script, long time.Duration) (*Sampler, []State) {
	t.Helper()
	var states []State
	s := NewSampler(src, Options{Report: func(s State) { states = append(states, s) }})
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	s.Run(ctx)
	return s, states
}

func one(now time.Time) []Reading {
	return []Reading{{Time: now, Utilization: Figure(0.5), Power: Figure(100), Processes: []Process{{PID: 1}}}}
}

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		src := &script{sample: func(_ context.Context, n int, now time.Time) ([]Reading, error) {
			time.Sleep(time.Duration(n%5) * 100 * time.Millisecond) // is no drift
			return one(now), nil
		}}
		s, states := run(t, src, 10500*time.Millisecond)
		for i, at := range src.times {
			if at.Sub(began) != time.Duration(i)*time.Second {
				t.Errorf("sample %d after %v", i, at.Sub(began))
			}
		}
		if len(src.times) != 11 || len(states) != 1 || states[0].Error != "" || states[0].GPUs != 1 || states[0].Source != "script" || states[0].Since != began {
			t.Errorf("%d samples, reported %+v", len(src.times), states)
		}
		if w := s.Window(began.Add(2*time.Second), began.Add(4*time.Second)); w.GPUs != 1 || !is(w.Energy, 200) || !is(w.Utilization, 0.5) {
			t.Errorf("%+v", w)
		}
		latest := s.Latest()
		latest[0].Processes[0].PID = 7 // is a copy
		if again := s.Latest(); len(again) != 1 || again[0].Processes[0].PID != 1 || s.State().Last != began.Add(10*time.Second) {
			t.Errorf("%+v, %+v", again, s.State())
		}
	})
}

// TestErrorsAreSaidOnce: with ever longer waits between.
func TestErrorsAreSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		src := &script{sample: func(_ context.Context, n int, now time.Time) ([]Reading, error) {
			switch {
			case n < 2 || n > 12:
				return one(now), nil
			case n == 12:
				return one(now), errors.New("GPU 1: lost")
			case n == 11:
				return nil, nil
			}
			return nil, errors.New("no answer")
		}}
		s, states := run(t, src, 200*time.Second)
		var waits []time.Duration
		for i := 1; i < 15; i++ {
			waits = append(waits, src.times[i].Sub(src.times[i-1])/time.Second)
		}
		for i, want := range []time.Duration{1, 1, 1, 2, 4, 8, 16, 30, 30, 30, 30, 30, 1, 1} {
			if waits[i] != want {
				t.Fatalf("waits %d", waits)
			}
		}
		var said []string
		for _, s := range states {
			said = append(said, s.Error)
		}
		if strings.Join(said, "|") != "|no answer|there is no GPU|GPU 1: lost|" || states[1].GPUs != 1 || states[1].Since != began.Add(2*time.Second) {
			t.Errorf("reported %q: %+v", said, states)
		}
		if state := s.State(); state.Error != "" || state.Since != src.times[13] || len(src.times) < 17 {
			t.Errorf("%+v", state)
		}
	})
}

// TestHungSource: it is asked once, however long it takes, and said to be late.
func TestHungSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		src := &script{sample: func(_ context.Context, n int, now time.Time) ([]Reading, error) {
			if n == 1 {
				time.Sleep(time.Minute)
			}
			return one(now), nil
		}}
		s, states := run(t, src, 90*time.Second)
		if len(src.times) < 3 || src.times[1] != began.Add(time.Second) || src.times[2] != began.Add(61*time.Second) {
			t.Errorf("asked at %v", src.times)
		}
		if len(states) != 3 || !strings.Contains(states[1].Error, "no answer within 3s") || states[1].Since != began.Add(5*time.Second) ||
			states[2].Error != "" || states[2].Since != began.Add(61*time.Second) || s.State().Error != "" {
			t.Errorf("reported %+v", states)
		}
	})
}

// TestRunEnds: at once if the source heeds its context, else in three seconds.
func TestRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for hangs, want := range map[time.Duration]time.Duration{0: 0, time.Second: time.Second, time.Hour: patience} {
			src := &script{sample: func(ctx context.Context, _ int, now time.Time) ([]Reading, error) {
				<-ctx.Done()
				time.Sleep(hangs)
				return one(now), ctx.Err()
			}}
			ctx, cancel := context.WithCancel(t.Context())
			s := NewSampler(src, Options{})
			go func() {
				time.Sleep(time.Second)
				cancel()
			}()
			began := time.Now()
			s.Run(ctx)
			if took := time.Since(began); took != time.Second+want {
				t.Errorf("one that hangs for %v: ended after %v", hangs, took)
			}
			if len(s.Latest()) != 0 {
				t.Error("kept what came after the end")
			}
			s.Run(ctx) // ends at once
			synctest.Wait()
			if len(src.times) != 1 {
				t.Error("sampled after the end")
			}
		}
		time.Sleep(time.Hour) // the one that is left behind ends too
	})
}

func TestPanicIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &script{sample: func(context.Context, int, time.Time) ([]Reading, error) { panic("a bug of the parser") }}
		_, states := run(t, src, time.Minute)
		if len(states) != 1 || states[0].Error != "sampling broke off: a bug of the parser" {
			t.Errorf("%+v", states)
		}
	})
}

func TestNilSampler(t *testing.T) {
	var s *Sampler
	if s.Latest() != nil || s.State() != (State{}) {
		t.Error("nil knows something")
	}
}
