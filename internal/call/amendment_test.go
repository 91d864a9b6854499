package call

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestLearntIsSplit: what is learnt late divides a call as it would have been
// divided had it been known at once, and the phases add up as before.
func TestLearntIsSplit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	any := func() Duration {
		if r.IntN(3) == 0 {
			return Duration{}
		}
		return Lasting(time.Duration(r.Int64N(int64(3 * time.Second))))
	}
	changed := 0
	for range 5000 {
		streamed := r.IntN(2) == 0
		at, now := Instants{}, time.Duration(0)
		for _, p := range []*Duration{&at.BodyRead, &at.Admitted, &at.Sent, &at.FirstByte} {
			now += time.Duration(r.Int64N(int64(time.Second)))
			*p = Lasting(now)
		}
		if streamed {
			at.FirstToken = Lasting(now + time.Second)
			at.LastToken = Lasting(now + 2*time.Second)
		}
		at.Ended = Lasting(now + 3*time.Second)
		line := Timeline{Instants: at, Streamed: streamed, UpstreamRTT: any(),
			Blocked: Blocked{BeforeFirstToken: time.Duration(r.Int64N(int64(time.Second))), Tail: time.Duration(r.Int64N(int64(time.Second)))}}
		late := Engine{Queue: any(), Prefill: any(), Decode: any()}

		rec := &Record{Identity: Identity{ID: "c", Stream: streamed}, Timing: Timing{UpstreamRTT: line.UpstreamRTT}}
		rec.Phases, rec.PhaseSources, _ = Split(line)
		line.Engine = late
		want, sources, clamped := Split(line)

		a, ok := rec.Learnt(late)
		if ok != (late != Engine{}) {
			t.Fatalf("%+v: something was learnt: %v", late, ok)
		}
		if !ok {
			continue
		}
		changed++
		got := rec.Amended(a)
		if got.Phases != want || got.PhaseSources != sources || got.Engine != late || slices.Contains(got.Degraded, PhaseClamped) != clamped {
			t.Fatalf("learnt %+v of %+v:\n got %+v %+v\nwant %+v %+v", late, line, got.Phases, got.PhaseSources, want, sources)
		}
		if got.Phases.Sum() != rec.Phases.Sum() || got.Phases.Sum() != at.Ended.Or(0) {
			t.Fatalf("phases add up to %v, before to %v", got.Phases.Sum(), rec.Phases.Sum())
		}
		if rec.Engine != (Engine{}) || len(rec.Degraded) != 0 {
			t.Fatal("the record itself has changed")
		}
		if _, again := got.Learnt(late); again {
			t.Fatal("the same figures change something twice")
		}
	}
	if changed < 1000 {
		t.Fatalf("only %d calls were amended", changed)
	}
}

// TestLearntKeepsClaims: a bound that the gauges gave goes when the queue is known,
// and what they allowed to claim stays when the engine tells nothing of it.
func TestLearntKeepsClaims(t *testing.T) {
	ms := func(n int) Duration { return Lasting(time.Duration(n) * time.Millisecond) }
	rec := &Record{Identity: Identity{ID: "c", Stream: true}}
	rec.Phases = Phases{Connect: ms(1), Prefill: ms(100), Decode: ms(10)}
	rec.PhaseSources = PhaseSources{Connect: Measured, Prefill: Inferred, Decode: Measured}
	rec.QueueBound = ms(20)
	a, _ := rec.Learnt(Engine{Decode: ms(9)})
	if got := rec.Amended(a); got.PhaseSources.Prefill != Inferred || got.QueueBound != ms(20) {
		t.Errorf("with the decode alone: prefill is %s, the bound %v", got.PhaseSources.Prefill, got.QueueBound)
	}
	a, _ = rec.Learnt(Engine{Queue: ms(5), Prefill: ms(90)})
	if got := rec.Amended(a); got.PhaseSources.Prefill != FromEngine || got.QueueBound.IsKnown() {
		t.Errorf("with the queue: prefill is %s, the bound %v", got.PhaseSources.Prefill, got.QueueBound)
	}
}

// TestLearntOfLittle: calls that broke off early have nothing to divide.
func TestLearntOfLittle(t *testing.T) {
	rec := &Record{Identity: Identity{ID: "c", Stream: true}}
	rec.Phases, rec.PhaseSources, _ = Split(Timeline{Instants: Instants{BodyRead: Lasting(time.Second), Ended: Lasting(2 * time.Second)}, Streamed: true})
	a, ok := rec.Learnt(Engine{Queue: Lasting(time.Second)})
	if !ok || a.Phases != rec.Phases || a.PhaseSources != rec.PhaseSources {
		t.Errorf("%v: %+v", ok, a)
	}
}
