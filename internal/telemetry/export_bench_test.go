//go:build unix

package telemetry

import (
	"io"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"
)

// cpuTime is what the process has used so far.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkTracingExported is a sampled call with everything: its place, its spans,
// batches, protobuf and the way to a collector, whose reading is in the figure too.
// The rate is held to what the exporter takes, so that nothing is dropped.
func BenchmarkTracingExported(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer server.Close()
	share := 1.0
	tracer, err := NewTracer(ExportOptions{Endpoint: server.URL, Sample: &share})
	if err != nil {
		b.Fatal(err)
	}
	rec := traced()
	rec.Trail = rec.Trail[1:]
	r, h := postTo(), make(http.Header)
	cpu := cpuTime(b)
	for b.Loop() {
		for tracer.State().Waiting > queueSpans/2 {
			time.Sleep(time.Millisecond)
		}
		s := tracer.Begin(r)
		s.Propagate(h, true)
		tracer.End(&s, rec)
	}
	if err := tracer.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(cpuTime(b)-cpu)/float64(b.N), "cpu-ns/op")
	if state := tracer.State(); state.Dropped > 0 || state.Failed > 0 || state.Exported != int64(b.N)*8 {
		b.Fatalf("of %d calls: %+v", b.N, state)
	}
}
