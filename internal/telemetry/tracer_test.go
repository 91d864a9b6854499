package telemetry

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

func TestPropagate(t *testing.T) {
	tracer := tracerTo(t, new(spanCollector), sdktrace.NeverSample(), ExportOptions{})
	defer tracer.Close(t.Context())
	told := []string{"Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", "Tracestate", "vendor=1", "Baggage", "user=42"}
	r := postTo(told...)
	s := tracer.Begin(r)
	s.Propagate(r.Header, true)
	if got := r.Header.Get("Traceparent"); got != "00-"+s.TraceID()+"-"+s.client.String()+"-00" {
		t.Errorf("traceparent %q", got)
	}
	if got := r.Header.Get("Tracestate"); got != "vendor=1" {
		t.Errorf("tracestate %q", got)
	}
	if r.Header.Get("Baggage") != "" {
		t.Error("baggage leaves the house")
	}
	r = postTo(told...)
	s.Propagate(r.Header, false)
	if len(r.Header) != 0 {
		t.Errorf("with propagation off the header is %v", r.Header)
	}
	var off *Tracer
	r = postTo(told...)
	s = off.Begin(r)
	s.Propagate(r.Header, false)
	if len(r.Header) != 3 || s.TraceID() != "" || off.End(&s, traced()) {
		t.Error("without a tracer something happens")
	}
}

// TestCollectorFaults: a dead or hanging collector costs no call anything, and
// what it did not get is counted.
func TestCollectorFaults(t *testing.T) {
	for name, c := range map[string]*spanCollector{"dead": {fails: errors.New("connection refused")}, "black hole": {hangs: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []error
				tracer := tracerTo(t, c, parentDecides, ExportOptions{Report: func(err error) { told = append(told, err) }})
				made, calls := 0, 20_000
				began := time.Now()
				for range calls {
					s := tracer.Begin(postTo())
					if tracer.End(&s, traced()) {
						made++
					}
				}
				if passed := time.Since(began); passed != 0 {
					t.Errorf("calls waited %v", passed)
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				state := tracer.State()
				if state.Exported != 0 && c.hangs || state.Waiting != 0 || state.Failed != int64(made*9) {
					t.Errorf("after %d of %d calls left spans: %+v", made, calls, state)
				}
				if state.Dropped != int64((calls-made)*9) || c.hangs && made == calls {
					t.Errorf("%d calls of %d left no spans, and %d are counted as dropped", calls-made, calls, state.Dropped)
				}
				if len(told) != 1 || told[0] == nil || state.Error == "" {
					t.Errorf("told %d times: %v", len(told), told)
				}
				c.fails, c.hangs = nil, false
				s := tracer.Begin(postTo())
				if !tracer.End(&s, traced()) {
					t.Error("there is no room although nothing waits")
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if state := tracer.State(); state.Exported != 9 || state.Error != "" || len(told) != 2 || told[1] != nil {
					t.Errorf("after it came back: %+v, told %v", state, told)
				}
				if err := tracer.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestSamplers(t *testing.T) {
	for _, c := range []struct {
		name, arg string
		says      string // of the error
		sampled   bool   // a root
	}{
		{"", "", "", true}, {"always_on", "", "", true}, {"always_off", "", "", false}, {"parentbased_always_on", "", "", true},
		{"parentbased_always_off", "", "", false}, {"traceidratio", "0", "", false}, {"parentbased_traceidratio", "1", "", true},
		{"parentbased_traceidratio", "x", "OTEL_TRACES_SAMPLER_ARG", false}, {"traceidratio", "2", "OTEL_TRACES_SAMPLER_ARG", false}, {"jaeger_remote", "", "not known", false},
	} {
		t.Setenv("OTEL_TRACES_SAMPLER", c.name)
		t.Setenv("OTEL_TRACES_SAMPLER_ARG", c.arg)
		sampler, err := samplerOf(nil)
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s %s: %v", c.name, c.arg, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s %s: %v", c.name, c.arg, err)
		}
		tracer := tracerTo(t, new(spanCollector), sampler, ExportOptions{})
		if s := tracer.Begin(postTo()); s.Sampled() != c.sampled {
			t.Errorf("%s %s: sampled is %v", c.name, c.arg, s.Sampled())
		}
		tracer.Close(t.Context())
	}
	for _, share := range []float64{-0.1, 1.1} {
		if _, err := samplerOf(&share); err == nil {
			t.Errorf("a share of %v is accepted", share)
		}
	}
	if _, err := NewTracer(ExportOptions{Protocol: "zipkin"}); err == nil || !strings.Contains(err.Error(), ProtocolGRPC) {
		t.Errorf("protocol zipkin: %v", err)
	}
}

// TestCallersPlace: the quick way of reading finds what the library finds.
func TestCallersPlace(t *testing.T) {
	const usual = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	said := []string{usual, "", "00", strings.ToUpper(usual), usual + "x", "01" + usual[2:], "ff" + usual[2:], usual[:53] + "ff", usual[:54] + "2", usual[:54] + "g",
		strings.Replace(usual, "0af7651916cd43dd8448eb211c80319c", strings.Repeat("0", 32), 1), strings.Replace(usual, "b7ad6b7169203331", strings.Repeat("0", 16), 1),
		strings.Replace(usual, "b7ad", "b7-d", 1), strings.Replace(usual, "-", "_", 2), usual + "-extra", "01" + usual[2:] + "-extra"}
	for i := range usual {
		said = append(said, usual[:i], usual[:i]+"!"+usual[i+1:], usual[:i]+usual[i+1:])
	}
	for _, p := range said {
		for _, state := range []string{"", "vendor=1"} {
			r := postTo("Traceparent", p)
			if state != "" {
				r.Header.Set("Tracestate", state)
			}
			want := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(r.Header)))
			if got := callersPlace(r.Header); !got.Equal(want) {
				t.Errorf("%q, %q: %v, the library reads %v", p, state, got, want)
			}
		}
	}
}

func BenchmarkTracing(b *testing.B) {
	for _, c := range []struct {
		name    string
		sampler sdktrace.Sampler
	}{{"unsampled", sdktrace.NeverSample()}, {"sampled", parentDecides}} {
		for _, from := range []string{"root", "caller"} {
			b.Run(c.name+"/"+from, func(b *testing.B) {
				sampler := c.sampler
				r := postTo()
				if from == "caller" {
					sampler = parentDecides
					r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0"+map[string]string{"unsampled": "0", "sampled": "1"}[c.name])
				}
				tracer, err := newTracer(outletTo(new(fakeClient)), sampler, ExportOptions{})
				if err != nil {
					b.Fatal(err)
				}
				rec := traced()
				rec.Trail = rec.Trail[1:]
				h := make(http.Header)
				b.ReportAllocs()
				for b.Loop() {
					if tracer.out.waiting.Load() > queueSpans/2 { // or spans are dropped, which costs less
						b.StopTimer()
						for tracer.out.waiting.Load() > queueSpans/4 {
							time.Sleep(time.Millisecond)
						}
						b.StartTimer()
					}
					s := tracer.Begin(r)
					s.Propagate(h, true)
					tracer.End(&s, rec)
				}
				b.StopTimer()
				if state := tracer.State(); state.Dropped > 0 {
					b.Errorf("of %d calls: %+v", b.N, state)
				}
				tracer.Close(b.Context())
			})
		}
	}
}
