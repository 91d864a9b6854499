package doctor

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/engine"
	"github.com/weirgate/weir/internal/sim"
)

// TestAdminIsTheEndpoint: the gateway's own address is not its admin endpoint's.
func TestAdminIsTheEndpoint(t *testing.T) {
	g := &weirLike{engine: start(t, quick(sim.VLLM))}
	cfg := g.through(t)
	for _, admin := range []string{strings.TrimSuffix(cfg.Base, "/v1"), strings.Replace(strings.TrimSuffix(cfg.Base, "/v1"), "127.0.0.1", "localhost", 1)} {
		cfg.Admin = admin
		findings := run(t, cfg)
		want(t, findings, "gateway", Red, "the admin address is that of the endpoint itself", "--admin http://127.0.0.1:2019")
		want(t, findings, "answer", Green)
		if cause := find(t, findings, "record").Cause; cause != "gateway" {
			t.Errorf("record was not made because of %q", cause)
		}
	}
}

// TestEndpointIsTheAdmin: the admin endpoint takes no calls.
func TestEndpointIsTheAdmin(t *testing.T) {
	g := &weirLike{engine: start(t, quick(sim.VLLM))}
	cfg := g.through(t)
	for _, admin := range []string{"", cfg.Admin} {
		c := of(cfg.Admin)
		c.Admin = admin
		findings := run(t, c)
		want(t, findings, "path", Red, "the base URL is the admin endpoint of a gateway", "with --admin")
		want(t, findings, "answer", Grey, "not checked because the base URL is the admin endpoint")
		if admin != "" {
			want(t, findings, "gateway", Green)
		}
	}
}

// TestMetricsThroughAGateway: what a gateway keeps closed is taken from its admin
// endpoint, where it has it.
func TestMetricsThroughAGateway(t *testing.T) {
	const works = `{"engines":[{"address":"http://10.0.0.1:8000/metrics","engine":"vllm","working":true,"latest":{"engine":"vllm","running":2,"waiting":0},"upstreams":["10.0.0.1:8000"]}]}`
	for _, c := range []struct {
		name    string
		status  int
		engines string
		level   Level
		parts   []string
		kind    engine.Kind
	}{
		{"404", 404, works, Green, []string{"vllm, running 2, waiting 0"}, engine.VLLM},
		{"401", 401, works, Green, []string{"vllm, running 2, waiting 0"}, engine.VLLM},
		{"403", 403, works, Green, []string{"vllm, running 2, waiting 0"}, engine.VLLM},
		{"waiting not known", 404, strings.Replace(works, `,"waiting":0`, "", 1), Green, []string{"vllm, running 2"}, engine.VLLM},
		{"does not work", 404, strings.Replace(works, `"working":true`, `"working":false`, 1), Yellow, []string{"cannot read the gauges", "http://10.0.0.1:8000/metrics", "last_error"}, ""},
		{"not watched", 404, "", Grey, []string{"not seen through the gateway (404 at http://127", "closed", "--metrics", "engine's own URL"}, ""},
		{"not watched, 401", 401, "", Grey, []string{"(401 at", "--metrics"}, ""},
		{"none", 404, `{"engines":[]}`, Grey, []string{"--metrics"}, ""},
		{"odd", 404, `<html>`, Grey, []string{"--metrics"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := &weirLike{engine: says(c.status, ""), engines: c.engines}
			v := newVisit(g.through(t))
			v.make(t.Context(), checks[0])
			f := checkMetrics(t.Context(), v)
			f.Check = "metrics"
			want(t, []Finding{f}, "metrics", c.level, c.parts...)
			if v.engine != c.kind {
				t.Errorf("the engine is %q, want %q", v.engine, c.kind)
			}
		})
	}
}

// TestProbe: only what Weir answers is taken for it.
func TestProbe(t *testing.T) {
	for body, want := range map[string]bool{"ok\n": true, "ok": true, "OK": false, "": false, `{"status":"ok"}`: false} {
		if got := isProbe(exchange{status: http.StatusOK, body: []byte(body)}); got != want {
			t.Errorf("%q: %v", body, got)
		}
	}
	if !isProbe(exchange{status: 503, body: []byte("shutting down or not started\n")}) || isProbe(exchange{status: 503, body: []byte("ok")}) {
		t.Error("503 is taken wrongly")
	}
}
