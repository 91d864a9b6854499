package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirgate/weir/internal/call"
)

// exemplarLabel is the one label of an exemplar. Prometheus and the OpenTelemetry
// bridge look for it by this name.
// https://prometheus.io/docs/specs/om/open_metrics_spec/#exemplars
const exemplarLabel = "trace_id"

// leads is where an exemplar leads to: the trace of a call, and when it ended.
type leads struct {
	trace string
	at    time.Time
}

// exemplar is one call that a bucket counted.
type exemplar struct {
	leads
	n int64
}

// leadsOf returns where the exemplars of a call lead to; false unless its spans
// have been exported. A trace id has 32 digits, so that the label is far below the
// 128 characters that the formats allow.
func leadsOf(rec *call.Record) (leads, bool) {
	if !rec.Sampled || rec.Time.IsZero() || !isTraceID(rec.TraceID) {
		return leads{}, false
	}
	return leads{trace: rec.TraceID, at: rec.Time.Add(max(rec.Instants.Ended.Or(0), 0))}, true
}

func isTraceID(s string) bool {
	if len(s) != 32 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// show makes the call the exemplar of the bucket that counted n for it. A bucket
// shows its latest call.
func (h *histogram) show(n int64, to leads) {
	if h.exemplars == nil || n < 0 {
		return
	}
	h.exemplars[h.layout.class[h.layout.cell(n)]].Store(&exemplar{leads: to, n: n})
}

// withExemplars returns the histogram as it is exposed: with the exemplars that
// its buckets have, which stand in its classic and its native form.
func (h *histogram) withExemplars() prometheus.Metric {
	var all []prometheus.Exemplar
	for i := range h.exemplars {
		if e := h.exemplars[i].Load(); e != nil {
			all = append(all, prometheus.Exemplar{
				Value: float64(e.n) / h.layout.one, Timestamp: e.at, Labels: prometheus.Labels{exemplarLabel: e.trace},
			})
		}
	}
	if len(all) == 0 {
		return h
	}
	m, err := prometheus.NewMetricWithExemplars(h, all...)
	if err != nil { // only of labels that are too long or no text
		return h
	}
	return m
}
