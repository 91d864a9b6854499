//go:build !race

package slo

import (
	"testing"
	"time"
)

// TestCallAllocates checks that following a call allocates nothing.
func TestCallAllocates(t *testing.T) {
	tr, _ := configured(t, whole("interactive"), twoClasses()[0])
	now := start
	var p Pending
	for _, class := range []string{"interactive", "qualified", "none"} {
		f := factsFor(now)
		call := func() {
			now = now.Add(time.Millisecond)
			f.Received, f.Ended = now, now.Add(3*time.Second)
			tr.Watch(&p, class, "m", now, true, nil)
			tr.Queued(&p, now)
			tr.Admitted(&p, now)
			tr.FirstToken(&p, now.Add(500*time.Millisecond))
			tr.FirstVisible(&p, now.Add(600*time.Millisecond))
			tr.End(&p, &f)
			tr.Correct(&p, &f)
		}
		call()
		if n := testing.AllocsPerRun(500, call); n != 0 {
			t.Errorf("%s: %v allocations for a call of which all is told, want 0", class, n)
		}
		follow := func() {
			tr.Watch(&p, class, "m", now, true, nil)
			tr.FirstToken(&p, now.Add(500*time.Millisecond))
			tr.End(&p, &f)
		}
		if n := testing.AllocsPerRun(500, follow); n != 0 {
			t.Errorf("%s: %v allocations a call, want 0", class, n)
		}
	}
}
