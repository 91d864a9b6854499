package gateway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// rig is a gateway between two sockets on loopback: a server before it and the
// standard library's proxy behind it.
type rig struct {
	t        *testing.T
	gateway  *Gateway
	options  Options
	records  chan *call.Record // one for each call that has ended
	before   func(http.ResponseWriter, *http.Request)
	next     NextFunc
	upstream string
	address  string
}

// Observe and the two below make rig a Metrics.
func (g *rig) Observe(rec *call.Record) { g.records <- rec }
func (g *rig) Phases(*call.Record)      {}
func (g *rig) Unmeasured(string)        {}
func (g *rig) Barred(string)            {}
func (g *rig) AddedDelay(time.Duration) {}

// newRig starts a gateway before an upstream that reads each request and lets
// answer write whatever it likes to the connection, which is then closed.
func newRig(t *testing.T, answer func(net.Conn, *http.Request, []byte)) *rig {
	t.Helper()
	g := &rig{t: t, records: make(chan *call.Record, 64)}
	g.gateway = New(g)
	g.upstream = g.listen(func(c net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			answer(c, r, body)
		}
	})
	transport := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	target := &url.URL{Scheme: "http", Host: g.upstream}
	quiet := log.New(io.Discard, "", 0)
	g.next = func(w http.ResponseWriter, r *http.Request) (err error) {
		proxy := &httputil.ReverseProxy{
			Rewrite:       func(pr *httputil.ProxyRequest) { pr.SetURL(target) },
			Transport:     transport,
			FlushInterval: -1,
			ErrorLog:      quiet,
			ErrorHandler:  func(_ http.ResponseWriter, _ *http.Request, e error) { err = e },
		}
		proxy.ServeHTTP(w, r)
		return err
	}
	around := &Surroundings{Status: badGateway}
	s := &http.Server{ErrorLog: quiet, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.before != nil {
			g.before(w, r)
		}
		err := error(nil)
		if c := g.gateway.Begin(r, &g.options, around); c != nil {
			err = c.Serve(w, NextFunc(g.next))
		} else {
			err = g.next(w, r)
		}
		if err != nil {
			http.Error(w, "no answer", badGateway(err))
		}
	})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.address = l.Addr().String()
	served := make(chan struct{})
	go func() { defer close(served); _ = s.Serve(l) }()
	t.Cleanup(func() {
		_ = s.Close()
		<-served
	})
	return g
}

func badGateway(err error) int {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadGateway
}

// listen runs serve for each connection to the address that it returns.
func (g *rig) listen(serve func(net.Conn)) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		g.t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { defer c.Close(); serve(c) })
		}
	})
	g.t.Cleanup(func() { _ = l.Close(); running.Wait() })
	return l.Addr().String()
}

// dial connects a client that writes raw bytes.
func (g *rig) dial() net.Conn {
	g.t.Helper()
	c, err := net.Dial("tcp", g.address)
	if err != nil {
		g.t.Fatal(err)
	}
	return c
}

// post sends a JSON request and returns status and body, as far as it came.
func (g *rig) post(body io.Reader, header http.Header) (status int, answer []byte, err error) {
	g.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), "POST", "http://"+g.address+"/v1/chat/completions", body)
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header = header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	transport := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	res, err := transport.RoundTrip(r)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// record waits for the record of the call that ends next and checks what holds
// for every one: the phases make up the call, and nothing is held any more.
func (g *rig) record() *call.Record {
	g.t.Helper()
	rec := <-g.records
	if sum := rec.Phases.Sum(); sum != rec.Instants.Ended.Or(-1) {
		g.t.Errorf("phases make %v, the call took %v", sum, rec.Instants.Ended)
	}
	for g.gateway.Live().InFlight > 0 { // it leaves right after its record
		runtime.Gosched()
	}
	if used := g.gateway.looks.used.Load(); used != 0 {
		g.t.Errorf("%d bytes of request bodies are still held", used)
	}
	return rec
}

// heap watches how much the heap grows.
type heap struct{ before, most uint64 }

func newHeap() *heap {
	runtime.GC()
	h := new(heap)
	h.before = h.now()
	return h
}

func (h *heap) now() uint64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// grown returns by how many bytes the heap has grown at most.
func (h *heap) grown() int64 {
	h.most = max(h.most, h.now())
	return int64(h.most) - int64(h.before)
}
