package signals

import (
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/engine"
	"github.com/weirgate/weir/internal/gpu"
)

var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func figure(n int64) engine.Figure { return engine.Figure{N: n, Known: true} }

func engineAt(preemptions, queries, hits int64, start time.Time) Engine {
	return Engine{"10.0.0.1:8000", engine.Gauges{
		Running: figure(4), Waiting: figure(1), MaxSeqs: figure(8), Preemptions: figure(preemptions),
		PrefixQueries: figure(queries), PrefixHits: figure(hits), Start: start,
	}}
}

// TestCounters grow from the last note before the window to the last within it.
func TestCounters(t *testing.T) {
	var l Log
	for i := range int64(12) {
		l.Note(begin.Add(time.Duration(i)*Every), i, []Engine{engineAt(i, 1000*i, 300*i, begin)}, nil)
	}
	s := l.Between(begin.Add(6*Every), begin.Add(12*Every))
	if n, known := s.Preemptions.Get(); !known || n != 6 {
		t.Errorf("preemptions %d, known %t: from 5 to 11", n, known)
	}
	if x, _ := s.CachedShare.Get(); x != 0.3 {
		t.Errorf("cached share %v", x)
	}
	if x, _ := s.InFlight.Get(); x != 8.5 {
		t.Errorf("calls in flight %v", x)
	}
	if n, _ := s.MaxSeqs.Get(); n != 8 || len(s.Engine) != 6 || s.Engine[0].Running != call.Known(4) || s.Engine[0].Upstream != "10.0.0.1:8000" {
		t.Errorf("max_num_seqs %d, %d readings, the first %+v", n, len(s.Engine), s.Engine[0])
	}
	if s := l.Between(begin.Add(-time.Hour), begin); len(s.Engine) != 0 || s.Preemptions.IsKnown() || s.InFlight.IsKnown() {
		t.Errorf("before the first note: %+v", s)
	}
}

// TestRestart: counters of an engine that began anew say nothing.
func TestRestart(t *testing.T) {
	var l Log
	l.Note(begin, 0, []Engine{engineAt(9, 100, 10, begin)}, nil)
	l.Note(begin.Add(Every), 0, []Engine{engineAt(2, 50, 5, begin.Add(time.Second))}, nil)
	if s := l.Between(begin, begin.Add(time.Minute)); s.Preemptions.IsKnown() || s.CachedShare.IsKnown() {
		t.Errorf("across a restart: %+v", s)
	}
}

// TestGPU: means of the time at work, reasons of a good part of it, errors of the window alone.
func TestGPU(t *testing.T) {
	var l Log
	reading := func(clock, util, power, errors float64, reasons gpu.Reasons) []gpu.Reading {
		return []gpu.Reading{{
			Index: 3, Clock: gpu.Figure(clock), Utilization: gpu.Figure(util), Power: gpu.Figure(power), PowerLimit: gpu.Figure(700),
			Temperature: gpu.Figure(80), Uncorrected: gpu.Figure(errors), Reasons: reasons, ReasonsKnown: true, XID: gpu.Figure(0),
		}}
	}
	l.Note(begin, 0, nil, reading(1980, 0.9, 600, 5, 0))
	for i := range 10 {
		at, clock, util := begin.Add(time.Duration(i+1)*Every), 1800.0, 0.8
		reasons := gpu.Reasons(0x40)
		if i >= 5 { // idle: a low clock is none of its faults
			clock, util, reasons = 300, 0, gpu.Idle
		}
		if i == 0 {
			reasons |= 0x4
		}
		l.Note(at, 0, nil, reading(clock, util, 500, 5+float64(i/9), reasons))
	}
	s := l.Between(begin.Add(Every), begin.Add(20*Every))
	if len(s.GPUs) != 1 {
		t.Fatalf("%d GPUs", len(s.GPUs))
	}
	g := s.GPUs[0]
	if clock, _ := g.Clock.Get(); clock != 1800 {
		t.Errorf("clock %v", clock)
	}
	if util, _ := g.Utilization.Get(); util < 0.399 || util > 0.401 {
		t.Errorf("utilization %v", util)
	}
	if want := gpu.Reasons(0x40).Names(); len(g.Reasons) != 1 || g.Reasons[0] != want[0] {
		t.Errorf("reasons %v, want %v: the other was seen once in ten", g.Reasons, want)
	}
	if n, known := g.Uncorrected.Get(); !known || n != 1 {
		t.Errorf("%d errors, known %t", n, known)
	}
	if n, known := g.XID.Get(); !known || n != 0 || g.Name != "GPU 3" || !g.Since.Equal(begin.Add(Every)) {
		t.Errorf("XID %d, known %t, name %q, since %v", n, known, g.Name, g.Since)
	}
}

// TestXID: an error counts in the window in which it came, and one without a time in none.
func TestXID(t *testing.T) {
	for _, c := range []struct {
		at   time.Time
		want int64
	}{{begin.Add(Every + time.Second), 79}, {begin.Add(-time.Hour), 0}} {
		var l Log
		for i := range 3 {
			l.Note(begin.Add(time.Duration(i)*Every), 0, nil, []gpu.Reading{{UUID: "g", XID: gpu.Figure(79), XIDTime: c.at}})
		}
		if n, known := l.Between(begin.Add(Every), begin.Add(time.Minute)).GPUs[0].XID.Get(); !known || n != c.want {
			t.Errorf("an error of %v: XID %d, known %t", c.at, n, known)
		}
	}
	var l Log
	l.Note(begin, 0, nil, []gpu.Reading{{UUID: "g", XID: gpu.Figure(79)}})
	if g := l.Between(begin, begin.Add(time.Minute)).GPUs[0]; g.XID.IsKnown() {
		t.Errorf("an error without a time: %v", g.XID)
	}
}

// TestBounded in notes, and in a clock that goes back.
func TestBounded(t *testing.T) {
	var l Log
	for i := range 2 * notes {
		l.Note(begin.Add(time.Duration(i)*Every), 0, []Engine{engineAt(0, 0, 0, begin)}, nil)
		l.Note(begin.Add(time.Duration(i)*Every+time.Second), 0, []Engine{engineAt(0, 0, 0, begin)}, nil)
	}
	if len(l.ring) != notes {
		t.Errorf("%d notes, want %d", len(l.ring), notes)
	}
	end := l.ring[len(l.ring)-1].at
	if l.Due(end.Add(time.Second)) || !l.Due(end.Add(Every)) || !l.Due(end.Add(-time.Hour)) {
		t.Error("due at the wrong time")
	}
	l.Note(end.Add(-time.Hour), 0, []Engine{engineAt(0, 0, 0, begin)}, nil)
	if last := l.ring[len(l.ring)-1].at; !last.Equal(end.Add(-time.Hour)) {
		t.Errorf("after the clock went back the last note is of %v", last)
	}
	l.Note(end, 0, nil, nil)
	if last := l.ring[len(l.ring)-1].at; last.Equal(end) {
		t.Error("a note of nothing was kept")
	}
}
