package caddymodule

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/slo"
)

// lateEngine answers, and exports its span of a call only when it is told to.
func lateEngine(t *testing.T, receiver string) (address string, tell func()) {
	t.Helper()
	exporter, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpointURL("http://"+receiver+"/v1/traces"))
	if err != nil {
		t.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) }) // nothing waits in it
	headers := make(chan http.Header, 1)
	address = serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers <- r.Header.Clone()
		time.Sleep(50 * time.Millisecond) // a first token that leaves room for queue and prefill
		brief(w, r)
	}))
	return address, func() {
		ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(await(t, headers, "call")))
		_, span := provider.Tracer("vllm").Start(ctx, "llm_request", trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
			attribute.Float64("gen_ai.latency.time_in_queue", 0.010), attribute.Float64("gen_ai.latency.time_in_model_prefill", 0.015)))
		span.End()
	}
}

// TestLateJoinCorrects: objectives about the engine's queue and prefill count a call as
// unknown until its span comes, and then as what it says, once.
func TestLateJoinCorrects(t *testing.T) {
	receiver := freeAddress(t)
	upstream, tell := lateEngine(t, receiver)
	_, collectorURL := collector(t)
	s := newSite(t)
	r := start(t, fmt.Sprintf("weir {\notlp %s\notlp_receiver %s {\nwindow 30s\n}\nclass interactive {\nqueue p99 <= 5ms\nprefill p99 <= 20ms\nno network\n}\n}", collectorURL, receiver),
		s.http("weir\nreverse_proxy "+upstream))
	r.asks(s, "", "late", 1)
	unknown := slo.Counts{Unknown: 1}
	r.wantCounts("before the span", "interactive", map[string]slo.Counts{"queue_p99": unknown, "prefill_p99": unknown, "goodput": unknown, "success": {Good: 1}, "ttft_p99": {Good: 1}})
	m := r.metrics()
	if m.sum("weir_slo_calls_total", `objective="queue_p99"`, `verdict="unknown"`) != 1 {
		t.Error("the metrics do not show the call as unknown")
	}
	tell()
	awaitAmended(t, r, "late")
	if rec := r.record("late"); rec.PhaseSources.QueueEngine != call.FromEngine || rec.PhaseSources.Prefill != call.FromEngine {
		t.Errorf("%+v", rec.PhaseSources)
	}
	awhile(t, "a corrected objective", func() bool { a := r.slo(); return a.of(t, "interactive", "queue_p99").Bad == 1 })
	r.wantCounts("after the span", "interactive", map[string]slo.Counts{"queue_p99": {Bad: 1}, "prefill_p99": {Good: 1}, "goodput": {Bad: 1}, "success": {Good: 1}, "ttft_p99": {Good: 1}})
}
