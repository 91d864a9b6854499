package alert

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/slo"
)

// TestGap: of the time in which nobody looked 15 s count, so that neither a long gap ends
// what was away for a moment, nor many restarts keep for ever what is over.
func TestGap(t *testing.T) {
	s := &scribe{name: "webhook"}
	o := Options{Receivers: []Receiver{s}}
	t.Run("a long one", func(t *testing.T) {
		lives(t, o, func(t *testing.T, r *rig) {
			r.see(standing{page: true})
			r.see()
			pass(2 * time.Minute)
			r.see()
			hears(t, s, pageOn)
			r.restart(72*time.Hour, o)
			r.see()
			if a := r.State().Alerts[0]; time.Since(a.ClearSince) != 2*time.Minute+gapCounts {
				t.Errorf("away for %v", time.Since(a.ClearSince))
			}
			pass(3*time.Minute - gapCounts - 1)
			r.see()
			hears(t, s, "")
			pass(1)
			r.see()
			hears(t, s, pageOff)
		})
	})
	t.Run("one in which it went away", func(t *testing.T) {
		lives(t, o, func(t *testing.T, r *rig) {
			r.see(standing{page: true})
			hears(t, s, pageOn)
			r.restart(72*time.Hour, o)
			r.see()
			pass(5*time.Minute - 1)
			r.see()
			hears(t, s, "")
			pass(1)
			r.see()
			hears(t, s, pageOff)
		})
	})
	t.Run("one before which it was away, and after which it holds", func(t *testing.T) {
		lives(t, o, func(t *testing.T, r *rig) {
			r.see(standing{page: true})
			r.see()
			pass(5*time.Minute - 1)
			r.see()
			hears(t, s, pageOn)
			r.restart(gapCounts, o)
			r.see(standing{page: true})
			r.see()
			pass(5*time.Minute - 1)
			r.see()
			hears(t, s, "")
		})
	})
	t.Run("again and again", func(t *testing.T) {
		lives(t, o, func(t *testing.T, r *rig) {
			r.see(standing{page: true})
			r.see()
			hears(t, s, pageOn)
			for range 20 { // of 15 s each
				hears(t, s, "")
				r.restart(time.Minute, o)
				r.see()
			}
			hears(t, s, pageOff)
		})
	})
	t.Run("without a look", func(t *testing.T) {
		lives(t, o, func(t *testing.T, r *rig) {
			r.see(standing{page: true})
			r.see()
			for range 50 {
				r.restart(time.Minute, o)
			}
			r.see()
			hears(t, s, pageOn)
			if a := r.State().Alerts[0]; time.Since(a.ClearSince) != gapCounts {
				t.Errorf("away for %v", time.Since(a.ClearSince))
			}
		})
	})
	t.Run("of an objective that is gone", func(t *testing.T) {
		lives(t, o, func(t *testing.T, r *rig) {
			s.take()
			r.see(standing{page: true}, standing{objective: "e2e_p95", page: true})
			s.take()
			r.restart(time.Minute, o)
			r.see(standing{page: true})
			pass(5 * time.Minute)
			r.see(standing{page: true})
			hears(t, s, "page resolved interactive/e2e_p95")
		})
	})
	t.Run("at the end of a period", func(t *testing.T) {
		lives(t, o, func(t *testing.T, r *rig) {
			month := slo.PeriodStatus{Name: "calendar_month UTC", From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour)}
			see := func(one standing) {
				st := statusAt(time.Now(), one)
				st.Period = month
				r.Observe(time.Now(), st)
				pass(0)
			}
			see(standing{consumed: 1.1})
			hears(t, s, "exhausted firing interactive/ttft_p99")
			r.restart(2*time.Hour, o)
			month.From, month.To = month.To, month.To.Add(30*24*time.Hour)
			see(standing{consumed: 0.97, tooFew: true})
			hears(t, s, "exhausted resolved interactive/ttft_p99")
		})
	})
}

// TestRestartClock: a clock that was set back, or far ahead, neither ends an alert early
// nor keeps it, nor holds up what is told.
func TestRestartClock(t *testing.T) {
	for _, jump := range []time.Duration{-time.Hour, -10 * 365 * 24 * time.Hour, 10 * 365 * 24 * time.Hour} {
		s := &scribe{name: "alertmanager", manner: manners{again: resend}}
		o := Options{Receivers: []Receiver{s}}
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			old := New(o)
			old.tagger.rounds = 1
			r := &rig{Manager: old, t: t}
			r.start()
			r.see(standing{page: true})
			r.see()
			pass(2 * time.Minute)
			r.see()
			s.take()
			r.cancel()
			// The clock of a bubble cannot be set, so what is kept is put into another time.
			move := func(at *time.Time) { *at = at.Add(-jump) }
			data := changeKept(t, r.Snapshot(), func(b *keptBody, a *keptAlert) {
				move(&b.Observed)
				move(&a.Starts)
				move(&a.Clear)
				move(&a.Told[0].At)
			})
			r.Manager = heir(t, data, o)
			r.start()
			defer func() { r.cancel() }()
			r.see()
			away := 2 * time.Minute
			if jump > 0 {
				away += gapCounts
			}
			if a := r.State().Alerts[0]; time.Since(a.ClearSince) != away || !a.StartsAt.Equal(wall(began.Add(-jump))) {
				t.Errorf("with a jump of %v it is away for %v, and began at %v", jump, time.Since(a.ClearSince), a.StartsAt)
			}
			pass(time.Minute)
			if want := map[bool]string{true: "", false: pageOn}[jump > 0]; jump > 0 && s.take() != want || jump < 0 && !strings.HasPrefix(s.take(), want) {
				t.Errorf("with a jump of %v reminders are wrong", jump)
			}
			pass(5*time.Minute - time.Minute - away - 1)
			r.see()
			if strings.Contains(s.take(), "resolved") {
				t.Errorf("with a jump of %v it ended early", jump)
			}
			pass(1)
			r.see()
			if heard := s.take(); !strings.HasSuffix(heard, pageOff) {
				t.Errorf("with a jump of %v it did not end: %s", jump, heard)
			}
			if a := s.alerts[len(s.alerts)-1]; a.EndsAt.Before(a.StartsAt) {
				t.Errorf("with a jump of %v it ended at %v and began at %v", jump, a.EndsAt, a.StartsAt)
			}
		})
	}
}

// TestAlertmanagerClock: Alertmanager refuses what ends before it began, as an alert that goes
// on does where the clock was set back.
func TestAlertmanagerClock(t *testing.T) {
	s := new(server)
	r, err := NewAlertmanager("http://am", nil, s.client())
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 29, 2, 30, 0, 0, time.UTC)
	batch := Batch{At: at, Alerts: []Alert{{Status: Firing, Labels: map[string]string{"a": "b"}, StartsAt: at.Add(time.Hour)}}}
	if err := r.Send(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if body := string(s.take()[0].body); !strings.Contains(body, `"startsAt":"2026-03-29T02:30:00Z","endsAt":"2026-03-29T02:34:00Z"`) {
		t.Errorf("posted %s", body)
	}
}
