package telemetry

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/weirgate/weir/internal/call"
)

// streamed returns a record of a streamed call in which every figure is known.
func streamed() *call.Record {
	gaps := new(call.Gaps)
	for range 9 {
		gaps.Add(20 * time.Millisecond)
	}
	ms := func(n int) call.Duration { return call.Lasting(time.Duration(n) * time.Millisecond) }
	return &call.Record{
		Identity: call.Identity{ID: "c1", Key: "team-a", Model: "llama", Class: "interactive",
			Dialect: "openai_chat", Path: "/v1/chat/completions", Stream: true},
		Result: call.Result{Status: 200, Outcome: call.Completed,
			Degraded: []call.Degradation{call.PhaseClamped, call.ParseErrors}},
		Tokens: call.Tokens{
			Usage: call.Usage{Input: call.Known(100), Output: call.Known(10), Cached: call.Known(64),
				CacheWrite: call.Known(0), Reasoning: call.Known(3)},
			UsageSource: call.UsageReported, ContentEvents: call.Known(10), ParseErrors: 2,
		},
		Timing: call.Timing{TTFT: ms(200), TTFTUpstream: ms(150), TTFB: ms(120), TTFTVisible: ms(260),
			TPOT: ms(20), E2E: ms(400), ClientRTT: ms(12), UpstreamRTT: ms(2)},
		Phases: call.Phases{Upload: ms(1), QueueGateway: ms(40), Connect: ms(9), UpstreamRTT: ms(2), QueueEngine: ms(48),
			Frontend: ms(10), Prefill: ms(90), Decode: ms(179), Tail: ms(20), Delivery: ms(1)},
		PhaseSources: call.PhaseSources{Upload: call.Measured, QueueGateway: call.Measured, Connect: call.Measured,
			UpstreamRTT: call.Measured, QueueEngine: call.FromEngine, Frontend: call.Inferred,
			Prefill: call.FromEngine, Decode: call.Measured, Tail: call.Measured, Delivery: call.Measured},
		Transport: call.Transport{Attempts: 2, Replayed: true, BytesIn: call.Known(512), BytesOut: 4096, Gaps: gaps,
			Instants: call.Instants{Sent: ms(50), FirstToken: ms(200), LastToken: ms(380), Ended: ms(400)}},
		Surroundings: call.Surroundings{GPU: call.GPUWindow{GPUs: 1, Samples: 1, Joules: call.Figure(12.25)}},
	}
}

// refused returns a record of which hardly anything is known.
func refused() *call.Record {
	return &call.Record{
		Identity: call.Identity{Model: "llama", Class: "interactive", Dialect: "openai_chat"},
		Result:   call.Result{Outcome: call.Refused},
	}
}

// gather registers m with a new, pedantic registry and scrapes it.
func gather(t *testing.T, m *Metrics) map[string]*dto.MetricFamily {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	if err := m.Register(reg); err != nil {
		t.Fatal(err)
	}
	all, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	byName := make(map[string]*dto.MetricFamily)
	for _, f := range all {
		byName[f.GetName()] = f
	}
	return byName
}

// find returns the one series of a metric with the given labels (name, value,
// name, value …; others may be there), or nil.
func find(t *testing.T, all map[string]*dto.MetricFamily, name string, labels ...string) *dto.Metric {
	t.Helper()
	var found *dto.Metric
	for _, series := range all[name].GetMetric() {
		if hasLabels(series, labels) {
			if found != nil {
				t.Fatalf("%s%v: more than one series", name, labels)
			}
			found = series
		}
	}
	return found
}

func hasLabels(series *dto.Metric, labels []string) bool {
	has := make(map[string]string)
	for _, l := range series.GetLabel() {
		has[l.GetName()] = l.GetValue()
	}
	for i := 0; i < len(labels); i += 2 {
		if has[labels[i]] != labels[i+1] {
			return false
		}
	}
	return true
}

// total adds up a counter over all its series, or a histogram's counts.
func total(all map[string]*dto.MetricFamily, name string) float64 {
	var sum float64
	for _, series := range all[name].GetMetric() {
		sum += series.GetCounter().GetValue() + float64(series.GetHistogram().GetSampleCount())
	}
	return sum
}
