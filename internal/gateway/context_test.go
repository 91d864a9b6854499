package gateway

import (
	"github.com/weirgate/weir/internal/rtt"

	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"
	"time"
)

// TestHookedContext: transports find the call's hooks, and whoever derives a
// context still finds the client's values and its end.
func TestHookedContext(t *testing.T) {
	type key struct{}
	client, leave := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
	hooks := new(httptrace.ClientTrace)
	c := &hookedContext{Context: client, hooks: hooks}
	derived, cancel := context.WithCancel(c)
	defer cancel()
	if hooksKey == nil || httptrace.ContextClientTrace(derived) != hooks {
		t.Error("the hooks are not found")
	}
	if derived.Value(key{}) != "value" {
		t.Error("the client's values are hidden")
	}
	leave()
	<-derived.Done()
	if derived.Err() != context.Canceled {
		t.Errorf("the client left, and the context ended with %v", derived.Err())
	}
}

// TestHooksOutside: hooks that a handler outside has set run beside ours, and
// ours are not changed by that for the next call.
func TestHooksOutside(t *testing.T) {
	g := New(ignored{})
	for range 3 {
		heard := 0
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { heard++ }})
		r := httptest.NewRequestWithContext(ctx, "POST", "/v1/chat/completions", http.NoBody)
		c := g.Begin(r, new(Options), new(Surroundings))
		_ = c.Serve(nowhere{http.Header{}}, NextFunc(func(w http.ResponseWriter, r *http.Request) error {
			attempted(r)
			w.WriteHeader(http.StatusOK)
			return nil
		}))
		if heard != 1 || c.Record().Attempts != 1 {
			t.Fatalf("outside heard of %d connections, we of %d; want 1 and 1", heard, c.Record().Attempts)
		}
	}
}

// bare is a writer without deadlines, and wrapped one around another.
type bare struct{ http.ResponseWriter }
type wrapped struct{ http.ResponseWriter }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func TestCutBy(t *testing.T) {
	plain := httptest.NewRequest("POST", "/", nil)
	served := plain.WithContext(context.WithValue(plain.Context(), http.ServerContextKey, new(http.Server)))
	two := served.Clone(served.Context())
	two.ProtoMajor = 2
	deadlines := nowhere{http.Header{}}
	for name, c := range map[string]struct {
		w    http.ResponseWriter
		r    *http.Request
		want bool
	}{
		"HTTP/1 server":         {deadlines, served, true},
		"wrapped twice":         {wrapped{wrapped{deadlines}}, served, true},
		"no deadlines":          {bare{deadlines}, served, false},
		"hidden behind another": {wrapped{bare{deadlines}}, served, false},
		"no server":             {deadlines, plain, false},
		"HTTP/2":                {deadlines, two, false},
	} {
		if got := cutBy(innermost(c.w), c.r); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestTraceIsReusedWhenQuiet: a trace that a hook may still reach is never given
// to another call.
func TestTraceIsReusedWhenQuiet(t *testing.T) {
	all := func(t *upstreamTrace) {
		t.getConn("")
		t.gotConn(httptrace.GotConnInfo{})
		t.wroteRequest(httptrace.WroteRequestInfo{})
		t.gotFirstByte()
	}
	for name, c := range map[string]struct {
		do    func(*upstreamTrace)
		quiet bool
	}{
		"one attempt, answered":  {all, true},
		"no attempt":             {func(*upstreamTrace) {}, false},
		"still connecting":       {func(t *upstreamTrace) { t.getConn("") }, false},
		"answered while writing": {func(t *upstreamTrace) { t.getConn(""); t.gotConn(httptrace.GotConnInfo{}); t.gotFirstByte() }, false},
		"not answered": {func(t *upstreamTrace) {
			t.getConn("")
			t.gotConn(httptrace.GotConnInfo{})
			t.wroteRequest(httptrace.WroteRequestInfo{})
		}, false},
		"two attempts":      {func(t *upstreamTrace) { t.getConn(""); all(t) }, false},
		"an interim answer": {func(t *upstreamTrace) { all(t); t.gotInterim() }, false},
	} {
		trace := newTrace(t.Context(), time.Now(), new(rtt.Samples))
		c.do(trace)
		trace.take()
		trace.free()
		if freed := trace.ctx == nil; freed != c.quiet {
			t.Errorf("%s: freed %v, want %v", name, freed, c.quiet)
		}
	}
}
