package telemetry

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/call"
)

// Scanners try thousands of models; none exists, and the next real one must
// still get its label.
func TestJunkModelsDoNotFillTheCap(t *testing.T) {
	m := New()
	for i := range 10_000 {
		rec := refused()
		rec.Model = fmt.Sprintf("junk-%d", i)
		rec.Outcome, rec.Status = call.UpstreamError, 404
		observe(m, rec)
	}
	observe(m, streamed())
	all := gather(t, m)
	if got := len(all["weir_calls_total"].GetMetric()); got != 2 {
		t.Errorf("weir_calls_total has %d series, want 2", got)
	}
	if got := find(t, all, "weir_calls_total", "model", Other).GetCounter().GetValue(); got != 10_000 {
		t.Errorf("%s counts %v calls, want 10000", Other, got)
	}
	if find(t, all, "weir_ttft_seconds", "model", "llama") == nil {
		t.Error("a model that works has no label of its own")
	}
}

// An upstream that answers to any name cannot make labels without end either.
func TestLabelsAreCapped(t *testing.T) {
	m := New()
	const n = 10_000
	for i := range n {
		rec := streamed()
		rec.Model = fmt.Sprintf("model-%d", i)
		rec.Class = fmt.Sprintf("class-%d", i%100)
		rec.Dialect = fmt.Sprintf("dialect-%d", i%1000)
		rec.Degraded = []call.Degradation{call.Degradation(fmt.Sprintf("reason-%d", i))}
		rec.Outcome = call.Outcome(fmt.Sprintf("outcome-%d", i))
		if i%2 == 0 {
			rec.Outcome = call.Completed
		}
		rec.Status = 200 + i%2*i
		rec.PhaseSources.Prefill = call.Source(fmt.Sprintf("source-%d", i))
		rec.UsageSource = call.UsageSource(fmt.Sprintf("source-%d", i))
		observe(m, rec)
		m.Unmeasured(fmt.Sprintf("reason-%d", i))
	}
	all := gather(t, m)
	for _, metric := range Table() {
		values := make(map[string]map[string]bool)
		for _, series := range all[metric.Name].GetMetric() {
			for _, l := range series.GetLabel() {
				if values[l.GetName()] == nil {
					values[l.GetName()] = make(map[string]bool)
				}
				values[l.GetName()][l.GetValue()] = true
			}
		}
		for _, l := range metric.Labels {
			delete(values[l.Name], Other)
			if got := len(values[l.Name]); got > l.Cap {
				t.Errorf("%s: %d values of %s, want at most %d", metric.Name, got, l.Name, l.Cap)
			}
		}
	}
	if got := total(all, "weir_calls_total"); got != n {
		t.Errorf("weir_calls_total adds up to %v, want %d", got, n)
	}
	if got := len(all["weir_ttft_seconds"].GetMetric()); got > (ModelCap+1)*(ClassCap+1) {
		t.Errorf("weir_ttft_seconds has %d series", got)
	}
}

func TestCallSeriesAreCapped(t *testing.T) {
	m := New()
	n := 0
	for d := range DialectCap {
		for c := range ClassCap {
			for _, o := range call.Outcomes {
				rec := refused()
				rec.Dialect, rec.Class, rec.Outcome = fmt.Sprint(d), fmt.Sprint(c), o
				observe(m, rec)
				observe(m, rec)
				n += 2
			}
		}
	}
	all := gather(t, m)
	got := len(all["weir_calls_total"].GetMetric())
	if got < CallSeriesCap || got > CallSeriesCap+len(call.Outcomes) {
		t.Errorf("%d series of %d combinations, want %d and one of %s for each outcome", got, n/2, CallSeriesCap, Other)
	}
	if sum := total(all, "weir_calls_total"); sum != float64(n) {
		t.Errorf("adds up to %v, want %d", sum, n)
	}
}

// TestErrorSeriesAreCapped: every model can fail in every way.
func TestErrorSeriesAreCapped(t *testing.T) {
	m := New()
	n := 0
	for model := range ModelCap {
		for class := range ClassCap {
			rec := streamed() // teaches the model
			rec.Model, rec.Class = fmt.Sprint(model), fmt.Sprint(class)
			observe(m, rec)
			for _, o := range errorTypes {
				rec.Outcome = o
				observe(m, rec)
				observe(m, rec)
				n += 2
			}
		}
	}
	failed, other := 0, uint64(0)
	var all uint64
	for _, s := range gather(t, m)["gen_ai_server_request_duration_seconds"].GetMetric() {
		if hasLabels(s, []string{"error_type", ""}) {
			continue
		}
		failed++
		all += s.GetHistogram().GetSampleCount()
		if hasLabels(s, []string{"model", Other, "class", Other}) {
			other += s.GetHistogram().GetSampleCount()
		}
	}
	if failed != ErrorSeriesCap+len(errorTypes) || all != uint64(n) || other == 0 {
		t.Errorf("%d series of failed calls, want %d; they count %d of %d, %d of them as %s", failed, ErrorSeriesCap+len(errorTypes), all, n, other, Other)
	}
}

// TestErrorTypes: the label's values are the outcomes that are failures.
func TestErrorTypes(t *testing.T) {
	for _, o := range call.Outcomes {
		if got := slices.Contains(errorTypes[:], o); got != o.Failed() {
			t.Errorf("%s is an error type: %v", o, got)
		}
	}
}

// TestMemoryIsBounded: what all labels at their caps can take.
func TestMemoryIsBounded(t *testing.T) {
	m := New()
	const (
		cell     = 8           // a count
		exemplar = 8 + 48 + 32 // a pointer, what it points to, and the trace's digits
	)
	bytes := 0
	for i := range table {
		f := m.families[i]
		if f.layout == nil {
			continue
		}
		series := 1
		for _, l := range table[i].Labels {
			series *= l.Cap + 1
		}
		if i == serverDuration {
			series = (ModelCap+1)*(ClassCap+1) + ErrorSeriesCap + len(errorTypes) + 1
		}
		if cells := len(f.layout.cells); cells > 350 {
			t.Errorf("%s: %d cells", table[i].Name, cells)
		}
		bytes += series * (len(f.layout.cells) + 1) * cell
		if f.exemplars {
			bytes += series * (len(f.layout.edges) + 1) * exemplar
		}
	}
	if bytes > 64<<20 {
		t.Errorf("all histograms take up to %d MiB, want at most 64", bytes>>20)
	}
}

func TestModelIsLearntFromAnswers(t *testing.T) {
	tests := []struct {
		name   string
		change func(*call.Record)
		want   string
	}{
		{"completed", func(*call.Record) {}, "llama"},
		{"client left after output", func(r *call.Record) { r.Outcome = call.ClientGone }, "llama"},
		{"error in a stream after output", func(r *call.Record) { r.Outcome = call.StreamError }, "llama"},
		{"no output", func(r *call.Record) { r.Outcome, r.ContentEvents = call.Truncated, call.Known(0) }, Other},
		{"unknown output", func(r *call.Record) { r.Outcome, r.ContentEvents = call.Unrecognised, call.Count{} }, Other},
		{"error status", func(r *call.Record) { r.Outcome, r.Status = call.UpstreamError, 404 }, Other},
		{"no answer", func(r *call.Record) { r.Outcome, r.Status = call.Timeout, 0 }, Other},
		{"no model named", func(r *call.Record) { r.Model = "" }, Other},
		{"not UTF-8", func(r *call.Record) { r.Model = "a\xff" }, Other},
		{"too long", func(r *call.Record) { r.Model = strings.Repeat("m", call.MaxName+1) }, Other},
		{"longest", func(r *call.Record) { r.Model = strings.Repeat("m", call.MaxName) }, strings.Repeat("m", call.MaxName)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := New()
			rec := streamed()
			tt.change(rec)
			observe(m, rec)
			if find(t, gather(t, m), "weir_calls_total", "model", tt.want) == nil {
				t.Errorf("no call under model %q", tt.want)
			}
		})
	}
}

func TestModelKeepsItsLabel(t *testing.T) {
	m := New()
	observe(m, streamed())
	failed := streamed()
	failed.Outcome, failed.Status = call.UpstreamError, 500
	observe(m, failed)
	if find(t, gather(t, m), "weir_calls_total", "model", "llama", "status_class", "5xx") == nil {
		t.Error("a learnt model lost its label when a call failed")
	}
}

func TestStatusClass(t *testing.T) {
	for status, want := range map[int]string{0: "none", 99: Other, 100: "1xx", 200: "2xx", 299: "2xx", 304: "3xx",
		499: "4xx", 599: "5xx", 600: Other, -200: Other} {
		if got := statusClass(status); got != want {
			t.Errorf("statusClass(%d) = %q, want %q", status, got, want)
		}
	}
}
