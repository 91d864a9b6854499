package slo

import (
	"testing"
	"time"
)

func totalsOf(tr *Tracker) map[string]Total {
	all := make(map[string]Total)
	for n := range tr.Totals {
		key := n.Class + "/" + n.Model + "/" + n.Objective
		n.Class, n.Model, n.Objective = "", "", ""
		all[key] = n
	}
	return all
}

// TestTotals checks the counters of random traces: they never fall, and end up as the
// counts are.
func TestTotals(t *testing.T) {
	for seed := range uint64(3) {
		x := newTrace(t, seed+50, start, Config{Classes: twoClasses()})
		x.spread = 20 * time.Second
		was := totalsOf(x.tracker)
		for range 150 {
			x.call()
			x.play(x.now.Add(time.Duration(x.rng.Int64N(int64(x.spread)))))
			is := totalsOf(x.tracker)
			for key, n := range was {
				if m := is[key]; m.Good < n.Good || m.Bad < n.Bad || m.Unknown < n.Unknown || m.Outside < n.Outside {
					t.Fatalf("at %s %s fell from %+v to %+v", x.now, key, n, m)
				}
			}
			was = is
		}
		x.play(x.now.Add(10 * time.Hour))
		status := x.tracker.Status(x.now)
		// Corrections may leave more in what was shown, never less; without them it is the same.
		corrected, total := int64(0), int64(0)
		for key, n := range totalsOf(x.tracker) {
			total += n.Good + n.Bad + n.Unknown + n.Outside
			for i := range status.Objectives {
				o := &status.Objectives[i]
				if o.Class+"/"+o.Model+"/"+o.Objective.Name != key {
					continue
				}
				out := o.Outside.Total() + o.Outside.Unknown
				if n.Good < o.Good || n.Bad < o.Bad || n.Unknown < o.Unknown || n.Outside < out {
					t.Errorf("%s: %+v, and counts %+v and %d", key, n, o.Counts, out)
				}
				corrected += n.Good - o.Good + n.Bad - o.Bad + n.Unknown - o.Unknown + n.Outside - out
			}
		}
		if corrected*10 > total {
			t.Errorf("of %d calls %d are too many", total, corrected)
		}
	}
}

// TestTotalsExactly follows one class with an envelope and one without.
func TestTotalsExactly(t *testing.T) {
	qualified := successClass(990_000)
	qualified.Name, qualified.Valid.CallsPerMinute = "q", 2
	tr, _ := configured(t, successClass(990_000), qualified)
	check := func(when, key string, want Total) {
		t.Helper()
		if got := totalsOf(tr)[key]; got != want {
			t.Errorf("%s: %s is %+v, want %+v", when, key, got, want)
		}
	}
	for i := range 3 {
		record(tr, "c", "m", start, simple(start, Answered))
		record(tr, "q", "m", start, simple(start, Answered))
		record(tr, "q", "m", start.Add(time.Minute), simple(start.Add(time.Minute), []Ending{Answered, Failed, Excused}[i]))
	}
	check("at once", "c/m/success", Total{Good: 3})
	check("in its minute", "q/m/success", Total{})
	tr.Tick(start.Add(time.Minute))
	check("when the minute has closed", "q/m/success", Total{Outside: 3})
	tr.Tick(start.Add(2 * time.Minute))
	check("and the next, which is outside as well", "q/m/success", Total{Outside: 5})
	// A call that comes late in a minute that has closed.
	late := start.Add(-time.Hour)
	record(tr, "q", "m", late, simple(late, Failed))
	check("late", "q/m/success", Total{Bad: 1, Outside: 5})
	// A restart begins at zero, and does not count again what was restored, nor lose what comes.
	again, _ := configured(t, successClass(990_000), qualified)
	if err := again.Restore(tr.Snapshot()); err != nil {
		t.Fatal(err)
	}
	if got := totalsOf(again)["q/m/success"]; got != (Total{}) {
		t.Errorf("restored counts are in the totals: %+v", got)
	}
	many(again, "c", start, 5, 2)
	now := start.Add(3 * time.Minute)
	again.Tick(now)
	record(again, "q", "m", now, simple(now, Answered))
	again.Tick(now.Add(time.Minute))
	for key, want := range map[string]Total{"c/m/success": {Good: 5, Bad: 2}, "q/m/success": {Good: 1}} {
		if got := totalsOf(again)[key]; got != want {
			t.Errorf("after a restart %s is %+v, want %+v", key, got, want)
		}
	}
	for range tr.Totals {
		break // who has enough may stop
	}
}
