package telemetry

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	tracecollector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// fakeClient keeps what would go over the wire, unless it is to keep nothing.
type fakeClient struct {
	keeps bool
	wire  [][]byte
	fails error
}

func (c *fakeClient) Start(context.Context) error { return nil }
func (c *fakeClient) Stop(context.Context) error  { return nil }

func (c *fakeClient) UploadTraces(_ context.Context, spans []*tracepb.ResourceSpans) error {
	if !c.keeps {
		return c.fails
	}
	b, err := proto.Marshal(&tracecollector.ExportTraceServiceRequest{ResourceSpans: spans})
	if err != nil {
		return err
	}
	c.wire = append(c.wire, b)
	return c.fails
}

// outletTo returns an outlet whose spans go to the client.
func outletTo(c otlptrace.Client) *outlet {
	return &outlet{client: c, exporter: otlptrace.NewUnstarted(c)}
}

// read is what a collector reads of a request, by the order of its resources.
func read(t testing.TB, b []byte) *tracecollector.ExportTraceServiceRequest {
	t.Helper()
	request := new(tracecollector.ExportTraceServiceRequest)
	if err := proto.Unmarshal(b, request); err != nil {
		t.Fatalf("a collector could not read it: %v", err)
	}
	slices.SortFunc(request.ResourceSpans, func(a, b *tracepb.ResourceSpans) int {
		return strings.Compare(a.Resource.String(), b.Resource.String())
	})
	return request
}

// sdks is what the SDK's own exporter sends.
func sdks(t testing.TB, spans []sdktrace.ReadOnlySpan) [][]byte {
	t.Helper()
	c := &fakeClient{keeps: true}
	exporter, err := otlptrace.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := exporter.ExportSpans(t.Context(), spans); err != nil {
		t.Fatal(err)
	}
	return c.wire
}

// compare holds what is sent of spans to what the SDK's exporter sends of them; texts of
// theirs, which it does not make valid, are those of like.
func compare(t testing.TB, w *spansWire, spans, like []sdktrace.ReadOnlySpan) {
	t.Helper()
	c := &fakeClient{keeps: true}
	if err := w.send(t.Context(), c, spans); err != nil {
		t.Fatal(err)
	}
	want := sdks(t, like)
	if len(c.wire) != len(want) {
		t.Fatalf("%d requests, the SDK sends %d", len(c.wire), len(want))
	}
	for i := range want {
		if got, want := read(t, c.wire[i]), read(t, want[i]); !proto.Equal(got, want) {
			t.Fatalf("sent is\n%v\nand the SDK sends\n%v", got, want)
		}
		if len(c.wire[i]) != len(want[i]) { // the shortest encoding
			t.Fatalf("%d bytes are sent, and %d by the SDK", len(c.wire[i]), len(want[i]))
		}
	}
}

// TestSpansWire: what is sent of any spans is what the SDK's exporter sends of them, by
// one that has sent others before.
func TestSpansWire(t *testing.T) {
	var w spansWire
	for seed := range uint64(500) {
		random := func() spanMaker { return spanMaker{Rand: rand.New(rand.NewPCG(seed, 1)), text: "text"} }
		compare(t, &w, random().spans(), random().spans())
	}
	var none [][]sdktrace.ReadOnlySpan
	none = append(none, nil, []sdktrace.ReadOnlySpan{}, []sdktrace.ReadOnlySpan{nil, tracetest.SpanStub{}.Snapshot()})
	for _, spans := range none {
		compare(t, &w, spans, spans)
	}
}

// FuzzSpansWire: the same with texts that are none, which are made valid.
func FuzzSpansWire(f *testing.F) {
	for seed, text := range []string{"", "m", "\xff", "\xc3", "a\x00\xed\xa0\x80b", "\ufffd", strings.Repeat("\xf0\x9f", 100)} {
		f.Add(uint64(seed), text)
	}
	f.Fuzz(func(t *testing.T, seed uint64, text string) {
		if len(text) > 1<<16 {
			return
		}
		random := func(clean bool) []sdktrace.ReadOnlySpan {
			return spanMaker{Rand: rand.New(rand.NewPCG(seed, 2)), text: text, clean: clean}.spans()
		}
		compare(t, new(spansWire), random(false), random(true))
	})
}

// TestHostileResource: what the environment says of this process need not be text.
func TestHostileResource(t *testing.T) {
	stub := func(text string) []sdktrace.ReadOnlySpan {
		return []sdktrace.ReadOnlySpan{tracetest.SpanStub{
			Resource:             resource.NewWithAttributes(text, attribute.String(text, text), attribute.StringSlice("a", []string{text})),
			InstrumentationScope: instrumentation.Scope{Name: text, Version: text, SchemaURL: text, Attributes: attribute.NewSet(attribute.String("k", text))},
		}.Snapshot()}
	}
	compare(t, new(spansWire), stub("\xff\xfe of \xc3"), stub("\ufffd of \ufffd"))
}

// TestSpansWireMemory: what serves the next batch is bounded, and what was sent is not changed by it.
func TestSpansWireMemory(t *testing.T) {
	var w spansWire
	c := &fakeClient{keeps: true}
	usual := []sdktrace.ReadOnlySpan{tracetest.SpanStub{Name: "usual"}.Snapshot()}
	send := func(spans ...sdktrace.ReadOnlySpan) {
		t.Helper()
		if err := w.send(t.Context(), c, spans); err != nil {
			t.Fatal(err)
		}
	}
	send(usual...)
	before := &w.groups[:1][0].wire[:1][0]
	send(tracetest.SpanStub{Name: "other"}.Snapshot())
	if &w.groups[:1][0].wire[:1][0] != before {
		t.Error("the memory of a batch does not serve the next one")
	}
	if got := read(t, c.wire[0]).ResourceSpans[0].ScopeSpans[0].Spans[0].Name; got != "usual" {
		t.Errorf("what was sent has become %q", got)
	}
	send(tracetest.SpanStub{Name: strings.Repeat("x", keptWire)}.Snapshot())
	if w.groups != nil {
		t.Error("the memory of an unusual batch is kept")
	}
	send(usual[0], tracetest.SpanStub{Name: "of another scope", InstrumentationScope: instrumentation.Scope{Name: "other"}}.Snapshot())
	if w.groups != nil {
		t.Error("the memory of many scopes is kept")
	}
	c.fails = errors.New("no")
	if err := w.send(t.Context(), c, usual); !errors.Is(err, c.fails) || len(w.groups) != 0 {
		t.Errorf("%v, and %d groups are left", err, len(w.groups))
	}
}

// BenchmarkSpansWire writes the spans of one call, as ours and by the SDK's exporter and
// the protobuf library.
func BenchmarkSpansWire(b *testing.B) {
	var c spanCollector
	tracer := tracerTo(b, &c, parentDecides, ExportOptions{})
	rec := traced()
	rec.Trail = rec.Trail[1:]
	s := tracer.Begin(postTo())
	tracer.End(&s, rec)
	flush(b, tracer, &c)
	client := &fakeClient{keeps: true}
	b.Run("ours", func(b *testing.B) {
		var w spansWire
		b.ReportAllocs()
		for b.Loop() {
			client.wire = client.wire[:0]
			if err := w.send(b.Context(), client, c.spans); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(client.wire[0])), "bytes")
	})
	b.Run("sdk", func(b *testing.B) {
		exporter := otlptrace.NewUnstarted(client)
		b.ReportAllocs()
		for b.Loop() {
			client.wire = client.wire[:0]
			if err := exporter.ExportSpans(b.Context(), c.spans); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(client.wire[0])), "bytes")
	})
}
