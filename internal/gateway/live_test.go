package gateway

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/sim"
)

// serving runs one call behind a real server in the bubble and returns the
// client's answer; the gateway's NextFunc is the engine behind a connection.
func serving(t *testing.T, g *Gateway, next NextFunc) (do func(*http.Request) (*http.Response, error)) {
	t.Helper()
	l := newPipes()
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := g.Begin(r, &Options{}, &Surroundings{})
		if err := c.Serve(w, NextFunc(next)); err != nil {
			http.Error(w, "bad gateway", http.StatusBadGateway)
		}
	})}
	served := make(chan struct{})
	go func() { defer close(served); _ = s.Serve(l) }()
	transport := &http.Transport{DialContext: l.dial, DisableCompression: true}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = s.Close()
		<-served
	})
	return transport.RoundTrip
}

// TestLive follows three calls through their states: the non-streamed one never
// awaits a token, the others do until theirs comes, the oldest first.
func TestLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		g := New(new(counted))
		expect := func(moment string, want Live) {
			t.Helper()
			synctest.Wait()
			if got := g.Live(); got != want {
				t.Errorf("%s: %+v, want %+v", moment, got, want)
			}
		}
		token := func(after, then time.Duration) NextFunc {
			return func(w http.ResponseWriter, r *http.Request) error {
				time.Sleep(after)
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, stripToken)
				time.Sleep(then)
				_, _ = io.WriteString(w, stripFinish+stripDone)
				return nil
			}
		}
		var all sync.WaitGroup
		run := func(r *http.Request, next NextFunc) {
			all.Go(func() { g.call(httptest.NewRecorder(), r, next) })
			synctest.Wait()
		}
		expect("before", Live{})
		run(chat("a", 5, ""), token(30*time.Second, 30*time.Second))
		time.Sleep(time.Second)
		run(chat("b", 5, ""), token(10*time.Second, 10*time.Second))
		time.Sleep(time.Second)
		run(httptest.NewRequest("POST", "/v1/chat/completions", nil), token(5*time.Second, time.Second))
		expect("three in flight", Live{InFlight: 3, AwaitingFirstToken: 2, OldestReceived: start})
		time.Sleep(8 * time.Second)
		expect("the JSON call has ended", Live{InFlight: 2, AwaitingFirstToken: 2, OldestReceived: start})
		time.Sleep(3 * time.Second)
		expect("b has its token", Live{InFlight: 2, AwaitingFirstToken: 1, OldestReceived: start})
		time.Sleep(10 * time.Second)
		expect("b has ended", Live{InFlight: 1, AwaitingFirstToken: 1, OldestReceived: start})
		time.Sleep(10 * time.Second)
		expect("a has its token", Live{InFlight: 1})
		all.Wait()
		expect("after", Live{})
	})
}

// TestOldestIsNext: when the oldest has its token, the one after it is the oldest.
func TestOldestIsNext(t *testing.T) {
	var l live
	calls := make([]*Call, 5)
	for i := range calls {
		calls[i] = &Call{identity: call.Identity{Time: time.Unix(int64(i), 0)}}
		l.enter(calls[i])
	}
	oldest := func() int64 {
		if l.awaiting.head == nil {
			return -1
		}
		return l.awaiting.head.call.identity.Time.Unix()
	}
	for _, step := range []struct {
		settle int
		oldest int64
	}{{2, 0}, {0, 1}, {0, 1}, {4, 1}, {1, 3}, {3, -1}} {
		l.settled(calls[step.settle])
		if oldest() != step.oldest {
			t.Errorf("after %d: oldest is %d, want %d", step.settle, oldest(), step.oldest)
		}
	}
	if l.awaiting.n != 0 || l.awaiting.tail != nil || int(l.calls.n) != 5 {
		t.Errorf("left %+v of %d calls", l.awaiting, int(l.calls.n))
	}
	for _, c := range calls {
		l.leave(c)
		l.leave(c)
	}
	if int(l.calls.n) != 0 {
		t.Errorf("%d calls left", int(l.calls.n))
	}
}

// TestLiveConcurrently: whatever the order, nothing is left in the end.
func TestLiveConcurrently(t *testing.T) {
	g := New(new(counted))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			for range 300 {
				c := &Call{identity: call.Identity{Time: time.Unix(rng.Int64N(100), 0)}}
				g.live.enter(c)
				for range rng.IntN(3) {
					g.live.settled(c)
				}
				if s := g.Live(); s.AwaitingFirstToken > s.InFlight || s.InFlight < 1 || (s.AwaitingFirstToken == 0) != s.OldestReceived.IsZero() {
					t.Errorf("%+v", s)
				}
				g.live.leave(c)
			}
		})
	}
	all.Wait()
	if s := g.Live(); s != (Live{}) {
		t.Errorf("left %+v", s)
	}
}

// TestShutdown cuts calls in each of their stages: the client's body still
// coming, the engine at work on the prompt, the answer on its way.
func TestShutdown(t *testing.T) {
	for stage, c := range map[string]struct {
		body  string // sent of the request; what is left stays at the client
		after time.Duration
		fault string
	}{
		"upload":  {`{"model":"m","stream":true,`, time.Second, ""},
		"prefill": {`{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}`, time.Second, "hang"},
		"stream":  {`{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}`, 5 * time.Second, "hang:3"},
	} {
		t.Run(stage, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := new(counted)
				g := New(m)
				do := serving(t, g, proxied(t, simulated(t, sim.Config{})))
				body, client := io.Pipe()
				r := httptest.NewRequest("POST", "http://gateway/v1/chat/completions", body)
				r.RequestURI = ""
				r.Header.Set("X-Sim-Fault", c.fault)
				answered := make(chan struct{})
				go func() {
					defer close(answered)
					if res, err := do(r); err == nil {
						_, _ = io.Copy(io.Discard, res.Body)
						_ = res.Body.Close()
					}
				}()
				_, _ = io.WriteString(client, c.body)
				if stage != "upload" {
					_ = client.Close()
				}
				time.Sleep(c.after)
				synctest.Wait()
				start := time.Now()
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				defer cancel()
				if cut, left := g.Shutdown(ctx); cut != 1 || left != 0 {
					t.Errorf("cut %d, left %d", cut, left)
				}
				if took := time.Since(start); took > time.Second {
					t.Errorf("the call took %v to end", took)
				}
				_ = client.CloseWithError(io.ErrUnexpectedEOF)
				<-answered
				if len(m.records) != 1 {
					t.Fatalf("%d records", len(m.records))
				}
				rec := m.records[0]
				if rec.Outcome != call.GatewayShutdown || rec.Phases.Sum() != rec.Instants.Ended.Or(-1) {
					t.Errorf("%s %s: phases %v, ended %v", rec.Outcome, rec.Error, rec.Phases.Sum(), rec.Instants.Ended)
				}
				if used := g.looks.used.Load(); used != 0 {
					t.Errorf("%d bytes of bodies are still held", used)
				}
			})
		})
	}
}

// TestShutdownGivesUp: a call that does not heed its context is reported.
func TestShutdownGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(new(counted))
		if cut, left := g.Shutdown(t.Context()); cut != 0 || left != 0 {
			t.Errorf("nothing in flight: cut %d, left %d", cut, left)
		}
		release, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			g.call(httptest.NewRecorder(), chat("deaf", 1, ""), func(http.ResponseWriter, *http.Request) error { <-release; return nil })
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if cut, left := g.Shutdown(ctx); cut != 1 || left != 1 {
			t.Errorf("cut %d, left %d", cut, left)
		}
		close(release)
		<-ended
	})
}
