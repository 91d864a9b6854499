package caddymodule

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/keys"
	"github.com/weirgate/weir/internal/ledger"
	"github.com/weirgate/weir/internal/probe"
	"github.com/weirgate/weir/slo"
)

// probed is an upstream that knows a probe's call by its prompt.
type probed struct {
	address string
	release chan struct{} // lets a call that is held go on

	mu     sync.Mutex
	probes []http.Header
	others []http.Header
}

func newProbed(t *testing.T) *probed {
	p := &probed{release: make(chan struct{})}
	p.address = serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		p.mu.Lock()
		if bytes.Contains(body, []byte("Count from one to twenty")) {
			p.probes = append(p.probes, r.Header.Clone())
		} else {
			p.others = append(p.others, r.Header.Clone())
		}
		p.mu.Unlock()
		if r.Header.Get("X-Way") == "held" {
			select {
			case <-p.release:
			case <-r.Context().Done():
			}
		}
		failing(w, r)
	}))
	return p
}

// probes asks /weir/probes.
func (r *run) probes() (all []probe.State) {
	r.t.Helper()
	status, body := r.get("/weir/probes")
	var answer struct{ Probes []probe.State }
	if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusOK {
		r.t.Fatalf("GET /weir/probes: %d %s, %v", status, body, err)
	}
	return answer.Probes
}

// TestProbe: a probe passes a site that requires keys without one, waits in its queue, is
// marked on /weir/calls, has series of its own, and is in no bill, no limit, no objective
// and no other series.
func TestProbe(t *testing.T) {
	up := newProbed(t)
	s, dir := newSite(t), t.TempDir()
	db, access := filepath.Join(dir, "usage.db"), filepath.Join(dir, "access.log")
	file := keyFile(t, keys.Entry{Alias: "team-a"})
	r := start(t, "weir {\nkeys "+file+"\nledger sqlite "+db+"\nprobe chat http://"+s.plain+" {\nmodel m\nevery 1s\n}\n}",
		s.http("log {\noutput file "+access+"\nformat json\n}\nweir {\nrequire_key\nlimit pool {\nrequests_per_minute 100000\n}\nqueue {\ncalls 1\n}\n}\nreverse_proxy "+up.address))
	awhile(t, "two calls of the probe", func() bool { return r.probes()[0].Calls >= 2 })

	// A call holds the only place: the next probe waits.
	held := make(chan answered, 1)
	go func() {
		held <- fetch(t, client(t, "http/1.1"), with(t, s, chatPath, keyOf("team-a"), "held", streaming, "X-Way", "held"))
	}()
	awhile(t, "a probe that waits", func() bool {
		_, body := r.get("/weir/limits")
		up.mu.Lock()
		defer up.mu.Unlock()
		return strings.Contains(string(body), `"waiting":1,`) && len(up.others) == 1
	})
	close(up.release)
	if a := await(t, held, "answer"); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	waited := func(rec *call.Record) bool {
		return rec.Probe && rec.Phases.QueueGateway.Or(0) > 0 && rec.Outcome == call.Completed
	}
	awhile(t, "the record of a probe that waited", func() bool { return slices.ContainsFunc(r.records("run=probe-chat"), waited) })
	r.record("held")

	for _, rec := range r.records("run=probe-chat") {
		if !rec.Probe || rec.Outcome != call.Completed || rec.Key != "" || rec.Class != "interactive" || rec.Model != "m" || rec.Path != chatPath {
			t.Errorf("%+v", rec)
		}
	}
	state := r.probes()[0]
	if state.Name != "chat" || state.Failed != 0 || state.InARow != 0 || state.Latest == nil || state.Latest.Outcome != call.Completed || state.Latest.Status != 200 || !state.Latest.TTFT.IsKnown() {
		t.Errorf("%+v", state)
	}
	up.mu.Lock()
	for _, h := range up.probes {
		if len(h.Values("X-Weir-Probe")) > 0 || h.Get("Authorization") != "" {
			t.Errorf("the upstream got %v", h)
		}
	}
	up.mu.Unlock()

	r.written(1)
	for _, rec := range inLedger(t, db, ledger.Filter{Limit: 100}) {
		if rec.Run != "held" {
			t.Errorf("the ledger has %+v", rec)
		}
	}
	m := r.metrics()
	for what, got := range map[string]float64{
		"calls": m.sum("weir_calls_total"), "first tokens": m.sum("weir_ttft_seconds_count"), "attempts": m.sum("weir_upstream_attempts_total"),
		"phases": m.sum("weir_phase_seconds_count", `phase="upload"`), "requests of the limit": m.sum("weir_limit_used", `dimension="requests_per_minute"`),
		"calls of objectives": m.sum("weir_slo_calls_total", `objective="success"`, `verdict="good"`),
	} {
		if got != 1 && (what != "requests of the limit" || got > 1) { // which flow off
			t.Errorf("%s: %v are counted, one call was made", what, got)
		}
	}
	r.wantCounts("beside probes", "interactive", map[string]slo.Counts{"success": {Good: 1}, "ttft_p99": {Good: 1}})
	for _, series := range []string{`weir_probe_calls_total{probe="chat",outcome="completed"}`, `weir_probe_ttft_seconds_count{probe="chat"}`,
		`weir_probe_tpot_seconds_count{probe="chat"}`, `weir_probe_e2e_seconds_count{probe="chat"}`} {
		if n := m[series]; n < 3 && m[strings.Replace(series, `probe="chat",outcome="completed"`, `outcome="completed",probe="chat"`, 1)] < 3 {
			t.Errorf("%s is %v", series, n)
		}
	}

	// What is in the access log of a probe opens nothing, nor does a guess.
	var marks []string
	for _, e := range entries(t, access) {
		request, _ := e["request"].(map[string]any)
		headers, _ := request["headers"].(map[string]any)
		if seen, _ := headers["X-Weir-Probe"].([]any); len(seen) == 1 {
			marks = append(marks, seen[0].(string))
		}
	}
	if len(marks) < 2 {
		t.Errorf("%d marks are in the access log", len(marks))
	}
	for _, mark := range append(marks, "guessed", strings.Repeat("A", 26)) {
		if got := fetch(t, client(t, "http/1.1"), with(t, s, chatPath, "", "stranger", streaming, "X-Weir-Probe", mark)); got.status != http.StatusUnauthorized {
			t.Errorf("the mark %q opens the site: %d", mark, got.status)
		}
	}
	if got := fetch(t, client(t, "http/1.1"), with(t, s, chatPath, keyOf("team-a"), "guess", streaming, "X-Weir-Probe", "guessed")); got.status != http.StatusOK {
		t.Errorf("a header of somebody's own: %d", got.status)
	}
	if rec := r.record("guess"); rec.Probe || rec.Key != "team-a" {
		t.Errorf("%+v", rec)
	}
	up.mu.Lock()
	if last := up.others[len(up.others)-1]; last.Get("X-Weir-Probe") != "guessed" {
		t.Errorf("the upstream got %v", last)
	}
	up.mu.Unlock()
}

// TestProbeBegins: the first call of a probe meets a site that listens, also after a
// reload, and an upstream that fails shows in its figures alone.
func TestProbeBegins(t *testing.T) {
	up := newProbed(t)
	s := newSite(t)
	globals := "weir {\nprobe chat http://" + s.plain + " {\nmodel m\nevery 1m\n}\n}"
	r := start(t, globals, s.http("weir\nreverse_proxy "+up.address))
	for range 4 {
		awhile(t, "a call of the probe", func() bool { p := r.probes(); return len(p) == 1 && p[0].Calls == 1 })
		if p := r.probes()[0]; p.Failed > 0 {
			t.Errorf("%+v", p)
		}
		r.load(globals, s.http("weir\nreverse_proxy "+up.address))
	}
	awhile(t, "a call of the probe", func() bool { return r.probes()[0].Calls == 1 })
	r.load(globals, s.http("weir\nreverse_proxy "+freeAddress(t)))
	awhile(t, "a call that fails", func() bool { p := r.probes(); return len(p) == 1 && p[0].Failed == 1 && p[0].InARow == 1 })
	if p := r.probes()[0]; p.Latest.Status != http.StatusBadGateway {
		t.Errorf("%+v", p)
	}
	m := r.metrics()
	if failed := m.sum("weir_probe_calls_total") - m.sum("weir_probe_calls_total", `outcome="completed"`); failed != 1 || m.sum("weir_calls_total") != 0 {
		t.Errorf("%v probes failed, %v calls are counted", failed, m.sum("weir_calls_total"))
	}
	r.wantCounts("a probe that fails", "interactive", map[string]slo.Counts{"success": {}})
	r.load("", s.http("weir\nreverse_proxy "+up.address))
	awhile(t, "an end of probing", func() bool { return len(r.probes()) == 0 })
}
