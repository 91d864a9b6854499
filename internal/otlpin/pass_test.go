package otlpin

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// TestSameBytes: from HTTP to HTTP, the body and what belongs to it do not change.
func TestSameBytes(t *testing.T) {
	to := httpCollector(t, nil)
	r := start(t, Options{Joiner: newJoiner(t), Forward: to.address + "/v1/traces", ForwardHeader: http.Header{"X-Key": {"collector's"}}})
	spans := request("vllm", vllm(1, 11, 10))
	unknown := append(protobufOf(t, spans), 0x98, 0x06, 0x01) // field 99: what a later version may add
	tests := []struct {
		path, contentType, encoding string
		body                        []byte
	}{
		{"/v1/traces", typeProtobuf, "", unknown},
		{"/v1/traces", typeProtobuf, "gzip", zipped(t, unknown)},
		{"/v1/traces", typeJSON, "", jsonOf(spans)},
		{"/v1/traces", typeJSON, "gzip", zipped(t, jsonOf(spans))},
		{"/v1/metrics", typeProtobuf, "", []byte("whatever")},
		{"/v1/metrics", typeJSON, "gzip", []byte("not even gzip")},
		{"/v1/logs", typeJSON, "", []byte("{}")},
	}
	for i, test := range tests {
		a, body := post(t, r, test.path, test.body, "Content-Type", test.contentType, "Content-Encoding", test.encoding,
			"X-Scope-OrgID", "tenant", "X-Key", "engine's", "User-Agent", "engine/1")
		if a.StatusCode != 200 {
			t.Fatalf("%+v: %d %q", test, a.StatusCode, body)
		}
		g := to.wait(t, i+1)[i]
		if g.path != test.path || !bytes.Equal(g.body, test.body) {
			t.Errorf("%s %s: %d bytes came to %s, %d were sent", test.path, test.contentType, len(g.body), g.path, len(test.body))
		}
		for name, want := range map[string]string{"Content-Type": test.contentType, "Content-Encoding": test.encoding, "X-Scope-Orgid": "tenant",
			"X-Key": "collector's", "User-Agent": "engine/1", "Accept-Encoding": ""} {
			if got := g.header.Get(name); got != want {
				t.Errorf("%s %s: %s is %q, want %q", test.path, test.contentType, name, got, want)
			}
		}
	}
}

// TestAcrossProtocols: what is encoded anew says the same.
func TestAcrossProtocols(t *testing.T) {
	overHTTP, overGRPC := httpCollector(t, nil), grpcCollector(t, nil)
	spans := request("vllm", vllm(1, 11, 10))
	spans.ResourceSpans[0].ScopeSpans[0].Spans[0].StartTimeUnixNano = 1<<63 + 1
	body := protobufOf(t, spans)
	metrics := []byte(`{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"m","sum":{"dataPoints":[{"asInt":"5","exemplars":[
		{"traceId":"` + strings.Repeat("aB", 16) + `","spanId":"` + strings.Repeat("0f", 8) + `","asInt":"5"}]}]}}]}]}]}`)

	toHTTP := start(t, Options{Forward: overHTTP.address})
	var answer []byte
	if err := dial(t, toHTTP).Invoke(metadataContext(), signals[0].method, &body, &answer, grpc.ForceCodecV2(rawCodec{})); err != nil {
		t.Fatal(err)
	}
	g := overHTTP.wait(t, 1)[0]
	if g.path != "/v1/traces" || !bytes.Equal(g.body, body) || g.header.Get("Content-Type") != typeProtobuf || g.header.Get("X-Tenant") != "a" {
		t.Errorf("%s: %d bytes, %v", g.path, len(g.body), g.header)
	}

	toGRPC := start(t, Options{Joiner: newJoiner(t), Forward: overGRPC.address})
	exports := []func(){
		func() {
			if err := dial(t, toGRPC).Invoke(metadataContext(), signals[0].method, &body, &answer, grpc.ForceCodecV2(rawCodec{}), grpc.UseCompressor("gzip")); err != nil {
				t.Fatal(err)
			}
		},
		func() { post(t, toGRPC, "/v1/traces", body, "X-Tenant", "a") },
		func() { post(t, toGRPC, "/v1/traces", zipped(t, body), "Content-Encoding", "gzip", "X-Tenant", "a") },
		func() { post(t, toGRPC, "/v1/traces", jsonOf(spans), "Content-Type", typeJSON, "X-Tenant", "a") },
		func() {
			post(t, toGRPC, "/v1/metrics", zipped(t, metrics), "Content-Type", typeJSON, "Content-Encoding", "gzip", "X-Tenant", "a")
		},
	}
	for i, export := range exports {
		export()
		g := overGRPC.wait(t, i+1)[i]
		if tenant := g.header["x-tenant"]; len(tenant) != 1 || tenant[0] != "a" {
			t.Errorf("export %d: the header is %v", i, g.header)
		}
		switch i {
		case 3:
			var m tracepb.ExportTraceServiceRequest
			if err := proto.Unmarshal(g.body, &m); err != nil {
				t.Fatal(err)
			}
			// The sample's JSON leaves out the resource's attributes.
			m.ResourceSpans[0].Resource = spans.ResourceSpans[0].Resource
			if !proto.Equal(&m, spans) {
				t.Errorf("JSON became\n%v, want\n%v", &m, spans)
			}
		case 4:
			var m metricspb.ExportMetricsServiceRequest
			if err := proto.Unmarshal(g.body, &m); err != nil || g.path != signals[1].method {
				t.Fatal(g.path, err)
			}
			e := m.ResourceMetrics[0].ScopeMetrics[0].Metrics[0].GetSum().DataPoints[0].Exemplars[0]
			if hex.EncodeToString(e.TraceId) != strings.Repeat("ab", 16) || hex.EncodeToString(e.SpanId) != strings.Repeat("0f", 8) {
				t.Errorf("ids became %x, %x", e.TraceId, e.SpanId)
			}
		default:
			if g.path != signals[0].method || !bytes.Equal(g.body, body) {
				t.Errorf("export %d: %d bytes came to %s", i, len(g.body), g.path)
			}
		}
	}
}

func metadataContext() context.Context {
	return withHeader(context.Background(), http.Header{"X-Tenant": {"a"}})
}

// TestTranscodeIsBounded: a small body that would become large in memory is refused.
func TestTranscodeIsBounded(t *testing.T) {
	body := []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{}` + strings.Repeat(`,{}`, maxValues) + `]}]}]}`)
	if _, err := transcode(signals[0], body); err == nil {
		t.Error("it was built up")
	}
	for _, body := range []string{`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"secret=="}]}]}]}`, `{"resourceSpans":[{"secret`} {
		if _, err := transcode(signals[0], []byte(body)); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// TestAnsweredRegardless: whatever the collector does, each export is answered,
// its span joined, and the collector's failure reported once.
func TestAnsweredRegardless(t *testing.T) {
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	silent := listenLocal(t) // takes connections, says nothing
	t.Cleanup(func() { _ = silent.Close() })
	wait := func(w http.ResponseWriter, q *http.Request) {
		select {
		case <-hold:
		case <-q.Context().Done():
		}
	}
	code := func(n int) http.HandlerFunc { return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(n) } }
	for name, test := range map[string]struct {
		forward string
		report  string // part of what is reported; "" nothing in the time of this test
		refused bool   // and dropped
	}{
		"dead over HTTP":     {"http://127.0.0.1:1", "connection refused", false},
		"dead over gRPC":     {"127.0.0.1:1", "Unavailable", false},
		"no such host":       {"http://collector.invalid:4318", "collector.invalid", false},
		"silent":             {"http://" + silent.Addr().String(), "", false},
		"silent over gRPC":   {silent.Addr().String(), "", false},
		"slow":               {httpCollector(t, wait).address, "", false},
		"overloaded":         {httpCollector(t, code(503)).address, "503", false},
		"bad request":        {httpCollector(t, code(400)).address, "", true},
		"unauthorized":       {httpCollector(t, code(401)).address, "401", true},
		"not found":          {httpCollector(t, code(404)).address, "404", true},
		"redirects":          {httpCollector(t, http.RedirectHandler("http://x.invalid", 307).ServeHTTP).address, "307", true},
		"refuses over gRPC":  {grpcCollector(t, func(grpc.ServerStream) error { return status.Error(codes.PermissionDenied, "secret") }).address, "PermissionDenied", true},
		"bad over gRPC":      {grpcCollector(t, func(grpc.ServerStream) error { return status.Error(codes.InvalidArgument, "") }).address, "", true},
		"large over gRPC":    {grpcCollector(t, func(grpc.ServerStream) error { return status.Error(codes.ResourceExhausted, "") }).address, "", true},
		"retry later, gRPC":  {grpcCollector(t, func(grpc.ServerStream) error { return status.Error(codes.Aborted, "") }).address, "Aborted", false},
		"closes connections": {httpCollector(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }).address, "EOF", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var reports []error
			r := New(Options{Joiner: newJoiner(t), Forward: test.forward, Report: func(err error) {
				mu.Lock()
				defer mu.Unlock()
				reports = append(reports, err)
			}})
			if err := r.Start("127.0.0.1:0", "127.0.0.1:0"); err != nil {
				t.Fatal(err)
			}
			const exports = 10
			c := dial(t, r)
			for i := range uint64(exports) {
				ticket := r.options.Joiner.Track(traceOf(1+i), spanOf(10))
				body := protobufOf(t, request("vllm", vllm(1+i, 11, 10)))
				if i%2 == 0 {
					if a, answer := post(t, r, "/v1/traces", body); a.StatusCode != 200 || len(answer) != 0 {
						t.Fatalf("answered %d %q", a.StatusCode, answer)
					}
				} else {
					var answer []byte
					if err := c.Invoke(context.Background(), signals[0].method, &body, &answer, grpc.ForceCodecV2(rawCodec{})); err != nil || len(answer) != 0 {
						t.Fatalf("answered %v, %q", err, answer)
					}
				}
				if _, answer := ticket.Done(time.Now(), func(EngineSpan, bool) {}); answer != Joined {
					t.Fatalf("the span is not joined: %v", answer)
				}
			}
			eventually(t, func() bool {
				s := r.State().Forward
				return (test.refused == (s.Refused == exports)) && (test.report == "") == (s.Error == "")
			})
			ctx, cancel := context.WithTimeout(context.Background(), 50*ms)
			defer cancel()
			if err := r.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			s := r.State()
			if s.Batches != exports || s.Forward.Forwarded != 0 || s.Forward.Dropped() != exports || s.Forward.DroppedSpans != exports || s.Forward.Queued != 0 {
				t.Errorf("%+v, %+v", s, s.Forward)
			}
			mu.Lock()
			defer mu.Unlock()
			if (test.report != "") != (len(reports) == 1) || len(reports) > 1 {
				t.Fatalf("reported %v", reports)
			}
			if len(reports) == 1 && (!strings.Contains(reports[0].Error(), test.report) || strings.Contains(reports[0].Error(), "secret")) {
				t.Errorf("reported %v", reports[0])
			}
		})
	}
}

// TestFullQueue: what is not passed on is told to the exporter as a partial success.
func TestFullQueue(t *testing.T) {
	r := start(t, Options{Forward: "127.0.0.1:1", QueueBatches: 1})
	body := protobufOf(t, request("vllm", vllm(1, 11, 10), vllm(2, 11, 10)))
	if _, answer := post(t, r, "/v1/traces", body); len(answer) != 0 {
		t.Errorf("the first: %q", answer)
	}
	a, answer := post(t, r, "/v1/traces", body)
	var m tracepb.ExportTraceServiceResponse
	if err := proto.Unmarshal(answer, &m); err != nil || a.StatusCode != 200 || m.PartialSuccess.GetRejectedSpans() != 2 || m.PartialSuccess.GetErrorMessage() == "" {
		t.Errorf("the second: %d %v, %v", a.StatusCode, &m, err)
	}
	a, answer = post(t, r, "/v1/metrics", []byte(`{}`), "Content-Type", typeJSON)
	if a.StatusCode != 200 || !strings.Contains(string(answer), "partialSuccess") {
		t.Errorf("metrics: %d %s", a.StatusCode, answer)
	}
	overGRPC, err := tracepb.NewTraceServiceClient(dial(t, r)).Export(context.Background(), request("vllm", vllm(1, 11, 10)))
	if err != nil || overGRPC.PartialSuccess.GetRejectedSpans() != 1 {
		t.Errorf("gRPC: %v, %v", overGRPC, err)
	}
	if s := r.State().Forward; s.Full != 3 || s.DroppedSpans != 3 {
		t.Errorf("%+v", s)
	}
}
