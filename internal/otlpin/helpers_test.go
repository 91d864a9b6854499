package otlpin

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	spanpb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// begun is when the engines of these tests start their work.
var begun = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// traceOf and spanOf make ids of numbers; 0 is none.
func traceOf(n uint64) (id TraceID) { binary.BigEndian.PutUint64(id[8:], n); return id }
func spanOf(n uint64) (id SpanID)   { binary.BigEndian.PutUint64(id[:], n); return id }

func double(key string, v float64) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: v}}}
}

func whole(key string, v int64) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: v}}}
}

func text(key, v string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: v}}}
}

// wireSpan is a span as an exporter sends it.
func wireSpan(trace, id, parent uint64, name string, attributes ...*commonpb.KeyValue) *spanpb.Span {
	t, s, p := traceOf(trace), spanOf(id), spanOf(parent)
	out := &spanpb.Span{
		TraceId: t[:], SpanId: s[:], Name: name, Kind: spanpb.Span_SPAN_KIND_SERVER, Attributes: attributes,
		StartTimeUnixNano: uint64(begun.UnixNano()), EndTimeUnixNano: uint64(begun.Add(2 * time.Second).UnixNano()),
	}
	if parent != 0 {
		out.ParentSpanId = p[:]
	}
	return out
}

// vllm is the span that vLLM sends of a request: 100 ms in the queue, 50 ms of
// prefill, 1.8 s of decode.
func vllm(trace, id, parent uint64) *spanpb.Span {
	return wireSpan(trace, id, parent, "llm_request",
		double("gen_ai.latency.time_to_first_token", 0.1625), double("gen_ai.latency.e2e", 1.975),
		double("gen_ai.latency.time_in_queue", 0.1), whole("gen_ai.usage.prompt_tokens", 321),
		whole("gen_ai.usage.completion_tokens", 64), double("gen_ai.latency.time_in_model_prefill", 0.05),
		double("gen_ai.latency.time_in_model_decode", 1.8), double("gen_ai.latency.time_in_model_inference", 1.85),
		text("gen_ai.request.id", "chatcmpl-1"), double("gen_ai.request.top_p", 0.9))
}

// sglang is a request as SGLang sends it: the request itself, the span of the
// scheduler's thread, and the 120 ms in which it waited, of the 200 ms to the first token.
func sglang(trace, id, parent uint64) (request, thread, waiting *spanpb.Span) {
	request = wireSpan(trace, id, parent, " Req 0a1b2c3d", text("rid", "0a1b2c3d4e"), text("module", "sglang::request"),
		whole("gen_ai.usage.completion_tokens", 32), whole("gen_ai.usage.prompt_tokens", 100),
		text("gen_ai.request.id", "0a1b2c3d4e"), text("gen_ai.response.model", "qwen"),
		double("gen_ai.latency.time_to_first_token", 0.21), double("gen_ai.latency.e2e", 1.21),
		double("gen_ai.latency.time_in_model_decode", 1), double("gen_ai.latency.time_in_model_inference", 1.2),
		double("gen_ai.latency.time_in_model_prefill", 0.2))
	thread = wireSpan(trace, id+1, id, "Scheduler [TP 0] (host:0123 | pid:7)", whole("tp_rank", 0))
	waiting = wireSpan(trace, id+2, id+1, "prefill_waiting")
	waiting.EndTimeUnixNano = waiting.StartTimeUnixNano + uint64(120*time.Millisecond)
	return request, thread, waiting
}

// request wraps spans for export.
func request(scope string, spans ...*spanpb.Span) *tracepb.ExportTraceServiceRequest {
	return &tracepb.ExportTraceServiceRequest{ResourceSpans: []*spanpb.ResourceSpans{{
		Resource:   &resourcepb.Resource{Attributes: []*commonpb.KeyValue{text("service.name", "engine")}},
		ScopeSpans: []*spanpb.ScopeSpans{{Scope: &commonpb.InstrumentationScope{Name: scope}, Spans: spans}},
	}}}
}

func protobufOf(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// jsonOf writes a request as OTLP says: ids hexadecimal, 64-bit numbers as strings.
func jsonOf(r *tracepb.ExportTraceServiceRequest) []byte {
	var b strings.Builder
	b.WriteString(`{"resourceSpans":[`)
	for i, rs := range r.ResourceSpans {
		comma(&b, i)
		b.WriteString(`{"resource":{"attributes":[]},"scopeSpans":[`)
		for i, ss := range rs.ScopeSpans {
			comma(&b, i)
			fmt.Fprintf(&b, `{"scope":{"name":%q},"spans":[`, ss.GetScope().GetName())
			for i, s := range ss.Spans {
				comma(&b, i)
				fmt.Fprintf(&b, `{"traceId":%q,"spanId":%q,"parentSpanId":%q,"name":%q,"kind":2,"startTimeUnixNano":"%d","endTimeUnixNano":%d,"attributes":[`,
					hex.EncodeToString(s.TraceId), hex.EncodeToString(s.SpanId), hex.EncodeToString(s.ParentSpanId), s.Name,
					s.StartTimeUnixNano, s.EndTimeUnixNano)
				for i, kv := range s.Attributes {
					comma(&b, i)
					switch v := kv.Value.Value.(type) {
					case *commonpb.AnyValue_DoubleValue:
						fmt.Fprintf(&b, `{"key":%q,"value":{"doubleValue":%g}}`, kv.Key, v.DoubleValue)
					case *commonpb.AnyValue_IntValue:
						fmt.Fprintf(&b, `{"key":%q,"value":{"intValue":"%d"}}`, kv.Key, v.IntValue)
					case *commonpb.AnyValue_StringValue:
						fmt.Fprintf(&b, `{"key":%q,"value":{"stringValue":%q}}`, kv.Key, v.StringValue)
					}
				}
				b.WriteString(`],"unknownField":{"a":[1,2,{}]}}`)
			}
			b.WriteString(`]}`)
		}
		b.WriteString(`]}`)
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

func comma(b *strings.Builder, i int) {
	if i > 0 {
		b.WriteByte(',')
	}
}

// collected is a sink that wants everything, or one trace.
type collected struct {
	only  TraceID // zero: all
	asked int
	spans []seen
}

func (c *collected) wants(id TraceID) bool {
	c.asked++
	return c.only == TraceID{} || c.only == id
}
func (c *collected) take(s *seen) { c.spans = append(c.spans, *s) }

// feed shows a joiner what a receiver would.
func feed(t testing.TB, j *Joiner, spans ...*spanpb.Span) {
	t.Helper()
	if _, err := readProtobuf(protobufOf(t, request("", spans...)), joinerSink{j}); err != nil {
		t.Fatal(err)
	}
}

type joinerSink struct{ *Joiner }
