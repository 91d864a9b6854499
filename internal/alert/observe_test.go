package alert

import (
	"testing"
	"time"

	"github.com/weirgate/weir/slo"
)

// TestTransitions walks through how alerts begin and end. Each step lets time pass, shows
// how the objective stands, and says what is told.
func TestTransitions(t *testing.T) {
	type step struct {
		after time.Duration
		now   standing
		hears string
	}
	const (
		pageOn, pageOff     = "page firing interactive/ttft_p99", "page resolved interactive/ttft_p99"
		ticketOn, ticketOff = "ticket firing interactive/ttft_p99", "ticket resolved interactive/ttft_p99"
		warnOn, warnOff     = "warning firing interactive/ttft_p99", "warning resolved interactive/ttft_p99"
		freezeOn, freezeOff = "freeze firing interactive/ttft_p99", "freeze resolved interactive/ttft_p99"
		goneOn, goneOff     = "exhausted firing interactive/ttft_p99", "exhausted resolved interactive/ttft_p99"
	)
	ok, page, ticket := standing{}, standing{page: true}, standing{ticket: true}
	used := func(share float64) standing { return standing{consumed: share} }
	for name, steps := range map[string][]step{
		"nothing":                    {{0, ok, ""}, {time.Hour, ok, ""}},
		"a page fires at once, once": {{0, ok, ""}, {time.Second, page, pageOn}, {time.Second, page, ""}, {time.Hour, page, ""}},
		"an outage is a page":        {{0, standing{outage: true}, pageOn}, {time.Second, standing{outage: true, page: true}, ""}},
		"it ends after the hold":     {{0, page, pageOn}, {time.Minute, ok, ""}, {5*time.Minute - 1, ok, ""}, {1, ok, pageOff}, {time.Hour, ok, ""}},
		"one clear moment is no end": {{0, page, pageOn}, {time.Hour, ok, ""}, {4 * time.Minute, page, ""}, {4 * time.Minute, ok, ""}, {4 * time.Minute, ok, ""}, {time.Minute, ok, pageOff}},
		"it begins anew":             {{0, page, pageOn}, {0, ok, ""}, {5 * time.Minute, ok, pageOff}, {0, page, pageOn}},
		"a ticket is held for longer": {{0, ticket, ticketOn}, {time.Second, ok, ""}, {5 * time.Minute, ok, ""},
			{25*time.Minute - 1, ok, ""}, {1, ok, ticketOff}},
		"a ticket becomes a page": {{0, ticket, ticketOn}, {time.Minute, standing{ticket: true, page: true}, pageOn}, {time.Minute, ticket, ""},
			{5 * time.Minute, ticket, pageOff}, {time.Second, ok, ""}, {30 * time.Minute, ok, ticketOff}},
		"the budget goes": {{0, used(0.49), ""}, {0, used(0.5), warnOn}, {0, used(0.8), freezeOn}, {0, used(1), goneOn}, {0, used(7), ""},
			{time.Hour, used(0), ""}, {5 * time.Minute, used(0), goneOff + ", " + freezeOff + ", " + warnOff}},
		"straight to the end of the budget": {{0, used(1.2), goneOn}, {time.Hour, used(0.9), ""}, {5 * time.Minute, used(0.9), freezeOn + ", " + goneOff}},
		"within the margin it stays": {{0, used(0.8), freezeOn}, {0, used(0.79), ""}, {time.Hour, used(0.751), ""}, {time.Hour, used(0.81), ""},
			{time.Hour, used(0.7499), ""}, {4 * time.Minute, used(0.76), ""}, {4 * time.Minute, used(0.74), ""}, {4 * time.Minute, used(0.74), ""}, {time.Minute, used(0.74), warnOn + ", " + freezeOff}},
		"too few calls say nothing of the budget": {{0, used(0.9), freezeOn}, {0, standing{consumed: 0.9, tooFew: true}, ""}, {5 * time.Minute, standing{consumed: 0.9, tooFew: true}, freezeOff}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scribe{name: "webhook"}
			within(t, Options{Receivers: []Receiver{s}}, func(t *testing.T, r *rig) {
				for i, step := range steps {
					time.Sleep(step.after)
					r.see(step.now)
					if got := s.take(); got != step.hears {
						t.Errorf("step %d: heard %q, want %q", i, got, step.hears)
					}
				}
			})
		})
	}
}

// TestFlapping: a condition that comes and goes within the hold is one alert, however long.
func TestFlapping(t *testing.T) {
	s := &scribe{name: "webhook"}
	within(t, Options{Receivers: []Receiver{s}}, func(t *testing.T, r *rig) {
		began := time.Now()
		for i := range 600 {
			r.see(standing{page: i%29 == 0}) // 10 s on, 280 s off
			pass(10 * time.Second)
		}
		hears(t, s, "page firing interactive/ttft_p99")
		if all := r.State().Alerts; len(all) != 1 || !all[0].StartsAt.Equal(began) {
			t.Fatalf("shown are %+v", all)
		}
		for range 60 {
			r.see(standing{})
			pass(10 * time.Second)
		}
		hears(t, s, "page resolved interactive/ttft_p99")
	})
}

// TestPeriodEnds: a new period has a new budget, which ends the old one's states at once.
func TestPeriodEnds(t *testing.T) {
	s := &scribe{name: "webhook"}
	within(t, Options{Receivers: []Receiver{s}}, func(t *testing.T, r *rig) {
		month := slo.PeriodStatus{Name: "calendar_month UTC", From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour)}
		see := func(one standing) {
			st := statusAt(time.Now(), one)
			st.Period = month
			r.Observe(time.Now(), st)
			pass(0)
		}
		see(standing{consumed: 1.1})
		hears(t, s, "exhausted firing interactive/ttft_p99")
		pass(time.Hour)
		see(standing{consumed: 0.97}) // within the margin
		hears(t, s, "")
		month.From, month.To = month.To, month.To.Add(30*24*time.Hour)
		see(standing{consumed: 0.97, tooFew: true})
		hears(t, s, "exhausted resolved interactive/ttft_p99")
		if got := r.shows(); got != "" {
			t.Errorf("still shown: %s", got)
		}
		see(standing{consumed: 0.6})
		hears(t, s, "warning firing interactive/ttft_p99")
		month.Name = "calendar_month Europe/Berlin"
		see(standing{consumed: 0.47})
		hears(t, s, "warning resolved interactive/ttft_p99")
	})
}

// TestForecastDecides: a budget's state goes by the forecast where there is one, and so
// does the way back.
func TestForecastDecides(t *testing.T) {
	s := &scribe{name: "webhook"}
	within(t, Options{Receivers: []Receiver{s}}, func(t *testing.T, r *rig) {
		see := func(state slo.State, soFar, forecast float64) {
			st := statusAt(time.Now(), standing{consumed: soFar})
			b := &st.Objectives[0].Budget
			b.State, b.ConsumedForecast = state, ptr(forecast)
			r.Observe(time.Now(), st)
			pass(0)
		}
		see(slo.StateOK, 3, 0.3)
		hears(t, s, "")
		see(slo.StateWarning, 5, 0.5)
		hears(t, s, "warning firing interactive/ttft_p99")
		see(slo.StateOK, 5, 0.46)
		pass(time.Hour)
		see(slo.StateOK, 5, 0.46)
		hears(t, s, "")
		see(slo.StateOK, 5, 0.44)
		pass(5 * time.Minute)
		see(slo.StateOK, 5, 0.44)
		hears(t, s, "warning resolved interactive/ttft_p99")
	})
}

// TestObjectiveGone: what is no longer there is no longer missed.
func TestObjectiveGone(t *testing.T) {
	s := &scribe{name: "webhook"}
	within(t, Options{Receivers: []Receiver{s}}, func(t *testing.T, r *rig) {
		r.see(standing{page: true, consumed: 0.6})
		hears(t, s, "page firing interactive/ttft_p99")
		r.see()
		pass(5*time.Minute - 1)
		r.see()
		hears(t, s, "")
		pass(1)
		r.see()
		hears(t, s, "page resolved interactive/ttft_p99")
		if got := r.shows(); got != "" {
			t.Errorf("still shown: %s", got)
		}
	})
}

// TestClockSetBack: an alert neither ends early nor much later for it.
func TestClockSetBack(t *testing.T) {
	m := New(Options{})
	at := time.Date(2026, 3, 29, 2, 30, 0, 0, time.UTC)
	firing := func() bool { return len(m.State().Alerts) == 1 }
	m.Observe(at, statusAt(at, standing{page: true}))
	m.Observe(at, statusAt(at))
	back := at.Add(-time.Hour)
	m.Observe(back, statusAt(back))
	if !firing() {
		t.Fatal("the alert ended when the clock went back")
	}
	m.Observe(back.Add(5*time.Minute-1), statusAt(back))
	if !firing() {
		t.Error("the alert ended before its hold")
	}
	m.Observe(back.Add(5*time.Minute), statusAt(back))
	if firing() {
		t.Error("the alert goes on for as long as the clock went back")
	}
}

// TestSameSubjectTwice: the first counts, as a receiver could not tell them apart.
func TestSameSubjectTwice(t *testing.T) {
	m := New(Options{})
	m.Observe(time.Now(), statusAt(time.Now(), standing{page: true}, standing{}))
	m.Observe(time.Now(), statusAt(time.Now(), standing{page: true}, standing{}))
	if all := m.State().Alerts; len(all) != 1 || !all[0].ClearSince.IsZero() {
		t.Errorf("shown are %+v", all)
	}
}
