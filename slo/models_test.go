package slo

import (
	"fmt"
	"testing"
	"time"
)

// TestModels checks when a model gets counts of its own.
func TestModels(t *testing.T) {
	tr, _ := configured(t, successClass(990_000), Class{Name: "d", Objectives: []Objective{{Number: TTFT, Target: 990_000, Threshold: time.Second}}})
	models := func(class string) map[string]int64 {
		all := make(map[string]int64)
		for _, o := range tr.Status(start).Objectives {
			if o.Class == class {
				all[o.Model] = o.Good + o.Bad
			}
		}
		return all
	}
	for i := range 1000 {
		record(tr, "c", fmt.Sprint("junk", i), start, simple(start, Failed))
	}
	record(tr, "c", AllModels, start, simple(start, Answered))
	if got := models("c"); len(got) != 2 || got[OtherModel] != 1001 || got[AllModels] != 1001 {
		t.Fatalf("junk names and no name: %v", got)
	}
	// The first answer proves the model, and counts for it.
	record(tr, "c", "m", start, simple(start, Answered))
	record(tr, "c", "m", start, simple(start, Failed))
	if got := models("c"); got["m"] != 2 || got[OtherModel] != 1001 {
		t.Fatalf("a model that answers: %v", got)
	}
	// It is proven in other classes as well: a call that hangs there is its own.
	var known, unknown Pending
	tr.Watch(&known, "d", "m", start, true, nil)
	tr.Watch(&unknown, "d", "n", start, true, nil)
	tr.Tick(start.Add(2 * time.Second))
	if got := models("d"); got["m"] != 1 || got[OtherModel] != 1 {
		t.Fatalf("calls that hang: %v", got)
	}
	// What was judged before the proof stays where it is, and proves nevertheless.
	f := simple(start.Add(3*time.Second), Answered)
	tr.End(&unknown, &f)
	var next Pending
	tr.Watch(&next, "d", "n", start, true, nil)
	tr.Tick(start.Add(5 * time.Second))
	if got := models("d"); got["n"] != 1 || got[OtherModel] != 1 {
		t.Fatalf("calls of a model after its proof: %v", got)
	}
}

// TestMostModels checks the bound on series, and that a model of which nothing is kept gives way.
func TestMostModels(t *testing.T) {
	tr, _ := configured(t, successClass(990_000))
	now := start
	for i := range MaxSeries + 50 {
		record(tr, "c", fmt.Sprint("m", i), now, simple(now, Answered))
	}
	s := tr.Status(now)
	if n := len(s.Objectives); n != 1+MaxSeries+1 {
		t.Fatalf("there are %d entries", n)
	}
	if o := find(t, s, "c", OtherModel, "success"); o.Good != 50 || s.Lost != 50 {
		t.Fatalf("%d count as other, and %d as lost, want 50", o.Good, s.Lost)
	}
	if o := find(t, s, "c", AllModels, "success"); o.Good != MaxSeries+50 {
		t.Fatalf("the sum is %d", o.Good)
	}
	for range 40 {
		now = now.Add(24 * time.Hour)
		tr.Tick(now)
		record(tr, "c", "m0", now, simple(now, Answered))
	}
	record(tr, "c", "new", now, simple(now, Answered))
	if o := find(t, tr.Status(now), "c", "new", "success"); o.Good != 1 {
		t.Fatalf("a new model has %+v", o.Counts)
	}
	if o := find(t, tr.Status(now), "c", "m0", "success"); o.Good != 31 {
		t.Fatalf("one that lives on has %+v in 30 days and an hour", o.Counts)
	}
}
