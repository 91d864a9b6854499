package telemetry

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Fields of ResourceSpans, ScopeSpans, Span and what spans are made of.
// https://github.com/open-telemetry/opentelemetry-proto/blob/v1.11.0/opentelemetry/proto/trace/v1/trace.proto
const (
	fieldResource           = 1 // of ResourceSpans
	fieldResourceAttributes = 1
	fieldScope              = 1 // of ScopeSpans
	fieldScopeName          = 1
	fieldScopeVersion       = 2
	fieldScopeAttributes    = 3
	fieldSpans              = 2 // of ScopeSpans
	fieldSchemaURL          = 3 // of both

	fieldTraceID           = 1
	fieldSpanID            = 2
	fieldTraceState        = 3
	fieldParentSpanID      = 4
	fieldName              = 5
	fieldKind              = 6
	fieldStart             = 7
	fieldEnd               = 8
	fieldAttributes        = 9
	fieldDroppedAttributes = 10
	fieldEvents            = 11
	fieldDroppedEvents     = 12
	fieldLinks             = 13
	fieldDroppedLinks      = 14
	fieldStatus            = 15
	fieldFlags             = 16

	fieldEventTime              = 1
	fieldEventName              = 2
	fieldEventAttributes        = 3
	fieldEventDroppedAttributes = 4

	fieldLinkTraceID           = 1
	fieldLinkSpanID            = 2
	fieldLinkAttributes        = 4
	fieldLinkDroppedAttributes = 5
	fieldLinkFlags             = 6

	fieldStatusMessage = 2
	fieldStatusCode    = 3
)

// keptWire is the size up to which the bytes of a batch serve the next one. A usual
// batch takes a fraction of it.
const keptWire = 1 << 20

// spansWire writes batches of spans as OTLP has them on the wire. The protobuf library's
// messages of each span and attribute, to make them and to walk over them, would cost more than
// all else that is done for a sampled call. What is sent is what the SDK's own exporter
// would send. The zero value is ready. It is not safe for concurrent use.
type spansWire struct {
	groups []scopeSpans // in the order in which they appear; most often one
}

// scopeSpans is what a batch has of one resource and one scope.
type scopeSpans struct {
	resource *resource.Resource
	equal    attribute.Distinct // of all resources that are equal to it
	scope    instrumentation.Scope
	first    int                    // the first group of the same resource
	message  *tracepb.ResourceSpans // of the first group
	head     wire                   // of the first group: the fields of ResourceSpans but ScopeSpans
	wire     wire                   // the fields of ScopeSpans
}

// send has the client send the spans. Nothing of them is in use afterwards.
func (b *spansWire) send(ctx context.Context, client otlptrace.Client, spans []sdktrace.ReadOnlySpan) error {
	messages := b.messages(spans)
	defer b.done()
	if len(messages) == 0 {
		return nil
	}
	if err := client.UploadTraces(ctx, messages); err != nil { // it has the messages' bytes copied before it sends them
		return fmt.Errorf("traces export: %w", err)
	}
	return nil
}

// messages returns the spans as messages to send. All they hold is among the fields that the
// library does not know, and sends as they are. They are valid until done, and read only.
func (b *spansWire) messages(spans []sdktrace.ReadOnlySpan) []*tracepb.ResourceSpans {
	for _, s := range spans {
		if s == nil {
			continue
		}
		g := b.group(s.Resource(), s.InstrumentationScope())
		g.wire = g.wire.span(s)
	}
	var all []*tracepb.ResourceSpans
	for i := range b.groups {
		g := &b.groups[i]
		if g.first == i {
			g.message = new(tracepb.ResourceSpans)
			g.message.ProtoReflect().SetUnknown(protoreflect.RawFields(g.head))
			all = append(all, g.message)
		}
		part := new(tracepb.ScopeSpans)
		part.ProtoReflect().SetUnknown(protoreflect.RawFields(g.wire))
		of := b.groups[g.first].message
		of.ScopeSpans = append(of.ScopeSpans, part)
	}
	return all
}

// group returns where the spans of a resource and a scope belong.
func (b *spansWire) group(r *resource.Resource, scope instrumentation.Scope) *scopeSpans {
	first := len(b.groups)
	for i := range b.groups {
		g := &b.groups[i]
		if g.resource != r && g.equal != r.Equivalent() {
			continue
		}
		if g.scope == scope {
			return g
		}
		first = min(first, i)
	}
	if len(b.groups) < cap(b.groups) { // one that done has left
		b.groups = b.groups[:len(b.groups)+1]
	} else {
		b.groups = append(b.groups, scopeSpans{})
	}
	g := &b.groups[len(b.groups)-1]
	*g = scopeSpans{resource: r, equal: r.Equivalent(), scope: scope, first: first, wire: g.wire[:0].scope(scope)}
	if first == len(b.groups)-1 {
		g.head = g.head.resource(r)
	}
	return g
}

// done ends the use of what messages returned. The memory serves the next batch, unless this
// was an unusual one.
func (b *spansWire) done() {
	if len(b.groups) != 1 || cap(b.groups[0].wire) > keptWire {
		b.groups = nil
		return
	}
	b.groups = b.groups[:0]
}

// resource appends the fields of ResourceSpans that tell of the resource.
func (w wire) resource(r *resource.Resource) wire {
	if r == nil {
		return w
	}
	w, at := w.open(fieldResource)
	return w.set(fieldResourceAttributes, r.Set()).seal(at).text(fieldSchemaURL, r.SchemaURL())
}

// scope appends the fields of ScopeSpans that tell of the scope.
func (w wire) scope(s instrumentation.Scope) wire {
	if s == (instrumentation.Scope{}) {
		return w
	}
	w, at := w.open(fieldScope)
	w = w.text(fieldScopeName, s.Name).text(fieldScopeVersion, s.Version).set(fieldScopeAttributes, &s.Attributes)
	return w.seal(at).text(fieldSchemaURL, s.SchemaURL)
}

func (w wire) set(field protowire.Number, attrs *attribute.Set) wire {
	for i := attrs.Iter(); i.Next(); {
		a := i.Attribute()
		w = w.attribute(field, &a)
	}
	return w
}

// span appends a field of ScopeSpans.
func (w wire) span(s sdktrace.ReadOnlySpan) wire {
	w, at := w.open(fieldSpans)
	place, parent := s.SpanContext(), s.Parent()
	traceID, spanID := place.TraceID(), place.SpanID()
	w = w.bytes(fieldTraceID, traceID[:]).bytes(fieldSpanID, spanID[:]).text(fieldTraceState, place.TraceState().String())
	if id := parent.SpanID(); id.IsValid() {
		w = w.bytes(fieldParentSpanID, id[:])
	}
	w = w.fixed32(fieldFlags, flagsOf(place.TraceFlags(), parent)).text(fieldName, s.Name()).varint(fieldKind, kindOf(s.SpanKind())).
		instant(fieldStart, s.StartTime()).instant(fieldEnd, s.EndTime()).
		attributes(fieldAttributes, s.Attributes()).count(fieldDroppedAttributes, s.DroppedAttributes())
	for _, e := range s.Events() {
		w = w.event(&e)
	}
	w = w.count(fieldDroppedEvents, s.DroppedEvents())
	for _, l := range s.Links() {
		w = w.link(&l)
	}
	return w.count(fieldDroppedLinks, s.DroppedLinks()).status(s.Status()).seal(at)
}

func (w wire) event(e *sdktrace.Event) wire {
	w, at := w.open(fieldEvents)
	return w.instant(fieldEventTime, e.Time).text(fieldEventName, e.Name).attributes(fieldEventAttributes, e.Attributes).
		count(fieldEventDroppedAttributes, e.DroppedAttributeCount).seal(at)
}

func (w wire) link(l *sdktrace.Link) wire {
	w, at := w.open(fieldLinks)
	traceID, spanID := l.SpanContext.TraceID(), l.SpanContext.SpanID()
	return w.bytes(fieldLinkTraceID, traceID[:]).bytes(fieldLinkSpanID, spanID[:]).attributes(fieldLinkAttributes, l.Attributes).
		count(fieldLinkDroppedAttributes, l.DroppedAttributeCount).fixed32(fieldLinkFlags, flagsOf(l.SpanContext.TraceFlags(), l.SpanContext)).seal(at)
}

// status appends a status even when there is nothing to say of it, as the SDK does.
func (w wire) status(s sdktrace.Status) wire {
	w, at := w.open(fieldStatus)
	w = w.text(fieldStatusMessage, s.Description)
	switch s.Code {
	case codes.Ok:
		w = w.varint(fieldStatusCode, uint64(tracepb.Status_STATUS_CODE_OK))
	case codes.Error:
		w = w.varint(fieldStatusCode, uint64(tracepb.Status_STATUS_CODE_ERROR))
	case codes.Unset:
	}
	return w.seal(at)
}

// flags are a span's own, and whether what it points to, its parent or what it is
// linked to, is of another process.
func flagsOf(own trace.TraceFlags, to trace.SpanContext) uint32 {
	f := uint32(own) | uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK)
	if to.IsRemote() {
		f |= uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)
	}
	return f
}

func kindOf(k trace.SpanKind) uint64 {
	switch k {
	case trace.SpanKindInternal:
		return uint64(tracepb.Span_SPAN_KIND_INTERNAL)
	case trace.SpanKindServer:
		return uint64(tracepb.Span_SPAN_KIND_SERVER)
	case trace.SpanKindClient:
		return uint64(tracepb.Span_SPAN_KIND_CLIENT)
	case trace.SpanKindProducer:
		return uint64(tracepb.Span_SPAN_KIND_PRODUCER)
	case trace.SpanKindConsumer:
		return uint64(tracepb.Span_SPAN_KIND_CONSUMER)
	}
	return uint64(tracepb.Span_SPAN_KIND_UNSPECIFIED)
}
