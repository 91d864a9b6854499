package telemetry

import (
	"testing"

	"github.com/weirgate/weir/internal/call"
)

// joins is a state in which everything happened.
func joins() JoinState {
	return JoinState{Joined: 10, Unjoined: 9, Untracked: 8, Late: 7, Ambiguous: 6, Overflow: 5, Forwarded: call.Known(4), ForwardDropped: call.Known(3)}
}

func TestTracing(t *testing.T) {
	m := full()
	all := gather(t, m)
	for name, want := range map[string]float64{
		"weir_spans_exported_total": 90, "weir_spans_failed_total": 18, "weir_spans_dropped_total": 9, "weir_engine_spans_joined_total": 10,
		"weir_engine_spans_unjoined_total": 9, "weir_engine_spans_untracked_total": 8, "weir_engine_spans_late_total": 7,
		"weir_engine_spans_ambiguous_total": 6, "weir_engine_spans_overflow_total": 5, "weir_engine_spans_forwarded_total": 4,
		"weir_engine_spans_forward_dropped_total": 3,
	} {
		if got := find(t, all, name); got == nil || got.GetCounter().GetValue() != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if got := find(t, all, "weir_spans_waiting").GetGauge().GetValue(); got != 27 {
		t.Errorf("weir_spans_waiting is %v, want 27", got)
	}
	m.Joins(func() JoinState { return JoinState{} })
	m.Spans(nil)
	all = gather(t, m)
	if all["weir_engine_spans_forwarded_total"] != nil || all["weir_engine_spans_forward_dropped_total"] != nil {
		t.Error("spans passed on although none are")
	}
	if got := find(t, all, "weir_engine_spans_joined_total"); got == nil || got.GetCounter().GetValue() != 0 {
		t.Errorf("a joiner that has joined nothing: %v", got)
	}
	if all["weir_spans_exported_total"] != nil {
		t.Error("an export of spans that is gone")
	}
	var none *Metrics
	none.Spans(nil)
	none.Joins(nil)
	none.Engines(nil)
	none.GPUs(nil)
	none.Walls(nil)
}

// TestTracerIsASource: a tracer's own state is what is shown.
func TestTracerIsASource(t *testing.T) {
	var c spanCollector
	tracer := tracerTo(t, &c, parentDecides, ExportOptions{})
	m := New()
	m.Spans(tracer.State)
	s := tracer.Begin(postTo())
	tracer.End(&s, traced())
	if got := find(t, gather(t, m), "weir_spans_waiting").GetGauge().GetValue(); got != 9 {
		t.Errorf("%v spans wait, want 9", got)
	}
	flush(t, tracer, &c)
	all := gather(t, m)
	if got := find(t, all, "weir_spans_exported_total").GetCounter().GetValue(); got != 9 {
		t.Errorf("%v spans exported, want 9", got)
	}
	if got := find(t, all, "weir_spans_waiting").GetGauge().GetValue(); got != 0 {
		t.Errorf("%v spans wait after the export", got)
	}
}
