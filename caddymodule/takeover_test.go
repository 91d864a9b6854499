package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirgate/weir/internal/call"
)

// watching are the users of each watcher, by its kind and configuration.
func watching() map[string]int {
	users := make(map[string]int)
	watchers.Range(func(key, _ any) bool { users[key.(string)] = 0; return true })
	for key := range users {
		users[key], _ = watchers.References(key)
	}
	return users
}

// TestBesideTakesOver: a reload that says something else of what looks on puts it
// into effect, at addresses of which the configuration before still uses some, and
// a call in flight leaves its spans all the same. One that fails gives back all.
func TestBesideTakesOver(t *testing.T) {
	spans, collectorURL := collector(t)
	up := newScript(t)
	s := newSite(t)
	first, second, shared, engine := freeAddress(t), freeAddress(t), freeAddress(t), freeAddress(t)
	globals := func(http, window, keep string) string {
		return fmt.Sprintf("weir {\notlp %s {\nkeep_e2e %s\n}\notlp_receiver %s {\ngrpc %s\nwindow %s\n}\nengine vllm http://%s\n}",
			collectorURL, keep, http, shared, window, engine)
	}
	sites := s.http("weir\nreverse_proxy " + up.address)
	r := start(t, globals(first, "2s", "1m"), sites)
	res, x := open(t, up, client(t, "http/1.1"), post(context.Background(), t, s.url("http/1.1", "/v1/chat/completions"), "over", streaming))
	expect(t, res.Body, chunk(0))

	r.load(globals(second, "3s", "2m"), sites)
	if _, body := r.get("/weir/traces"); !strings.Contains(string(body), `"window_ms":3000`) {
		t.Errorf("the new window is not in effect: %s", body)
	}
	if c, err := net.Dial("tcp", first); err == nil {
		c.Close()
		t.Error("the old receiver still listens")
	}
	for _, address := range []string{second, shared} {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatalf("the new receiver: %v", err)
		}
		c.Close()
	}
	before := watching()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if err := r.tryLoad(globals(taken.Addr().String(), "4s", "3m"), sites); err == nil {
		t.Error("an address that is taken is no error")
	}
	if after := watching(); fmt.Sprint(after) != fmt.Sprint(before) || len(after) != 3 {
		t.Errorf("after a reload that failed there are %v, before %v", after, before)
	}

	x.send(chunk(1) + usageEvent + done)
	x.finish()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Error(err)
	}
	res.Body.Close()
	rec := r.record("over")
	if rec.Outcome != call.Completed || rec.TraceID == "" {
		t.Errorf("outcome %s, trace %q", rec.Outcome, rec.TraceID)
	}
	if byName := spans.of(t, rec.TraceID, 4); len(byName["attempt"]) != 1 {
		t.Errorf("spans %v", byName)
	}
	r.load("", sites)
	until(t, "an end of the watching", func() bool { return len(watching()) == 0 })
}

// TestTogether: what ends does not wait for what ends beside it, and all errors are told.
func TestTogether(t *testing.T) {
	one, other := make(chan struct{}), make(chan struct{})
	failed := errors.New("failed")
	err := together([]func() error{
		func() error { close(one); <-other; return nil },
		func() error { close(other); <-one; return failed },
	})
	if !errors.Is(err, failed) {
		t.Errorf("told %v", err)
	}
	if err := together(nil); err != nil {
		t.Error(err)
	}
}

// TestForwardPlaceholders: what goes on to the collector carries what the
// environment says, which no file need hold.
func TestForwardPlaceholders(t *testing.T) {
	t.Setenv("TEST_TOKEN", "from-the-environment")
	t.Setenv("TEST_COLLECTOR", "collector.example")
	c := ReceiverConfig{HTTP: "127.0.0.1:0", Forward: "http://{env.TEST_COLLECTOR}:4318", Headers: map[string]string{"x-token": "Bearer {env.TEST_TOKEN}"}}
	collector, header := c.forward()
	if collector != "http://collector.example:4318" || header.Get("X-Token") != "Bearer from-the-environment" {
		t.Errorf("forwards to %s with %v", collector, header)
	}
}

// TestFailingReloadFailsNoCall: Caddy starts its apps in no particular order, so
// that calls may come to a configuration whose watchers turn out not to work. They
// are answered all the same.
func TestFailingReloadFailsNoCall(t *testing.T) {
	upstream := serve(t, http.HandlerFunc(telling))
	s := newSite(t)
	sites := s.http("weir\nreverse_proxy " + upstream)
	r := start(t, "", sites)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	fails := r.adapt(fmt.Sprintf("weir {\notlp http://%s\notlp_receiver %s\n}", freeAddress(t), taken.Addr()), sites)
	var wrong, answered atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for range 3 {
		c := client(t, "http/1.1")
		c.Transport.(*http.Transport).DisableKeepAlives = true // each may meet either configuration
		callers.Go(func() {
			for ctx.Err() == nil {
				// A connection may come to nothing, since the listener of the configuration that fails closes.
				if res, err := c.Do(post(ctx, t, s.url("http/1.1", "/v1/chat/completions"), "failing", `{"model":"m","stream":true,"messages":[]}`)); err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					res.Body.Close()
					if answered.Add(1); res.StatusCode != http.StatusOK {
						wrong.Add(1)
					}
				}
			}
		})
	}
	for range 20 {
		if err := caddy.Load(fails, true); err == nil {
			t.Error("an address that is taken is no error")
		}
	}
	stop()
	callers.Wait()
	if wrong.Load() > 0 || answered.Load() == 0 {
		t.Errorf("%d calls of %d were not answered well", wrong.Load(), answered.Load())
	}
	if left := watching(); len(left) != 0 {
		t.Errorf("still watching: %v", left)
	}
}
