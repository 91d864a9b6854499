package alert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// reports is what Options.Report was told.
type reports struct {
	mu  sync.Mutex
	all []string
}

func (r *reports) add(receiver string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, fmt.Sprintf("%s: %v", receiver, err))
}

func (r *reports) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	return strings.Join(all, "\n")
}

// switchable is a receiver's answer that a test changes.
type switchable struct {
	mu  sync.Mutex
	err error
}

func (s *switchable) set(err error) { s.mu.Lock(); defer s.mu.Unlock(); s.err = err }
func (s *switchable) answer(context.Context, Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// TestDeadReceiver: it is tried with growing pauses, reported once, told what holds when it
// is back, and holds up nobody.
func TestDeadReceiver(t *testing.T) {
	var heard reports
	var line switchable
	line.set(errDead)
	dead, well := &scribe{name: "dead", answer: line.answer}, &scribe{name: "well"}
	within(t, Options{Receivers: []Receiver{dead, well}, Report: heard.add}, func(t *testing.T, r *rig) {
		r.see(standing{page: true})
		hears(t, well, "page firing interactive/ttft_p99")
		for range 120 {
			r.see(standing{page: true})
			pass(10 * time.Second)
		}
		tried := dead.tried()
		for i := 1; i < len(tried); i++ {
			longest := min(firstPause<<(i-1), lastPause)
			if pause := tried[i].Sub(tried[i-1]); pause < longest/2 || pause > longest {
				t.Errorf("pause %d is %v, want %v to %v", i, pause, longest/2, longest)
			}
		}
		if n := len(tried); n < 20+4 || n > 40+8 {
			t.Errorf("within 20 minutes it was tried %d times", n)
		}
		if got := heard.take(); got != "dead: tell dead of alerts: dead" {
			t.Errorf("reported: %q", got)
		}
		s := r.State().Receivers[0]
		if s.Failed != int64(len(tried)) || s.Pending != 1 || s.Sent != 0 || s.Dropped != 0 || s.LastError != "dead" || !s.FailingSince.Equal(tried[0]) || !s.LastFailure.Equal(tried[len(tried)-1].UTC().Truncate(time.Millisecond)) {
			t.Errorf("its state is %+v", s)
		}
		if a := r.State().Alerts[0]; !slices.Equal(a.Pending, []string{"dead"}) {
			t.Errorf("the alert is owed to %q", a.Pending)
		}
		line.set(nil)
		pass(lastPause)
		hears(t, dead, "page firing interactive/ttft_p99")
		if got := heard.take(); got != "dead: <nil>" {
			t.Errorf("reported: %q", got)
		}
		s = r.State().Receivers[0]
		if s.Sent != 1 || s.Pending != 0 || !s.FailingSince.IsZero() || s.LastError != "dead" {
			t.Errorf("its state is %+v", s)
		}
	})
}

// TestWhatWasMissed: a receiver that was away hears what holds, and of ends that it is owed.
func TestWhatWasMissed(t *testing.T) {
	var line switchable
	s := &scribe{name: "webhook", answer: line.answer}
	within(t, Options{Receivers: []Receiver{s}}, func(t *testing.T, r *rig) {
		const a, b, c = "interactive/a", "interactive/b", "interactive/c"
		stand := func(names ...string) (all []standing) {
			for _, n := range names {
				all = append(all, standing{objective: n, page: true})
			}
			return all
		}
		r.see(stand("a")...)
		hears(t, s, "page firing "+a)
		line.set(errDead)
		r.see(stand("a", "b", "c")...)
		r.see(stand("c")...)
		pass(5 * time.Minute)
		r.see(stand("c")...)
		if got := r.shows(); got != "page firing "+c+", page resolved "+a+", page resolved "+b {
			t.Errorf("shown are %s", got)
		}
		// a fires again and ends again, all unheard.
		r.see(stand("a", "c")...)
		r.see(stand("c")...)
		pass(5 * time.Minute)
		r.see(stand("c")...)
		line.set(nil)
		pass(lastPause)
		// Of b it hears the end alone, with its times: to say that it began would wake
		// somebody for what is over.
		hears(t, s, "page firing "+c+", page resolved "+b+", page resolved "+a)
		s.mu.Lock()
		for _, one := range s.alerts {
			if one.Status == Resolved && one.EndsAt.Sub(one.StartsAt) != 5*time.Minute {
				t.Errorf("%s lasted from %v to %v", headline(one), one.StartsAt, one.EndsAt)
			}
		}
		s.mu.Unlock()
		if got := r.shows(); got != "page firing "+c {
			t.Errorf("shown are %s", got)
		}
	})
}

// TestEndsWhileBeingTold: an alert that ends while its beginning is on the way is ended, too.
func TestEndsWhileBeingTold(t *testing.T) {
	s := &scribe{name: "webhook", answer: func(ctx context.Context, b Batch) error {
		select {
		case <-time.After(9 * time.Second):
		case <-ctx.Done():
		}
		return ctx.Err()
	}}
	within(t, Options{Receivers: []Receiver{s}, Hold: time.Second}, func(t *testing.T, r *rig) {
		r.see(standing{page: true})
		r.see(standing{})
		pass(time.Second)
		r.see(standing{})
		pass(time.Minute)
		hears(t, s, "page firing interactive/ttft_p99, page resolved interactive/ttft_p99")
	})
}

// TestSlowReceiver: an attempt is cut after ten seconds, and others do not wait for it.
func TestSlowReceiver(t *testing.T) {
	slow := &scribe{name: "slow", answer: func(ctx context.Context, b Batch) error { <-ctx.Done(); return ctx.Err() }}
	well := &scribe{name: "well"}
	within(t, Options{Receivers: []Receiver{slow, well}}, func(t *testing.T, r *rig) {
		began := time.Now()
		r.see(standing{page: true})
		hears(t, well, "page firing interactive/ttft_p99")
		if !time.Now().Equal(began) {
			t.Error("the well receiver waited")
		}
		pass(attemptTime + firstPause)
		tried := slow.tried()
		if len(tried) != 2 || tried[1].Sub(began) < attemptTime+firstPause/2 {
			t.Errorf("the slow one was tried at %v", tried)
		}
		r.cancel()
		if took := time.Since(began); took > attemptTime+firstPause+drainTime {
			t.Errorf("Run ended after %v", took)
		}
	})
}

// TestRefused: what is refused for good is counted and not tried again, but its end is told.
func TestRefused(t *testing.T) {
	var heard reports
	var line switchable
	line.set(Permanent(errors.New("no such person")))
	s := &scribe{name: "webhook", answer: line.answer}
	within(t, Options{Receivers: []Receiver{s}, Report: heard.add}, func(t *testing.T, r *rig) {
		for range 60 {
			r.see(standing{page: true})
			pass(time.Minute)
		}
		if n := len(s.tried()); n != 1 {
			t.Errorf("it was tried %d times", n)
		}
		if st := r.State().Receivers[0]; st.Dropped != 1 || st.Failed != 1 || st.Pending != 0 {
			t.Errorf("its state is %+v", st)
		}
		if got := heard.take(); got != "webhook: tell webhook of alerts: no such person" {
			t.Errorf("reported: %q", got)
		}
		line.set(nil)
		r.see(standing{})
		pass(5 * time.Minute)
		r.see(standing{})
		hears(t, s, "page resolved interactive/ttft_p99")
		if got := heard.take(); got != "webhook: <nil>" {
			t.Errorf("reported: %q", got)
		}
	})
}

// TestRefusedReminder: what Alertmanager refused it may take a minute later.
func TestRefusedReminder(t *testing.T) {
	var line switchable
	line.set(Permanent(errDead))
	s := &scribe{name: "alertmanager", manner: manners{again: time.Minute}, answer: line.answer}
	within(t, Options{Receivers: []Receiver{s}}, func(t *testing.T, r *rig) {
		r.see(standing{page: true})
		pass(5*time.Minute + time.Second)
		if n := len(s.tried()); n != 6 {
			t.Errorf("within five minutes it was tried %d times", n)
		}
		line.set(nil)
		pass(time.Minute)
		hears(t, s, "page firing interactive/ttft_p99")
		if st := r.State().Receivers[0]; st.Sent != 1 || st.Reminders != 0 || st.Failed != 6 || st.Dropped != 6 {
			t.Errorf("its state is %+v", st)
		}
	})
}

// TestRefusesAll: one that refuses everything is not asked without end, and all is forgotten.
func TestRefusesAll(t *testing.T) {
	s := &scribe{name: "webhook", manner: manners{most: 1}, answer: func(context.Context, Batch) error { return Permanent(errDead) }}
	within(t, Options{Receivers: []Receiver{s}}, func(t *testing.T, r *rig) {
		var all []standing
		for i := range 20 {
			all = append(all, standing{objective: fmt.Sprint(i), page: true})
		}
		r.see(all...)
		pass(time.Minute)
		tried := s.tried()
		if len(tried) != 20 {
			t.Fatalf("it was asked %d times", len(tried))
		}
		for i := range tried[1:] {
			if pause := tried[i+1].Sub(tried[i]); pause != firstPause {
				t.Errorf("pause %d is %v", i, pause)
			}
		}
		r.see()
		pass(5 * time.Minute)
		r.see()
		pass(time.Minute)
		if got := r.shows(); got != "" {
			t.Errorf("still shown: %s", got)
		}
		if st := r.State().Receivers[0]; st.Dropped != 40 {
			t.Errorf("its state is %+v", st)
		}
	})
}

// TestRetryAfter: a pause that a receiver asks for is kept, but not for ever.
func TestRetryAfter(t *testing.T) {
	for _, asked := range []time.Duration{0, 20 * time.Second, maxAsked} {
		s := &scribe{name: "webhook", answer: func(context.Context, Batch) error { return &failure{err: errDead, after: asked} }}
		within(t, Options{Receivers: []Receiver{s}}, func(t *testing.T, r *rig) {
			r.see(standing{page: true})
			pass(max(asked, firstPause))
			tried := s.tried()
			if len(tried) != 2 {
				t.Fatalf("with %v it was tried %d times", asked, len(tried))
			}
			if pause := tried[1].Sub(tried[0]); pause < asked || pause > max(asked, firstPause) {
				t.Errorf("with %v the pause is %v", asked, pause)
			}
		})
	}
}

// TestPanic: a receiver that panics is one that fails.
func TestPanic(t *testing.T) {
	f := Func("events", func(context.Context, Alert) error { panic("sk-secret") })
	within(t, Options{Receivers: []Receiver{f}}, func(t *testing.T, r *rig) {
		r.see(standing{page: true})
		if s := r.State().Receivers[0]; s.LastError != "the receiver panicked" || s.Dropped != 1 {
			t.Errorf("its state is %+v", s)
		}
	})
}

// TestReminders: a receiver that asks for it hears a firing alert once a minute, all in
// one batch, and nothing once it ended.
func TestReminders(t *testing.T) {
	var line switchable
	s := &scribe{name: "alertmanager", manner: manners{again: time.Minute}, answer: line.answer}
	within(t, Options{Receivers: []Receiver{s}}, func(t *testing.T, r *rig) {
		const a, b = "page firing interactive/a", "page firing interactive/b"
		r.see(standing{objective: "a", page: true})
		pass(31 * time.Second)
		r.see(standing{objective: "a", page: true}, standing{objective: "b", page: true})
		hears(t, s, a+", "+b+", "+a) // the news first, and whoever is due within half a minute with it
		pass(59 * time.Second)
		hears(t, s, "")
		pass(time.Second)
		hears(t, s, a+", "+b)
		line.set(errDead)
		pass(time.Minute)
		line.set(nil)
		pass(time.Minute)
		hears(t, s, a+", "+b)
		pass(time.Minute)
		hears(t, s, a+", "+b)
		r.see()
		pass(5 * time.Minute)
		r.see()
		if got := s.take(); !strings.HasSuffix(got, "page resolved interactive/a, page resolved interactive/b") {
			t.Errorf("heard %q", got)
		}
		pass(time.Hour)
		hears(t, s, "")
		if st := r.State().Receivers[0]; st.Sent != 4 || st.Reminders < 10 || st.Pending != 0 {
			t.Errorf("its state is %+v", st)
		}
	})
}
