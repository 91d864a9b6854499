package caddymodule

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/slofile"
	"github.com/weirgate/weir/slo"
)

// inForce waits until what a configuration promises holds: nothing announces it.
func (r *run) inForce(texts ...string) {
	r.t.Helper()
	until(r.t, "objectives of the new configuration", func() bool {
		_, body := r.get("/weir/slo/config")
		for _, text := range texts {
			if !strings.Contains(string(body), text) {
				return false
			}
		}
		return true
	})
}

// TestCountsSurvive: counts outlive a reload and a restart, as far as their objectives are
// the same; what begins anew is logged; and switching objectives off costs no count.
func TestCountsSurvive(t *testing.T) {
	upstream := serve(t, http.HandlerFunc(failing))
	s := newSite(t)
	sites := s.http("weir\nreverse_proxy " + upstream)
	r := start(t, "", sites)
	r.asks(s, "", "good", 3)
	r.asks(s, "", "bad", 1, "X-Way", "fails")
	r.wantCounts("at first", "interactive", map[string]slo.Counts{"success": {Good: 3, Bad: 1}, "ttft_p99": {Good: 3}, "e2e_p95": {Good: 3}, "goodput": {Good: 3, Bad: 1}})
	if a := r.slo(); a.Kept == nil || !a.Kept.Kept || !strings.HasPrefix(a.Kept.Path, r.dir) || a.AlertsKept == nil || !a.AlertsKept.Kept || !strings.HasPrefix(a.AlertsKept.Path, a.Kept.Path) {
		t.Errorf("kept: %+v, alerts: %+v", a.Kept, a.AlertsKept)
	}

	const other = "weir {\nclass interactive {\nttft p99 <= 1s\n}\n}"
	r.load(other, sites)
	r.inForce(`"threshold_ns":1000000000,"fallback":"ttft"`)
	r.wantCounts("with another threshold", "interactive", map[string]slo.Counts{"success": {Good: 3, Bad: 1}, "ttft_p99": {}, "e2e_p95": {Good: 3}, "goodput": {}})
	if lines := r.logged("objectives have changed", `"interactive: ttft <= 2s"`, `"interactive: goodput"`); len(lines) != 1 {
		t.Errorf("what begins anew is logged %d times: %v", len(lines), r.logged("objectives have changed"))
	}
	if a := r.slo(); !a.of(t, "interactive", "ttft_p99").Since.After(a.of(t, "interactive", "success").Since) {
		t.Error("what begins anew has counts since the beginning")
	}

	// Neither another target nor another period changes what was counted.
	r.load("weir {\nclass interactive {\nttft p95 <= 1s\n}\nslo {\nperiod calendar_month\n}\n}", sites)
	r.inForce("ttft_p95", "calendar_month UTC")
	r.asks(s, "", "later", 1)
	r.wantCounts("later", "interactive", map[string]slo.Counts{"success": {Good: 4, Bad: 1}, "ttft_p95": {Good: 1}})
	r.load(other, sites)
	r.inForce("ttft_p99")
	r.wantCounts("back again", "interactive", map[string]slo.Counts{"success": {Good: 4, Bad: 1}, "ttft_p99": {Good: 1}})
	if lines := r.logged("objectives have changed"); len(lines) != 1 {
		t.Errorf("told of counts that are kept: %v", lines)
	}

	r.stop()
	r.load(other, sites)
	r.wantCounts("after a restart", "interactive", map[string]slo.Counts{"success": {Good: 4, Bad: 1}, "ttft_p99": {Good: 1}, "e2e_p95": {Good: 4}})
	if kept := r.slo().Kept; kept == nil || kept.Loaded.Generation == 0 || kept.Loaded.Anew {
		t.Errorf("kept: %+v", kept)
	}
	if len(r.records("")) != 0 {
		t.Error("that was no restart")
	}

	r.load("weir {\nslo off\n}", sites)
	until(t, "no objectives", func() bool { status, _ := r.get("/weir/slo"); return status == http.StatusNotFound })
	r.asks(s, "", "unjudged", 1)
	r.load(other, sites)
	r.inForce("ttft_p99")
	r.wantCounts("on again", "interactive", map[string]slo.Counts{"success": {Good: 4, Bad: 1}, "ttft_p99": {Good: 1}})

	// What has changed while nothing ran is told of, too.
	r.stop()
	r.load("weir {\nclass interactive {\ne2e p95 <= 20s\n}\n}", sites)
	r.wantCounts("after a restart with a change", "interactive", map[string]slo.Counts{"success": {Good: 4, Bad: 1}, "ttft_p99": {}, "e2e_p95": {}})
	if lines := r.logged("objectives have changed", `"interactive: e2e <= 5s"`, `"interactive: ttft <= 1s"`); len(lines) != 1 {
		t.Errorf("what begins anew is logged %d times: %v", len(lines), r.logged("objectives have changed"))
	}
}

// TestStateMoves: counts go where the process began to keep them, until it ends, so that
// none is lost or counted twice; the log says so.
func TestStateMoves(t *testing.T) {
	upstream := serve(t, http.HandlerFunc(failing))
	s, first, second := newSite(t), t.TempDir(), t.TempDir()
	sites := s.http("weir\nreverse_proxy " + upstream)
	in := func(dir string) string { return "weir {\nslo {\nstate " + dir + "\n}\n}" }
	r := start(t, in("off"), sites)
	r.asks(s, "", "memory", 2)
	if kept := r.slo().Kept; kept != nil {
		t.Errorf("in memory alone, and kept: %+v", kept)
	}
	r.load(in(first), sites)
	until(t, "a word of the directory", func() bool { return len(r.logged("changes when the process starts anew", first)) == 1 })
	r.wantCounts("in memory", "interactive", map[string]slo.Counts{"success": {Good: 2}})

	r.stop()
	r.load(in(first), sites)
	r.wantCounts("a new process", "interactive", map[string]slo.Counts{"success": {}})
	r.asks(s, "", "disk", 3)
	r.load(in(second), sites)
	until(t, "a word of the other directory", func() bool { return len(r.logged("changes when the process starts anew", second)) == 1 })
	r.load(in("off"), sites)
	until(t, "a word of no directory", func() bool { return len(r.logged("changes when the process starts anew", `"state":"off"`)) == 1 })
	if kept := r.slo().Kept; kept == nil || kept.Path != first {
		t.Errorf("kept: %+v", kept)
	}
	r.stop()
	r.load(in(first), sites)
	r.wantCounts("the first directory", "interactive", map[string]slo.Counts{"success": {Good: 3}})
}

// TestSecondProcess: where another process has the directory, this one counts in memory
// and says so; when the other has ended, the counts of both are one.
func TestSecondProcess(t *testing.T) {
	dir := t.TempDir()
	cfg, _, err := slo.Config{Classes: []slo.Class{slo.Presets()["interactive"]}}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	tracker, now := slo.New(), time.Now()
	if err := tracker.Configure(cfg, now); err != nil {
		t.Fatal(err)
	}
	other, err := slofile.Open(dir, tracker, slofile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	go other.Run(context.Background()) // Close ends it
	for range 5 {
		p := new(slo.Pending)
		tracker.Watch(p, "interactive", "m", now, false, nil)
		tracker.End(p, &slo.Facts{Received: now, Ended: now.Add(time.Second), Input: -1, Output: -1})
	}

	upstream := serve(t, http.HandlerFunc(failing))
	s := newSite(t)
	r := start(t, "weir {\nslo {\nstate "+dir+"\n}\n}", s.http("weir\nreverse_proxy "+upstream))
	r.asks(s, "", "mine", 2)
	r.wantCounts("beside another process", "interactive", map[string]slo.Counts{"success": {Good: 2}})
	if a := r.slo(); a.Kept == nil || a.Kept.Kept || !strings.Contains(a.Kept.Error, "in use by another process: each gateway needs its own; this one counts in memory until it is free") ||
		a.AlertsKept == nil || a.AlertsKept.Kept || a.AlertsKept.Error == "" {
		t.Errorf("kept: %+v, alerts: %+v", a.Kept, a.AlertsKept)
	}
	if lines := r.logged(`"logger":"weir.slo"`, "in memory alone", "in use by another process"); len(lines) != 1 {
		t.Errorf("it is logged %d times: %v", len(lines), lines)
	}
	if err := other.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	awhile(t, "counts that are kept", func() bool { kept := r.slo().Kept; return kept != nil && kept.Kept })
	awhile(t, "alerts that are kept", func() bool { kept := r.slo().AlertsKept; return kept != nil && kept.Kept })
	r.wantCounts("when it is gone", "interactive", map[string]slo.Counts{"success": {Good: 7}})
	r.stop()
	r.load("weir {\nslo {\nstate "+dir+"\n}\n}", s.http("weir\nreverse_proxy "+upstream))
	r.wantCounts("after a restart", "interactive", map[string]slo.Counts{"success": {Good: 7}})
}
