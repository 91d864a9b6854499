package otlpin

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirgate/weir/internal/call"
)

const ms = time.Millisecond

// readBoth reads a request in both encodings, which must give the same.
func readBoth(t *testing.T, scope string, attributes ...*commonpb.KeyValue) seen {
	t.Helper()
	r := request(scope, wireSpan(7, 8, 9, "llm_request", attributes...))
	var p, j collected
	if n, err := readProtobuf(protobufOf(t, r), &p); n != 1 || err != nil {
		t.Fatalf("protobuf: %d spans, %v", n, err)
	}
	if n, err := readJSON(jsonOf(r), &j); n != 1 || err != nil {
		t.Fatalf("JSON: %d spans, %v", n, err)
	}
	if len(p.spans) != 1 || !reflect.DeepEqual(p.spans, j.spans) {
		t.Fatalf("protobuf gives\n%+v\nJSON\n%+v", p.spans, j.spans)
	}
	return p.spans[0]
}

func TestReadVLLM(t *testing.T) {
	got := readBoth(t, "vllm.tracing.otel", vllm(7, 8, 9).Attributes...)
	want := EngineSpan{
		TraceID: traceOf(7), SpanID: spanOf(8), ParentID: spanOf(9), Start: begun, End: begun.Add(2 * time.Second),
		Queue: call.Lasting(100 * ms), Prefill: call.Lasting(50 * ms), Decode: call.Lasting(1800 * ms),
		TTFT: call.Lasting(162500 * time.Microsecond), E2E: call.Lasting(1975 * ms),
		InputTokens: call.Known(321), OutputTokens: call.Known(64), Kind: "vllm", RequestID: "chatcmpl-1",
	}
	if got.EngineSpan != want || got.stage || !got.engine() {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	e := got.Engine()
	if e.Queue != want.Queue || e.Prefill != want.Prefill || e.Decode != want.Decode || e.E2E != want.E2E {
		t.Errorf("the engine's figures are %+v", e)
	}
}

// TestReadSGLang: its prefill is not claimed to be one, since the queue is in it.
func TestReadSGLang(t *testing.T) {
	whole, thread, waiting := sglang(7, 20, 9)
	got := readBoth(t, "sglang server", whole.Attributes...)
	if got.Queue.IsKnown() || got.Prefill.IsKnown() || got.PrefillWithQueue != call.Lasting(200*ms) || got.stage {
		t.Errorf("read %+v", got)
	}
	if got.Kind != "sglang" || got.Model != "qwen" || got.Engine().Prefill.IsKnown() {
		t.Errorf("read %+v", got)
	}
	var c collected
	if n, err := readProtobuf(protobufOf(t, request("sglang server", thread, waiting)), &c); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	if c.spans[0].engine() {
		t.Error("the thread's span has no figures")
	}
	if s := c.spans[1]; !s.stage || s.Queue != call.Lasting(120*ms) || s.Kind != "sglang" {
		t.Errorf("the stage is %+v", s)
	}
}

func TestQueueInPrefill(t *testing.T) {
	prefill, queue := double(attrPrefill, 0.2), double(attrQueue, 0.15)
	tests := []struct {
		name                     string
		attributes               []*commonpb.KeyValue
		queue, prefill, together time.Duration // -1 is unknown
	}{
		{"beside each other", []*commonpb.KeyValue{prefill, queue, double(attrTTFT, 0.36)}, 150 * ms, 200 * ms, -1},
		{"within the clocks' difference", []*commonpb.KeyValue{prefill, queue, double(attrTTFT, 0.3495)}, 150 * ms, 200 * ms, -1},
		{"one within the other", []*commonpb.KeyValue{prefill, queue, double(attrTTFT, 0.21)}, 150 * ms, 50 * ms, 200 * ms},
		{"no first token", []*commonpb.KeyValue{prefill, queue}, 150 * ms, 200 * ms, -1},
		{"no queue", []*commonpb.KeyValue{prefill, double(attrTTFT, 0.21)}, -1, -1, 200 * ms},
		{"the queue alone", []*commonpb.KeyValue{queue}, 150 * ms, -1, -1},
		{"the queue is longer", []*commonpb.KeyValue{double(attrPrefill, 0.1), queue, double(attrTTFT, 0.16)}, 150 * ms, -1, 100 * ms},
	}
	for _, test := range tests {
		got := readBoth(t, "", test.attributes...)
		if got.Queue.Or(-1) != test.queue || got.Prefill.Or(-1) != test.prefill || got.PrefillWithQueue.Or(-1) != test.together {
			t.Errorf("%s: queue %v, prefill %v, together %v", test.name, got.Queue, got.Prefill, got.PrefillWithQueue)
		}
	}
}

func TestValues(t *testing.T) {
	const unknown = -1
	tests := []struct {
		v    *commonpb.KeyValue
		want time.Duration
	}{
		{double(attrQueue, 0), 0},
		{double(attrQueue, 0.0000000014), 1},
		{whole(attrQueue, 3), 3 * time.Second},
		{text(attrQueue, "0.25"), 250 * ms},
		{text(attrQueue, " 1e-3 "), ms},
		{double(attrQueue, 86400), 24 * time.Hour},
		{double(attrQueue, 86400.001), unknown},
		{double(attrQueue, -0.001), unknown},
		{whole(attrQueue, -1), unknown},
		{whole(attrQueue, math.MaxInt64), unknown},
		{double(attrQueue, 1e300), unknown},
		{text(attrQueue, "NaN"), unknown},
		{text(attrQueue, "Inf"), unknown},
		{text(attrQueue, "250ms"), unknown},
		{text(attrQueue, ""), unknown},
		{text(attrQueue, strings.Repeat("0", 65)), unknown},
	}
	for _, test := range tests {
		if got := readBoth(t, "", test.v); got.Queue.Or(unknown) != test.want || got.engine() != (test.want != unknown) {
			t.Errorf("%v is read as %v", test.v, got.Queue)
		}
	}
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} { // not written by %g as JSON
		var c collected
		if _, err := readProtobuf(protobufOf(t, request("", wireSpan(7, 8, 9, "", double(attrQueue, f)))), &c); err != nil || c.spans[0].engine() {
			t.Errorf("%g: %v, %+v", f, err, c.spans)
		}
	}
	for v, want := range map[*commonpb.KeyValue]int64{
		whole(attrPrompt, 0): 0, double(attrInput, 12): 12, text(attrPrompt, "7"): 7,
		double(attrPrompt, 1.5): unknown, whole(attrPrompt, -3): unknown, whole(attrInput, maxTokens+1): unknown,
	} {
		if got := readBoth(t, "", v); got.InputTokens.Or(unknown) != want {
			t.Errorf("%v is read as %v", v, got.InputTokens)
		}
	}
}

func TestNamesAreBounded(t *testing.T) {
	long := strings.Repeat("é", maxText)
	got := readBoth(t, "", text(attrRequestID, long), text(attrRequestModel, "asked"), text(attrResponseModel, "answered"))
	if got.RequestID != strings.Repeat("é", maxText/2) || got.Model != "answered" {
		t.Errorf("read %q, %q", got.RequestID, got.Model)
	}
	if got := readBoth(t, "", text(attrResponseModel, "answered"), text(attrRequestModel, "asked")); got.Model != "answered" {
		t.Errorf("read %q", got.Model)
	}
	if got := (value{kind: valueText, text: []byte(strings.Repeat("\x80", 200))}).name(); got != "" {
		t.Errorf("read %q of what is no text", got)
	}
}

// TestOwnSpans: the gateway repeats engines' figures in its own spans. They show
// who descends from whom, and nothing else.
func TestOwnSpans(t *testing.T) {
	for scope, engine := range map[string]bool{ownScope: false, ownScope + "/internal/x": false, ownScope + "x": true} {
		if got := readBoth(t, scope, double(attrQueue, 1)); got.engine() != engine || got.ParentID != spanOf(9) {
			t.Errorf("%s: %+v", scope, got)
		}
	}
}

// TestUnwantedSpansAreNotRead: one question for each, and what is inside does not matter.
func TestUnwantedSpansAreNotRead(t *testing.T) {
	broken := protowire.AppendTag(nil, spanTraceID, protowire.BytesType)
	id := traceOf(5)
	broken = append(protowire.AppendBytes(broken, id[:]), 0xff)
	body := wrap(broken, requestResourceSpans, resourceSpansScopeSpans, scopeSpansSpans)
	c := collected{only: traceOf(6)}
	if n, err := readProtobuf(body, &c); n != 1 || err != nil || c.asked != 1 || len(c.spans) != 0 {
		t.Errorf("%d spans, %v, asked %d times, took %d", n, err, c.asked, len(c.spans))
	}
	c = collected{}
	if _, err := readProtobuf(body, &c); err == nil {
		t.Error("a span that is wanted must be whole")
	}
}

// wrap puts a message into fields of messages, the outermost first.
func wrap(b []byte, fields ...protowire.Number) []byte {
	for i := len(fields) - 1; i >= 0; i-- {
		b = protowire.AppendBytes(protowire.AppendTag(nil, fields[i], protowire.BytesType), b)
	}
	return b
}

// TestEmptySpansCostNothing: two bytes of a body are a span; none is built up.
func TestEmptySpansCostNothing(t *testing.T) {
	const spans = 1 << 20
	inner := make([]byte, 0, 2*spans)
	for i := range spans {
		inner = append(inner, scopeSpansSpans<<3|byte(protowire.BytesType), 0)
		if i == spans/2 { // and one of a trace that nobody wants
			inner = append(inner, wrap(protobufOf(t, vllm(7, 8, 9)), scopeSpansSpans)...)
		}
	}
	body := wrap(inner, requestResourceSpans, resourceSpansScopeSpans)
	allocations := testing.AllocsPerRun(1, func() {
		c := collected{only: traceOf(1)}
		if n, err := readProtobuf(body, &c); n != spans+1 || err != nil || len(c.spans) != 0 {
			t.Errorf("%d spans, %v", n, err)
		}
	})
	if allocations > 16 {
		t.Errorf("%.0f allocations for %d spans", allocations, spans)
	}
}

func TestMalformed(t *testing.T) {
	whole := protobufOf(t, request("vllm", vllm(7, 8, 9)))
	for cut := 1; cut < len(whole); cut++ {
		if _, err := readProtobuf(whole[:cut], &collected{}); err == nil {
			t.Fatalf("the first %d of %d bytes were read", cut, len(whole))
		}
	}
	id, span := strings.Repeat("ab", 16), strings.Repeat("cd", 8)
	for _, body := range []string{
		``, `[]`, `{`, `{}x`, `{"resourceSpans":{}}`, `{"resourceSpans":[{"scopeSpans":[{"spans":[5]}]}]}`, `nul`,
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":5}]}]}]}`,
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"AAAAAAAAAAAAAAAAAAAABw==","spanId":"AAAAAAAAAAg="}]}]}]}`,
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"` + id + `","spanId":"` + span[2:] + `zz"}]}]}]}`,
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"` + id + `","spanId":"` + span + `","parentSpanId":"12"}]}]}]}`,
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"` + id + `","spanId":"` + span + `","attributes":{}}]}]}]}`,
		strings.Repeat(`[`, 100_000),
		`{"x":` + strings.Repeat(`[`, 100_000),
	} {
		if n, err := readJSON([]byte(body), &collected{}); err == nil {
			t.Errorf("%.80s: read %d spans", body, n)
		} else if strings.Contains(err.Error(), id) {
			t.Errorf("the error quotes the body: %v", err)
		}
	}
	for _, body := range []string{`{}`, ` {"resourceSpans":null} `, `{"resourceSpans":[]}`, `null`, `{"resourceSpans":[{"scopeSpans":[{"spans":[{}]}]}]}`,
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"` + id + `","spanId":"` + span + `","attributes":null,"startTimeUnixNano":null}]}]}]}`} {
		if _, err := readJSON([]byte(body), &collected{}); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
}
