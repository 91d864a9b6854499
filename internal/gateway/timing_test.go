package gateway

import (
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/sim"
)

// counted is a fake for Metrics.
type counted struct {
	barred     []string
	mu         sync.Mutex
	records    []*call.Record
	phases     []*call.Record // whose phases are final
	unmeasured map[string]int
	delays     int
}

func (c *counted) Observe(rec *call.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.records = append(c.records, rec)
}

func (c *counted) Phases(rec *call.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.phases = append(c.phases, rec)
}

func (c *counted) Unmeasured(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unmeasured == nil {
		c.unmeasured = make(map[string]int)
	}
	c.unmeasured[reason]++
}

func (c *counted) Barred(by string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.barred = append(c.barred, by)
}

func (c *counted) AddedDelay(time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delays++
}

// engine starts a simulated engine within the bubble.
func simulated(t *testing.T, cfg sim.Config) *sim.Engine {
	t.Helper()
	e, err := sim.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// direct hands the request to a handler without a connection.
func direct(h http.Handler) NextFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		h.ServeHTTP(w, r)
		return nil
	}
}

func chat(id string, tokens int, more string) *http.Request {
	r := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(fmt.Sprintf(
		`{"model":"m","stream":true,"stream_options":{"include_usage":true},"max_tokens":%d,"ignore_eos":true,"messages":[{"role":"user","content":"question %s"}]%s}`, tokens, id, more)))
	r.Header.Set("X-Request-Id", id)
	return r
}

// call runs one call to its end and returns its record.
func (g *Gateway) call(w http.ResponseWriter, r *http.Request, next NextFunc) *call.Record {
	c := g.Begin(r, &Options{}, &Surroundings{})
	_ = c.Serve(w, NextFunc(next))
	return c.Record()
}

// TestTimingEqualsTheScript: six calls on an engine with two slots, in virtual
// time: TTFT, TPOT, E2E and all phases are the engine's own truth, exactly.
func TestTimingEqualsTheScript(t *testing.T) {
	for _, metrics := range []bool{true, false} {
		t.Run(fmt.Sprintf("per-request metrics %v", metrics), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := simulated(t, sim.Config{Slots: 2, PerRequestMetrics: metrics, FrontendTime: 3 * time.Millisecond})
				m := new(counted)
				g := New(m)
				var all sync.WaitGroup
				for i := range 6 {
					all.Go(func() {
						time.Sleep(time.Duration(i) * 7 * time.Millisecond)
						start := time.Now()
						id := fmt.Sprintf("call-%d", i)
						rec := g.call(httptest.NewRecorder(), chat(id, 10+i, ""), direct(e))
						truth, ok := e.Truth(id)
						if !ok {
							t.Errorf("%s: the engine does not know it", id)
							return
						}
						checkTruth(t, rec, truth, start, metrics)
					})
				}
				all.Wait()
				if len(m.records) != 6 {
					t.Errorf("%d records of 6 calls", len(m.records))
				}
				if l := g.Live(); l.InFlight != 0 || l.AwaitingFirstToken != 0 {
					t.Errorf("after the last call: %+v", l)
				}
			})
		})
	}
}

func checkTruth(t *testing.T, rec *call.Record, truth sim.Truth, start time.Time, metrics bool) {
	t.Helper()
	is := func(what string, got call.Duration, want time.Duration) {
		t.Helper()
		if d, known := got.Get(); !known || d != want {
			t.Errorf("%s: %s is %v (known %v), the script says %v", rec.RequestID, what, d, known, want)
		}
	}
	if len(truth.Sent) == 0 {
		t.Errorf("%s: the engine sent nothing: %s %s %+v", rec.RequestID, rec.Outcome, rec.Error, truth)
		return
	}
	last := truth.Sent[len(truth.Sent)-1]
	is("TTFT", rec.TTFT, truth.FirstToken.Sub(start))
	is("E2E", rec.E2E, truth.End.Sub(start))
	is("TPOT", rec.TPOT, last.Sub(truth.FirstToken)/time.Duration(truth.Output-1))
	if rec.Output.Or(-1) != int64(truth.Output) || rec.Input.Or(-1) != int64(truth.Input) || rec.Outcome != call.Completed {
		t.Errorf("%s: %d in, %d out, %s; the script says %d, %d", rec.RequestID, rec.Input.Or(-1), rec.Output.Or(-1), rec.Outcome, truth.Input, truth.Output)
	}
	queue, _ := truth.Queue()
	prefill, _ := truth.Prefill()
	p := rec.Phases
	is("upload", p.Upload, 0)
	is("decode", p.Decode, last.Sub(truth.FirstToken))
	is("delivery", p.Delivery, 0)
	is("sum of phases", call.Lasting(p.Sum()), rec.E2E.Or(-1))
	if metrics {
		is("queue", p.QueueEngine, queue)
		is("prefill", p.Prefill, prefill)
		is("front end", p.Frontend, truth.Arrival.Sub(truth.Received))
		if rec.PhaseSources.QueueEngine != call.FromEngine || rec.PhaseSources.Frontend != call.Inferred {
			t.Errorf("%s: sources %+v", rec.RequestID, rec.PhaseSources)
		}
	} else {
		is("prefill", p.Prefill, truth.FirstToken.Sub(start))
		if p.QueueEngine.IsKnown() || rec.PhaseSources.Prefill != call.Unattributed {
			t.Errorf("%s: claims what is not known: %+v", rec.RequestID, rec.PhaseSources)
		}
	}
}

// pipes is a listener whose connections are pipes within the process, so that
// a real server and a real transport run in a bubble.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

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

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
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

// upstream serves a handler on pipes and returns a transport that reaches it.
func upstream(t *testing.T, h http.Handler) (*http.Transport, *http.Server) {
	t.Helper()
	l := newPipes()
	s := &http.Server{Handler: h}
	served := make(chan struct{})
	go func() { defer close(served); _ = s.Serve(l) }()
	transport := &http.Transport{DialContext: l.dial, DisableCompression: true}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = s.Close()
		<-served
	})
	return transport, s
}

// proxied runs a handler behind a real server, connection, transport and proxy.
func proxied(t *testing.T, h http.Handler) NextFunc {
	t.Helper()
	transport, s := upstream(t, h)
	target := &url.URL{Scheme: "http", Host: "engine:1"}
	return func(w http.ResponseWriter, r *http.Request) (err error) {
		proxy := &httputil.ReverseProxy{
			Rewrite:       func(pr *httputil.ProxyRequest) { pr.SetURL(target) },
			Transport:     transport,
			FlushInterval: -1,
			ErrorLog:      log.New(io.Discard, "", 0),
			ErrorHandler:  func(_ http.ResponseWriter, _ *http.Request, e error) { err = e },
		}
		// The proxy aborts a broken answer only where it sees a server around it.
		proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, s)))
		return err
	}
}

// copied is proxied with the plainest of proxies. httputil's flushes the header
// from a timer, under a lock that a blocked write holds: within a bubble, that
// goroutine waits for a lock, and so the bubble's clock stands still for ever.
func copied(t *testing.T, h http.Handler) NextFunc {
	t.Helper()
	transport, _ := upstream(t, h)
	return func(w http.ResponseWriter, r *http.Request) error {
		out := r.Clone(r.Context())
		out.URL.Scheme, out.URL.Host, out.RequestURI = "http", "engine:1", ""
		res, err := transport.RoundTrip(out)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		maps.Copy(w.Header(), res.Header)
		w.WriteHeader(res.StatusCode)
		control := http.NewResponseController(w)
		buf := make([]byte, 32<<10)
		for {
			n, err := res.Body.Read(buf)
			if _, failed := w.Write(buf[:n]); failed != nil {
				panic(http.ErrAbortHandler)
			}
			_ = control.Flush() // the next write tells
			switch err {
			case nil:
			case io.EOF:
				return nil
			default:
				panic(http.ErrAbortHandler)
			}
		}
	}
}

// TestTimingThroughAConnection: the same truth through a real transport and
// server, with the instants that only they can tell.
func TestTimingThroughAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := simulated(t, sim.Config{Slots: 2, PerRequestMetrics: true})
		m := new(counted)
		g := New(m)
		next := proxied(t, e)
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 7 * time.Millisecond)
				start := time.Now()
				id := fmt.Sprintf("call-%d", i)
				rec := g.call(httptest.NewRecorder(), chat(id, 10+i, ""), next)
				truth, _ := e.Truth(id)
				checkTruth(t, rec, truth, start, true)
				if rec.Attempts != 1 || rec.Upstream != "engine:1" || !rec.TTFTUpstream.IsKnown() {
					t.Errorf("%s: %d attempts at %q, upstream TTFT %v", id, rec.Attempts, rec.Upstream, rec.TTFTUpstream)
				}
			})
		}
		all.Wait()
	})
}

// TestPhasesAddUp: for every way in which a call can end, the phases make up
// the call, and there is one record.
func TestPhasesAddUp(t *testing.T) {
	for fault, want := range map[string]call.Outcome{
		"":             call.Completed,
		"status:500":   call.UpstreamError,
		"status:429":   call.UpstreamError,
		"error:3":      call.StreamError,
		"error_done:3": call.StreamError,
		"truncate:3":   call.Truncated,
		"abort:3":      call.UpstreamError,
		"html":         call.Unrecognised,
		"empty":        call.Truncated,
		"no_usage":     call.Completed,
		"bad_json:2":   call.Completed,
		"gzip":         call.Completed,
		"hang":         call.ClientGone,
		"hang:3":       call.ClientGone,
	} {
		t.Run(fault, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := simulated(t, sim.Config{})
				m := new(counted)
				g := New(m)
				r := chat("x", 10, "")
				r.Header.Set("X-Sim-Fault", fault)
				ctx, leave := context.WithCancel(r.Context())
				defer leave()
				defer time.AfterFunc(5*time.Second, leave).Stop() // the client's patience
				start := time.Now()
				func() {
					defer func() {
						if p := recover(); p != nil && p != http.ErrAbortHandler {
							panic(p)
						}
					}()
					g.call(httptest.NewRecorder(), r.WithContext(ctx), proxied(t, e))
				}()
				if len(m.records) != 1 {
					t.Fatalf("%d records", len(m.records))
				}
				rec := m.records[0]
				if rec.Outcome != want {
					t.Errorf("outcome %s (%s), want %s", rec.Outcome, rec.Error, want)
				}
				if sum, took := rec.Phases.Sum(), rec.Instants.Ended.Or(-1); sum != took || took > time.Since(start) {
					t.Errorf("phases make %v, the call took %v: %+v", sum, took, rec.Phases)
				}
			})
		})
	}
}
