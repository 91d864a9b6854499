package probe_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/probe"
	"github.com/weirgate/weir/internal/sim"
)

// seen is what a server got.
type seen struct {
	mu      sync.Mutex
	headers []http.Header
	bodies  []string
	paths   []string
}

func (s *seen) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.headers, s.bodies, s.paths = append(s.headers, r.Header.Clone()), append(s.bodies, string(body)), append(s.paths, r.URL.Path)
		s.mu.Unlock()
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		next.ServeHTTP(w, r)
	})
}

func engineOf(t *testing.T, cfg sim.Config) *sim.Engine {
	t.Helper()
	cfg.PrefillBase, cfg.DecodeBase, cfg.DecodePerSequence = sim.None, time.Millisecond, sim.None
	e, err := sim.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// probed runs a probe until it has reported n calls.
func probed(t *testing.T, o probe.Options, n int) (*probe.Probe, []*call.Record) {
	t.Helper()
	records := make(chan *call.Record, n)
	o.Report = func(name string, rec *call.Record) {
		if name != o.Name {
			t.Errorf("reported as %q", name)
		}
		select {
		case records <- rec:
		default:
		}
	}
	p, err := probe.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	var all []*call.Record
	for range n {
		all = append(all, <-records)
	}
	cancel()
	<-done
	return p, all
}

// TestProbe: calls of one shape, marked, measured from the client's end.
func TestProbe(t *testing.T) {
	var s seen
	server := httptest.NewServer(s.wrap(engineOf(t, sim.Config{})))
	defer server.Close()
	p, records := probed(t, probe.Options{Name: "chat", URL: server.URL, Model: "m", Every: time.Second, Header: http.Header{"X-Mark": {"word"}}, Key: "sk-secret"}, 2)
	for _, rec := range records {
		if rec.Outcome != call.Completed || !rec.TTFT.IsKnown() || !rec.TPOT.IsKnown() || rec.Output.Or(0) != probe.DefaultOutput {
			t.Errorf("outcome %s, TTFT %v, TPOT %v, output %v", rec.Outcome, rec.TTFT, rec.TPOT, rec.Output)
		}
	}
	if at := p.State(); at.Calls < 2 || at.Failed != 0 || at.InARow != 0 || at.Latest == nil || at.Latest.Outcome != call.Completed ||
		at.Input != at.Calls*records[0].Input.Or(0) || at.Input == 0 || at.Output != at.Calls*probe.DefaultOutput || at.NoUsage != 0 {
		t.Errorf("state %+v", at)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, h := range s.headers {
		if h.Get("X-Mark") != "word" || h.Get("X-Weir-Run") != "probe-chat" || h.Get("Authorization") != "Bearer sk-secret" {
			t.Errorf("headers %v", h)
		}
		if s.paths[i] != "/v1/chat/completions" || len(s.bodies[i]) != len(s.bodies[0]) {
			t.Errorf("call %d went to %s with %d bytes, the first had %d", i, s.paths[i], len(s.bodies[i]), len(s.bodies[0]))
		}
	}
	if s.bodies[0] == s.bodies[1] {
		t.Error("two calls are equal: a prefix cache would answer the second")
	}
}

// TestFailures are counted, and told in a row.
func TestFailures(t *testing.T) {
	for name, h := range map[string]http.Handler{
		"status": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }),
		"html":   http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }),
		"hang":   http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body); <-r.Context().Done() }),
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(h)
			defer server.Close()
			p, records := probed(t, probe.Options{Name: "p", URL: server.URL, Model: "m", Timeout: 50 * time.Millisecond}, 1)
			if records[0].Outcome == call.Completed {
				t.Errorf("outcome %s", records[0].Outcome)
			}
			if at := p.State(); at.Failed != at.Calls || at.InARow != at.Calls || at.Latest.Outcome != records[0].Outcome || at.NoUsage != at.Calls || at.Input != 0 || at.Output != 0 {
				t.Errorf("state %+v", at)
			}
		})
	}
}

// TestEndIsNoFailure: a call that is under way when the probe ends says nothing.
func TestEndIsNoFailure(t *testing.T) {
	came := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		came <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	p, err := probe.New(probe.Options{Name: "p", URL: server.URL, Model: "m", Report: func(string, *call.Record) { t.Error("it was reported") }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	<-came
	cancel()
	<-done
	if at := p.State(); at.Calls != 0 || at.Failed != 0 {
		t.Errorf("state %+v", at)
	}
}

// TestOptions: what is wrong is told, and no key with it.
func TestOptions(t *testing.T) {
	good := probe.Options{Name: "p", URL: "http://127.0.0.1:1/api", Model: "m", Key: "sk-secret"}
	if err := good.Validate(); err != nil {
		t.Errorf("good options: %v", err)
	}
	for want, change := range map[string]func(*probe.Options){
		"needs a name":      func(o *probe.Options) { o.Name = "" },
		"name of a model":   func(o *probe.Options) { o.Model = "" },
		"the URL of a site": func(o *probe.Options) { o.URL = "http://user:sk-secret@host" },
		"every is at least": func(o *probe.Options) { o.Every = time.Millisecond },
		"timeout is at":     func(o *probe.Options) { o.Timeout = -1 },
		"1 to 256 tokens":   func(o *probe.Options) { o.Output = 1000 },
	} {
		o := good
		change(&o)
		err := o.Validate()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sk-secret") {
			t.Errorf("want %q, got %v", want, err)
		}
		if _, err := probe.New(o); err == nil {
			t.Errorf("%s: a probe was made", want)
		}
	}
}
