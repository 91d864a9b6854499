package telemetry

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// TestProbe: a synthetic call has series of its own, and counts nowhere else.
func TestProbe(t *testing.T) {
	m := New()
	m.ObserveProbe("canary", streamed())
	failed := streamed()
	failed.Outcome, failed.TTFT, failed.E2E = call.Timeout, call.Duration{}, call.Lasting(3*time.Second)
	m.ObserveProbe("canary", failed)
	all := gather(t, m)
	for outcome, want := range map[string]float64{"completed": 1, "timeout": 1} {
		if got := find(t, all, "weir_probe_calls_total", "probe", "canary", "outcome", outcome); got == nil || got.GetCounter().GetValue() != want {
			t.Errorf("%s: %v, want %v", outcome, got, want)
		}
	}
	for name, want := range map[string]struct {
		n   uint64
		sum float64
	}{"weir_probe_ttft_seconds": {1, 0.2}, "weir_probe_tpot_seconds": {1, 0.02}, "weir_probe_e2e_seconds": {2, 3.4}} {
		h := find(t, all, name, "probe", "canary").GetHistogram()
		if h.GetSampleCount() != want.n || h.GetSampleSum() != want.sum {
			t.Errorf("%s: %d adding to %v, want %d adding to %v", name, h.GetSampleCount(), h.GetSampleSum(), want.n, want.sum)
		}
	}
	for _, name := range []string{"weir_calls_total", "weir_ttft_seconds", "weir_tokens_total", "weir_e2e_seconds"} {
		if f := all[name]; f != nil {
			t.Errorf("%s counts a probe: %v", name, f)
		}
	}
}

// TestProbesAreBounded: names past the cap, and such as are no text, share a series.
func TestProbesAreBounded(t *testing.T) {
	m := New()
	for i := range 100 {
		m.ObserveProbe(fmt.Sprint(i), streamed())
	}
	m.ObserveProbe("\xff", &call.Record{Result: call.Result{Outcome: "odd"}})
	all := gather(t, m)
	if got := len(all["weir_probe_ttft_seconds"].GetMetric()); got != ProbeCap+1 {
		t.Errorf("%d probes, want %d and the rest", got, ProbeCap)
	}
	if got := total(all, "weir_probe_calls_total"); got != 101 {
		t.Errorf("%v calls, want all 101", got)
	}
	if got := find(t, all, "weir_probe_calls_total", "probe", Other, "outcome", Other); got.GetCounter().GetValue() != 1 {
		t.Errorf("an odd outcome: %v", got)
	}
}
