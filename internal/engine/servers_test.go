package engine

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestServers reads servers that misbehave, over real connections: each is
// reported once, with what to do, and nothing secret in it.
func TestServers(t *testing.T) {
	for name, tt := range map[string]struct {
		handler http.HandlerFunc // nil is nobody there
		want    string
	}{
		"dead":      {nil, "is it running, and reachable from here?"},
		"asks who":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, "write user and password into the address"},
		"forbids":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }, "let this machine read its metrics"},
		"not there": {http.NotFound, "SGLang with --enable-metrics"},
		"no engine": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "<!DOCTYPE html>\n<p>Hello {world}\n")
		}, "is this the engine's own address?"},
		"hangs up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "is it running"},
		"breaks off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			_, _ = io.WriteString(w, "tgi_")
		}, "read the answer"},
		"other engine": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "sglang:num_queue_reqs 1\n") }, "the page is sglang's, not vllm's"},
		"says a lot": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(599)
			_, _ = io.WriteString(w, strings.Repeat("hunter2", 1<<20))
		}, "it answered 599"},
	} {
		server := httptest.NewServer(tt.handler)
		if tt.handler == nil {
			server.Close()
		}
		reports := make(chan error, 16)
		address := strings.Replace(server.URL, "http://", "http://user:hunter2@", 1) + "/v1?key=hunter2"
		s, err := NewSampler(Options{Address: address, Kind: VLLM, Every: minEvery, Report: func(err error) { reports <- err }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { s.Run(ctx) })
		err = <-reports
		for s.State().Failures < 2 {
			time.Sleep(time.Millisecond)
		}
		cancel()
		wg.Wait()
		st := s.State()
		shown, _ := json.Marshal(st)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error()+string(shown), "hunter2") || !strings.Contains(err.Error(), server.URL+"/metrics") {
			t.Errorf("%s: error %v, state %s, want %q", name, err, shown, tt.want)
		}
		if len(reports) > 0 || st.Working || st.Address != server.URL+"/metrics" || len(st.LastError) > 1024 || st.LastFailure.IsZero() || st.Configured != VLLM {
			t.Errorf("%s: %d more reports, state %s", name, len(reports), shown)
		}
		if tt.handler != nil {
			server.Close()
		}
	}
}

// TestRunEnds while an engine does not answer.
func TestRunEnds(t *testing.T) {
	asked := make(chan bool, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- true
		<-r.Context().Done()
	}))
	defer server.Close()
	s, err := NewSampler(Options{Address: server.URL, Report: func(err error) { t.Errorf("reported %v", err) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { s.Run(ctx) })
	<-asked
	cancel()
	wg.Wait()
	if st := s.State(); st.Failures != 0 || st.LastError != "" || st.Working {
		t.Errorf("state %+v", st)
	}
}

// TestConcurrentUse has readers of all kinds beside Run; the race detector judges.
func TestConcurrentUse(t *testing.T) {
	address := serve(t, page(t, "vllm.txt"))
	s, err := NewSampler(Options{Address: address, Every: minEvery})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { s.Run(ctx) })
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				now := time.Now()
				if g, _, known := s.At(now); known && (g.Waiting != exactly(5) || len(g.Ranks) != 2) {
					t.Errorf("got %+v", g)
				}
				_, _ = s.Latest()
				_, _, _ = s.Around(now.Add(-minEvery))
				_, _ = s.NoQueueAt(now.Add(-minEvery))
				if _, err := json.Marshal(s.State()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for s.State().Readings < 3 {
		time.Sleep(5 * time.Millisecond)
	}
	cancel()
	wg.Wait()
	b, err := json.Marshal(s.State())
	for _, want := range []string{`"address":"` + address + `/metrics"`, `"configured":"auto"`, `"engine":"vllm"`, `"every_ms":100`, `"working":true`,
		`"failures_in_a_row":0`, `"last_success":"`, `"took_ms":`, `"readings":`, `"oldest_reading":"`, `"latest":{`, `"rank":"1"`} {
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s does not say %s (%v)", b, want, err)
		}
	}
}
