package telemetry

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/otlptranslator"

	"github.com/weirgate/weir/internal/call"
)

// full returns Metrics in which every metric of the table has a series.
func full() *Metrics {
	m := New()
	observe(m, streamed())
	observe(m, refused())
	observe(m, estimated())
	m.Unmeasured(UnknownPath)
	m.Barred("path")
	m.Walls(walls)
	m.AddedDelay(3 * time.Microsecond)
	m.Engines(engines)
	m.GPUs(gpus)
	m.Spans(func() TracerState { return TracerState{Exported: 90, Failed: 18, Dropped: 9, Waiting: 27} })
	m.Joins(joins)
	m.SLO(objectives)
	m.ObserveProbe("canary", streamed())
	m.Live(func() LiveState {
		return LiveState{InFlight: 7, AwaitingFirstToken: 2, OldestAwaiting: call.Lasting(1500 * time.Millisecond)}
	})
	return m
}

func TestGatheredEqualsTable(t *testing.T) {
	all := gather(t, full())
	types := map[Type]dto.MetricType{Counter: dto.MetricType_COUNTER, Gauge: dto.MetricType_GAUGE,
		Histogram: dto.MetricType_HISTOGRAM}
	for _, want := range Table() {
		got := all[want.Name]
		delete(all, want.Name)
		if got == nil {
			t.Errorf("%s: in the table, not gathered", want.Name)
			continue
		}
		if got.GetHelp() != want.Help {
			t.Errorf("%s: help %q, want %q", want.Name, got.GetHelp(), want.Help)
		}
		if got.GetType() != types[want.Type] {
			t.Errorf("%s: type %v, want %v", want.Name, got.GetType(), want.Type)
		}
		var labels []string
		for _, l := range want.Labels {
			labels = append(labels, l.Name)
		}
		slices.Sort(labels)
		for _, series := range got.GetMetric() {
			var has []string
			for _, l := range series.GetLabel() {
				has = append(has, l.GetName())
			}
			if !slices.Equal(has, labels) {
				t.Errorf("%s: labels %v, want %v", want.Name, has, labels)
			}
			if want.Type != Histogram {
				continue
			}
			var edges []time.Duration
			var tokens []int64
			for _, b := range series.GetHistogram().GetBucket() {
				if want.TokenEdges != nil {
					tokens = append(tokens, int64(b.GetUpperBound()))
				} else {
					edges = append(edges, time.Duration(b.GetUpperBound()*1e9+0.5))
				}
			}
			if !slices.Equal(edges, want.Edges) || !slices.Equal(tokens, want.TokenEdges) {
				t.Errorf("%s: edges %v %v, want %v %v", want.Name, edges, tokens, want.Edges, want.TokenEdges)
			}
		}
	}
	for name := range all {
		t.Errorf("%s: gathered, not in the table", name)
	}
}

func TestTableIsWellFormed(t *testing.T) {
	forbidden := []string{"key", "user", "path", "prompt", "id", "alias"}
	seen := map[string]bool{}
	for _, m := range Table() {
		if seen[m.Name] {
			t.Errorf("%s: twice", m.Name)
		}
		seen[m.Name] = true
		if (m.Type == Histogram) != (len(m.Edges)+len(m.TokenEdges) > 0) || len(m.Edges) > 0 && len(m.TokenEdges) > 0 {
			t.Errorf("%s: a %s with %d edges of time and %d of tokens", m.Name, m.Type, len(m.Edges), len(m.TokenEdges))
		}
		if !ascends(m.Edges) || !ascends(m.TokenEdges) {
			t.Errorf("%s: edges do not ascend: %v %v", m.Name, m.Edges, m.TokenEdges)
		}
		if m.Type == Histogram && m.Unit() != "s" && m.Unit() != "{token}" {
			t.Errorf("%s: a histogram of unit %q", m.Name, m.Unit())
		}
		if (m.Type == Counter) != strings.HasSuffix(m.Name, "_total") {
			t.Errorf("%s: a %s", m.Name, m.Type)
		}
		for _, l := range m.Labels {
			if slices.Contains(forbidden, l.Name) {
				t.Errorf("%s: label %s", m.Name, l.Name)
			}
			if l.Cap <= 0 || l.Help == "" {
				t.Errorf("%s: label %s has cap %d and help %q", m.Name, l.Name, l.Cap, l.Help)
			}
		}
	}
}

func ascends[T cmp.Ordered](edges []T) bool {
	return slices.IsSorted(edges) && len(slices.Compact(slices.Clone(edges))) == len(edges)
}

// TestNamesThroughOpenTelemetry: what is exported over OTLP has, when it comes to
// Prometheus by that way, the name that a scrape shows.
func TestNamesThroughOpenTelemetry(t *testing.T) {
	namer := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	types := map[Type]otlptranslator.MetricType{Counter: otlptranslator.MetricTypeMonotonicCounter, Gauge: otlptranslator.MetricTypeGauge,
		Histogram: otlptranslator.MetricTypeHistogram}
	otel := map[string]string{}
	for _, m := range Table() {
		name := m.Name
		if m.OTel != "" {
			name = m.OTel
			otel[m.OTel] = m.Unit()
		}
		got, err := namer.Build(otlptranslator.Metric{Name: name, Unit: m.Unit(), Type: types[m.Type]})
		if err != nil || got != m.Name {
			t.Errorf("%s in %q comes to Prometheus as %s, %v; want %s", name, m.Unit(), got, err, m.Name)
		}
	}
	want := map[string]string{ // https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-metrics.md
		"gen_ai.server.request.duration": "s", "gen_ai.server.time_to_first_token": "s", "gen_ai.server.time_per_output_token": "s",
		"gen_ai.client.token.usage": "{token}",
	}
	if !maps.Equal(otel, want) {
		t.Errorf("metrics of the conventions: %v, want %v", otel, want)
	}
}

// TestConventionalEdges: the conventions advise edges, which are all there.
func TestConventionalEdges(t *testing.T) {
	seconds := map[string][]float64{
		"gen_ai_server_request_duration_seconds":      {0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92},
		"gen_ai_server_time_to_first_token_seconds":   {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10},
		"gen_ai_server_time_per_output_token_seconds": {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5},
		"gen_ai_client_token_usage":                   {1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864},
	}
	all := gather(t, full())
	for name, edges := range seconds {
		has := make(map[float64]bool)
		for _, b := range all[name].GetMetric()[0].GetHistogram().GetBucket() {
			has[b.GetUpperBound()] = true
		}
		for _, e := range edges {
			if !has[e] {
				t.Errorf("%s: no edge at %v", name, e)
			}
		}
	}
}

// Objectives are answered exactly only when they are edges.
func TestEdgesHoldObjectives(t *testing.T) {
	tests := map[string][]time.Duration{
		"weir_ttft_seconds":                           {200 * milli, 500 * milli, 2 * second, 10 * second},
		"gen_ai_server_time_to_first_token_seconds":   {1 * milli, 500 * milli, 2 * second, 10 * second},
		"weir_e2e_seconds":                            {1 * second, 5 * second, 20 * second, 60 * second},
		"weir_phase_seconds":                          {10 * milli, 20 * milli, 100 * milli, 200 * milli, 1 * second, 10 * second, 30 * second},
		"gen_ai_server_time_per_output_token_seconds": {20 * milli, 30 * milli, 40 * milli, 100 * milli, 2500 * milli},
		"weir_icl_seconds":                            {1 * milli, 5 * milli, 40 * milli},
		"weir_added_delay_seconds":                    {10 * micro},
		"weir_client_rtt_seconds":                     {100 * micro, 500 * micro, 10 * milli, 20 * milli, 100 * milli},
		"weir_upstream_rtt_seconds":                   {100 * micro, 500 * micro, 10 * milli},
	}
	for _, m := range Table() {
		for _, edge := range tests[m.Name] {
			if !slices.Contains(m.Edges, edge) {
				t.Errorf("%s: no edge at %v", m.Name, edge)
			}
		}
		delete(tests, m.Name)
	}
	for name := range tests {
		t.Errorf("%s: not in the table", name)
	}
}

func TestLint(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	if err := full().Register(reg); err != nil {
		t.Fatal(err)
	}
	all, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(all).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestWriteTable(t *testing.T) {
	var b strings.Builder
	if err := WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != numMetrics+1 {
		t.Fatalf("%d lines, want a heading and %d metrics", len(lines), numMetrics)
	}
	for i, m := range Table() {
		line := lines[i+1]
		if !strings.HasPrefix(line, m.Name+" ") || !strings.HasSuffix(line, m.Help) {
			t.Errorf("line of %s: %q", m.Name, line)
		}
	}
	if err := WriteTable(brokenWriter{}); err == nil {
		t.Error("no error from a writer that fails")
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }
