package slo

import (
	"testing"
	"time"
)

var start = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func configured(t testing.TB, classes ...Class) (*Tracker, Config) {
	t.Helper()
	c, _, err := Config{Classes: classes}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	tr := New()
	if err := tr.Configure(c, start); err != nil {
		t.Fatal(err)
	}
	return tr, c
}

// whole is a class with seven timed objectives, success and goodput.
func whole(name string) Class {
	return Class{Name: name, Objectives: []Objective{
		{Number: TTFT, Target: 990_000, Threshold: 2 * time.Second},
		{Number: TPOT, Target: 950_000, Threshold: 40 * time.Millisecond},
		{Number: E2E, Target: 950_000, Threshold: 5 * time.Second},
		{Number: Queue, Target: 990_000, Threshold: time.Second},
		{Number: Prefill, Target: 990_000, Threshold: time.Second},
		{Number: Network, Target: 990_000, Threshold: 20 * time.Millisecond},
		{Number: Success, Target: 999_000},
		{Number: Goodput, Target: 900_000},
	}}
}

func factsFor(received time.Time) Facts {
	f := Facts{Received: received, Ended: received.Add(3 * time.Second), Input: 100, Output: 100}
	f.Values[TTFT] = Exactly(500 * time.Millisecond)
	f.Values[TPOT] = Exactly(25 * time.Millisecond)
	f.Values[E2E] = Exactly(3 * time.Second)
	f.Values[Queue] = Exactly(10 * time.Millisecond)
	f.Values[Prefill] = Exactly(100 * time.Millisecond)
	f.Values[Network] = Exactly(5 * time.Millisecond)
	return f
}
