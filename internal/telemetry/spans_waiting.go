package telemetry

import (
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// callSpans are the spans of one call on their way to the outlet. They go through
// the batcher together, as if they were one span: its queue and its locks cost as much for
// a call as for a span. Their memory is used again once they have left.
type callSpans struct {
	sdktrace.ReadOnlySpan // nil; it has the method that makes a ReadOnlySpan

	trace    trace.TraceID
	parent   trace.SpanContext // whose child the topmost span is; may be invalid
	received time.Time
	resource *resource.Resource
	scope    instrumentation.Scope

	spans []callSpan
	attrs []attribute.KeyValue // all spans' own, one after the other
}

// usualSpans and usualAttrs are what a call has, rarely more: 8 spans with about 60
// attributes of 64 bytes. No more than mostAttrs and mostSpans are kept for another call.
const (
	usualSpans, mostSpans = 10, 32
	usualAttrs, mostAttrs = 72, 256
)

var callsSpans = sync.Pool{New: func() any {
	return &callSpans{spans: make([]callSpan, 0, usualSpans), attrs: make([]attribute.KeyValue, 0, usualAttrs)}
}}

// release gives the memory back. Nothing of the spans may be in use any more.
func (c *callSpans) release() {
	if c.reset() {
		callsSpans.Put(c)
	}
}

// reset forgets the call, so that nothing keeps its texts, and tells whether the memory
// is worth keeping.
func (c *callSpans) reset() bool {
	if cap(c.spans) > mostSpans || cap(c.attrs) > mostAttrs {
		return false
	}
	clear(c.spans)
	clear(c.attrs)
	*c = callSpans{spans: c.spans[:0], attrs: c.attrs[:0]}
	return true
}

// SpanContext implements sdktrace.ReadOnlySpan, of which the batcher asks this alone.
func (c *callSpans) SpanContext() trace.SpanContext { return c.context(trace.SpanID{}) }

// context is that of one of the call's spans. They are all exported, whatever
// was decided at the call's begin, so they say that they are sampled.
func (c *callSpans) context(id trace.SpanID) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: c.trace, SpanID: id, TraceFlags: trace.FlagsSampled, TraceState: c.parent.TraceState()})
}

// add adds a span. attrs are those of all spans so far, as in c.attrs, and its own
// behind them.
func (c *callSpans) add(s callSpan, attrs []attribute.KeyValue) {
	s.call, s.attrs = c, attrs[len(c.attrs):len(attrs):len(attrs)]
	c.attrs = attrs
	c.spans = append(c.spans, s)
}

// callSpan is one span of a call, whole. It implements sdktrace.ReadOnlySpan.
type callSpan struct {
	sdktrace.ReadOnlySpan // nil; it has the method that makes a ReadOnlySpan

	call      *callSpans
	id, above trace.SpanID // of above the zero value is the call's own parent
	kind      trace.SpanKind
	failed    bool
	name      string
	from, to  time.Duration // since the call was received
	attrs     []attribute.KeyValue
}

func (s *callSpan) Name() string                     { return s.name }
func (s *callSpan) SpanContext() trace.SpanContext   { return s.call.context(s.id) }
func (s *callSpan) SpanKind() trace.SpanKind         { return s.kind }
func (s *callSpan) StartTime() time.Time             { return s.call.received.Add(s.from) }
func (s *callSpan) EndTime() time.Time               { return s.call.received.Add(s.to) }
func (s *callSpan) Attributes() []attribute.KeyValue { return s.attrs }
func (s *callSpan) Links() []sdktrace.Link           { return nil }
func (s *callSpan) Events() []sdktrace.Event         { return nil }
func (s *callSpan) DroppedAttributes() int           { return 0 }
func (s *callSpan) DroppedLinks() int                { return 0 }
func (s *callSpan) DroppedEvents() int               { return 0 }
func (s *callSpan) ChildSpanCount() int              { return 0 }
func (s *callSpan) Resource() *resource.Resource     { return s.call.resource }

func (s *callSpan) InstrumentationScope() instrumentation.Scope { return s.call.scope }

// InstrumentationLibrary is the scope's name of old.
func (s *callSpan) InstrumentationLibrary() instrumentation.Scope { return s.call.scope }

func (s *callSpan) Parent() trace.SpanContext {
	if s.above.IsValid() {
		return s.call.context(s.above)
	}
	return s.call.parent
}

func (s *callSpan) Status() sdktrace.Status {
	if s.failed {
		return sdktrace.Status{Code: codes.Error}
	}
	return sdktrace.Status{}
}
