package telemetry

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

var errBroken = errors.New("broken")

func TestObserveEachMetric(t *testing.T) {
	all := gather(t, full())
	byModel := []string{"model", "llama", "class", "interactive"}

	counts := []struct {
		name   string
		want   float64
		labels []string
	}{
		{"weir_calls_total", 1, []string{"dialect", "openai_chat", "model", "llama", "class", "interactive",
			"outcome", "completed", "status_class", "2xx", "stream", "true"}},
		{"weir_calls_total", 1, []string{"dialect", "openai_chat", "model", "llama", "class", "interactive",
			"outcome", "refused", "status_class", "none", "stream", "false"}},
		{"weir_tokens_total", 100, append([]string{"kind", "input", "source", "reported"}, byModel...)},
		{"weir_tokens_total", 10, append([]string{"kind", "output", "source", "reported"}, byModel...)},
		{"weir_tokens_total", 64, append([]string{"kind", "cached", "source", "reported"}, byModel...)},
		{"weir_tokens_total", 0, append([]string{"kind", "cache_write", "source", "reported"}, byModel...)},
		{"weir_tokens_total", 3, append([]string{"kind", "reasoning", "source", "reported"}, byModel...)},
		{"weir_unmeasured_requests_total", 1, []string{"reason", UnknownPath}},
		{"weir_degraded_calls_total", 1, []string{"reason", "phase_clamped"}},
		{"weir_degraded_calls_total", 1, []string{"reason", "parse_errors"}},
		{"weir_upstream_attempts_total", 2, nil},
		{"weir_replays_total", 1, nil},
		{"weir_parse_errors_total", 2, []string{"dialect", "openai_chat"}},
		{"weir_request_body_bytes_total", 512, nil},
		{"weir_response_body_bytes_total", 4096, nil},
		{"weir_gpu_call_joules_total", 12.25, byModel},
	}
	for _, c := range counts {
		series := find(t, all, c.name, c.labels...)
		if series == nil || series.GetCounter().GetValue() != c.want {
			t.Errorf("%s%v = %v, want %v", c.name, c.labels, series, c.want)
		}
	}

	times := []struct {
		name   string
		want   time.Duration // the sum
		n      uint64
		labels []string
	}{
		{"weir_ttft_seconds", 200 * milli, 1, byModel},
		{"gen_ai_server_time_to_first_token_seconds", 150 * milli, 1, byModel},
		{"weir_ttft_visible_seconds", 260 * milli, 1, byModel},
		{"weir_ttfb_seconds", 120 * milli, 1, byModel},
		{"gen_ai_server_time_per_output_token_seconds", 20 * milli, 1, byModel},
		{"weir_icl_seconds", 180 * milli, 9, byModel},
		{"weir_e2e_seconds", 400 * milli, 1, byModel},
		{"gen_ai_server_request_duration_seconds", 350 * milli, 1, append([]string{"error_type", ""}, byModel...)},
		{"weir_client_rtt_seconds", 12 * milli, 1, nil},
		{"weir_upstream_rtt_seconds", 2 * milli, 1, nil},
		{"weir_added_delay_seconds", 3 * micro, 1, nil},
		{"weir_phase_seconds", 1 * milli, 1, []string{"phase", "upload", "source", "measured"}},
		{"weir_phase_seconds", 40 * milli, 1, []string{"phase", "queue_gateway", "source", "measured"}},
		{"weir_phase_seconds", 9 * milli, 1, []string{"phase", "connect", "source", "measured"}},
		{"weir_phase_seconds", 2 * milli, 1, []string{"phase", "upstream_rtt", "source", "measured"}},
		{"weir_phase_seconds", 48 * milli, 1, []string{"phase", "queue_engine", "source", "engine"}},
		{"weir_phase_seconds", 10 * milli, 1, []string{"phase", "frontend", "source", "inferred"}},
		{"weir_phase_seconds", 90 * milli, 1, []string{"phase", "prefill", "source", "engine"}},
		{"weir_phase_seconds", 179 * milli, 1, []string{"phase", "decode", "source", "measured"}},
		{"weir_phase_seconds", 20 * milli, 1, []string{"phase", "tail", "source", "measured"}},
		{"weir_phase_seconds", 1 * milli, 1, []string{"phase", "delivery", "source", "measured"}},
	}
	var phaseSum float64
	for _, c := range times {
		h := find(t, all, c.name, c.labels...).GetHistogram()
		if h.GetSampleCount() != c.n || math.Abs(h.GetSampleSum()-c.want.Seconds()) > 1e-12 {
			t.Errorf("%s%v: %d observations adding to %v s, want %d adding to %v",
				c.name, c.labels, h.GetSampleCount(), h.GetSampleSum(), c.n, c.want)
		}
		if c.name == "weir_phase_seconds" {
			phaseSum += h.GetSampleSum()
		}
	}
	if math.Abs(phaseSum-0.4) > 1e-12 {
		t.Errorf("phases add up to %v s, the call took 0.4 s", phaseSum)
	}

	for kind, want := range map[string]float64{"input": 100, "output": 10} {
		h := find(t, all, "gen_ai_client_token_usage", append([]string{"token_type", kind}, byModel...)...).GetHistogram()
		if h.GetSampleCount() != 1 || h.GetSampleSum() != want {
			t.Errorf("gen_ai_client_token_usage of %s: %d calls of %v tokens, want 1 of %v", kind, h.GetSampleCount(), h.GetSampleSum(), want)
		}
	}
	for name, want := range map[string]float64{
		"weir_calls_in_flight": 7, "weir_calls_awaiting_first_token": 2, "weir_oldest_awaiting_first_token_seconds": 1.5,
	} {
		if got := find(t, all, name).GetGauge().GetValue(); got != want {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
}

func TestUnknownIsNotObserved(t *testing.T) {
	m := New()
	m.Live(func() LiveState { return LiveState{} })
	observe(m, refused())
	all := gather(t, m)
	for _, name := range []string{"weir_ttft_seconds", "gen_ai_server_time_to_first_token_seconds",
		"weir_ttft_visible_seconds", "weir_ttfb_seconds", "gen_ai_server_time_per_output_token_seconds",
		"weir_icl_seconds", "weir_e2e_seconds", "weir_phase_seconds", "weir_tokens_total",
		"gen_ai_server_request_duration_seconds", "gen_ai_client_token_usage", "weir_gpu_call_joules_total",
		"weir_degraded_calls_total", "weir_parse_errors_total", "weir_oldest_awaiting_first_token_seconds"} {
		if f := all[name]; f != nil {
			t.Errorf("%s has series of a call of which nothing is known: %v", name, f)
		}
	}
	for _, name := range []string{"weir_client_rtt_seconds", "weir_upstream_rtt_seconds"} {
		if got := total(all, name); got != 0 {
			t.Errorf("%s counts %v round trips that nobody measured", name, got)
		}
	}
	if got := find(t, all, "weir_calls_in_flight"); got == nil || got.GetGauge().GetValue() != 0 {
		t.Errorf("weir_calls_in_flight = %v, want 0", got)
	}
}

// The conventions define two of the figures for successful responses only.
func TestGenAIMetricsLeaveFailuresOut(t *testing.T) {
	for _, o := range call.Outcomes {
		m := New()
		rec := streamed()
		rec.Outcome = o
		observe(m, rec)
		all := gather(t, m)
		want := 1.0
		if o.Failed() {
			want = 0
		}
		for _, name := range []string{"gen_ai_server_time_to_first_token_seconds", "gen_ai_server_time_per_output_token_seconds"} {
			if got := total(all, name); got != want {
				t.Errorf("%s after %s: %v observations, want %v", name, o, got, want)
			}
		}
		if got := total(all, "weir_ttft_seconds"); got != 1 {
			t.Errorf("weir_ttft_seconds after %s: %v observations, want 1", o, got)
		}
	}
}

// TestServerDuration: every way to fail is a label of its own, and a call that was
// not sent, or that the client left, says nothing of the upstream.
func TestServerDuration(t *testing.T) {
	for _, o := range append(slices.Clone(call.Outcomes), "odd") {
		m := New()
		rec := streamed()
		rec.Outcome = o
		observe(m, rec)
		rec.Instants.Sent = call.Duration{}
		observe(m, rec)
		want := string(o)
		switch {
		case o == "odd":
			want = Other
		case !o.Failed():
			want = ""
		}
		all := gather(t, m)
		if o == call.ClientGone {
			if f := all["gen_ai_server_request_duration_seconds"]; f != nil {
				t.Errorf("a call that its client left: %v", f)
			}
			continue
		}
		if got := find(t, all, "gen_ai_server_request_duration_seconds", "error_type", want).GetHistogram(); got.GetSampleCount() != 1 || got.GetSampleSum() != 0.35 {
			t.Errorf("%s: %v", o, got)
		}
	}
}

func TestGapsWithoutInstants(t *testing.T) {
	m := New()
	rec := streamed()
	rec.Instants = call.Instants{}
	observe(m, rec)
	h := find(t, gather(t, m), "weir_icl_seconds").GetHistogram()
	if got := h.GetSampleSum(); math.Abs(got-0.18) > 0.18*call.GapError {
		t.Errorf("sum %v s, want 0.18 s within %v", got, call.GapError)
	}
}

func TestFaultyFiguresDoNotSpoilCounters(t *testing.T) {
	m := New()
	rec := streamed()
	rec.Input, rec.Output = call.Known(-5), call.Known(math.MaxInt64)
	rec.BytesOut, rec.Attempts, rec.ParseErrors = -1, -1, -1
	rec.TTFT = call.Lasting(-time.Second)
	rec.Instants.Sent, rec.GPU.Joules = call.Lasting(time.Second), call.Figure(-12.25)
	observe(m, rec)
	observe(m, streamed())
	all := gather(t, m)
	for _, c := range []struct {
		name string
		want float64
	}{
		{"weir_response_body_bytes_total", 4096}, {"weir_upstream_attempts_total", 2}, {"weir_parse_errors_total", 2},
		{"weir_tokens_total", 110 + 2*67}, {"weir_ttft_seconds", 1}, {"gen_ai_client_token_usage", 2}, {"weir_gpu_call_joules_total", 12.25},
		{"gen_ai_server_request_duration_seconds", 1},
	} {
		if got := total(all, c.name); got != c.want {
			t.Errorf("%s adds up to %v, want %v", c.name, got, c.want)
		}
	}
}

func TestCountersAddUp(t *testing.T) {
	m := New()
	n := 0
	for i, o := range call.Outcomes {
		for _, status := range []int{0, 101, 200, 302, 404, 503, 999} {
			for _, stream := range []bool{true, false} {
				rec := streamed()
				rec.Outcome, rec.Status, rec.Stream = o, status, stream
				rec.UsageSource = []call.UsageSource{"", call.UsageReported, call.UsageTimings,
					call.UsageCounted, call.UsagePartial, "odd"}[i%6]
				observe(m, rec)
				n++
			}
		}
	}
	all := gather(t, m)
	for name, perCall := range map[string]int{"weir_calls_total": 1, "weir_ttft_seconds": 1, "weir_icl_seconds": 9,
		"weir_phase_seconds": 10, "weir_tokens_total": 177, "weir_degraded_calls_total": 2, "weir_upstream_attempts_total": 2} {
		if got := total(all, name); got != float64(perCall*n) {
			t.Errorf("%s adds up to %v, want %d for each of %d calls", name, got, perCall, n)
		}
	}
	if got := len(all["weir_calls_total"].GetMetric()); got != n {
		t.Errorf("weir_calls_total has %d series, want one for each of %d combinations", got, n)
	}
}

// observe counts a call whose phases are final at its end.
func observe(m *Metrics, rec *call.Record) {
	m.Observe(rec)
	m.Phases(rec)
}
