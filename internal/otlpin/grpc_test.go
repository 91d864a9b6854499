package otlpin

import (
	"context"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
)

func dial(t *testing.T, r *Receiver) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient(r.GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestGRPCAnswers(t *testing.T) {
	r := start(t, Options{Joiner: newJoiner(t)})
	c := dial(t, r)
	good := protobufOf(t, request("vllm", vllm(1, 11, 10)))
	// An attribute that nobody reads makes it large, and small again in gzip.
	large := protobufOf(t, request("x", wireSpan(1, 11, 10, "x", text("a", strings.Repeat("a", maxBody)))))
	tests := []struct {
		name, method string
		body         []byte
		options      []grpc.CallOption
		want         codes.Code
	}{
		{"export", signals[0].method, good, nil, codes.OK},
		{"nothing", signals[0].method, nil, nil, codes.OK},
		{"gzip", signals[0].method, good, []grpc.CallOption{grpc.UseCompressor("gzip")}, codes.OK},
		{"malformed", signals[0].method, good[:len(good)-1], nil, codes.InvalidArgument},
		{"too large", signals[0].method, large, nil, codes.ResourceExhausted},
		{"bomb", signals[0].method, large, []grpc.CallOption{grpc.UseCompressor("gzip")}, codes.ResourceExhausted},
		{"metrics", signals[1].method, good, nil, codes.Unimplemented},
		{"logs", signals[2].method, good, nil, codes.Unimplemented},
		{"another method", "/a/b", good, nil, codes.Unimplemented},
	}
	for _, test := range tests {
		var answer []byte
		err := c.Invoke(context.Background(), test.method, &test.body, &answer, append(test.options, grpc.ForceCodecV2(rawCodec{}))...)
		if status.Code(err) != test.want || len(answer) != 0 {
			t.Errorf("%s: %v, answer %x", test.name, err, answer)
		}
	}
	// gRPC answers what is too large before its handler knows.
	eventually(t, func() bool { return r.State().Refused == 2 })
	if s := r.State(); s.Batches != 3 || s.Spans != 2 || s.Malformed != 1 || s.Refused != 2 {
		t.Errorf("%+v", s)
	}
	// The generated client works as well.
	if _, err := tracepb.NewTraceServiceClient(c).Export(context.Background(), request("vllm", vllm(1, 11, 10))); err != nil {
		t.Error(err)
	}
}

// TestBusy: when all places are taken an export is told to come again, soon.
func TestBusy(t *testing.T) {
	r := New(Options{})
	r.gateWait = 20 * ms
	if err := r.Start("127.0.0.1:0", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	defer r.Close(context.Background())
	for range maxBodies {
		if !r.enter(context.Background()) {
			t.Fatal("no place")
		}
	}
	a, _ := post(t, r, "/v1/traces", nil)
	if a.StatusCode != http.StatusServiceUnavailable || a.Header.Get("Retry-After") != "1" {
		t.Errorf("%d, %v", a.StatusCode, a.Header)
	}
	var answer []byte
	err := dial(t, r).Invoke(context.Background(), signals[0].method, &answer, &answer, grpc.ForceCodecV2(rawCodec{}))
	if status.Code(err) != codes.Unavailable {
		t.Error(err)
	}
	for range maxBodies {
		r.leave()
	}
	if a, _ := post(t, r, "/v1/traces", nil); a.StatusCode != 200 {
		t.Errorf("%d", a.StatusCode)
	}
}

// TestCloseCutsWhatHangs: connections that send nothing, or half an export, are
// ended, and nothing of the receiver is left.
func TestCloseCutsWhatHangs(t *testing.T) {
	r := start(t, Options{})
	for _, address := range []string{r.HTTPAddr(), r.GRPCAddr()} {
		for _, say := range []string{"", "POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nContent-Length: 100\r\n\r\nhalf"} {
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.Write([]byte(say)); err != nil {
				t.Fatal(err)
			}
		}
	}
	stream, err := dial(t, r).NewStream(context.Background(), &grpc.StreamDesc{ClientStreams: true}, signals[0].method, grpc.ForceCodecV2(rawCodec{}))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return len(r.gate) == 2 }) // half an export each
	ctx, cancel := context.WithTimeout(context.Background(), 100*ms)
	defer cancel()
	if err := r.Close(ctx); err == nil {
		t.Error("what was cut short is not told")
	}
	if len(r.gate) != 0 {
		t.Errorf("%d bodies are still read", len(r.gate))
	}
	if err := stream.RecvMsg(new([]byte)); status.Code(err) == codes.OK {
		t.Error("the stream goes on")
	}
	if _, err := net.DialTimeout("tcp", r.HTTPAddr(), time.Second); err == nil {
		t.Error("it still listens")
	}
}

func TestListenerLimit(t *testing.T) {
	l := limitConns(listenLocal(t), 1)
	accepted := make(chan net.Conn)
	ended := make(chan error)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- c
		}
	}()
	for range 2 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	first := <-accepted
	select {
	case <-accepted:
		t.Error("two at once")
	case <-time.After(20 * ms):
	}
	_ = first.Close()
	_ = first.Close() // gives back one place only
	second := <-accepted
	defer second.Close()
	l.cutAll()
	if _, err := second.Read(make([]byte, 1)); err == nil {
		t.Error("it was not cut")
	}
	_ = l.Close()
	if err := <-ended; err == nil {
		t.Error("no error of a closed listener")
	}
}

func TestHeaders(t *testing.T) {
	in := http.Header{
		"Authorization": {"Bearer engine"}, "X-Scope-Orgid": {"a", "b"}, "Connection": {"close, X-Hop"}, "X-Hop": {"1"},
		"Content-Length": {"5"}, "Content-Type": {"x"}, "Content-Encoding": {"gzip"}, "Host": {"x"}, "Te": {"trailers"},
	}
	got := outgoing(in, http.Header{"authorization": {"Bearer collector"}})
	if want := (http.Header{"Authorization": {"Bearer collector"}, "X-Scope-Orgid": {"a", "b"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	md := metadataOf(http.Header{"X-Tenant": {"a"}, "User-Agent": {"x"}, "Grpc-Timeout": {"1S"}, "X-Bad": {"a\x01"}, "Bad!": {"a"}, "X-Id-Bin": {"\x00\x01"}})
	if want := (metadata.MD{"x-tenant": {"a"}, "x-id-bin": {"\x00\x01"}}); !reflect.DeepEqual(md, want) {
		t.Errorf("%v", md)
	}
	h := headerOf(metadata.MD{":authority": {"x"}, "grpc-timeout": {"1S"}, "x-tenant": {"a"}})
	if want := (http.Header{"X-Tenant": {"a"}}); !reflect.DeepEqual(h, want) {
		t.Errorf("%v", h)
	}
}

// TestRawCodec passes bytes and nothing else.
func TestRawCodec(t *testing.T) {
	if _, err := (rawCodec{}).Marshal(proto.Message(nil)); err == nil {
		t.Error("marshalled what is no bytes")
	}
	if err := (rawCodec{}).Unmarshal(nil, new(string)); err == nil {
		t.Error("unmarshalled into what is no bytes")
	}
}
