package alert

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// flaky fails, dawdles and recovers at random.
type flaky struct {
	mu     sync.Mutex
	random *rand.Rand
	well   bool
}

func (f *flaky) answer(ctx context.Context, _ Batch) error {
	f.mu.Lock()
	what, well := f.random.IntN(10), f.well
	f.mu.Unlock()
	switch {
	case well || what < 5:
		return nil
	case what < 7:
		return errDead
	case what < 8:
		return &failure{err: errDead, after: 30 * time.Second}
	}
	select {
	case <-time.After(time.Duration(what) * 2 * time.Second): // sometimes longer than an attempt may take
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestNothingIsLost walks at random through conditions, with receivers that fail at random,
// and with reloads, and then lets all become quiet. Then each receiver has heard the end of
// every alert that it heard the beginning of, and nothing was told twice.
func TestNothingIsLost(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			var lines []*flaky
			var scribes []*scribe
			var receivers []Receiver
			for i := range 3 {
				line := &flaky{random: rand.New(rand.NewPCG(seed, uint64(i)+2)), well: i == 0}
				s := &scribe{name: fmt.Sprint("receiver ", i), answer: line.answer, manner: manners{most: 1 + 2*i}}
				lines, scribes, receivers = append(lines, line), append(scribes, s), append(receivers, s)
			}
			within(t, Options{Receivers: receivers}, func(t *testing.T, r *rig) {
				for range 200 {
					var all []standing
					for _, model := range []string{"", "a", "b"} {
						for _, objective := range []string{"ttft_p99", "success"} {
							all = append(all, standing{objective: objective, model: model, page: random.IntN(6) == 0, ticket: random.IntN(4) == 0, consumed: random.Float64() * 1.2})
						}
					}
					r.see(all[:random.IntN(len(all)+1)]...)
					if random.IntN(30) == 0 {
						r.Configure(Options{Receivers: receivers})
					}
					pass(time.Duration(random.Int64N(int64(8 * time.Minute))))
					agrees(t, r, scribes[0])
				}
				for _, line := range lines {
					line.mu.Lock()
					line.well = true
					line.mu.Unlock()
				}
				for range 40 {
					r.see()
					pass(2 * time.Minute)
				}
				if got := r.shows(); got != "" {
					t.Errorf("still shown: %s", got)
				}
				for i, s := range r.State().Receivers {
					if s.Pending != 0 || s.Dropped != 0 || !s.FailingSince.IsZero() || s.Sent != int64(len(scribes[i].alerts)) {
						t.Errorf("%d heard, and its state is %+v", len(scribes[i].alerts), s)
					}
				}
			})
			for _, s := range scribes {
				inOrder(t, s)
			}
		})
	}
}

// inOrder fails unless what a receiver heard of each alert makes sense, and has come to its end.
func inOrder(t *testing.T, s *scribe) {
	t.Helper()
	last := make(map[string]Alert)
	for _, a := range s.alerts {
		before, known := last[a.Fingerprint]
		switch {
		case known && before.StartsAt.Equal(a.StartsAt) && before.Status == a.Status:
			t.Errorf("%s heard twice of %s since %v", s.name, headline(a), a.StartsAt)
		case known && before.StartsAt.Equal(a.StartsAt) && before.Status == Resolved:
			t.Errorf("%s heard of %s after its end", s.name, headline(a))
		case known && a.StartsAt.Before(before.StartsAt):
			t.Errorf("%s heard of %s since %v after a later one", s.name, headline(a), a.StartsAt)
		}
		last[a.Fingerprint] = a
	}
	for _, a := range last {
		if a.Status != Resolved {
			t.Errorf("%s never heard of the end of %s", s.name, headline(a))
		}
	}
	if len(last) == 0 {
		t.Errorf("%s heard nothing", s.name)
	}
}

// agrees fails unless a receiver that works believes what State shows.
func agrees(t *testing.T, r *rig, s *scribe) {
	t.Helper()
	s.mu.Lock()
	believed := make(map[string]bool)
	for _, a := range s.alerts {
		believed[a.Fingerprint] = a.Status == Firing
	}
	s.mu.Unlock()
	shown := make(map[string]bool)
	for _, a := range r.State().Alerts {
		if a.Status != Firing {
			continue // owed to a receiver that fails
		}
		shown[a.Fingerprint] = true
		if a.InhibitedBy == "" && a.ClearSince.IsZero() && !believed[a.Fingerprint] {
			t.Errorf("%s does not know of %s", s.name, headline(a.Alert))
		}
	}
	for fingerprint, firing := range believed {
		if firing && !shown[fingerprint] {
			t.Errorf("%s believes what is over", s.name)
		}
	}
}

// TestFromManyGoroutines: all methods at once, for the race detector.
func TestFromManyGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &scribe{name: "a", manner: manners{again: time.Minute}}, &scribe{name: "b"}
		m := New(Options{})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { m.Run(ctx) })
		for i := range 4 {
			wg.Go(func() {
				for n := range 200 {
					time.Sleep(time.Second)
					m.Observe(time.Now(), statusAt(time.Now(), standing{page: (n/20+i)%2 == 0}, standing{model: "x", ticket: n%7 == 0}))
					m.State()
					if n%10 == i {
						m.Configure(Options{Receivers: []Receiver{a, b}[:n/10%3%2+1], Hold: time.Minute})
					}
				}
			})
		}
		time.Sleep(time.Hour)
		cancel()
		wg.Wait()
		if a.take() == "" {
			t.Error("nothing was heard")
		}
	})
}
