package alert

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/slo"
)

// heir makes a Manager of what another one has left.
func heir(t testing.TB, data []byte, o Options) *Manager {
	t.Helper()
	m := New(o)
	m.tagger.rounds = 1
	if err := m.Restore(data, time.Now()); err != nil {
		t.Fatal(err)
	}
	return m
}

// restart ends a Manager and goes on with its heir, after a gap.
func (r *rig) restart(gap time.Duration, o Options) {
	r.t.Helper()
	r.cancel()
	data := r.Snapshot()
	if len(data) > maxKept {
		r.t.Fatalf("the snapshot has %d bytes", len(data))
	}
	pass(gap)
	r.Manager = heir(r.t, data, o)
	before, after := openKept(r.t, data), openKept(r.t, r.Snapshot())
	text := func(b keptBody) string { return strings.ReplaceAll(fmt.Sprintf("%s", b), `"stale":true,`, "") }
	if slices.Equal(before.Receivers, after.Receivers) && text(before) != text(after) {
		r.t.Errorf("taken up and kept again, it changed from\n%s\nto\n%s", before, after)
	}
	r.start()
}

func openKept(t testing.TB, data []byte) keptBody {
	t.Helper()
	body, err := unseal(data)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// start runs the Manager.
func (r *rig) start() {
	ctx, cancel := context.WithCancel(r.t.Context())
	ended := make(chan struct{})
	m := r.Manager
	go func() { defer close(ended); m.Run(ctx) }()
	r.cancel = func() { cancel(); <-ended }
	synctest.Wait()
}

// lives runs f beside a Manager that may be restarted.
func lives(t *testing.T, o Options, f func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{Manager: New(o), t: t}
		r.tagger.rounds = 1
		r.start()
		defer func() { r.cancel() }()
		f(t, r)
	})
}

const (
	pageOn, pageOff     = "page firing interactive/ttft_p99", "page resolved interactive/ttft_p99"
	ticketOn, ticketOff = "ticket firing interactive/ttft_p99", "ticket resolved interactive/ttft_p99"
)

// TestRestart: an alert goes on over a restart, as over a reload: who knows it is not told
// again and is owed its end, who is new is told, who is gone is forgotten, and all of them
// hear of one and the same alert, in the same words.
func TestRestart(t *testing.T) {
	stays, goes, comes := &scribe{name: "stays"}, &scribe{name: "goes"}, &scribe{name: "comes"}
	blame := func(string, string, string, slo.Number, time.Time) Blame {
		return Blame{Phase: "queue_engine", Text: "calls wait", Share: call.Figure(0.8), Evidence: []string{"31 wait"}}
	}
	lives(t, Options{Receivers: []Receiver{stays, goes}, Labels: map[string]string{"site": "one", "service": "gw"}, Blame: blame}, func(t *testing.T, r *rig) {
		r.see(standing{page: true, outage: true, consumed: 0.3}, standing{model: "a\xff\n<b>", page: true})
		hears(t, stays, pageOn)
		hears(t, goes, pageOn)
		before := r.State()
		again := func(string, string, string, slo.Number, time.Time) Blame {
			t.Error("asked who is to blame for what was told already")
			return Blame{}
		}
		// In the order and with the options of another configuration.
		r.restart(time.Minute, Options{Receivers: []Receiver{comes, stays}, Labels: map[string]string{"site": "two"}, Blame: again})
		hears(t, stays, "")
		hears(t, comes, pageOn)
		a, b := before.Alerts[0].Alert, r.State().Alerts[0].Alert
		for _, name := range []string{"summary", "description", "windows", "budget", "phase", "blame", "evidence"} {
			if a.Annotations[name] != b.Annotations[name] || a.Annotations[name] == "" {
				t.Errorf("%s was %q and is %q", name, a.Annotations[name], b.Annotations[name])
			}
		}
		if a.Fingerprint != b.Fingerprint || !a.StartsAt.Equal(b.StartsAt) || b.Labels["site"] != "one" || b.Labels["service"] != "gw" || b.Status != Firing {
			t.Errorf("the alert changed from %+v to %+v", a, b)
		}
		if before, after := before.Alerts[1], r.State().Alerts[1]; before.Model != after.Model || before.Fingerprint != after.Fingerprint || after.InhibitedBy != before.InhibitedBy {
			t.Errorf("the alert of a model changed from %+v to %+v", before, after)
		}
		r.see(standing{page: true}, standing{model: "a\xff\n<b>", page: true})
		r.see()
		pass(5 * time.Minute)
		r.see()
		hears(t, goes, "")
		for _, s := range []*scribe{stays, comes} {
			hears(t, s, pageOff)
			if on, off := s.alerts[0], s.alerts[1]; on.Fingerprint != off.Fingerprint || !on.StartsAt.Equal(off.StartsAt) || !on.StartsAt.Equal(a.StartsAt) {
				t.Errorf("%s heard the beginning of %+v and the end of %+v", s.name, on, off)
			}
		}
		if got := r.shows(); got != "" {
			t.Errorf("still shown: %s", got)
		}
	})
}

// TestRestartOwed: what a receiver had not taken by the end of one process, the next one tells.
func TestRestartOwed(t *testing.T) {
	var line switchable
	well, away := &scribe{name: "well"}, &scribe{name: "away", answer: line.answer}
	o := Options{Receivers: []Receiver{well, away}}
	t.Run("an end", func(t *testing.T) {
		line.set(nil)
		lives(t, o, func(t *testing.T, r *rig) {
			r.see(standing{page: true})
			hears(t, well, pageOn)
			hears(t, away, pageOn)
			line.set(errDead)
			r.see()
			pass(5 * time.Minute)
			r.see()
			hears(t, well, pageOff)
			r.restart(time.Hour, o)
			pass(0)
			line.set(nil)
			pass(lastPause)
			hears(t, well, "")
			hears(t, away, pageOff)
			if a := away.alerts; a[0].Fingerprint != a[1].Fingerprint || !a[0].StartsAt.Equal(a[1].StartsAt) || a[1].EndsAt.Sub(a[1].StartsAt) != 5*time.Minute {
				t.Errorf("heard %+v", a)
			}
		})
	})
	t.Run("a beginning, which began anew meanwhile", func(t *testing.T) {
		line.set(nil)
		lives(t, o, func(t *testing.T, r *rig) {
			r.see(standing{page: true})
			line.set(errDead)
			r.see()
			pass(5 * time.Minute)
			r.see()
			r.see(standing{page: true})
			hears(t, well, pageOn+", "+pageOff+", "+pageOn)
			hears(t, away, pageOn)
			r.restart(time.Minute, o)
			line.set(nil)
			pass(lastPause)
			hears(t, well, "")
			hears(t, away, pageOn)
		})
	})
	t.Run("nothing of what it refuses", func(t *testing.T) {
		line.set(Permanent(errDead))
		lives(t, o, func(t *testing.T, r *rig) {
			r.see(standing{page: true})
			hears(t, well, pageOn)
			n := len(away.tried())
			r.restart(time.Minute, o)
			r.see(standing{page: true})
			pass(time.Hour)
			hears(t, well, "")
			if len(away.tried()) != n {
				t.Errorf("tried %d more times", len(away.tried())-n)
			}
		})
	})
}

// TestRestartReminds: Alertmanager hears on of what goes on, on its old round, and after a
// gap in which it has ended it by itself not before it is seen to hold.
func TestRestartReminds(t *testing.T) {
	s, late, latest := &scribe{name: "alertmanager", manner: manners{again: resend}}, &scribe{name: "new"}, &scribe{name: "newer"}
	o := Options{Receivers: []Receiver{s}}
	lives(t, o, func(t *testing.T, r *rig) {
		r.see(standing{page: true})
		hears(t, s, pageOn)
		pass(20 * time.Second)
		r.restart(20*time.Second, o)
		hears(t, s, "")
		pass(20*time.Second - 1)
		hears(t, s, "")
		pass(1)
		hears(t, s, pageOn)

		r.restart(staleAfter+time.Minute, Options{Receivers: []Receiver{s, late}})
		pass(time.Minute)
		hears(t, s, "")
		r.see() // it is away
		pass(time.Minute)
		hears(t, s, "")
		r.see(standing{page: true})
		hears(t, s, pageOn)
		hears(t, late, pageOn)

		r.restart(time.Hour, Options{Receivers: []Receiver{s, late, latest}})
		r.restart(time.Second, Options{Receivers: []Receiver{s, late, latest}}) // still not seen
		r.see()
		pass(5 * time.Minute)
		r.see()
		hears(t, s, pageOff)
		hears(t, late, pageOff)
		hears(t, latest, "") // what was over by the time that it was there
	})
}

// TestRestartStaleUntold: what began just before the end and was told to nobody is told
// when it holds, and else its end alone is.
func TestRestartStaleUntold(t *testing.T) {
	for _, holds := range []bool{true, false} {
		var line switchable
		line.set(errDead)
		s := &scribe{name: "webhook", answer: line.answer}
		o := Options{Receivers: []Receiver{s}}
		lives(t, o, func(t *testing.T, r *rig) {
			r.see(standing{page: true})
			r.cancel()
			line.set(nil)
			r.restart(time.Hour, o)
			pass(time.Minute)
			hears(t, s, "")
			r.see(standing{page: holds})
			if !holds {
				hears(t, s, "")
				pass(5 * time.Minute)
				r.see()
				hears(t, s, pageOff)
				return
			}
			hears(t, s, pageOn)
		})
	}
}

// TestLateRestoreUntold: what this process has told nobody of goes on as it began in the
// one before.
func TestLateRestoreUntold(t *testing.T) {
	var line switchable
	s := &scribe{name: "webhook", answer: line.answer}
	o := Options{Receivers: []Receiver{s}}
	lives(t, o, func(t *testing.T, r *rig) {
		began := time.Now()
		r.see(standing{page: true})
		hears(t, s, pageOn)
		r.cancel()
		data := r.Snapshot()
		line.set(errDead)
		pass(time.Minute)
		r.Manager = New(o)
		r.tagger.rounds = 1
		r.start()
		r.see(standing{page: true})
		if err := r.Restore(data, time.Now()); err != nil {
			t.Fatal(err)
		}
		line.set(nil)
		r.see(standing{page: true})
		pass(time.Minute)
		hears(t, s, "")
		if a := r.State().Alerts; len(a) != 1 || !a[0].StartsAt.Equal(wall(began)) {
			t.Errorf("shown are %+v", a)
		}
	})
}

// TestRestartBlame: who is to blame is asked for what is told first after a restart, and not
// for what was told: the calls of that time are gone.
func TestRestartBlame(t *testing.T) {
	s := &scribe{name: "webhook"}
	lives(t, Options{Receivers: []Receiver{s}}, func(t *testing.T, r *rig) {
		r.see(standing{page: true, ticket: true})
		hears(t, s, pageOn)
		r.restart(time.Minute, Options{Receivers: []Receiver{s}, Blame: func(string, string, string, slo.Number, time.Time) Blame {
			return Blame{Phase: "decode"}
		}})
		r.see(standing{ticket: true})
		pass(5 * time.Minute)
		r.see(standing{ticket: true})
		// The second waits for the blame, which comes at once: they may change places.
		if got := s.take(); got != pageOff+", "+ticketOn && got != ticketOn+", "+pageOff {
			t.Errorf("heard %q", got)
		}
		for _, a := range s.alerts {
			if (a.Annotations["phase"] == "decode") != (a.Severity == Ticket) {
				t.Errorf("%s blames %q", headline(a), a.Annotations["phase"])
			}
		}
	})
}

// TestLateRestore: what an earlier process left may come when this one has begun: it goes on
// where nobody was told yet, and else the receivers are owed an end.
func TestLateRestore(t *testing.T) {
	first, second := &scribe{name: "first"}, &scribe{name: "second"}
	o := Options{Receivers: []Receiver{first, second}}
	lives(t, Options{Receivers: []Receiver{first}}, func(t *testing.T, r *rig) {
		began := time.Now()
		r.see(standing{page: true}, standing{objective: "a", page: true}, standing{objective: "b", page: true})
		pass(2 * time.Minute)
		r.see(standing{page: true}, standing{objective: "b", page: true})
		first.take()
		r.cancel()
		data := r.Snapshot()
		pass(time.Minute)
		r.Manager = New(Options{Receivers: []Receiver{second}})
		r.tagger.rounds = 1
		r.start()
		r.see(standing{page: true}, standing{page: true, model: "m"})
		hears(t, second, pageOn)
		r.Configure(Options{})
		r.Configure(o) // so that nobody knows of anything that holds, but for second
		pass(0)
		first.take()
		second.take()
		if err := r.Restore(data, time.Now()); err != nil {
			t.Fatal(err)
		}
		pass(0)
		if got := r.State().Alerts; len(got) != 4 || !got[0].StartsAt.Equal(wall(began)) && !got[2].StartsAt.Equal(wall(began)) {
			t.Errorf("shown are %+v", got)
		}
		hears(t, first, "")
		r.see()
		pass(5 * time.Minute)
		r.see()
		for _, s := range []*scribe{first, second} {
			if got := s.take(); strings.Count(got, "resolved") != 3 || !strings.Contains(got, pageOff) {
				t.Errorf("%s heard %s", s.name, got)
			}
		}
		if got := r.shows(); got != "" {
			t.Errorf("still shown: %s", got)
		}
	})
}
