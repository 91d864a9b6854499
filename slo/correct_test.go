package slo

import (
	"testing"
	"time"
)

func queueClass() Class {
	return Class{Name: "c", Objectives: []Objective{{Number: Queue, Target: 990_000, Threshold: time.Second}, {Number: Success, Target: 990_000}, {Number: Goodput, Target: 900_000}}}
}

// TestCorrect checks that a late report moves a call once, in its minute.
func TestCorrect(t *testing.T) {
	tr, _ := configured(t, queueClass())
	var p Pending
	tr.Watch(&p, "c", "m", start, true, nil)
	f := simple(start, Answered)
	f.Values[Queue] = AtLeast(0)
	tr.End(&p, &f)
	now := start.Add(10 * time.Minute)
	tr.Tick(now)
	queue := func() *ObjectiveStatus { return find(t, tr.Status(now), "c", "m", "queue_p99") }
	if o := queue(); o.Unknown != 1 || *o.UnknownShare != 1 {
		t.Fatalf("before: %+v", o.Counts)
	}
	f.Values[Queue] = Exactly(2 * time.Second)
	tr.Correct(&p, &f)
	o := queue()
	if o.Counts != (Counts{Bad: 1}) || o.Burn[0].Counts != (Counts{}) || o.Burn[1].Bad != 1 {
		t.Fatalf("after: %+v, in five minutes %+v, in 30 %+v", o.Counts, o.Burn[0].Counts, o.Burn[1].Counts)
	}
	if g := find(t, tr.Status(now), "c", "m", "goodput"); g.Counts != (Counts{Bad: 1}) {
		t.Errorf("goodput: %+v", g.Counts)
	}
	f.Values[Queue] = Exactly(0)
	tr.Correct(&p, &f)
	if o := queue(); o.Counts != (Counts{Bad: 1}) {
		t.Errorf("corrected twice: %+v", o.Counts)
	}
}

// TestCorrectTooLate checks that a correction of a minute that is not kept as one is lost, and
// counted so.
func TestCorrectTooLate(t *testing.T) {
	tr, _ := configured(t, queueClass())
	var p Pending
	tr.Watch(&p, "c", "m", start, true, nil)
	f := simple(start, Answered)
	f.Values[Queue] = AtLeast(0)
	tr.End(&p, &f)
	now := start
	for range 4 {
		now = now.Add(24 * time.Hour)
		tr.Tick(now)
	}
	f.Values[Queue] = Exactly(0)
	tr.Correct(&p, &f)
	s := tr.Status(now)
	if o := find(t, s, "c", "m", "queue_p99"); o.Counts != (Counts{Unknown: 1}) || s.Lost != 1 {
		t.Errorf("%+v, and %d lost", o.Counts, s.Lost)
	}
}

// TestAwaitedStays checks that what was judged bad while it was awaited stays so, whether a
// Tick came or not.
func TestAwaitedStays(t *testing.T) {
	for _, ticks := range []bool{true, false} {
		tr, _ := configured(t, Class{Name: "c", Objectives: []Objective{{Number: TTFT, Target: 990_000, Threshold: 2 * time.Second}, {Number: Success, Target: 990_000}}})
		var p Pending
		tr.Watch(&p, "c", "m", start, true, nil)
		if ticks {
			tr.Tick(start.Add(2 * time.Second)) // it may still hold
			if n := len(tr.Status(start.Add(2 * time.Second)).Objectives); n != 2 {
				t.Fatalf("at the threshold there are %d entries", n)
			}
			tr.Tick(start.Add(10 * time.Minute))
		}
		f := simple(start, Left)
		f.Ended = start.Add(time.Hour)
		tr.End(&p, &f)
		f.Values[TTFT] = Exactly(time.Second)
		tr.Correct(&p, &f)
		tr.Tick(f.Ended)
		s := tr.Status(f.Ended)
		ttft := find(t, s, "c", OtherModel, "ttft_p99")
		if ttft.Counts != (Counts{Bad: 1}) || ttft.Burn[2].Counts != (Counts{}) || ttft.Burn[3].Bad != 1 {
			t.Errorf("ticks %v: %+v, in an hour %+v", ticks, ttft.Counts, ttft.Burn[2].Counts)
		}
		if o := find(t, s, "c", OtherModel, "success"); o.Counts != (Counts{Bad: 1}) || o.Burn[0].Bad != 1 {
			t.Errorf("ticks %v: success of one that left after a miss: %+v", ticks, o.Counts)
		}
	}
}

// TestForget checks that a call that is forgotten counts nowhere, also after its end, and
// that Watch of the same Pending forgets what was followed.
func TestForget(t *testing.T) {
	tr, _ := configured(t, twoClasses()...)
	f := factsFor(start)
	var p Pending
	tr.Watch(&p, "qualified", "m", start, true, nil)
	tr.Tick(start.Add(5 * time.Second))
	tr.Watch(&p, "plain", "m", start, true, nil)
	tr.FirstToken(&p, start.Add(time.Second))
	tr.End(&p, &f)
	tr.Forget(&p)
	tr.Forget(&p)
	s := tr.Status(start.Add(time.Minute))
	for _, o := range s.Objectives {
		if o.Counts != (Counts{}) || o.Outside != (Counts{}) || o.Awaiting != 0 || o.Model != AllModels {
			t.Errorf("%s/%s %s: %+v", o.Class, o.Model, o.Text, o.Counts)
		}
	}
	// What is not followed does no harm.
	var zero Pending
	tr.Queued(&zero, start)
	tr.Admitted(&zero, start)
	tr.FirstToken(&zero, start)
	tr.FirstVisible(&zero, start)
	tr.End(&zero, &f)
	tr.Correct(&zero, &f)
	tr.Forget(&zero)
}
