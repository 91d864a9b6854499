package doctor

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/weirgate/weir/internal/endpoint"
)

// maxBody is the most that is read of an answer that is not a model's. The
// longest lists of models have some hundred KiB.
const maxBody = 4 << 20

// exchange is one request and what came back of it.
type exchange struct {
	status         int // 0 without an answer
	header         http.Header
	body           []byte
	sent, answered time.Time // by the visit's clock; answered is when the header was there
	tls            *tls.ConnectionState
	err            error
}

// ok tells whether the answer is a success.
func (x exchange) ok() bool { return x.err == nil && x.status >= 200 && x.status < 300 }

// request sends a request without a body and reads the answer.
func (v *visit) request(ctx context.Context, method, url string, header http.Header) exchange {
	return v.send(ctx, method, url, header, nil)
}

// requestBy asks for a URL by another client.
func (v *visit) requestBy(ctx context.Context, client *http.Client, url string) exchange {
	return v.sendBy(ctx, client, http.MethodGet, url, nil, nil)
}

// send sends a request and reads the answer, at most maxBody of it.
func (v *visit) send(ctx context.Context, method, url string, header http.Header, body []byte) exchange {
	return v.sendBy(ctx, v.http, method, url, header, body)
}

func (v *visit) sendBy(ctx context.Context, client *http.Client, method, url string, header http.Header, body []byte) exchange {
	ctx, cancel := context.WithTimeout(ctx, v.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return exchange{err: bare(err)}
	}
	if header != nil {
		r.Header = header
	}
	r.Header.Set("Accept-Encoding", "identity")
	r.Header.Set("User-Agent", "weir")
	x := exchange{sent: v.now()}
	res, err := client.Do(r)
	x.answered = v.now()
	if err != nil {
		x.err = bare(err)
		return x
	}
	defer res.Body.Close()
	x.status, x.header, x.tls = res.StatusCode, res.Header, res.TLS
	x.body, err = io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	if err != nil {
		x.err = fmt.Errorf("read the answer: %w", err)
	}
	if len(x.body) > maxBody {
		x.err = fmt.Errorf("the answer is longer than %d MiB", maxBody>>20)
	}
	return x
}

// bare takes the URL off an error of the HTTP client.
func bare(err error) error {
	if outer := new(url.Error); errors.As(err, &outer) {
		return outer.Err
	}
	return err
}

// headOf asks the base URL for nothing, once. It sends no key: any answer will do.
func (v *visit) headOf(ctx context.Context) *exchange {
	if v.head == nil {
		// The first request pays for the connection; the second is the one to measure.
		x := v.request(ctx, http.MethodHead, v.base.String(), nil)
		if x.err == nil {
			if again := v.request(ctx, http.MethodHead, v.base.String(), nil); again.err == nil {
				x = again
			}
		}
		v.head = &x
	}
	return v.head
}

// authorized is a header with the key where the API looks for it.
func (v *visit) authorized() http.Header {
	h := make(http.Header)
	key := bareKey(v.Key)
	if v.API == endpoint.Messages {
		h.Set("Anthropic-Version", anthropicVersion)
	}
	switch {
	case key == "" || !sendable(key):
	case v.API == endpoint.Messages:
		h.Set("X-Api-Key", key)
	default:
		h.Set("Authorization", "Bearer "+key)
	}
	return h
}

// dial connects as the configuration says.
func (v *visit) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if v.Dial != nil {
		return v.Dial(ctx, network, address)
	}
	return (&net.Dialer{Timeout: v.Timeout}).DialContext(ctx, network, address)
}

// newTransport makes the one transport of a visit: calls go one after the other,
// over one connection for as long as the endpoint keeps it.
func (v *visit) newTransport() {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	v.transport = &http.Transport{
		Protocols: protocols,
		Proxy:     func(r *http.Request) (*url.URL, error) { return v.proxyOf(r.URL), nil },
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := v.dialEndpoint(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return newWire(conn), nil
		},
		TLSClientConfig:    &tls.Config{RootCAs: v.Roots, Time: v.now},
		DisableCompression: true,
		IdleConnTimeout:    time.Minute,
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, res *http.Response) error {
			v.connectStatus.Store(int64(res.StatusCode))
			return nil
		},
	}
	v.http = &http.Client{
		Transport:     &v.wires,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	v.wires.next = v.transport
}

func (v *visit) proxyOf(u *url.URL) *url.URL {
	p, _ := v.environment.proxy(u)
	return p
}

// dialEndpoint connects to the address that answered, where one is known: a
// name must not lead elsewhere from one check to the next.
func (v *visit) dialEndpoint(ctx context.Context, network, address string) (net.Conn, error) {
	if v.base != nil && v.proxy == nil && len(v.addresses) > 0 &&
		strings.EqualFold(address, net.JoinHostPort(v.base.Hostname(), portOf(v.base))) {
		address = net.JoinHostPort(v.addresses[0].String(), portOf(v.base))
	}
	return v.dial(ctx, network, address)
}

// wire is a connection that notes when the other side closes it. It shows
// nothing of what comes before we have spoken: a server that speaks first speaks
// no HTTP, and is to be judged by its answer and not by chance.
type wire struct {
	net.Conn
	spoke func() // we have spoken, or closed the connection
	heard chan struct{}

	mu     sync.Mutex
	closed time.Time // by the other side; zero while it is open
}

func newWire(conn net.Conn) *wire {
	w := &wire{Conn: conn, heard: make(chan struct{})}
	w.spoke = sync.OnceFunc(func() { close(w.heard) })
	return w
}

// Write lets reads go on after the first one.
func (w *wire) Write(b []byte) (int, error) {
	defer w.spoke()
	return w.Conn.Write(b)
}

// Close lets reads end.
func (w *wire) Close() error {
	defer w.spoke()
	return w.Conn.Close()
}

// Read notes an end that is not our own doing.
func (w *wire) Read(b []byte) (int, error) {
	<-w.heard
	n, err := w.Conn.Read(b)
	var timed net.Error
	if err != nil && !errors.Is(err, net.ErrClosed) && !(errors.As(err, &timed) && timed.Timeout()) {
		w.mu.Lock()
		if w.closed.IsZero() {
			w.closed = time.Now()
		}
		w.mu.Unlock()
	}
	return n, err
}

func (w *wire) closedAt() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// served is an answer and the connection that brought it.
type served struct {
	wire      *wire
	stream    bool
	announced bool      // the answer said that the connection ends with it
	ended     time.Time // when its last byte had been read; zero when it was not read to its end
}

// maxServed bounds the notes of a visit, which sends far fewer requests.
const maxServed = 64

// wires is a RoundTripper that notes over which connection each answer came.
// Requests go one after the other; body ends are noted by whoever reads.
type wires struct {
	next   http.RoundTripper
	mu     sync.Mutex
	served []*served
}

// RoundTrip implements http.RoundTripper.
func (t *wires) RoundTrip(r *http.Request) (*http.Response, error) {
	var mu sync.Mutex // a dial that lost its race may still report
	s := &served{}
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		conn := info.Conn
		if secured, is := conn.(interface{ NetConn() net.Conn }); is {
			conn = secured.NetConn()
		}
		mu.Lock()
		defer mu.Unlock()
		s.wire, _ = conn.(*wire)
	}}
	res, err := t.next.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err != nil {
		return nil, err
	}
	mu.Lock()
	defer mu.Unlock()
	s.announced = res.Close || !res.ProtoAtLeast(1, 1) && !strings.EqualFold(res.Header.Get("Connection"), "keep-alive")
	s.stream = strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream")
	t.mu.Lock()
	if s.wire != nil && len(t.served) < maxServed {
		t.served = append(t.served, s)
	}
	t.mu.Unlock()
	if r.Method == http.MethodHead || res.ContentLength == 0 {
		t.end(s)
	}
	res.Body = &endNoted{ReadCloser: res.Body, end: func() { t.end(s) }}
	return res, nil
}

func (t *wires) end(s *served) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.ended.IsZero() {
		s.ended = time.Now()
	}
}

// all returns copies of the notes so far.
func (t *wires) all() []served {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []served
	for _, s := range t.served {
		all = append(all, *s)
	}
	return all
}

// endNoted is a body that tells when it has been read to its end.
type endNoted struct {
	io.ReadCloser
	end func()
}

// Read implements io.Reader.
func (b *endNoted) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		b.end()
	}
	return n, err
}
