//go:build linux

package telemetry

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// cpuTime is what the process has used so far, or the calling thread alone.
func cpuTime(b *testing.B, whose int) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(whose, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// discard is a collector that reads what it gets, and does nothing with it.
func discard(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }

// BenchmarkTracingExported is a sampled call with everything: its place, its spans,
// batches, OTLP and the way to a collector. cpu-ns/op is the whole process's CPU time,
// call-cpu-ns/op the calling thread's, on which a call would wait. With the collector
// "within" its reading is in the former; "apart" it is another process, and is not.
// The rate is held to what the exporter takes, so that nothing is dropped.
func BenchmarkTracingExported(b *testing.B) {
	b.Run("within", func(b *testing.B) {
		server := httptest.NewServer(http.HandlerFunc(discard))
		defer server.Close()
		exported(b, server.URL)
	})
	b.Run("apart", func(b *testing.B) { exported(b, collectorApart(b)) })
}

func exported(b *testing.B, url string) {
	share := 1.0
	tracer, err := NewTracer(ExportOptions{Endpoint: url, Sample: &share})
	if err != nil {
		b.Fatal(err)
	}
	rec := traced()
	rec.Trail = rec.Trail[1:]
	r, h := postTo(), make(http.Header)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	all, onCall := cpuTime(b, syscall.RUSAGE_SELF), cpuTime(b, syscall.RUSAGE_THREAD)
	for b.Loop() {
		for tracer.out.waiting.Load() > queueSpans/2 {
			time.Sleep(time.Millisecond)
		}
		s := tracer.Begin(r)
		s.Propagate(h, true)
		tracer.End(&s, rec)
	}
	onCall = cpuTime(b, syscall.RUSAGE_THREAD) - onCall
	if err := tracer.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(cpuTime(b, syscall.RUSAGE_SELF)-all)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(onCall)/float64(b.N), "call-cpu-ns/op")
	if state := tracer.State(); state.Dropped > 0 || state.Failed > 0 || state.Exported != int64(b.N)*8 {
		b.Fatalf("of %d calls: %+v", b.N, state)
	}
}

// asCollector makes the test binary a collector, which lives until its input ends.
const asCollector = "WEIR_TEST_COLLECTOR"

// collectorApart starts a collector that is another process, and returns its URL.
func collectorApart(b *testing.B) string {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), asCollector+"=1")
	in, err := c.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		if err := c.Wait(); err != nil {
			b.Error(err)
		}
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(url)
}

// TestMain is also the other process of collectorApart.
func TestMain(m *testing.M) {
	if os.Getenv(asCollector) == "" {
		os.Exit(m.Run())
	}
	server := httptest.NewServer(http.HandlerFunc(discard))
	defer server.Close()
	fmt.Println(server.URL)
	_, _ = io.Copy(io.Discard, os.Stdin)
}
