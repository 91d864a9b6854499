package caddymodule

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/telemetry"
)

// own counts the series of weir's own metrics.
func (s series) own() (n int) {
	for name := range s {
		if strings.HasPrefix(name, "weir_") || strings.HasPrefix(name, "gen_ai_") {
			n++
		}
	}
	return n
}

// values lists what a label is, over all series of weir's own.
func (s series) values(label string) map[string]bool {
	all := make(map[string]bool)
	pattern := regexp.MustCompile(`[{,]` + label + `="([^"]*)"`)
	for name := range s {
		if m := pattern.FindStringSubmatch(name); m != nil && (strings.HasPrefix(name, "weir_") || strings.HasPrefix(name, "gen_ai_")) {
			all[m[1]] = true
		}
	}
	return all
}

// split parts those whose names begin in one way from the others.
func (s series) split(prefix string) (with, without series) {
	with, without = make(series), make(series)
	for name, v := range s {
		if strings.HasPrefix(name, prefix) {
			with[name] = v
		} else {
			without[name] = v
		}
	}
	return with, without
}

// TestLabelsAreBounded (cases row 42): scanner paths and junk models make no
// series of their own, be they refused upstream or served.
func TestLabelsAreBounded(t *testing.T) {
	up := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case !strings.Contains(r.URL.Path, "chat"), strings.Contains(string(body), "junk"):
			http.Error(w, `{"error":{"message":"no such model","type":"not_found_error"}}`, http.StatusNotFound)
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, chunk(0)+usageEvent+done)
		}
	}))
	s := newSite(t)
	run := start(t, "", s.http("weir\nreverse_proxy "+up))
	c := client(t, "http/1.1")
	ask := func(path, model string) {
		t.Helper()
		r := post(context.Background(), t, s.url("http/1.1", path), "labels", strings.Replace(streaming, `"m"`, `"`+model+`"`, 1))
		r.Header.Set("Authorization", "Bearer sk-"+model)
		fetch(t, c, r)
	}
	const chat = "/v1/chat/completions"
	ask(chat, "good")
	ask(chat, "junk")
	run.recordsOf("labels", 2)
	until(t, "both calls counted", func() bool { return run.metrics().sum("weir_calls_total") == 2 })
	before := run.metrics().own()

	for i := range 500 {
		ask(fmt.Sprintf("/wp-admin/%d/setup.php", i), "good")
	}
	m := run.metrics()
	if got := m.sum("weir_unmeasured_requests_total", `reason="unknown_path"`); got != 500 {
		t.Errorf("%v unmeasured requests, want 500", got)
	}
	if n := m.own() - before; n != 1 {
		t.Errorf("500 scanner paths made %d series", n)
	}

	for i := range 500 {
		ask(chat, fmt.Sprint("junk-", i))
	}
	until(t, "all calls counted", func() bool { return run.metrics().sum("weir_calls_total") == 502 })
	m = run.metrics()
	if got := m.sum("weir_calls_total", `model="_other"`, `status_class="4xx"`); got != 501 {
		t.Errorf("%v calls count under _other, want 501", got)
	}
	if n := m.own() - before; n != 1 {
		t.Errorf("500 junk models made %d series", n-1)
	}

	const served = 2 * telemetry.ModelCap
	for i := range served {
		ask(chat, fmt.Sprint("served-", i))
	}
	until(t, "all calls counted", func() bool { return run.metrics().sum("weir_calls_total") == 502+served })
	m = run.metrics()
	// Objectives learn models by themselves, and have sums over all of them.
	objectives, calls := m.split("weir_slo_")
	models := calls.values("model")
	if len(models) != telemetry.ModelCap+1 || !models["_other"] || !models["good"] {
		t.Errorf("%d models have a label, want %d and _other", len(models), telemetry.ModelCap)
	}
	if models := objectives.values("model"); len(models) != telemetry.ModelCap+2 || !models["_other"] || !models[""] {
		t.Errorf("%d models have a label at objectives, want %d, _other and all of them together", len(models), telemetry.ModelCap)
	}
	if got := m.sum("weir_calls_total", `model="_other"`, `outcome="completed"`); got != served-telemetry.ModelCap+1 {
		t.Errorf("%v completed calls under _other", got)
	}
	if got := m.sum("weir_tokens_total", `kind="input"`); got != (served+1)*7 {
		t.Errorf("%v input tokens, want %d: none may get lost in _other", got, (served+1)*7)
	}
	for name := range m {
		if strings.Contains(name, "sk-") || strings.Contains(name, "wp-admin") {
			t.Errorf("from outside: %s", name)
		}
	}
}

// TestUnmeasured: what is no inference call passes untouched, leaves no record
// and is counted.
func TestUnmeasured(t *testing.T) {
	up := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Accept-Encoding", r.Header.Get("Accept-Encoding"))
		w.Header().Set("Access-Control-Allow-Origin", "*")
		fmt.Fprintf(w, "%s %s %s", r.Method, r.URL, body)
	}))
	metered, bare := newSite(t), newSite(t)
	run := start(t, "", metered.http("weir\nreverse_proxy "+up)+bare.http("reverse_proxy "+up))
	c := client(t, "http/1.1")
	for i, ask := range []struct{ method, path, reason string }{
		{http.MethodGet, "/v1/chat/completions", "method"},
		{http.MethodOptions, "/v1/chat/completions", "method"},
		{http.MethodHead, "/v1/messages", "method"},
		{http.MethodDelete, "/v1/responses", "method"},
		{http.MethodGet, "/v1/responses/resp_1", "unknown_path"},
		{http.MethodGet, "/v1/models", "unknown_path"},
		{http.MethodPost, "/v1/files", "unknown_path"},
		{http.MethodPost, "/", "unknown_path"},
	} {
		before := run.metrics().sum("weir_unmeasured_requests_total", `reason="`+ask.reason+`"`)
		var got [2]answered
		for j, s := range []site{bare, metered} {
			r := post(context.Background(), t, s.url("http/1.1", ask.path), "unmeasured", "a body")
			r.Method = ask.method
			got[j] = fetch(t, c, r)
			for _, h := range []string{"Date", "Alt-Svc"} {
				got[j].header.Del(h)
			}
		}
		if got[0].status != got[1].status || got[0].body != got[1].body {
			t.Errorf("%s %s: %d %q, without weir %d %q", ask.method, ask.path, got[1].status, got[1].body, got[0].status, got[0].body)
		}
		diffHeaders(t, ask.method+" "+ask.path, got[0].header, got[1].header)
		if after := run.metrics().sum("weir_unmeasured_requests_total", `reason="`+ask.reason+`"`); after != before+1 {
			t.Errorf("case %d: counted %v times as %s", i, after-before, ask.reason)
		}
	}
	if n := len(run.records("")); n != 0 {
		t.Errorf("%d records", n)
	}
}
