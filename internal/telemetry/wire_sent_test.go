package telemetry

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracecollector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/weirgate/weir/internal/call"
)

// traceReceiver takes spans over OTLP.
type traceReceiver struct {
	tracecollector.UnimplementedTraceServiceServer
	mu   sync.Mutex
	got  []*tracecollector.ExportTraceServiceRequest
	zip  bool // the last request was compressed
	says string
}

func (r *traceReceiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	zipped := request.Header.Get("Content-Encoding") == "gzip"
	body := io.Reader(request.Body)
	if zipped {
		unzip, err := gzip.NewReader(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unzip
	}
	b, err := io.ReadAll(body)
	got := new(tracecollector.ExportTraceServiceRequest)
	if err != nil || request.Header.Get("Content-Type") != "application/x-protobuf" || proto.Unmarshal(b, got) != nil {
		http.Error(w, "no protobuf", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	r.zip = zipped
	r.mu.Unlock()
	answer, err := r.Export(request.Context(), got)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	b, _ = proto.Marshal(answer)
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(b)
}

func (r *traceReceiver) Export(_ context.Context, got *tracecollector.ExportTraceServiceRequest) (*tracecollector.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, got)
	answer := new(tracecollector.ExportTraceServiceResponse)
	if r.says != "" {
		answer.PartialSuccess = &tracecollector.ExportTracePartialSuccess{RejectedSpans: 1, ErrorMessage: r.says}
	}
	return answer, nil
}

// spans are all that came.
func (r *traceReceiver) spans() (all []*tracepb.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, request := range r.got {
		for _, resource := range request.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				all = append(all, scope.Spans...)
			}
		}
	}
	return all
}

// overHTTP and overGRPC serve the receiver, and return its URL.
func (r *traceReceiver) overHTTP(t *testing.T) string {
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return server.URL
}

func (r *traceReceiver) overGRPC(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	tracecollector.RegisterTraceServiceServer(server, r)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
	return "http://" + listener.Addr().String()
}

// TestSpansSent: a collector reads of a call what it would read from the SDK's exporter, by
// every way, whatever the environment says.
func TestSpansSent(t *testing.T) {
	for _, c := range []struct {
		name, protocol string
		env            map[string]string
		zip            bool
	}{
		{"http", ProtocolHTTP, nil, false},
		{"http, gzip", ProtocolHTTP, map[string]string{"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}, true},
		{"http, JSON in the environment", ProtocolHTTP, map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json"}, false},
		{"grpc", ProtocolGRPC, nil, false},
		{"grpc, gzip", ProtocolGRPC, map[string]string{"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			r := new(traceReceiver)
			serve := r.overHTTP
			if c.protocol == ProtocolGRPC {
				serve = r.overGRPC
			}
			tracer, err := NewTracer(ExportOptions{Endpoint: serve(t), Protocol: c.protocol, Version: "1.2.3"})
			if err != nil {
				t.Fatal(err)
			}
			var want [][]byte
			tracer.out.export = func(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
				want = append(want, sdks(t, spans)...)
				if err := tracer.out.exporter.Start(ctx); err != nil {
					return err
				}
				return tracer.out.wire.send(ctx, tracer.out.client, spans)
			}
			for _, header := range [][]string{nil, {"Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Tracestate", "vendor=1"}} {
				s := tracer.Begin(postTo(header...))
				rec := traced()
				rec.FinishReason.Set(1, "length")
				if header != nil {
					rec.Outcome, rec.Error = call.UpstreamError, "connection_lost"
				}
				tracer.End(&s, rec)
			}
			if err := tracer.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if state := tracer.State(); state.Exported != 2*9 || state.Error != "" || len(r.got) != 1 || len(want) != 1 {
				t.Fatalf("%d requests came, the SDK sends %d: %+v", len(r.got), len(want), state)
			}
			if want := read(t, want[0]); !proto.Equal(r.got[0], want) {
				t.Errorf("came\n%v\nand the SDK sends\n%v", r.got[0], want)
			}
			if r.zip != c.zip {
				t.Errorf("compressed is %v", r.zip)
			}
		})
	}
}

// TestPartialSuccess: what a collector says that it did not take is told.
func TestPartialSuccess(t *testing.T) {
	for protocol, serve := range map[string]func(*traceReceiver, *testing.T) string{ProtocolHTTP: (*traceReceiver).overHTTP, ProtocolGRPC: (*traceReceiver).overGRPC} {
		r := &traceReceiver{says: "too old"}
		tracer, err := NewTracer(ExportOptions{Endpoint: serve(r, t), Protocol: protocol})
		if err != nil {
			t.Fatal(err)
		}
		s := tracer.Begin(postTo())
		tracer.End(&s, traced())
		if err := tracer.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if state := tracer.State(); state.Failed != 9 || !strings.Contains(state.Error, "too old") {
			t.Errorf("%s: %+v", protocol, state)
		}
	}
}

// TestCallsDoNotMix: the memory of calls' spans serves other calls, and each call's spans
// are its own all the same.
func TestCallsDoNotMix(t *testing.T) {
	r := new(traceReceiver)
	tracer, err := NewTracer(ExportOptions{Endpoint: r.overHTTP(t)})
	if err != nil {
		t.Fatal(err)
	}
	const callers, calls = 8, 80 // of 9 spans: fewer than may wait
	var running sync.WaitGroup
	var traces sync.Map
	for caller := range callers {
		running.Go(func() {
			for n := range calls {
				rec := traced()
				rec.ID = fmt.Sprint("call ", caller, " ", n)
				rec.Model = rec.ID
				rec.Trail[1].Upstream = rec.ID
				s := tracer.Begin(postTo())
				traces.Store(s.trace, rec.ID)
				tracer.End(&s, rec)
			}
		})
	}
	running.Wait()
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	byTrace := make(map[trace.TraceID][]*tracepb.Span)
	for _, s := range r.spans() {
		byTrace[trace.TraceID(s.TraceId)] = append(byTrace[trace.TraceID(s.TraceId)], s)
	}
	if len(byTrace) != callers*calls {
		t.Fatalf("%d traces came of %d: %+v", len(byTrace), callers*calls, tracer.State())
	}
	for id, spans := range byTrace {
		callID, known := traces.Load(id)
		var names []string
		for _, s := range spans {
			names = append(names, s.Name)
			for _, a := range s.Attributes {
				switch a.Key {
				case string(attrCallID), string(attrModel):
					if got := a.Value.GetStringValue(); got != callID {
						t.Fatalf("%v of call %v says %s of %s", s.Name, callID, a.Key, got)
					}
				}
			}
		}
		slices.Sort(names)
		if want := []string{"POST", "POST", "POST", fmt.Sprint("chat ", callID), "decode", "network", "prefill", "queue", "queue"}; !known || !slices.Equal(names, want) {
			t.Fatalf("call %v has %q, want %q", callID, names, want)
		}
	}
}

// TestCallSpansAreForgotten: the memory that waits for another call keeps no text of this
// one, and an unusual call's is not kept at all.
func TestCallSpansAreForgotten(t *testing.T) {
	tracer := tracerTo(t, new(spanCollector), parentDecides, ExportOptions{})
	defer tracer.Close(t.Context())
	s := tracer.Begin(postTo())
	c := tracer.spans(&s, traced())
	if len(c.spans) != 9 || cap(c.spans) > usualSpans || cap(c.attrs) > usualAttrs {
		t.Errorf("the usual memory is not enough for %d spans with %d attributes", len(c.spans), len(c.attrs))
	}
	if !c.reset() {
		t.Fatal("the memory of a usual call is not kept")
	}
	if len(c.spans) != 0 || len(c.attrs) != 0 || c.resource != nil || c.parent.IsValid() || c.trace.IsValid() {
		t.Errorf("the call is not forgotten: %+v", c)
	}
	for _, s := range c.spans[:cap(c.spans)] {
		if s.name != "" || s.attrs != nil || s.call != nil {
			t.Errorf("%q is kept", s.name)
		}
	}
	for _, a := range c.attrs[:cap(c.attrs)] {
		if a.Valid() || a.Key != "" {
			t.Errorf("%s is kept", a.Key)
		}
	}
	rec := traced()
	rec.Trail = make([]call.Attempt, mostSpans)
	if c := tracer.spans(&s, rec); c.reset() {
		t.Error("the memory of a call with many attempts is kept")
	}
}

// TestRoom: few calls with many spans and many with few leave the same bound on memory, and
// what finds no room is counted.
func TestRoom(t *testing.T) {
	o := new(outlet)
	for n := range queueCalls {
		if !o.room(1) {
			t.Fatalf("no room for call %d", n)
		}
	}
	if o.room(1) || o.dropped.Load() != 1 || o.calls.Load() != queueCalls {
		t.Errorf("%d calls wait, %d spans dropped", o.calls.Load(), o.dropped.Load())
	}
	o = new(outlet)
	o.waiting.Store(queueSpans - 8)
	if o.room(9) || !o.room(8) || o.dropped.Load() != 9 || o.calls.Load() != 1 {
		t.Errorf("%d calls wait, %d spans dropped", o.calls.Load(), o.dropped.Load())
	}
}

// TestCallWithoutSpans: a call that was refused below a server's own span has nothing to
// send, and takes no room.
func TestCallWithoutSpans(t *testing.T) {
	var c spanCollector
	tracer := tracerTo(t, &c, parentDecides, ExportOptions{})
	above := trace.NewSpanContext(trace.SpanContextConfig{TraceID: newTraceID(), SpanID: newSpanID(), TraceFlags: trace.FlagsSampled})
	s := tracer.Begin(postTo().WithContext(trace.ContextWithSpanContext(t.Context(), above)))
	rec := traced()
	rec.Outcome, rec.Phases.QueueGateway = call.Refused, call.Duration{}
	if !tracer.End(&s, rec) {
		t.Error("its trace is the server's, and can be looked up")
	}
	if calls := tracer.out.calls.Load(); calls != 0 {
		t.Errorf("%d calls wait", calls)
	}
	if err := tracer.Close(t.Context()); err != nil || len(c.spans) != 0 {
		t.Errorf("%d spans, %v", len(c.spans), err)
	}
}
