package otlpin

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
)

// got is one export as a collector received it.
type got struct {
	path   string // or method
	header http.Header
	body   []byte
}

// collector is a stand-in for the real one: answer says what it does with an export.
type collector struct {
	address string
	mu      sync.Mutex
	all     []got
}

func (c *collector) add(g got) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, g)
}

func (c *collector) got() []got {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]got(nil), c.all...)
}

// wait returns what came once there are n exports.
func (c *collector) wait(t *testing.T, n int) []got {
	t.Helper()
	eventually(t, func() bool { return len(c.got()) >= n })
	return c.got()
}

// eventually waits for what other goroutines and the kernel do; it bounds only
// how long a failing test takes.
func eventually(t *testing.T, is func() bool) {
	t.Helper()
	for range 3000 {
		if is() {
			return
		}
		time.Sleep(10 * ms)
	}
	t.Fatal("it does not come to pass")
}

func httpCollector(t *testing.T, answer http.HandlerFunc) *collector {
	t.Helper()
	c := &collector{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		c.add(got{path: q.URL.Path, header: q.Header, body: body})
		if answer != nil {
			answer(w, q)
		}
	}))
	t.Cleanup(s.Close)
	c.address = s.URL
	return c
}

func grpcCollector(t *testing.T, answer func(grpc.ServerStream) error) *collector {
	t.Helper()
	c := &collector{}
	s := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.MaxRecvMsgSize(maxBody), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		var body, nothing []byte
		if err := stream.RecvMsg(&body); err != nil {
			return err
		}
		method, _ := grpc.MethodFromServerStream(stream)
		md, _ := metadata.FromIncomingContext(stream.Context())
		c.add(got{path: method, header: http.Header(md), body: body})
		if answer != nil {
			if err := answer(stream); err != nil {
				return err
			}
		}
		return stream.SendMsg(&nothing)
	}))
	l := listenLocal(t)
	served := make(chan struct{})
	go func() { _ = s.Serve(l); close(served) }()
	t.Cleanup(func() { s.Stop(); <-served })
	c.address = l.Addr().String()
	return c
}

func listenLocal(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// start starts a Receiver on free ports, and closes it with the test.
func start(t *testing.T, o Options) *Receiver {
	t.Helper()
	r := New(o)
	if err := r.Start("127.0.0.1:0", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = r.Close(ctx) // tests of Close look at it themselves
	})
	return r
}

func newJoiner(t *testing.T) *Joiner {
	t.Helper()
	j := NewJoiner(0)
	t.Cleanup(j.Close)
	return j
}

// post exports over HTTP and returns the answer with its body.
func post(t *testing.T, r *Receiver, path string, body []byte, header ...string) (*http.Response, []byte) {
	t.Helper()
	q, err := http.NewRequest(http.MethodPost, "http://"+r.HTTPAddr()+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", typeProtobuf)
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	answer, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a, answer
}

func zipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
