package diagnose_test

import (
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/weirgate/weir/internal/gateway"
)

// wired runs a handler behind a server, connections and a transport, with the
// plainest of proxies before them. Opening a connection takes so long; with refused
// nothing listens.
func wired(h http.Handler, dial time.Duration) (next gateway.NextFunc, hangUp func()) {
	return wiredOver(h, func(ctx context.Context, l *pipes) (net.Conn, error) {
		if dial == refused {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}
		time.Sleep(dial)
		return l.dial(ctx)
	})
}

// wiredOver is the same with connections that open makes.
func wiredOver(h http.Handler, open func(context.Context, *pipes) (net.Conn, error)) (next gateway.NextFunc, hangUp func()) {
	l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	server := &http.Server{Handler: h}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) }) // ends with the pipes
	transport := &http.Transport{DisableCompression: true, DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return open(ctx, l) }}
	hangUp = func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		serving.Wait()
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		out := r.Clone(r.Context())
		out.URL.Scheme, out.URL.Host, out.RequestURI = "http", upstream, ""
		res, err := transport.RoundTrip(out)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		maps.Copy(w.Header(), res.Header)
		w.WriteHeader(res.StatusCode)
		_, err = io.Copy(w, res.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		return nil
	}, hangUp
}

// refused stands for the time to open a connection that nobody takes.
const refused time.Duration = -1

// pipes is a listener whose connections are pipes within the process, so that a
// server and a transport keep virtual time.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
