package caddymodule

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/weirgate/weir/internal/call"
)

// collected is what a collector was sent.
type collected struct {
	mu    sync.Mutex
	spans []*tracepb.Span
	token string // of the last export
}

func collector(t *testing.T) (c *collected, address string) {
	t.Helper()
	c = new(collected)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request collectorpb.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &request)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.token = r.Header.Get("X-Token")
		for _, resource := range request.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				c.spans = append(c.spans, scope.Spans...)
			}
		}
	}))
	t.Cleanup(server.Close)
	return c, server.URL
}

// of waits for the spans of a trace until there are n of them.
func (c *collected) of(t *testing.T, traceID string, n int) map[string][]*tracepb.Span {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c.mu.Lock()
		byName, found := make(map[string][]*tracepb.Span), 0
		for _, s := range c.spans {
			if fmt.Sprintf("%x", s.TraceId) != traceID {
				continue
			}
			name := s.Name
			if name == "POST" && s.Kind == tracepb.Span_SPAN_KIND_CLIENT {
				name = "attempt"
			}
			byName[name] = append(byName[name], s)
			found++
		}
		c.mu.Unlock()
		if found >= n {
			return byName
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d spans of trace %s came, want %d", found, traceID, n)
		}
	}
}

// tracingEngine answers as vLLM does, and exports a span of its own for each call.
func tracingEngine(t *testing.T, receiver string) http.HandlerFunc {
	t.Helper()
	exporter, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpointURL("http://"+receiver+"/v1/traces"))
	if err != nil {
		t.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) }) // nothing waits in it
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		w.Header().Set("Content-Type", "text/event-stream")
		time.Sleep(30 * time.Millisecond)
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}`+"\n\n")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}`+"\n\n"+done)
		_ = http.NewResponseController(w).Flush()
		ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(r.Header))
		_, span := provider.Tracer("vllm").Start(ctx, "llm_request", trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(began),
			trace.WithAttributes(attribute.Float64("gen_ai.latency.time_in_queue", 0.010), attribute.Float64("gen_ai.latency.time_in_model_prefill", 0.015),
				attribute.Float64("gen_ai.latency.time_in_model_decode", 0.001), attribute.Float64("gen_ai.latency.time_to_first_token", 0.026),
				attribute.Float64("gen_ai.latency.e2e", 0.027)))
		span.End()
	}
}

// TestTraces: a call leaves the stated trace in a collector; the engine's own span
// joins it, tells queue and prefill, and goes on to the collector too.
func TestTraces(t *testing.T) {
	spans, collectorURL := collector(t)
	receiver := freeAddress(t)
	upstream := serve(t, tracingEngine(t, receiver))
	database := filepath.Join(t.TempDir(), "usage.db")
	t.Setenv("TEST_TOKEN", "secret-token")
	for name, directives := range map[string]string{
		"alone":                 "weir\nreverse_proxy " + upstream,
		"under Caddy's tracing": "tracing\nweir\nreverse_proxy " + upstream,
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_TRACES_EXPORTER", "none") // Caddy's own spans go nowhere, and are still the parents
			site := newSite(t)
			r := start(t, fmt.Sprintf("weir {\nledger sqlite %s\notlp %s {\nheader X-Token {env.TEST_TOKEN}\n}\notlp_receiver %s {\nforward %s\nwindow 5s\n}\n}",
				database, collectorURL, receiver, collectorURL), site.http(directives))
			run := strings.ReplaceAll(name, " ", "-")
			const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
			req := post(t.Context(), t, site.url("http/1.1", "/v1/chat/completions"), run, `{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}`)
			own := name == "alone"
			if own {
				req.Header.Set("Traceparent", parent)
			}
			res, err := client(t, "http/1.1").Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()

			rec := r.record(run)
			if own && rec.TraceID != "0af7651916cd43dd8448eb211c80319c" || rec.TraceID == "" {
				t.Errorf("trace id %q", rec.TraceID)
			}
			byName := spans.of(t, rec.TraceID, map[bool]int{true: 7, false: 6}[own])
			for name, n := range map[string]int{"chat m": 1, "attempt": 1, "llm_request": 1, "prefill": 1, "decode": 1, "POST": map[bool]int{true: 1}[own]} {
				if len(byName[name]) != n {
					t.Fatalf("%d spans named %s, want %d; there are %v", len(byName[name]), name, n, byName)
				}
			}
			chat := byName["chat m"][0]
			if string(byName["llm_request"][0].ParentSpanId) != string(chat.SpanId) {
				t.Error("the engine's span is not the CLIENT span's child")
			}
			if string(byName["attempt"][0].ParentSpanId) != string(chat.SpanId) {
				t.Error("the attempt is not the CLIENT span's child")
			}
			if own && fmt.Sprintf("%x", byName["POST"][0].ParentSpanId) != "b7ad6b7169203331" {
				t.Errorf("the SERVER span's parent is %x, want the caller's", byName["POST"][0].ParentSpanId)
			}
			spans.mu.Lock()
			if spans.token != "secret-token" {
				t.Errorf("the collector got the header %q", spans.token)
			}
			spans.mu.Unlock()

			// What the engine told amends the record, on the API and in the ledger.
			awaitAmended(t, r, run)
			rec = r.record(run)
			if rec.Engine.Queue != call.Lasting(10*time.Millisecond) || rec.PhaseSources.QueueEngine != call.FromEngine || rec.PhaseSources.Prefill != call.FromEngine {
				t.Errorf("engine %+v, sources %+v", rec.Engine, rec.PhaseSources)
			}
			if rec.Phases.Sum() != phasesEnd(t, rec) {
				t.Errorf("phases add up to %v", rec.Phases.Sum())
			}
			var state struct {
				Export struct {
					Exported int64 `json:"spans_exported"`
				}
				Receiver struct{ Join struct{ Joined int64 } }
			}
			var body []byte
			// The collector has the spans a moment before their export is counted.
			until(t, "spans that are exported and joined on /weir/traces", func() bool {
				var status int
				status, body = r.get("/weir/traces")
				err := json.Unmarshal(body, &state)
				return err == nil && status == http.StatusOK && state.Export.Exported > 0 && state.Receiver.Join.Joined > 0
			})
			if strings.Contains(string(body), "secret-token") {
				t.Error("/weir/traces shows a header's value")
			}
		})
	}
}

// awaitAmended waits until the record of a run has what the engine's span told.
func awaitAmended(t *testing.T, r *run, runID string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !r.record(runID).Engine.Queue.IsKnown(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the engine's span does not amend the record: %+v", r.record(runID))
		}
	}
}

// phasesEnd is what the phases of a stream without a client that left add up to.
func phasesEnd(t *testing.T, rec *call.Record) time.Duration {
	t.Helper()
	e2e, known := rec.E2E.Get()
	if !known {
		t.Fatal("no end-to-end time")
	}
	return e2e
}

// TestNoTracing: without the global option nothing of a trace is added, changed or
// taken away.
func TestNoTracing(t *testing.T) {
	got := make(chan http.Header, 1)
	upstream := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header.Clone()
		telling(w, r)
	}))
	site := newSite(t)
	start(t, "", site.http("weir\nreverse_proxy "+upstream))
	for _, told := range []string{"", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"} {
		req := post(t.Context(), t, site.url("http/1.1", "/v1/chat/completions"), "untraced", `{"model":"m","stream":true,"messages":[]}`)
		if told != "" {
			req.Header.Set("Traceparent", told)
			req.Header.Set("Baggage", "user=42")
		}
		res, err := client(t, "http/1.1").Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		h := <-got
		if h.Get("Traceparent") != told || h.Get("Baggage") != req.Header.Get("Baggage") {
			t.Errorf("the upstream got %q and %q", h.Get("Traceparent"), h.Get("Baggage"))
		}
	}
}
