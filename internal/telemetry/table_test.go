package telemetry

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"github.com/weirgate/weir/internal/call"
)

// full returns Metrics in which every metric of the table has a series.
func full() *Metrics {
	m := New()
	m.Observe(streamed())
	m.Observe(refused())
	m.Observe(estimated())
	m.Unmeasured(UnknownPath)
	m.Barred("path")
	m.Walls(walls)
	m.AddedDelay(3 * time.Microsecond)
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
			for _, b := range series.GetHistogram().GetBucket() {
				edges = append(edges, time.Duration(b.GetUpperBound()*1e9+0.5))
			}
			if !slices.Equal(edges, want.Edges) {
				t.Errorf("%s: edges %v, want %v", want.Name, edges, want.Edges)
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
		if m.OTel != "" && strings.ReplaceAll(m.OTel, ".", "_")+"_seconds" != m.Name {
			t.Errorf("%s: is not %s with its unit", m.Name, m.OTel)
		}
		if (m.Type == Histogram) != (len(m.Edges) > 0) {
			t.Errorf("%s: a %s with %d edges", m.Name, m.Type, len(m.Edges))
		}
		if !slices.IsSorted(m.Edges) || len(slices.Compact(slices.Clone(m.Edges))) != len(m.Edges) {
			t.Errorf("%s: edges do not ascend: %v", m.Name, m.Edges)
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
