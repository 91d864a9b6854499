package otlpin

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weirgate/weir/internal/call"
)

// TestExporters: the exporters of the OpenTelemetry SDK, as an engine uses them,
// over both protocols, compressed and not.
func TestExporters(t *testing.T) {
	exporters := map[string]func(*Receiver) otlptrace.Client{
		"HTTP": func(r *Receiver) otlptrace.Client {
			return otlptracehttp.NewClient(otlptracehttp.WithEndpoint(r.HTTPAddr()), otlptracehttp.WithInsecure())
		},
		"HTTP with gzip": func(r *Receiver) otlptrace.Client {
			return otlptracehttp.NewClient(otlptracehttp.WithEndpoint(r.HTTPAddr()), otlptracehttp.WithInsecure(),
				otlptracehttp.WithCompression(otlptracehttp.GzipCompression))
		},
		"gRPC": func(r *Receiver) otlptrace.Client {
			return otlptracegrpc.NewClient(otlptracegrpc.WithEndpoint(r.GRPCAddr()), otlptracegrpc.WithInsecure())
		},
		"gRPC with gzip": func(r *Receiver) otlptrace.Client {
			return otlptracegrpc.NewClient(otlptracegrpc.WithEndpoint(r.GRPCAddr()), otlptracegrpc.WithInsecure(),
				otlptracegrpc.WithCompressor("gzip"))
		},
	}
	for name, client := range exporters {
		t.Run(name, func(t *testing.T) {
			to := httpCollector(t, nil)
			r := start(t, Options{Joiner: newJoiner(t), Forward: to.address})
			ctx := context.Background()
			exporter, err := otlptrace.New(ctx, client(r))
			if err != nil {
				t.Fatal(err)
			}
			provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
			ticket := r.options.Joiner.Track(traceOf(77), spanOf(78))
			upstream := oteltrace.ContextWithRemoteSpanContext(ctx, oteltrace.NewSpanContext(oteltrace.SpanContextConfig{
				TraceID: traceOf(77), SpanID: spanOf(78), TraceFlags: oteltrace.FlagsSampled, Remote: true,
			}))
			_, span := provider.Tracer("vllm.tracing.otel").Start(upstream, "llm_request", oteltrace.WithSpanKind(oteltrace.SpanKindServer),
				oteltrace.WithTimestamp(begun), oteltrace.WithAttributes(
					attribute.Float64("gen_ai.latency.time_in_queue", 0.25), attribute.Float64("gen_ai.latency.time_in_model_prefill", 0.5),
					attribute.Float64("gen_ai.latency.time_in_model_decode", 1), attribute.Int("gen_ai.usage.prompt_tokens", 9)))
			span.End()
			if err := provider.Shutdown(ctx); err != nil {
				t.Fatal(err)
			}
			joined, answer := ticket.Done(time.Now(), func(EngineSpan, bool) {})
			if answer != Joined || joined.Engine() != (call.Engine{Queue: call.Lasting(250 * ms), Prefill: call.Lasting(500 * ms), Decode: call.Lasting(time.Second)}) ||
				joined.InputTokens != call.Known(9) || joined.Kind != "vllm" || !joined.Start.Equal(begun) {
				t.Errorf("%v: %+v", answer, joined)
			}
			g := to.wait(t, 1)[0]
			body := g.body
			if g.header.Get("Content-Encoding") == "gzip" {
				if body, err = inflate(body); err != nil {
					t.Fatal(err)
				}
			}
			var c collected
			if n, err := readProtobuf(body, &c); n != 1 || err != nil || c.spans[0].Queue != joined.Queue {
				t.Errorf("the collector got %d spans, %v: %+v", n, err, c.spans)
			}
			eventually(t, func() bool { return r.State().Forward.ForwardedSpans == 1 })
			s := r.State()
			if s.Batches != 1 || s.Spans != 1 || s.Malformed != 0 || s.Refused != 0 || s.Join.Joined != 1 || s.Forward.Forwarded != 1 || s.Forward.Dropped() != 0 {
				t.Errorf("%+v, %+v", s, s.Forward)
			}
		})
	}
}

// TestHTTPAnswers: each mistake has its answer, in the encoding of the question.
func TestHTTPAnswers(t *testing.T) {
	r := start(t, Options{Joiner: newJoiner(t)})
	good, inJSON := protobufOf(t, request("vllm", vllm(1, 11, 10))), jsonOf(request("vllm", vllm(1, 11, 10)))
	bomb := zipped(t, make([]byte, maxBody+1))
	if len(bomb) > 64<<10 {
		t.Fatal("that is no bomb")
	}
	tests := []struct {
		name, path string
		body       []byte
		header     []string
		status     int
		code       codes.Code
	}{
		{"protobuf", "/v1/traces", good, nil, 200, 0},
		{"with parameters", "/v1/traces", good, []string{"Content-Type", typeProtobuf + "; x=y"}, 200, 0},
		{"nothing", "/v1/traces", nil, nil, 200, 0},
		{"JSON", "/v1/traces", inJSON, []string{"Content-Type", typeJSON + "; charset=utf-8"}, 200, 0},
		{"gzip", "/v1/traces", zipped(t, good), []string{"Content-Encoding", "gzip"}, 200, 0},
		{"JSON in gzip", "/v1/traces", zipped(t, inJSON), []string{"Content-Encoding", "GZIP", "Content-Type", typeJSON}, 200, 0},
		{"identity", "/v1/traces", good, []string{"Content-Encoding", "identity"}, 200, 0},
		{"malformed", "/v1/traces", good[:len(good)-1], nil, 400, codes.InvalidArgument},
		{"malformed JSON", "/v1/traces", inJSON[1:], []string{"Content-Type", typeJSON}, 400, codes.InvalidArgument},
		{"JSON as protobuf", "/v1/traces", inJSON, nil, 400, codes.InvalidArgument},
		{"no gzip", "/v1/traces", good, []string{"Content-Encoding", "gzip"}, 400, codes.InvalidArgument},
		{"broken gzip", "/v1/traces", zipped(t, good)[:60], []string{"Content-Encoding", "gzip"}, 400, codes.InvalidArgument},
		{"bomb", "/v1/traces", bomb, []string{"Content-Encoding", "gzip"}, 413, codes.InvalidArgument},
		{"bomb as JSON", "/v1/traces", bomb, []string{"Content-Encoding", "gzip", "Content-Type", typeJSON}, 413, codes.InvalidArgument},
		{"too large", "/v1/traces", make([]byte, maxBody+1), nil, 413, codes.InvalidArgument},
		{"zstd", "/v1/traces", good, []string{"Content-Encoding", "zstd"}, 415, codes.InvalidArgument},
		{"text", "/v1/traces", good, []string{"Content-Type", "text/plain"}, 415, codes.InvalidArgument},
		{"no type", "/v1/traces", good, []string{"Content-Type", ""}, 415, codes.InvalidArgument},
	}
	for _, test := range tests {
		a, body := post(t, r, test.path, test.body, test.header...)
		if a.StatusCode != test.status {
			t.Errorf("%s: status %d, want %d: %q", test.name, a.StatusCode, test.status, body)
			continue
		}
		read, want := proto.Unmarshal, typeProtobuf
		if a.Header.Get("Content-Type") == typeJSON {
			read, want = protojson.Unmarshal, typeJSON
		}
		if asked := append(test.header, "", "", "")[1]; test.status != 415 && strings.HasPrefix(asked, typeJSON) && want != typeJSON {
			t.Errorf("%s: the answer is %s", test.name, a.Header.Get("Content-Type"))
		}
		if test.status == 200 {
			if m := signals[0].response(); read(body, m) != nil || !proto.Equal(m, signals[0].response()) {
				t.Errorf("%s: answered %q", test.name, body)
			}
			continue
		}
		var s spb.Status
		if err := read(body, &s); err != nil || codes.Code(s.Code) != test.code || s.Message == "" {
			t.Errorf("%s: answered %q, %v", test.name, body, err)
		}
	}
	s := r.State()
	if s.Batches != 7 || s.Spans != 6 || s.Malformed != 3 || s.Refused != 8 {
		t.Errorf("%+v", s)
	}
	if s.Forward != nil {
		t.Error("nothing is forwarded")
	}
}

func TestOtherPaths(t *testing.T) {
	r := start(t, Options{})
	for _, path := range []string{"/", "/v1/metrics", "/v1/logs", "/v1/traces/", "/v1/profiles"} {
		if a, body := post(t, r, path, nil); a.StatusCode != 404 || !strings.Contains(string(body), "/v1/traces") {
			t.Errorf("%s: %d %q", path, a.StatusCode, body)
		}
	}
	a, err := http.Get("http://" + r.HTTPAddr() + "/v1/traces")
	if err != nil {
		t.Fatal(err)
	}
	a.Body.Close()
	if a.StatusCode != 405 || a.Header.Get("Allow") != "POST" {
		t.Errorf("GET: %d, %v", a.StatusCode, a.Header)
	}
}

func TestStart(t *testing.T) {
	ctx := context.Background()
	none := New(Options{})
	if err := none.Start("", ""); err != nil || none.HTTPAddr() != "" || none.GRPCAddr() != "" {
		t.Error(err)
	}
	if err := none.Start("127.0.0.1:0", ""); err == nil {
		t.Error("started twice")
	}
	if none.Close(ctx) != nil || none.Close(ctx) != nil || New(Options{}).Close(ctx) != nil {
		t.Error("an error of closing nothing")
	}
	closed := New(Options{})
	_ = closed.Close(ctx)
	if closed.Start("127.0.0.1:0", "") == nil {
		t.Error("a closed receiver starts")
	}
	taken := listenLocal(t)
	defer taken.Close()
	r := New(Options{})
	if err := r.Start("127.0.0.1:0", taken.Addr().String()); err == nil {
		t.Error("started where something listens")
	}
	if a, err := http.Get("http://" + r.httpAddr); err == nil {
		a.Body.Close()
		t.Error("a listener is left after the error")
	}
	for _, forward := range []string{"collector", "http://", "ftp://x:1", "grpc://x", "http://x/?key=secret", "http://x:1#secret", "grpc://u:secret@x:1", "x:1/secret", "%"} {
		if err := New(Options{Forward: forward}).Start("", ""); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", forward, err)
		}
	}
	// Nothing sends itself its own spans.
	free := listenLocal(t)
	address := free.Addr().String()
	free.Close()
	port := address[strings.LastIndex(address, ":"):]
	for _, forward := range []string{"http://" + address, address, "localhost" + port, "http://[::1]" + port, "http://127.0.0.1" + port} {
		for _, listen := range []string{address, port} {
			if listen == address && strings.Contains(forward, "::1") {
				continue // another address
			}
			r := New(Options{Forward: forward})
			if err := r.Start(listen, ""); err == nil || !strings.Contains(err.Error(), "itself") {
				t.Errorf("listens on %s and forwards to %s: %v", listen, forward, err)
				_ = r.Close(ctx)
			}
		}
	}
}

func TestTarget(t *testing.T) {
	tests := map[string]struct {
		kind         targetKind
		secure       bool
		address, url string
	}{
		"http://c:4318":              {targetHTTP, false, "c:4318", "http://c:4318"},
		"http://c:4318/":             {targetHTTP, false, "c:4318", "http://c:4318"},
		"https://c/otlp/v1/traces":   {targetHTTP, true, "c:443", "https://c/otlp"},
		"http://u:p@c/v1/traces/":    {targetHTTP, false, "c:80", "http://u:p@c"},
		"c:4317":                     {targetGRPC, false, "c:4317", ""},
		"[::1]:4317":                 {targetGRPC, false, "[::1]:4317", ""},
		"grpc://c:4317/":             {targetGRPC, false, "c:4317", ""},
		"grpcs://collector.test:443": {targetGRPC, true, "collector.test:443", ""},
	}
	for s, want := range tests {
		got, err := parseTarget(s)
		if err != nil || got.kind != want.kind || got.secure != want.secure || got.address != want.address || want.url != "" && got.url.String() != want.url {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
	}
}

// TestExportPanics: it is answered and counted, and ends nothing else.
func TestExportPanics(t *testing.T) {
	r := New(Options{})
	response, err := r.export(&batch{what: &signal{traces: true}}, nil) // a signal without a response
	if response != nil || err != errPanic || r.State().Panics != 1 {
		t.Errorf("%v, %v, %+v", response, err, r.State())
	}
}
