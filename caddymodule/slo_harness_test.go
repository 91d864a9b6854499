package caddymodule

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/alert"
	"github.com/weirgate/weir/internal/slofile"
	"github.com/weirgate/weir/slo"
)

// sloAnswer is /weir/slo as a program reads it.
type sloAnswer struct {
	Status slo.Status
	Alerts alert.State
	Kept   *slofile.Status
	// AlertsKept is nil where counts are in memory alone.
	AlertsKept *alert.KeeperStatus `json:"alerts_kept"`
}

// slo asks how objectives stand.
func (r *run) slo() (a sloAnswer) {
	r.t.Helper()
	status, body := r.get("/weir/slo")
	if err := json.Unmarshal(body, &a); err != nil || status != http.StatusOK {
		r.t.Fatalf("GET /weir/slo: %d %s, %v", status, body, err)
	}
	return a
}

// of returns how an objective stands over all models.
func (a *sloAnswer) of(t *testing.T, class, objective string) *slo.ObjectiveStatus {
	t.Helper()
	for i := range a.Status.Objectives {
		if o := &a.Status.Objectives[i]; o.Class == class && o.Objective.Name == objective && o.Model == slo.AllModels {
			return o
		}
	}
	t.Fatalf("class %s has no objective %s", class, objective)
	return nil
}

// wantCounts compares the counts of a class's objectives.
func (r *run) wantCounts(when, class string, want map[string]slo.Counts) {
	r.t.Helper()
	a := r.slo()
	for objective, counts := range want {
		if got := a.of(r.t, class, objective).Counts; got != counts {
			r.t.Errorf("%s: %s %s has %+v, want %+v", when, class, objective, got, counts)
		}
	}
}

// failing is an upstream that fails when it is asked to, and else tells all there is.
func failing(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Way") == "fails" {
		_, _ = io.Copy(io.Discard, r.Body)
		http.Error(w, `{"error":{"message":"no"}}`, http.StatusInternalServerError)
		return
	}
	telling(w, r)
}

// asks makes calls with a header, one after the other, each with a run of its own, and
// returns when all of them have been judged.
func (r *run) asks(s site, key, name string, n int, header ...string) {
	r.t.Helper()
	c := client(r.t, "http/1.1")
	for range n {
		fetch(r.t, c, with(r.t, s, chatPath, key, name, streaming, header...))
	}
	r.recordsOf(name, n)
}

// awhile is until for what takes seconds: it leaves the machine to those who do it.
func awhile(t *testing.T, what string, holds func() bool) {
	t.Helper()
	until(t, what, func() bool { time.Sleep(50 * time.Millisecond); return holds() })
}
