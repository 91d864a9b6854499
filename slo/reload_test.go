package slo

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

func reconfigure(t *testing.T, tr *Tracker, now time.Time, classes ...Class) {
	t.Helper()
	c, _, err := Config{Classes: classes}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Configure(c, now); err != nil {
		t.Fatal(err)
	}
}

// TestReload checks what a reload keeps.
func TestReload(t *testing.T) {
	class := func(o ...Objective) Class { return Class{Name: "c", Objectives: o} }
	ttft := Objective{Number: TTFT, Target: 990_000, Threshold: 2 * time.Second}
	success := Objective{Number: Success, Target: 999_000}
	goodput := Objective{Number: Goodput, Target: 900_000}
	tr, _ := configured(t, class(ttft, success, goodput), Class{Name: "gone", Objectives: []Objective{success}})
	many(tr, "c", start, 10, 1)
	many(tr, "gone", start, 10, 1)
	later := start.Add(time.Hour)

	stricter := ttft
	stricter.Target, stricter.Name = 999_000, "renamed"
	reconfigure(t, tr, later, class(success, stricter, goodput))
	s := tr.Status(later)
	if o := find(t, s, "c", "m", "renamed"); o.Good != 10 || o.Bad != 1 || !o.Since.Equal(start) {
		t.Errorf("another target, name and place: %+v since %s", o.Counts, o.Since)
	}
	if o := find(t, s, "c", "m", "goodput"); o.Good != 10 {
		t.Errorf("goodput of the same objectives: %+v", o.Counts)
	}
	if got := tr.Dropped(); !slices.Equal(got, []string{"gone: success"}) {
		t.Errorf("dropped %q", got)
	}

	faster := ttft
	faster.Threshold = time.Second
	reconfigure(t, tr, later, class(faster, success, goodput))
	s = tr.Status(later)
	for name, want := range map[string]int64{"ttft_p99": 0, "goodput": 0, "success": 10} {
		if o := find(t, s, "c", AllModels, name); o.Good != want || (want == 0) != o.Since.Equal(later) {
			t.Errorf("another threshold: %s has %+v since %s", name, o.Counts, o.Since)
		}
	}
	if got := tr.Dropped(); !slices.Equal(got, []string{"c: goodput", "c: ttft <= 2s"}) {
		t.Errorf("dropped %q", got)
	}
	if !s.Since.Equal(start) {
		t.Errorf("counts begin at %s", s.Since)
	}
	before := tr.Snapshot()
	bad := Config{Classes: []Class{class(success)}}
	if err := tr.Configure(bad, later); err == nil {
		t.Error("a configuration that is not complete was taken")
	}
	if !reflect.DeepEqual(tr.Snapshot(), before) {
		t.Error("it has changed counts")
	}
}

// TestReloadMidway checks calls that are on their way while a reload comes.
func TestReloadMidway(t *testing.T) {
	ttft := Objective{Number: TTFT, Target: 990_000, Threshold: 2 * time.Second}
	e2e := Objective{Number: E2E, Target: 990_000, Threshold: 10 * time.Second}
	network := Objective{Number: Network, Target: 990_000, Threshold: time.Second}
	tr, _ := configured(t, Class{Name: "c", Objectives: []Objective{ttft, e2e}}, Class{Name: "gone", Objectives: []Objective{ttft}})
	var p, q Pending
	tr.Watch(&p, "c", "m", start, true, nil)
	tr.Watch(&q, "gone", "m", start, true, nil)
	reconfigure(t, tr, start.Add(time.Second), Class{Name: "c", Objectives: []Objective{network, e2e}})
	tr.Tick(start.Add(3 * time.Second))
	f := simple(start, Answered)
	f.Ended = start.Add(4 * time.Second)
	f.Values[E2E], f.Values[Network] = Exactly(4*time.Second), Exactly(0)
	tr.End(&p, &f)
	tr.End(&q, &f)
	s := tr.Status(start.Add(5 * time.Second))
	if o := find(t, s, "c", AllModels, "e2e_p99"); o.Good != 1 {
		t.Errorf("what is kept: %+v", o.Counts)
	}
	if o := find(t, s, "c", AllModels, "network_p99"); o.Counts != (Counts{}) {
		t.Errorf("an objective that came after the call: %+v", o.Counts)
	}
}

// TestReloadEnvelope checks that another envelope leaves minutes before it as they
// were.
func TestReloadEnvelope(t *testing.T) {
	class := func(most int64) Class {
		c := successClass(990_000)
		c.Valid.CallsPerMinute = most
		return c
	}
	tr, _ := configured(t, class(1))
	minute := func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
	call := func(n int) { record(tr, "c", "m", minute(n), simple(minute(n), Answered)) }
	call(0)
	call(0)
	call(1)
	tr.Tick(minute(2))
	reconfigure(t, tr, minute(2), class(3))
	for range 3 {
		call(1) // late: this minute stays inside
		call(2)
	}
	call(3)
	reconfigure(t, tr, minute(4), class(0))
	for range 9 {
		call(4)
	}
	o := find(t, tr.Status(minute(5)), "c", "m", "success")
	if o.Good != 4+3+1+9 || o.Outside.Good != 2 || o.OutsideMinutes != 1 {
		t.Errorf("%+v, outside %+v in %d minutes", o.Counts, o.Outside, o.OutsideMinutes)
	}
}
