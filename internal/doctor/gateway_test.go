package doctor

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/dialect"
	"github.com/weirgate/weir/internal/endpoint"
	"github.com/weirgate/weir/internal/engine"
	"github.com/weirgate/weir/internal/meter"
	"github.com/weirgate/weir/internal/sim"
)

// weirLike is a gateway before an engine that records calls as ours does, and
// its admin endpoint.
type weirLike struct {
	engine http.Handler
	change func(*call.Record) // what it records otherwise
	config string
	ready  int
	// engines is what /weir/engines says; "" is that there are none.
	engines string

	mu      sync.Mutex
	records []*call.Record
}

func (g *weirLike) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	found := dialect.ByPath(r.URL.Path)
	if r.Method != http.MethodPost || len(found) == 0 {
		g.engine.ServeHTTP(w, r)
		return
	}
	received := time.Now()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	look := dialect.NewLook(found, r.URL.Path, "", r.Header.Get("Content-Type"))
	look.Write(body)
	d, request, _ := look.Done(true)
	look.Free()
	r.Body = io.NopCloser(bytes.NewReader(body))
	m := meter.New(d, &request)
	t := &tapped{ResponseWriter: w, m: m, received: received}
	g.engine.ServeHTTP(t, r)
	rec := &call.Record{Identity: call.Identity{RequestID: r.Header.Get("X-Request-Id"), Run: r.Header.Get("X-Weir-Run"), Dialect: d.Name}}
	m.Finish(rec, meter.End{At: time.Since(received), Status: t.status})
	if g.change != nil {
		g.change(rec)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.records = append(g.records, rec)
}

// tapped hands an answer on, and to a meter.
type tapped struct {
	http.ResponseWriter
	m        *meter.Meter
	received time.Time
	status   int
}

func (t *tapped) WriteHeader(status int) {
	t.status = status
	t.m.Header(status, t.Header())
	t.ResponseWriter.WriteHeader(status)
}

func (t *tapped) Write(b []byte) (int, error) {
	if t.status == 0 {
		t.WriteHeader(http.StatusOK)
	}
	begin := time.Since(t.received)
	n, err := t.ResponseWriter.Write(b)
	t.Flush()
	t.m.Write(b, begin, time.Since(t.received))
	return n, err
}

func (t *tapped) Flush() {
	if f, is := t.ResponseWriter.(http.Flusher); is {
		f.Flush()
	}
}

func (g *weirLike) admin(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/weir/ready":
		w.WriteHeader(g.ready)
		_, _ = io.WriteString(w, "ok\n")
	case "/weir/engines":
		if g.engines == "" {
			w.WriteHeader(404)
			return
		}
		_, _ = io.WriteString(w, g.engines)
	case "/weir/calls":
		g.mu.Lock()
		defer g.mu.Unlock()
		calls := []*call.Record{}
		for _, rec := range slices.Backward(g.records) {
			if rec.Run == r.URL.Query().Get("run") {
				calls = append(calls, rec)
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"calls": calls})
	case "/config/apps/http/servers":
		_, _ = io.WriteString(w, g.config)
	default:
		w.WriteHeader(404)
	}
}

// goodConfig is what Caddy shows of a site with weir before an engine.
const goodConfig = `{"srv0":{"routes":[{"handle":[{"handler":"subroute","routes":[{"handle":[{"handler":"weir"},
	{"handler":"reverse_proxy","transport":{"protocol":"http","keep_alive":{"idle_timeout":4000000000}},"upstreams":[{"dial":"127.0.0.1:8000"}]}]}]}]}]}}`

// through is a configuration that checks a gateway.
func (g *weirLike) through(t *testing.T) Config {
	t.Helper()
	if g.config == "" {
		g.config = goodConfig
	}
	if g.ready == 0 {
		g.ready = 200
	}
	cfg := of(serve(t, g) + "/v1")
	cfg.Admin = serve(t, http.HandlerFunc(g.admin))
	return cfg
}

func TestGatewayHealthy(t *testing.T) {
	c := steady(sim.VLLM)
	c.PerRequestMetrics, c.ForceUsage = true, true
	g := &weirLike{engine: start(t, c)}
	findings := run(t, g.through(t))
	for _, f := range findings {
		if f.Level != Green && !(f.Level == Grey && f.Check == "gpu") {
			t.Errorf("an alarm for nothing: %+v", f)
		}
	}
	want(t, findings, "record", Green, "all 4 calls")
	want(t, findings, "meter", Green, "the same tokens")
	want(t, findings, "config", Green, "1 reverse_proxy")
	for _, rec := range g.records {
		if rec.Run == "" || !strings.HasPrefix(rec.RequestID, rec.Run) {
			t.Errorf("a call without the run's name: %+v", rec.Identity)
		}
	}
	if got := len(findings); got != len(Checks()) {
		t.Errorf("%d findings, want %d", got, len(Checks()))
	}
}

// TestNoGateway: without one its checks are not made, and no call is marked.
func TestNoGateway(t *testing.T) {
	g := &weirLike{engine: start(t, quick(sim.VLLM))}
	cfg := g.through(t)
	cfg.Admin = ""
	findings := run(t, cfg)
	if last := findings[len(findings)-1].Check; last != "gpu" {
		t.Errorf("the last check is %s, want gpu", last)
	}
	for _, rec := range g.records {
		if rec.Run != "" {
			t.Errorf("a call to an endpoint that is no gateway bears a run: %+v", rec.Identity)
		}
	}
}

func TestGatewayFaults(t *testing.T) {
	e := start(t, quick(sim.VLLM))
	status := func(code int) string { return serve(t, says(code, "")) }
	for _, c := range []struct {
		name, admin string
		parts       []string
	}{
		{"nothing there", "http://127.0.0.1:1", []string{"cannot be reached: connection refused", "weir run"}},
		{"no address", "http://[", []string{"cannot be read", "127.0.0.1:2019"}},
		{"not ready", status(503), []string{"takes no calls", "weir before reverse_proxy"}},
		{"no Weir", status(404), []string{"Weir is not in it", "weir run"}},
		{"not allowed", status(403), []string{"403", "origins"}},
		{"another", status(500), []string{"answers 500"}},
		{"a web page", serve(t, says(200, "<!doctype html><title>welcome</title>")), []string{"is not the gateway's admin endpoint", "a web page (200)", "--admin http://127.0.0.1:2019"}},
		{"a web page, not found", serve(t, says(404, "<html>no</html>")), []string{"is not the gateway's admin endpoint", "a web page (404)"}},
		{"something that says yes", status(200), []string{"is not the gateway's admin endpoint", "answers 200"}},
		{"wants a key", serve(t, says(401, `{"error":{"message":"no","code":"invalid_api_key"}}`)), []string{"is not the gateway's admin endpoint", "answers 401"}},
		{"a closed path", serve(t, says(403, `{"error":{"message":"no","code":"path_not_allowed"}}`)), []string{"is not the gateway's admin endpoint"}},
		{"an engine", serve(t, says(404, `{"detail":"Not Found"}`)), []string{"is not the gateway's admin endpoint"}},
		{"redirect", status(302), []string{"is not the gateway's admin endpoint"}},
		{"origin not allowed", serve(t, says(403, `{"error":"host not allowed: x"}`)), []string{"does not allow this address"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := (&weirLike{engine: e}).through(t)
			cfg.Admin = c.admin
			findings := run(t, cfg)
			want(t, findings, "gateway", Red, c.parts...)
			for _, check := range []string{"record", "ttft", "meter", "config"} {
				want(t, findings, check, Grey, "not checked because "+find(t, findings, "gateway").Title)
			}
			want(t, findings, "answer", Green)
		})
	}
}

func TestRecords(t *testing.T) {
	forced := steady(sim.VLLM)
	forced.ForceUsage = true
	e := start(t, forced)
	degraded := func(d ...call.Degradation) func(*call.Record) {
		return func(r *call.Record) { r.Degraded = append(r.Degraded, d...) }
	}
	for _, c := range []struct {
		name   string
		engine http.Handler
		change func(*call.Record)
		check  string
		level  Level
		parts  []string
	}{
		{"no directive", e, func(r *call.Record) { r.Run = "other" }, "record", Red, []string{"left no record", "weir stands before reverse_proxy"}},
		{"some missing", e, func(r *call.Record) {
			if strings.HasSuffix(r.RequestID, "-gzip") {
				r.RequestID = "x"
			}
		}, "record", Yellow, []string{"3 of 4 calls", "/weir/calls"}},
		{"later token there", e, func(r *call.Record) { r.TTFT = call.Lasting(3 * time.Second) }, "ttft", Yellow, []string{"later first token", "this gateway"}},
		{"token held back here", e, func(r *call.Record) { r.TTFT = call.Lasting(-3 * time.Second) }, "ttft", Yellow, []string{"from the gateway to here", "holds streams back"}},
		{"no TTFT", e, func(r *call.Record) { r.TTFT = call.Duration{} }, "ttft", Grey, []string{"not compared"}},
		{"other tokens", e, func(r *call.Record) { r.Output = call.Known(1) }, "meter", Yellow, []string{"other tokens", "plain"}},
		{"refused", e, func(r *call.Record) { r.RefusedBy = "key tokens_per_minute" }, "meter", Yellow, []string{"key tokens_per_minute", "/weir/limits"}},
		{"usage hidden", start(t, quick(sim.VLLM)), degraded(call.UsageHidden), "meter", Green, []string{"see usage above"}},
		{"two reasons", e, degraded(call.ParseErrors, call.EventTooLong), "meter", Yellow, []string{"parse_errors", "event_too_long", "writes into streams"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			findings := run(t, (&weirLike{engine: c.engine, change: c.change}).through(t))
			want(t, findings, c.check, c.level, c.parts...)
		})
	}
}

// TestCallsUnreadable: an admin endpoint that does not show its calls.
func TestCallsUnreadable(t *testing.T) {
	g := &weirLike{engine: start(t, quick(sim.VLLM))}
	cfg := g.through(t)
	for body, part := range map[string]string{"404": "answers 404", "not JSON": "cannot be read"} {
		cfg.Admin = serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/weir/ready":
				_, _ = io.WriteString(w, "ok\n")
			case body == "404":
				w.WriteHeader(404)
			default:
				_, _ = io.WriteString(w, body)
			}
		}))
		findings := run(t, cfg)
		want(t, findings, "record", Red, "does not show its calls", part)
		want(t, findings, "ttft", Grey, "not checked because")
		want(t, findings, "config", Grey, "not looked at")
	}
}

// TestUsageAtAGateway: what a gateway cannot bill is an alarm.
func TestUsageAtAGateway(t *testing.T) {
	c := quick(sim.VLLM)
	c.Fault = "no_usage"
	findings := run(t, (&weirLike{engine: start(t, c)}).through(t))
	want(t, findings, "usage", Red, "no answer tells")
	want(t, findings, "record", Green)
}

// TestExplained: each reason that a record may give has an explanation.
func TestExplained(t *testing.T) {
	unknown, _ := explain("something new")
	for _, d := range []call.Degradation{call.BodyTooLarge, call.BodyBudget, call.BodyMalformed, call.BodyEncoded, call.EventTooLong, call.ParseErrors,
		call.EncodingUnknown, call.InflateFailed, call.InflateLimit, call.PhaseClamped, call.MeterFault} {
		if why, next := explain(d); why == "" || why == unknown || next == "" {
			t.Errorf("%s is explained as %q, %q", d, why, next)
		}
	}
}

func TestConfig(t *testing.T) {
	proxy := func(more string) string {
		return `{"srv0":{"routes":[{"handle":[{"handler":"weir"},{"handler":"reverse_proxy"` + more + `}]}]}}`
	}
	for _, c := range []struct {
		name, config string
		kind         engine.Kind
		level        Level
		parts        []string
	}{
		{"good", goodConfig, engine.VLLM, Green, nil},
		{"no directive", strings.Replace(goodConfig, `"handler":"weir"`, `"handler":"headers"`, 1), engine.VLLM, Red, []string{"directive weir", "before reverse_proxy"}},
		{"default keep-alive", proxy(""), engine.SGLang, Yellow, []string{"for 2m", "close idle connections after 5 s", "keepalive 4s"}},
		{"default keep-alive, unknown engine", proxy(""), "", Green, nil},
		{"no keep-alive", proxy(`,"transport":{"protocol":"http","keep_alive":{"enabled":false}}`), engine.VLLM, Green, nil},
		{"long keep-alive", proxy(`,"transport":{"keep_alive":{"idle_timeout":"1m"}}`), engine.LlamaCPP, Yellow, []string{"for 1m"}},
		{"buffers", proxy(`,"response_buffers":4096`), "", Yellow, []string{"buffers answers", "response_buffers"}},
		{"flushes", proxy(`,"flush_interval":100000000`), "", Yellow, []string{"flushes at intervals", "-1"}},
		{"flushes at once", proxy(`,"flush_interval":-1`), "", Green, nil},
		{"no Bearer", proxy(`,"headers":{"request":{"set":{"Authorization":["{env.UPSTREAM_KEY}"]}}}`), "", Yellow, []string{"the word Bearer is missing", `"Bearer {env.NAME}"`}},
		{"Bearer", proxy(`,"headers":{"request":{"set":{"Authorization":["Bearer {env.UPSTREAM_KEY}"]}}}`), "", Green, nil},
		{"odd", `{"a":[1,"x",null,{"handler":7},{"handler":"weir"},{"handler":"reverse_proxy","transport":3,"headers":[]}]}`, engine.VLLM, Yellow, nil},
		{"none", `null`, "", Grey, []string{"no configuration"}},
		{"broken", `{"srv0":`, "", Grey, nil},
		{"deep", strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000), "", Red, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := newVisit(of("http://127.0.0.1:1"))
			v.engine, v.gate.admin = c.kind, serve(t, says(200, c.config))
			f := checkConfig(t.Context(), v)
			f.Check = "config"
			want(t, []Finding{f}, "config", c.level, c.parts...)
		})
	}
}

// TestRefusedByGateway: a gateway of ours that requires keys.
func TestRefusedByGateway(t *testing.T) {
	g := &weirLike{engine: says(401, `{"error":{"message":"no","code":"invalid_api_key"}}`)}
	cfg := g.through(t)
	cfg.Key = "weir-test-another-one-0123"
	want(t, run(t, cfg), "key", Red, "401", "weir keys list")
	if g.records[0].Outcome != call.UpstreamError {
		t.Errorf("the outcome is %s", g.records[0].Outcome)
	}
	if endpoint.KindOfStatus(g.records[0].Status) != endpoint.FailedAuth {
		t.Errorf("the status is %d", g.records[0].Status)
	}
}
