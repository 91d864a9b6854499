package slo

import (
	"testing"
	"time"
)

// record counts a call that was not followed.
func record(tr *Tracker, class, model string, received time.Time, f Facts) {
	var p Pending
	tr.Watch(&p, class, model, received, false, nil)
	tr.End(&p, &f)
}

// simple returns facts of a call that took a moment and succeeded, or failed.
func simple(at time.Time, ending Ending) Facts {
	return Facts{Received: at, Ended: at, Ending: ending, Input: -1, Output: -1}
}

// many counts good and bad calls of an instant at once, as a test of months needs it.
func many(tr *Tracker, class string, at time.Time, good, bad int64) {
	c := (*tr.classes.Load())[class]
	a := tr.clock.state.Load()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := tr.at(c, a, "m", true)
	var x spot
	s.spot(&x, a, at.Unix())
	for col := range c.layout.keys {
		if good > 0 {
			s.count(a, &x, col, Good, good)
		}
		if bad > 0 {
			s.count(a, &x, col, Bad, bad)
		}
	}
}

// find returns the entry of an objective, by name.
func find(t testing.TB, s Status, class, model, name string) *ObjectiveStatus {
	t.Helper()
	for i := range s.Objectives {
		if o := &s.Objectives[i]; o.Class == class && o.Model == model && o.Objective.Name == name {
			return o
		}
	}
	t.Fatalf("there is no %s/%s/%s in the status", class, model, name)
	return nil
}

func successClass(target Target) Class {
	return Class{Name: "c", Objectives: []Objective{{Number: Success, Target: target}}}
}
