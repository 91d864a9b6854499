package otlpin

import (
	"testing"
	"time"
)

// BenchmarkTrackDone is what a call costs that gets no span. Aim: 500 ns.
func BenchmarkTrackDone(b *testing.B) {
	j := NewJoiner(ms) // so that windows close while it runs
	defer j.Close()
	deliver := func(EngineSpan, bool) {}
	now := time.Now()
	b.ReportAllocs()
	for i := uint64(1); b.Loop(); i++ {
		j.Track(traceOf(i), spanOf(i)).Done(now, deliver)
	}
}

func BenchmarkTrackSpanDone(b *testing.B) {
	j := NewJoiner(0)
	defer j.Close()
	var c collected
	_, _ = readProtobuf(protobufOf(b, request("vllm", vllm(1, 11, 10))), &c)
	s := c.spans[0]
	now := time.Now()
	b.ReportAllocs()
	for i := uint64(1); b.Loop(); i++ {
		s.TraceID = traceOf(i)
		ticket := j.Track(s.TraceID, spanOf(10))
		j.take(&s)
		if _, answer := ticket.Done(now, nil); answer != Joined {
			b.Fatal(answer)
		}
	}
}

// BenchmarkForeign is a batch of 512 spans of other traces, by the batch.
func BenchmarkForeign(b *testing.B) {
	j := NewJoiner(0)
	defer j.Close()
	r := request("vllm")
	for i := range uint64(512) {
		r.ResourceSpans[0].ScopeSpans[0].Spans = append(r.ResourceSpans[0].ScopeSpans[0].Spans, vllm(100+i, 1, 2))
	}
	body, inJSON := protobufOf(b, r), jsonOf(r)
	b.Run("protobuf", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			_, _ = readProtobuf(body, joinerSink{j})
		}
	})
	b.Run("JSON", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(inJSON)))
		for b.Loop() {
			_, _ = readJSON(inJSON, joinerSink{j})
		}
	})
}

// BenchmarkRead is one wanted span.
func BenchmarkRead(b *testing.B) {
	r := request("vllm", vllm(1, 11, 10))
	body, inJSON := protobufOf(b, r), jsonOf(r)
	b.Run("protobuf", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = readProtobuf(body, discard{})
		}
	})
	b.Run("JSON", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = readJSON(inJSON, discard{})
		}
	})
}

type discard struct{}

func (discard) wants(TraceID) bool { return true }
func (discard) take(*seen)         {}

// TestTrackDoneAllocates at most the ticket and its trace, in one piece (the map
// grows now and then).
func TestTrackDoneAllocates(t *testing.T) {
	j := NewJoiner(0)
	defer j.Close()
	i := uint64(0)
	deliver := func(EngineSpan, bool) {}
	if n := testing.AllocsPerRun(1000, func() {
		i++
		j.Track(traceOf(i), spanOf(i)).Done(time.Now(), deliver)
	}); n > 1 {
		t.Errorf("%.1f allocations", n)
	}
}
