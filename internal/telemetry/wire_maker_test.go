package telemetry

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// spanMaker makes spans at random, with a text of which much consists.
type spanMaker struct {
	*rand.Rand
	text  string
	clean bool // strings are made valid
}

func (m spanMaker) string() string {
	s := m.raw()
	if m.clean {
		return strings.ToValidUTF8(s, "\ufffd")
	}
	return s
}

func (m spanMaker) raw() string {
	return []string{"", "stop", m.text, "ü" + m.text, strings.Repeat("long ", 30), strings.Repeat(m.text, m.IntN(40))}[m.IntN(6)]
}

func (m spanMaker) value(depth int) attribute.Value {
	n := m.IntN(4)
	switch attribute.Type(m.IntN(int(attribute.MAP) + 1)) {
	case attribute.BOOL:
		return attribute.BoolValue(m.IntN(2) == 0)
	case attribute.INT64:
		return attribute.Int64Value(m.integer())
	case attribute.FLOAT64:
		return attribute.Float64Value(m.float())
	case attribute.STRING:
		return attribute.StringValue(m.string())
	case attribute.BOOLSLICE:
		return attribute.BoolSliceValue(several(n, func() bool { return m.IntN(2) == 0 }))
	case attribute.INT64SLICE:
		return attribute.Int64SliceValue(several(n, m.integer))
	case attribute.FLOAT64SLICE:
		return attribute.Float64SliceValue(several(n, m.float))
	case attribute.STRINGSLICE:
		return attribute.StringSliceValue(several(n, m.string))
	case attribute.BYTESLICE:
		return attribute.ByteSliceValue([]byte(m.raw()))
	case attribute.SLICE:
		if depth > 0 {
			return attribute.SliceValue(several(n, func() attribute.Value { return m.value(depth - 1) })...)
		}
	case attribute.MAP:
		if depth > 0 {
			return attribute.MapValue(m.attributes(depth - 1)...)
		}
	}
	return attribute.Value{}
}

func several[T any](n int, one func() T) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = one()
	}
	return all
}

func (m spanMaker) integer() int64 {
	return []int64{0, 1, -1, 127, 128, math.MaxInt64, math.MinInt64, int64(m.Uint64())}[m.IntN(8)]
}

func (m spanMaker) float() float64 {
	return []float64{0, math.Copysign(0, -1), 1, math.Inf(1), math.MaxFloat64, m.NormFloat64()}[m.IntN(6)]
}

// attributes have keys by which sets and maps order them alike, whatever the text.
func (m spanMaker) attributes(depth int) []attribute.KeyValue {
	all := make([]attribute.KeyValue, m.IntN(5))
	for i := range all {
		all[i] = attribute.KeyValue{Key: attribute.Key([]string{"", "k", "key", strings.Repeat("k", 150)}[m.IntN(4)]), Value: m.value(depth)}
	}
	return all
}

func (m spanMaker) context() trace.SpanContext {
	c := trace.SpanContextConfig{TraceFlags: trace.TraceFlags(m.IntN(256)), Remote: m.IntN(2) == 0}
	if m.IntN(4) > 0 {
		binary.BigEndian.PutUint64(c.TraceID[8:], m.Uint64())
		binary.BigEndian.PutUint64(c.SpanID[:], m.Uint64())
	}
	if m.IntN(2) == 0 {
		c.TraceState, _ = trace.ParseTraceState("vendor=1,other@tenant=two")
	}
	return trace.NewSpanContext(c)
}

func (m spanMaker) time() time.Time {
	return []time.Time{{}, time.Unix(0, 0), time.Unix(-1, 0), time.Unix(1_790_000_000, m.Int64N(1e9))}[m.IntN(4)]
}

func (m spanMaker) count() int {
	return []int{0, 0, 1, 200, -1, math.MaxUint32, math.MaxUint32 + 1, math.MaxInt}[m.IntN(8)]
}

func (m spanMaker) span(resources []*resource.Resource, scopes []instrumentation.Scope) sdktrace.ReadOnlySpan {
	s := tracetest.SpanStub{
		Name: m.string(), SpanContext: m.context(), Parent: m.context(), SpanKind: trace.SpanKind(m.IntN(8)), StartTime: m.time(), EndTime: m.time(),
		Attributes: append(m.attributes(2), attribute.String(m.string(), "of any key")),
		Status:     sdktrace.Status{Code: codes.Code(m.IntN(4)), Description: m.string()}, DroppedAttributes: m.count(), DroppedEvents: m.count(), DroppedLinks: m.count(),
		Resource: resources[m.IntN(len(resources))], InstrumentationScope: scopes[m.IntN(len(scopes))],
		Events: several(m.IntN(3), func() sdktrace.Event {
			return sdktrace.Event{Name: m.string(), Attributes: m.attributes(1), DroppedAttributeCount: m.count(), Time: m.time()}
		}),
		Links: several(m.IntN(3), func() sdktrace.Link {
			return sdktrace.Link{SpanContext: m.context(), Attributes: m.attributes(1), DroppedAttributeCount: m.count()}
		}),
	}
	return s.Snapshot()
}

func (m spanMaker) resource() *resource.Resource {
	switch m.IntN(5) {
	case 0:
		return nil
	case 1:
		return resource.Empty()
	}
	return resource.NewWithAttributes([]string{"", "https://opentelemetry.io/schemas/1.40.0"}[m.IntN(2)], m.attributes(0)...)
}

func (m spanMaker) scope() instrumentation.Scope {
	if m.IntN(3) == 0 {
		return instrumentation.Scope{}
	}
	return instrumentation.Scope{Name: m.string(), Version: m.string(), SchemaURL: m.string(), Attributes: attribute.NewSet(m.attributes(0)...)}
}

// spans are none to many, of a few resources and scopes. Those have the same texts in any
// case: two may not become one.
func (m spanMaker) spans() []sdktrace.ReadOnlySpan {
	plain := spanMaker{Rand: m.Rand, text: "plain"}
	resources, scopes := several(1+m.IntN(4), plain.resource), several(1+m.IntN(3), plain.scope)
	return several(m.IntN(12), func() sdktrace.ReadOnlySpan {
		if m.IntN(10) == 0 {
			return nil
		}
		return m.span(resources, scopes)
	})
}
