package otlpin

import (
	"bytes"
	"testing"
)

// FuzzReadProtobuf: whatever comes, reading ends, and is the same each time; what
// is taken has ids and figures that can be.
func FuzzReadProtobuf(f *testing.F) {
	request1, thread, waiting := sglang(7, 20, 9)
	for _, r := range [][]byte{
		protobufOf(f, request("vllm", vllm(7, 8, 9), wireSpan(7, 9, 0, "x"))),
		protobufOf(f, request("sglang server", request1, thread, waiting)),
		bytes.Repeat([]byte{0x0b}, 100), nil,
	} {
		f.Add(r)
	}
	f.Fuzz(func(t *testing.T, body []byte) { checkRead(t, body, readProtobuf) })
}

func FuzzReadJSON(f *testing.F) {
	request1, thread, waiting := sglang(7, 20, 9)
	f.Add(jsonOf(request("vllm", vllm(7, 8, 9), wireSpan(7, 9, 0, "x"))))
	f.Add(jsonOf(request("sglang server", request1, thread, waiting)))
	f.Add([]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[{"key":"a","value":{"intValue":1e2}}]}]}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		checkRead(t, body, readJSON)
		if b, err := transcode(signals[0], body); err == nil {
			checkRead(t, b, readProtobuf)
		}
	})
}

func checkRead(t *testing.T, body []byte, read func([]byte, sink) (int, error)) {
	var first, second collected
	n, err := read(body, &first)
	m, again := read(body, &second)
	if n != m || (err == nil) != (again == nil) || len(first.spans) != len(second.spans) || len(first.spans) > n || n > len(body) {
		t.Fatalf("read %d spans, %v, then %d, %v", n, err, m, again)
	}
	for i, s := range first.spans {
		if s != second.spans[i] {
			t.Fatalf("read %+v, then %+v", s, second.spans[i])
		}
		if s.TraceID == (TraceID{}) || s.SpanID == (SpanID{}) || len(s.Model) > maxText || len(s.RequestID) > maxText {
			t.Fatalf("took %+v", s)
		}
		for _, d := range []int64{int64(s.Queue.Or(0)), int64(s.Prefill.Or(0)), int64(s.PrefillWithQueue.Or(0)),
			int64(s.Decode.Or(0)), int64(s.TTFT.Or(0)), int64(s.E2E.Or(0))} {
			if d < 0 || d > int64(maxLatency) {
				t.Fatalf("took %+v", s)
			}
		}
		if n := s.InputTokens.Or(0); n < 0 || n > maxTokens {
			t.Fatalf("took %+v", s)
		}
	}
}
