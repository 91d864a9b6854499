package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// answer is a stream of one word.
const answer = `data: {"id":"1","choices":[{"index":0,"delta":{"content":"yes"}}]}` + "\n\n" +
	`data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}` + "\n\ndata: [DONE]\n\n"

func stream(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, answer)
}

// newClient returns a client with a transport of its own for a server.
func newClient(t *testing.T, root string, cfg Config) *Client {
	t.Helper()
	cfg.Root, cfg.Key = root, testKey
	c, err := NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestRequest: what arrives at a server.
func TestRequest(t *testing.T) {
	body := bodyOf(t, plainAsk(Chat, 5))
	for _, api := range APIs {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got, _ := io.ReadAll(r.Body)
			if string(got) != string(body) || r.Method != "POST" || r.URL.Path != "/api/v1/"+Path(api) || r.ProtoMajor != 1 || r.ContentLength != int64(len(body)) {
				t.Errorf("%s %s %s, %d bytes: %s", r.Proto, r.Method, r.URL, r.ContentLength, got)
			}
			want := map[string]string{"Content-Type": "application/json", "Accept-Encoding": "identity", "X-Request-Id": "id-1",
				"X-Weir-Run": "run-1", "X-Weir-Class": "batch", "User-Agent": "weir", "Authorization": "Bearer " + testKey}
			if api == Messages {
				delete(want, "Authorization")
				want["X-Api-Key"], want["Anthropic-Version"] = testKey, "2023-06-01"
			}
			for name, value := range want {
				if got := r.Header.Get(name); got != value {
					t.Errorf("%s: %s is %q, want %q", api, name, got, value)
				}
			}
			if len(r.Header) != len(want)+1 { // and Content-Length
				t.Errorf("%s: header %v", api, r.Header)
			}
			stream(w, r)
		}))
		c := newClient(t, s.URL+"/api/v1", Config{Header: http.Header{"X-Weir-Run": {"run-1"}, "X-Weir-Class": {"batch"}, "Content-Type": {"text/plain"}}})
		r := c.Call(t.Context(), api, body, "id-1", nil)
		if r.Record.Run != "run-1" || r.Record.Path != "/api/v1/"+Path(api) || r.Record.BytesIn != call.Known(int64(len(body))) || r.Record.Upstream != strings.TrimPrefix(s.URL, "http://") {
			t.Errorf("record %+v", r.Record)
		}
		s.Close()
	}
}

// TestConnections: a first call tells how long its connection took, later ones
// use it again.
func TestConnections(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(stream))
	defer s.Close()
	c := newClient(t, s.URL+"/v1", Config{})
	body := bodyOf(t, plainAsk(Chat, 1))
	for i := range 3 {
		r := c.Call(t.Context(), Chat, body, "x", nil)
		if r.Failed != "" {
			t.Fatalf("%s: %v", r.Failed, r.Err)
		}
		if r.Reused != (i > 0) || r.Connected.IsKnown() != (i == 0) || r.Record.Attempts != 1 {
			t.Errorf("call %d: reused %v, connected %v, %d attempts", i, r.Reused, r.Connected, r.Record.Attempts)
		}
		at := r.Record.Instants
		order := []call.Duration{at.Admitted, at.Sent, at.FirstByte, at.FirstToken, at.LastToken, at.Ended}
		for j := 1; j < len(order); j++ {
			if d, known := order[j].Minus(order[j-1]).Get(); !known || d < 0 {
				t.Errorf("call %d: instants %+v are unknown or out of order", i, at)
			}
		}
		if r.Connected.IsKnown() && (r.Connected.Or(0) <= 0 || r.Connected.Or(0) > at.Sent.Or(0)) {
			t.Errorf("connected %v, sent %v", r.Connected, at.Sent)
		}
	}
}

// script is a transport that tells what happens to a connection as net/http
// does, each step after a second of virtual time.
type script []string

func (s script) RoundTrip(r *http.Request) (*http.Response, error) {
	trace := httptrace.ContextClientTrace(r.Context())
	for _, step := range s {
		time.Sleep(time.Second)
		switch step {
		case "ask":
			trace.GetConn("script.test:80")
		case "new", "old":
			trace.GotConn(httptrace.GotConnInfo{Reused: step == "old"})
		case "wrote":
			trace.WroteRequest(httptrace.WroteRequestInfo{})
		case "wrote half":
			trace.WroteRequest(httptrace.WroteRequestInfo{Err: io.ErrClosedPipe})
		case "byte":
			trace.GotFirstResponseByte()
		case "interim":
			if err := trace.Got1xxResponse(http.StatusEarlyHints, nil); err != nil {
				return nil, err
			}
		case "lost":
			return nil, io.EOF
		}
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(strings.NewReader(answer)), Request: r, Proto: "HTTP/1.1"}, nil
}

// TestInstants: what the transport tells becomes the instants that the gateway
// would note.
func TestInstants(t *testing.T) {
	second := func(n int) call.Duration { return call.Lasting(time.Duration(n) * time.Second) }
	unknown := call.Duration{}
	cases := []struct {
		name                       string
		script                     script
		connected, sent, firstByte call.Duration
		reused                     bool
		attempts                   int
	}{
		{"new connection", script{"ask", "new", "wrote", "byte"}, second(1), second(3), second(4), false, 1},
		{"old connection", script{"ask", "old", "wrote", "byte"}, unknown, second(3), second(4), true, 1},
		{"answered before all was written", script{"ask", "old", "byte", "wrote"}, unknown, second(3), second(3), true, 1},
		{"informational answer first", script{"ask", "old", "byte", "interim", "wrote", "headed"}, unknown, second(5), second(6), true, 1},
		{"begun anew", script{"ask", "old", "wrote", "ask", "new", "wrote", "byte"}, second(1), second(6), second(7), false, 2},
		{"lost before it was written", script{"ask", "old", "wrote half", "lost"}, unknown, unknown, unknown, true, 1},
		{"lost after it was written", script{"ask", "new", "wrote", "lost"}, second(1), second(3), unknown, false, 1},
		{"no connection", script{"ask", "lost"}, unknown, unknown, unknown, false, 1},
		{"no connections at all", script{"headed", "headed"}, unknown, second(0), second(2), false, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := newClient(t, "http://script.test/v1", Config{HTTP: &http.Client{Transport: c.script}})
				r := client.Call(t.Context(), Chat, bodyOf(t, plainAsk(Chat, 1)), "x", nil)
				at := r.Record.Instants
				if r.Connected != c.connected || at.Sent != c.sent || at.FirstByte != c.firstByte || r.Reused != c.reused || r.Record.Attempts != c.attempts {
					t.Errorf("connected %v, sent %v, first byte %v, reused %v, %d attempts; want %+v", r.Connected, at.Sent, at.FirstByte, r.Reused, r.Record.Attempts, c)
				}
				if want := time.Duration(len(c.script)) * time.Second; r.End != want {
					t.Errorf("ended after %v, want %v", r.End, want)
				}
				kind := Kind("")
				switch {
				case c.name == "no connection":
					kind = FailedConnect
				case c.script[len(c.script)-1] == "lost":
					kind = FailedReset
				}
				if r.Failed != kind {
					t.Errorf("%q (%v), want %q", r.Failed, r.Err, kind)
				}
			})
		})
	}
}

// nobody is an address at which nobody listens. A port that was just let go may be
// another test's in a moment; this one needs a privilege.
const nobody = "127.0.0.1:1"

// TestLostConnections: what real connections do wrong.
func TestLostConnections(t *testing.T) {
	raw := func(text string) string { // a server that says text and closes
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Read(make([]byte, 16<<10))
				_, _ = io.WriteString(c, text)
				_ = c.Close()
			}
		}()
		return "http://" + l.Addr().String()
	}
	plain := httptest.NewServer(http.HandlerFunc(stream))
	defer plain.Close()
	cases := []struct {
		name, root string
		kind       Kind
	}{
		{"refused", "http://" + nobody, FailedConnect},
		{"no answer", raw(""), FailedReset},
		{"not HTTP", raw("SSH-2.0-x " + testKey + "\r\n\r\n"), FailedReset},
		{"TLS alert", raw("\x15\x03\x01\x00\x02\x02\x0a"), FailedTLS},
		{"half a body", raw("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 500\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"), FailedReset},
		{"half a chunk", raw("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n50\r\ndata: {"), FailedReset},
		{"no length, no end", raw("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"), FailedTruncated},
		{"whole, then cut", raw("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n", len(answer), answer)), ""},
		{"no TLS there", strings.Replace(plain.URL, "http:", "https:", 1), FailedTLS},
		{"unknown certificate", tlsServer(t, stream).URL, FailedTLS},
		{"no such name", "http://nowhere.test", FailedDNS},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			transport := NewTransport()
			defer transport.CloseIdleConnections()
			if c.kind == FailedDNS {
				transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
					return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "nowhere.test", IsNotFound: true}}
				}
			}
			r := newClient(t, c.root+"/v1", Config{HTTP: &http.Client{Transport: transport}}).Call(t.Context(), Chat, bodyOf(t, plainAsk(Chat, 1)), "x", nil)
			if r.Failed != c.kind {
				t.Errorf("%q (%s, %v), want %q", r.Failed, r.Record.Outcome, r.Err, c.kind)
			}
			checkFailure(t, r)
			want := call.UpstreamError
			switch c.kind {
			case "":
				want = call.Completed
			case FailedTruncated:
				want = call.Truncated
			}
			if r.Record.Outcome != want {
				t.Errorf("outcome %s, want %s", r.Record.Outcome, want)
			}
		})
	}
}

// TestProxyRefuses: a proxy that lets nobody through is a failure to connect.
func TestProxyRefuses(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer proxy.Close()
	transport := NewTransport()
	defer transport.CloseIdleConnections()
	transport.Proxy = func(r *http.Request) (*url.URL, error) { return r.URL.Parse(proxy.URL) }
	r := newClient(t, "https://behind.test/v1", Config{HTTP: &http.Client{Transport: transport}}).Call(t.Context(), Chat, bodyOf(t, plainAsk(Chat, 1)), "x", nil)
	if r.Failed != FailedConnect {
		t.Errorf("%q: %v", r.Failed, r.Err)
	}
}

func TestKindOf(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	cases := []struct {
		err  error
		want Kind
	}{
		{nil, ""},
		{&Failure{Kind: FailedShape}, FailedShape},
		{fmt.Errorf("find: %w", &Failure{Kind: FailedAuth}), FailedAuth},
		{context.Canceled, FailedCancelled},
		{context.DeadlineExceeded, FailedTimeout},
		{dial(&net.DNSError{Err: "no such host", IsNotFound: true}), FailedDNS},
		{dial(&net.DNSError{Err: "i/o timeout", IsTimeout: true}), FailedDNS},
		{dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), FailedConnect},
		{dial(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), FailedConnect},
		{dial(os.ErrDeadlineExceeded), FailedConnect},
		{&net.OpError{Op: "proxyconnect", Err: errors.New("x")}, FailedConnect},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, FailedReset},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, FailedTimeout},
		{errors.New("net/http: TLS handshake timeout"), FailedTLS},
		{errors.New("tls: failed to verify certificate"), FailedTLS},
		{io.EOF, FailedReset},
		{io.ErrUnexpectedEOF, FailedReset},
		{errors.New("http: server closed idle connection"), FailedReset},
	}
	for _, c := range cases {
		if got := KindOf(c.err); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
	for status, want := range map[int]Kind{200: "", 204: "", 301: FailedShape, 307: FailedShape, 400: FailedRequest, 401: FailedAuth, 403: FailedAuth,
		404: FailedNotFound, 405: FailedNotFound, 408: FailedRequest, 413: FailedRequest, 422: FailedRequest, 429: FailedLimit, 500: FailedServer, 503: FailedServer, 529: FailedServer} {
		if got := KindOfStatus(status); got != want {
			t.Errorf("%d: %q, want %q", status, got, want)
		}
	}
	for _, kind := range []Kind{FailedDNS, FailedConnect, FailedTLS, FailedTimeout, FailedReset, FailedCancelled, FailedAuth, FailedNotFound,
		FailedLimit, FailedRequest, FailedServer, FailedStream, FailedTruncated, FailedShape, FailedEmpty} {
		if hint(kind) == "" {
			t.Errorf("no hint for %q", kind)
		}
	}
}

// TestManyAtOnce: one client serves many calls at once, each with a connection
// of its own, and keeps the connections.
func TestManyAtOnce(t *testing.T) {
	const calls = 64
	var inside sync.WaitGroup
	inside.Add(calls)
	var connections atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Request-Id") == "first" {
			inside.Done()
			inside.Wait() // all of them at the same time
		}
		stream(w, r)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	c := newClient(t, s.URL+"/v1", Config{})
	body := bodyOf(t, plainAsk(Chat, 1))
	for _, id := range []string{"first", "second"} {
		var all sync.WaitGroup
		for range calls {
			all.Go(func() {
				if r := c.Call(t.Context(), Chat, body, id, nil); r.Failed != "" || len(r.Events) != 3 {
					t.Errorf("%s: %v, %d events", r.Failed, r.Err, len(r.Events))
				}
			})
		}
		all.Wait()
	}
	if n := connections.Load(); n != calls {
		t.Errorf("%d connections, want %d", n, calls)
	}
}

func TestNewClientRefuses(t *testing.T) {
	cases := []struct {
		cfg  Config
		hint string
	}{
		{Config{}, "no URL"},
		{Config{Root: "api.example.com/v1"}, "no URL"},
		{Config{Root: "ftp://api.example.com"}, "no URL"},
		{Config{Root: "https://u:secret@api.example.com"}, "user information"},
		{Config{Root: "https://api.example.com?key=secret"}, "query"},
		{Config{Root: "https://api.example.com#secret"}, "fragment"},
		{Config{Root: "https://api.example.com", Key: "secret\n"}, "line break"},
		{Config{Root: "https://api.example.com", Key: "sec\rret"}, "line break"},
		{Config{Root: "https://api.example.com", Timeout: -1}, "time-out"},
	}
	for _, c := range cases {
		if _, err := NewClient(c.cfg); err == nil || !strings.Contains(err.Error(), c.hint) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v, want something of %q", err, c.hint)
		}
	}
}
