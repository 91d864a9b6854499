package endpoint

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/weirgate/weir/internal/dialect"
)

// Config says how a Client reaches its endpoint.
type Config struct {
	// Root is the URL below which API paths stand, as in Found.Root:
	// "https://api.example.com/v1". It holds no secret.
	Root string
	// Key authorizes the calls; "" sends none. It is never shown.
	Key string
	// HTTP sends the requests; nil is a transport of the Client's own, see
	// NewTransport. Redirects are not followed in either case: a POST would
	// arrive as a GET.
	HTTP *http.Client
	// Header is sent with each call, such as X-Weir-Run and X-Weir-Class. What the
	// Client sets itself (authorization, content type, X-Request-Id) wins.
	Header http.Header
	// Timeout bounds a whole call, from the start to the end of the body; 0 is
	// no bound but the context's.
	Timeout time.Duration
	// KeepBody keeps the beginning of every answer in Reply.Body, not only of
	// failed ones.
	KeepBody bool
	// KeepReads keeps sizes and times of the reads of each body in Reply.Reads.
	KeepReads bool
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// NewTransport returns a transport for thousands of streams at once. It keeps
// every connection for the next call and bounds none of them. It speaks
// HTTP/1.1 only, which gives each stream a connection of its own, as most
// clients under load do: over HTTP/2 all streams share one connection, and the
// time of a token would be that of whatever goes before it there. Proxies are
// those of the environment. Its owner closes idle connections.
func NewTransport() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	dialer := &net.Dialer{
		Timeout:   10 * time.Second, // an address that does not answer by then is down
		KeepAlive: 30 * time.Second,
	}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		Protocols:           protocols,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 1 << 16, // as many as there are ports: none is closed for its number
		IdleConnTimeout:     90 * time.Second,
	}
}

// Client calls one endpoint. It is safe for concurrent use; NewClient makes one
// and Close ends it.
type Client struct {
	http      http.Client
	own       *http.Transport // to be closed; nil when Config brought its own client
	targets   map[API]target
	secret    secret
	timeout   time.Duration
	keepBody  bool
	keepReads bool
	now       func() time.Time
	run       string // X-Weir-Run
	host      string
}

// target is where the calls of one API go.
type target struct {
	url     *url.URL
	header  http.Header // of every call but for X-Request-Id; not changed
	dialect *dialect.Dialect
}

// NewClient returns a Client of an endpoint. It connects to nothing. An error
// says what is wrong with the configuration, and shows no key.
func NewClient(cfg Config) (*Client, error) {
	root, err := parseRoot(cfg.Root)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	if err := checkKey(cfg.Key); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	if cfg.Timeout < 0 {
		return nil, fmt.Errorf("make a client: the time-out is %v: it must be more than 0, or 0 for none", cfg.Timeout)
	}
	c := &Client{
		targets: map[API]target{}, secret: secret(cfg.Key), timeout: cfg.Timeout,
		keepBody: cfg.KeepBody, keepReads: cfg.KeepReads, now: cfg.Now,
		run: cfg.Header.Get("X-Weir-Run"), host: root.Host,
	}
	if c.now == nil {
		c.now = time.Now
	}
	if cfg.HTTP != nil {
		c.http = *cfg.HTTP
	} else {
		c.own = NewTransport()
		c.http.Transport = c.own
	}
	c.http.CheckRedirect = stay
	for _, api := range APIs {
		h := make(http.Header)
		maps.Copy(h, cfg.Header.Clone())
		h.Set("Content-Type", "application/json")
		asIs(h)
		authorize(h, api, cfg.Key)
		c.targets[api] = target{below(root, Path(api)), h, dialectOf(api)}
	}
	return c, nil
}

// stay keeps net/http from following redirects.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// asIs asks for an answer that is not compressed: times are then of the model's
// own bytes, and not of blocks that a compressor let go of when they were full.
func asIs(h http.Header) {
	h.Set("Accept-Encoding", "identity")
	if h.Get("User-Agent") == "" {
		h.Set("User-Agent", "weir")
	}
}

// below is the URL of a path below a root. JoinPath would make one that does not
// begin with a slash where the root has no path.
func below(root *url.URL, path string) *url.URL {
	if root.Path == "" {
		u := *root
		u.Path = "/" + path
		return &u
	}
	return root.JoinPath(path)
}

// parseRoot reads a URL below which API paths stand. Its errors do not show it.
func parseRoot(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, &Failure{Kind: FailedRequest, Text: "the root is no URL of http or https: write it like " + baseExample}
	case u.User != nil, u.RawQuery != "", u.ForceQuery, u.Fragment != "":
		return nil, &Failure{Kind: FailedRequest, Text: "the root has user information, a query or a fragment: leave it out, and give a key by an environment variable"}
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = strings.TrimRight(u.RawPath, "/")
	return u, nil
}

// Close lets go of idle connections that are the Client's own. Calls under way
// go on.
func (c *Client) Close() {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}

// bufferSize is how much one read of a body can bring.
const bufferSize = 32 << 10

// buffers are for reading bodies.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// Call sends body to the API's URL and reads the answer to its end; see Caller.
//
// Everything is measured by the gateway's definitions, with the clock of this
// side: the call is received when it is handed to the transport, its body has
// been read and it is admitted at that instant, and a piece of the answer has
// come and been delivered when the read that brought it returned. An answer
// that came compressed, although that was not asked for, has a Record and no
// Events.
func (c *Client) Call(ctx context.Context, api API, body []byte, id string, events []Event) Reply {
	to, known := c.targets[api]
	if !known {
		err := unknownAPI(api)
		return Reply{Start: c.now(), Events: events[:0], Failed: KindOf(err), Err: err}
	}
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	r := newReading(c, to, body, id, events)
	trace := &r.trace
	request := (&http.Request{
		Method: http.MethodPost, URL: to.url, Host: to.url.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: to.header.Clone(), ContentLength: int64(len(body)),
		Body:    io.NopCloser(bytes.NewReader(body)),
		GetBody: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil },
	}).WithContext(httptrace.WithClientTrace(ctx, trace.hooks()))
	if id != "" {
		request.Header.Set("X-Request-Id", id)
	}

	r.reply.Start = c.now()
	trace.begin(c.now, r.reply.Start)
	response, err := c.http.Do(request)
	r.at = c.now().Sub(r.reply.Start)
	if err != nil {
		return r.end(ctx, bare(err))
	}
	r.header(response)
	err = r.read(response.Body)
	// All has been read, or nothing more will be: a close has nothing to tell.
	_ = response.Body.Close()
	return r.end(ctx, err)
}
