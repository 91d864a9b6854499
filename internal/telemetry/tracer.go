package telemetry

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/weirgate/weir/internal/call"
)

// Tracer gives calls their place in a trace, and makes their spans once they
// have ended: until then it is not known whether they are worth keeping. Make it
// with NewTracer; a nil Tracer does nothing. It is safe for concurrent use.
type Tracer struct {
	sampler sdktrace.Sampler
	keep    Keep
	out     *outlet

	// Spans are made whole after the fact, under ids that the upstream was told of
	// long before. The SDK's own tracer records spans while they last, and costs
	// three times as much; the batching and the way to the collector are the SDK's.
	processor sdktrace.SpanProcessor
	resource  *resource.Resource
	scope     instrumentation.Scope

	closed atomic.Bool
}

// Keep says which calls leave spans whatever the sampling says, beside those
// that failed. 0 is none.
type Keep struct {
	TTFT time.Duration // a time to first token of so much or more
	E2E  time.Duration // a whole call of so much or more
}

// Span is a call's place in a trace, from its begin on. The zero value is none.
type Span struct {
	parent  trace.SpanContext // who sent the call, or Caddy's own span; may be invalid
	trace   trace.TraceID
	server  trace.SpanID // ours; invalid when the server around has a span of its own
	client  trace.SpanID // over all attempts; what the upstream gets as its parent
	sampled bool
}

// traceHeaders are those of the W3C's two recommendations. Baggage is what
// applications tell each other, and is none of an engine's business.
const (
	traceparent = "Traceparent"
	tracestate  = "Tracestate"
	baggage     = "Baggage"
)

// Begin gives the request its place: below the span that the server around has
// made for it, else below the caller's own, else as the root of a new trace.
func (t *Tracer) Begin(r *http.Request) Span {
	if t == nil {
		return Span{}
	}
	s := Span{parent: trace.SpanContextFromContext(r.Context())}
	if !s.parent.IsValid() {
		s.parent = callersPlace(r.Header)
		s.server = newSpanID()
	}
	s.client = newSpanID()
	if s.trace = s.parent.TraceID(); !s.parent.IsValid() {
		s.trace = newTraceID()
	}
	s.sampled = t.sample(&s)
	return s
}

// callersPlace reads what the caller says of its own span. The usual form is read
// here, which takes a third of the time; all else by the library.
func callersPlace(h http.Header) trace.SpanContext {
	said := h[traceparent]
	if len(said) == 0 {
		return trace.SpanContext{}
	}
	if p := said[0]; len(said) == 1 && len(p) == 55 && p[:3] == "00-" && p[35] == '-' && p[52:54] == "-0" && len(h[tracestate]) == 0 {
		traceID, err := trace.TraceIDFromHex(p[3:35])
		spanID, err2 := trace.SpanIDFromHex(p[36:52])
		if err == nil && err2 == nil && (p[54] == '0' || p[54] == '1') {
			return trace.NewSpanContext(trace.SpanContextConfig{
				TraceID: traceID, SpanID: spanID, TraceFlags: trace.TraceFlags(p[54] - '0'), Remote: true,
			})
		}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(h))
	return trace.SpanContextFromContext(ctx)
}

func (t *Tracer) sample(s *Span) bool {
	ctx := context.Background()
	if s.parent.IsValid() {
		if t.sampler == parentDecides { // the usual one, without a context to ask it with
			return s.parent.IsSampled()
		}
		ctx = trace.ContextWithSpanContext(ctx, s.parent)
	} else if t.sampler == parentDecides {
		return true
	}
	return t.sampler.ShouldSample(sdktrace.SamplingParameters{
		ParentContext: ctx, TraceID: s.trace, Name: spanServer, Kind: trace.SpanKindServer,
	}).Decision == sdktrace.RecordAndSample
}

// parentDecides is the default of the specification: the caller's decision, and
// without a caller everything.
// https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/#general-sdk-configuration
var parentDecides = sdktrace.ParentBased(sdktrace.AlwaysSample())

// TraceID returns the trace as 32 hex digits, "" of none.
func (s *Span) TraceID() string {
	if !s.trace.IsValid() {
		return ""
	}
	return s.trace.String()
}

// Sampled tells whether the call was chosen at its begin.
func (s *Span) Sampled() bool { return s.sampled }

// Joins returns the trace and the span by which an engine's own span says that
// it belongs to the call; false without a place in a trace.
func (s *Span) Joins() (trace, span []byte, ok bool) {
	return s.trace[:], s.client[:], s.trace.IsValid()
}

// Propagate makes the request that goes upstream carry the place of the call's
// CLIENT span, so that the engine's own span joins the trace. With on false
// nothing of the trace leaves the house. It does nothing without a place.
func (s *Span) Propagate(h http.Header, on bool) {
	if !s.trace.IsValid() {
		return
	}
	delete(h, baggage)
	if !on || s.parent.TraceState().Len() == 0 { // what could not be read is nothing to pass on
		delete(h, tracestate)
	}
	if !on {
		delete(h, traceparent)
		return
	}
	// https://www.w3.org/TR/trace-context/#traceparent-header-field-values
	b := make([]byte, 0, len("00-")+32+len("-")+16+len("-01"))
	b = append(b, "00-"...)
	b = hex.AppendEncode(b, s.trace[:])
	b = append(b, '-')
	b = hex.AppendEncode(b, s.client[:])
	if s.sampled {
		b = append(b, "-01"...)
	} else {
		b = append(b, "-00"...)
	}
	h[traceparent] = []string{string(b)}
}

// End makes and exports the spans of a call, unless nobody wants them, and says
// whether it did. It blocks for nothing: when the exporter does not keep up, spans
// are dropped and counted.
func (t *Tracer) End(s *Span, rec *call.Record) bool {
	if t == nil || !s.trace.IsValid() || !s.sampled && !t.keeps(rec) {
		return false
	}
	if t.closed.Load() { // the batcher would drop them in silence
		t.out.dropped.Add(int64(spansOf(rec)))
		return false
	}
	if !t.out.room(spansOf(rec)) {
		return false
	}
	made := t.spans(s, rec)
	if len(made.spans) == 0 { // it was refused, and the span of the server around is all there is
		t.out.calls.Add(-1)
		made.release()
		return true
	}
	t.out.waiting.Add(int64(len(made.spans)))
	t.processor.OnEnd(made)
	return true
}

// Closed tells whether calls that end now leave no spans by this Tracer any more.
func (t *Tracer) Closed() bool { return t != nil && t.closed.Load() }

// keeps tells whether a call is kept whatever the sampling says.
func (t *Tracer) keeps(rec *call.Record) bool {
	return rec.Outcome.Failed() ||
		t.keep.TTFT > 0 && rec.TTFT.Or(0) >= t.keep.TTFT ||
		t.keep.E2E > 0 && rec.Instants.Ended.Or(0) >= t.keep.E2E
}

func newTraceID() (id trace.TraceID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	}
	return id
}

func newSpanID() (id trace.SpanID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}
