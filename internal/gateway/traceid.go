package gateway

import (
	"net/http"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traceID returns the id of the trace that the call belongs to: that of a span
// around it, else the one that the client sent; "" when there is none.
func traceID(r *http.Request) string {
	span := trace.SpanContextFromContext(r.Context())
	if !span.HasTraceID() && first(r.Header, "Traceparent") != "" {
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		span = trace.SpanContextFromContext(ctx)
	}
	if !span.HasTraceID() {
		return ""
	}
	return span.TraceID().String()
}
