package caddymodule

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirgate/weir/internal/alert"
	"github.com/weirgate/weir/internal/slofile"
	"github.com/weirgate/weir/slo"
)

// pager is a webhook that opens an incident for each alert, and closes it.
type pager struct {
	address string
	away    atomic.Bool // it answers 503

	mu     sync.Mutex
	alerts []alert.Alert
}

func newPager(t *testing.T) *pager {
	p := new(pager)
	p.address = serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.away.Load() {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		var one struct{ Alerts []alert.Alert }
		if err := json.NewDecoder(r.Body).Decode(&one); err != nil {
			t.Errorf("%s: %v", r.URL, err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.alerts = append(p.alerts, one.Alerts...)
	}))
	return p
}

func (p *pager) all() []alert.Alert {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.alerts)
}

// pages returns what came of the pages of one objective over all models.
func (p *pager) pages(objective string) (all []alert.Alert) {
	for _, a := range p.all() {
		if l := a.Labels; l["objective"] == objective && l["severity"] == "page" && l["model"] == "" {
			all = append(all, a)
		}
	}
	return all
}

// wantClosed fails unless each incident was opened and closed once.
func (p *pager) wantClosed(t *testing.T) {
	t.Helper()
	incidents := make(map[string][]alert.Alert)
	for _, a := range p.all() {
		incidents[a.Fingerprint] = append(incidents[a.Fingerprint], a)
	}
	for _, i := range incidents {
		if len(i) != 2 || i[0].Status != alert.Firing || i[1].Status != alert.Resolved || !i[0].StartsAt.Equal(i[1].StartsAt) || !i[1].EndsAt.After(i[1].StartsAt) {
			t.Errorf("an incident was %+v", i)
		}
	}
	if len(incidents) == 0 {
		t.Error("there was no incident")
	}
}

// endAlerts lets so much time pass that no window has the trouble any more, and then that
// for which an alert is held.
func (r *run) endAlerts() {
	look, now := r.lookAt(), time.Now()
	for _, after := range []time.Duration{96 * time.Hour, 97 * time.Hour, 98 * time.Hour} {
		look(now.Add(after))
	}
}

// TestAlertsSurvive: alerts outlive a restart: what still holds is not told again, and what
// is over is ended, once, as the alert that it was.
func TestAlertsSurvive(t *testing.T) {
	hook := newPager(t)
	upstream := serve(t, http.HandlerFunc(failing))
	t.Setenv("TEST_TOKEN", "secret-token")
	s := newSite(t)
	globals, sites := "weir {\nalert webhook http://"+hook.address+"/h00k {\nheader Authorization \"Bearer {env.TEST_TOKEN}\"\n}\n}", s.http("weir\nreverse_proxy "+upstream)
	r := start(t, globals, sites)
	r.asks(s, "", "bad", 12, "X-Way", "fails")
	awhile(t, "a page", func() bool { return len(hook.pages("success")) > 0 && len(hook.pages("goodput")) > 0 })
	r.lookAt()(time.Now())
	awhile(t, "all that there is to tell", func() bool {
		return !slices.ContainsFunc(r.slo().Alerts.Receivers, func(s alert.ReceiverState) bool { return s.Pending > 0 })
	})
	told := len(hook.all())
	logged := len(r.logged(`"logger":"weir.alert"`, `"status":"firing"`))

	r.stop()
	file := filepath.Join(caddy.AppDataDir(), "weir", "slo", alertsFile)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for _, secret := range []string{"secret-token", "Bearer", "h00k", hook.address, "sk-test"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("%s shows %s", file, secret)
		}
	}

	r.load(globals, sites)
	if lines := r.logged(`"logger":"weir.slo"`, "alerts of the process before go on"); len(lines) != 1 {
		t.Errorf("logged %v", lines)
	}
	look := r.lookAt()
	look(time.Now())
	look(time.Now())
	a := r.slo()
	for _, receiver := range a.Alerts.Receivers {
		if receiver.Sent != 0 || receiver.Pending != 0 {
			t.Errorf("after a restart %+v", receiver)
		}
	}
	if i := slices.IndexFunc(a.Alerts.Alerts, func(s alert.Standing) bool {
		return s.Objective == "success" && s.Severity == alert.Page && s.Model == ""
	}); i < 0 || a.Alerts.Alerts[i].Fingerprint != hook.pages("success")[0].Fingerprint || a.Alerts.Alerts[i].Annotations["summary"] == "" {
		t.Errorf("the page shows %+v", a.Alerts.Alerts)
	}

	r.stop()
	if n := len(hook.all()); n != told {
		t.Errorf("told %d times, and after a restart %d times", told, n)
	}
	if n := len(r.logged(`"logger":"weir.alert"`, `"status":"firing"`)); n != logged {
		t.Errorf("logged %d times, and after a restart %d times", logged, n)
	}
	r.load(globals, sites)
	r.endAlerts()
	r.stop() // which waits until all is told
	hook.wantClosed(t)

	r.load(globals, sites)
	if a := r.slo(); len(a.Alerts.Alerts) != 0 {
		t.Errorf("what ended is back: %+v", a.Alerts.Alerts)
	}
}

// TestAlertsSurviveKill: so they do a kill right after they were told.
func TestAlertsSurviveKill(t *testing.T) {
	hook := newPager(t)
	upstream := serve(t, http.HandlerFunc(failing))
	s, dir := newSite(t), filepath.Join(t.TempDir(), "slo")
	globals, sites := "weir {\nslo {\nstate "+dir+"\n}\nalert webhook http://"+hook.address+"\n}", s.http("weir\nreverse_proxy "+upstream)
	r := start(t, globals, sites)
	r.asks(s, "", "bad", 12, "X-Way", "fails")
	until(t, "a page", func() bool { return len(hook.all()) > 0 })
	first := hook.all()[0]
	// What a kill leaves is what the disk has now, if it is not a very slow one.
	var text []byte
	awhile(t, "alerts on the disk", func() bool { text, _ = os.ReadFile(filepath.Join(dir, alertsFile)); return len(text) > 0 })
	r.stop()
	if err := os.WriteFile(filepath.Join(dir, alertsFile), text, 0o600); err != nil {
		t.Fatal(err)
	}
	r.load(globals, sites)
	r.endAlerts()
	awhile(t, "the end of the alert", func() bool {
		return slices.ContainsFunc(hook.all(), func(a alert.Alert) bool {
			return a.Fingerprint == first.Fingerprint && a.Status == alert.Resolved && a.StartsAt.Equal(first.StartsAt)
		})
	})
}

// TestAlertsOwed: what a pager that is away did not hear of by the end, it hears of after a
// restart, however long the process before tried at its end.
func TestAlertsOwed(t *testing.T) {
	hook := newPager(t)
	hook.away.Store(true)
	upstream := serve(t, http.HandlerFunc(failing))
	s := newSite(t)
	globals, sites := "weir {\nalert webhook http://"+hook.address+"\n}", s.http("weir\nreverse_proxy "+upstream)
	r := start(t, globals, sites)
	r.asks(s, "", "bad", 12, "X-Way", "fails")
	var before alert.State
	awhile(t, "a page that does not arrive", func() bool {
		before = r.slo().Alerts
		return len(before.Alerts) > 0 && before.Receivers[1].Failed > 0
	})
	r.stop()
	hook.away.Store(false)
	r.load(globals, sites)
	awhile(t, "the page", func() bool { return len(hook.all()) > 0 })
	first := hook.all()[0]
	if !slices.ContainsFunc(before.Alerts, func(s alert.Standing) bool {
		return s.Fingerprint == first.Fingerprint && s.StartsAt.Equal(first.StartsAt)
	}) {
		t.Errorf("heard of %+v, and there were %+v", first, before.Alerts)
	}
	r.wantCounts("after a restart", "interactive", map[string]slo.Counts{"success": {Bad: 12}})
}

// TestAlertsForgotten: with the state off, nothing is kept; and what is damaged is set
// aside, and hurts nothing.
func TestAlertsForgotten(t *testing.T) {
	hook := newPager(t)
	upstream := serve(t, http.HandlerFunc(failing))
	s, dir := newSite(t), t.TempDir()
	sites := s.http("weir\nreverse_proxy " + upstream)
	in := func(state string) string {
		return "weir {\nslo {\nstate " + state + "\n}\nalert webhook http://" + hook.address + "\n}"
	}
	r := start(t, in("off"), sites)
	r.asks(s, "", "bad", 12, "X-Way", "fails")
	awhile(t, "a page", func() bool { return len(hook.pages("success")) == 1 })
	r.stop()
	if err := filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == alertsFile {
			t.Errorf("there is %s", path)
		}
		return err
	}); err != nil {
		t.Error(err)
	}

	file := filepath.Join(dir, alertsFile)
	if err := os.WriteFile(file, []byte(`{"kind":"weir alerts","version":1,`), 0o600); err != nil {
		t.Fatal(err)
	}
	r.load(in(dir), sites)
	if lines := r.logged(`"level":"warn"`, `"logger":"weir.slo"`, "cannot be used, and lie in "+filepath.Join(dir, "unreadable."+alertsFile)+" now", "it is cut or damaged"); len(lines) != 1 {
		t.Errorf("logged %v", lines)
	}
	r.asks(s, "", "bad again", 12, "X-Way", "fails")
	awhile(t, "another page", func() bool { return len(hook.pages("success")) == 2 })
	awhile(t, "alerts on the disk", func() bool { text, err := os.ReadFile(file); return err == nil && json.Valid(text) })

	// Switched off, what goes on is written as over: whoever switches it on has no old alerts.
	r.load("weir {\nslo off\nalert webhook http://"+hook.address+"\n}", sites)
	until(t, "no objectives", func() bool { status, _ := r.get("/weir/slo"); return status == http.StatusNotFound })
	awhile(t, "alerts that are over on the disk", func() bool {
		text, err := os.ReadFile(file)
		return err == nil && strings.Count(string(text), `"ends":`) == strings.Count(string(text), `"starts":`)
	})
}

// TestAlertsOfSecondProcess: where another process has the directory, its alerts are left
// alone; when it has ended, they go on in this one.
func TestAlertsOfSecondProcess(t *testing.T) {
	hook, dir := newPager(t), t.TempDir()
	other, err := slofile.Open(dir, slo.New(), slofile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	go other.Run(context.Background()) // Close ends it
	receiver, err := alert.NewWebhook("http://"+hook.address, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	theirs := alert.New(alert.Options{Receivers: []alert.Receiver{receiver}})
	theirs.Observe(now, slo.Status{At: now, Objectives: []slo.ObjectiveStatus{{Class: "interactive", Objective: slo.Objective{Name: "success", Number: slo.Success}, Firing: []slo.Firing{{Outage: true, Bad: 9, Total: 9}}}}})
	ended, end := context.WithCancel(t.Context())
	end()
	theirs.Run(ended) // which tells what waits
	kept := theirs.Snapshot()
	if err := other.Beside(alertsFile).Store(kept); err != nil {
		t.Fatal(err)
	}

	upstream := serve(t, http.HandlerFunc(failing))
	s := newSite(t)
	globals, sites := "weir {\nslo {\nstate "+dir+"\n}\nalert webhook http://"+hook.address+"\n}", s.http("weir\nreverse_proxy "+upstream)
	r := start(t, globals, sites)
	if lines := r.logged(`"logger":"weir.slo"`, "alerts are not being kept", "is not this process's own"); len(lines) != 1 {
		t.Errorf("it is logged %d times: %v", len(lines), lines)
	}
	r.asks(s, "", "good", 1)
	if text, err := os.ReadFile(filepath.Join(dir, alertsFile)); err != nil || string(text) != string(kept) {
		t.Errorf("another process's alerts are now %s, %v", text, err)
	}
	if err := other.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	awhile(t, "the other's alerts", func() bool { return len(r.slo().Alerts.Alerts) > 0 })
	if lines := r.logged(`"logger":"weir.slo"`, "alerts are being kept again"); len(lines) != 1 {
		t.Errorf("it is logged %d times: %v", len(lines), lines)
	}
	r.endAlerts()
	awhile(t, "the end of the other's alert", func() bool { return len(hook.all()) == 2 })
	hook.wantClosed(t)
	r.stop()
	if _, err := os.Stat(filepath.Join(dir, "unreadable."+alertsFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was set aside: %v", err)
	}
}
