package caddymodule

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"

	"github.com/weirgate/weir/internal/alert"
)

func init() { caddy.RegisterModule(new(listener)) }

// listener hears Caddy's events, as a module of somebody's does.
type listener struct{}

// heard are the events of the test that runs.
var heard struct {
	sync.Mutex
	events []caddy.Event
}

func (*listener) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "events.handlers.weir_test", New: func() caddy.Module { return new(listener) }}
}

func (*listener) UnmarshalCaddyfile(d *caddyfile.Dispenser) error { return nil }

func (*listener) Handle(_ context.Context, e caddy.Event) error {
	heard.Lock()
	defer heard.Unlock()
	heard.events = append(heard.events, e)
	return nil
}

// Interface guards
var (
	_ caddyevents.Handler   = (*listener)(nil)
	_ caddyfile.Unmarshaler = (*listener)(nil)
)

// events returns what was heard of one objective's pages: status by status.
func events(objective string) (all []string) {
	heard.Lock()
	defer heard.Unlock()
	for _, e := range heard.events {
		if e.Data["objective"] == objective && e.Data["severity"] == "page" {
			all = append(all, e.Data["status"].(string))
		}
	}
	return all
}

// inbox is what a receiver of alerts was sent.
type inbox struct {
	address string

	mu       sync.Mutex
	requests []http.Header
	alerts   []inboxAlert
}

type inboxAlert struct {
	Status      string // of a webhook alone
	Labels      map[string]string
	Annotations map[string]string
	StartsAt    time.Time
	EndsAt      time.Time
}

// newInbox takes what a webhook is posted (an object), or Alertmanager (an array), at a path.
func newInbox(t *testing.T, path string) *inbox {
	in := new(inbox)
	in.address = serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var one struct{ Alerts []inboxAlert }
		err := json.Unmarshal(body, &one)
		if strings.HasPrefix(string(body), "[") {
			err = json.Unmarshal(body, &one.Alerts)
		}
		if err != nil || r.URL.Path != path {
			t.Errorf("%s %s: %v in %s", r.Method, r.URL, err, body)
		}
		in.mu.Lock()
		defer in.mu.Unlock()
		in.requests = append(in.requests, r.Header.Clone())
		in.alerts = append(in.alerts, one.Alerts...)
	}))
	return in
}

// pages returns what came of one objective's pages.
func (in *inbox) pages(objective string) (all []inboxAlert) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, a := range in.alerts {
		if a.Labels["objective"] == objective && a.Labels["severity"] == "page" {
			all = append(all, a)
		}
	}
	return all
}

// deaf listens and never answers, as an Alertmanager that hangs.
func deaf(t *testing.T) string {
	return accept(t, nil, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
}

// lookAt stops the clock by which alerts are decided, and returns what decides at an instant.
func (r *run) lookAt() func(time.Time) {
	app := current().rooms.theRunning()
	app.cancel()
	app.background.Wait()
	return func(at time.Time) { app.look(at, true) }
}

// TestAlerts: an upstream that fails pages: on the log, as an event of Caddy's, at a webhook
// and at an Alertmanager, once each, with what is to blame; and the end is told as well. An
// Alertmanager that hangs, and one that is not there, hold up nothing.
func TestAlerts(t *testing.T) {
	heard.Lock()
	heard.events = nil
	heard.Unlock()
	hook, manager := newInbox(t, "/hook"), newInbox(t, "/api/v2/alerts")
	upstream := serve(t, http.HandlerFunc(failing))
	t.Setenv("TEST_TOKEN", "secret-token")
	s := newSite(t)
	r := start(t, "events {\non weir_alert weir_test\n}\nweir {\nalert webhook http://"+hook.address+"/hook {\nheader Authorization \"Bearer {env.TEST_TOKEN}\"\nlabel team chat\n}\n"+
		"alert alertmanager http://"+manager.address+"\nalert alertmanager http://"+deaf(t)+"\nalert alertmanager http://"+freeAddress(t)+"\n}",
		s.http("weir\nreverse_proxy "+upstream))
	r.asks(s, "", "good", 3)
	r.asks(s, "", "bad", 12, "X-Way", "fails")
	r.asks(s, "", "nobody is held up", 1)
	awhile(t, "a page at webhook and Alertmanager, on the log, and as an event", func() bool {
		return len(hook.pages("success")) > 0 && len(manager.pages("success")) > 0 && len(events("success")) > 0 &&
			len(r.logged(`"logger":"weir.alert"`, `"status":"firing"`, `"severity":"page"`, `"objective":"success"`)) > 0
	})
	look := r.lookAt()
	for what, pages := range map[string][]inboxAlert{"webhook": hook.pages("success"), "Alertmanager": manager.pages("success")} {
		a := pages[0]
		if len(pages) != 1 || a.Labels["alertname"] == "" || a.Labels["class"] != "interactive" || a.Labels["service"] != "weir" || a.Labels["team"] != "chat" || a.StartsAt.IsZero() {
			t.Errorf("%s was told %d times: %+v", what, len(pages), a)
		}
		for _, name := range []string{"summary", "description", "windows", "budget", "phase", "blame", "look_closer"} {
			if a.Annotations[name] == "" {
				t.Errorf("%s: no annotation %s in %v", what, name, a.Annotations)
			}
		}
	}
	if hook.pages("success")[0].Status != "firing" || hook.requests[0].Get("Authorization") != "Bearer secret-token" || manager.requests[0].Get("Authorization") != "" {
		t.Errorf("the webhook was told %s, with the header %q, Alertmanager with %q", hook.pages("success")[0].Status, hook.requests[0].Get("Authorization"), manager.requests[0].Get("Authorization"))
	}
	a := r.slo()
	i := slices.IndexFunc(a.Alerts.Alerts, func(s alert.Standing) bool {
		return s.Objective == "success" && s.Severity == alert.Page && s.Model == ""
	})
	if i < 0 || a.Alerts.Alerts[i].Status != alert.Firing || a.Alerts.Alerts[i].Blame == nil {
		t.Errorf("the page shows %+v", a.Alerts.Alerts)
	}
	if len(a.Alerts.Receivers) != 5 {
		t.Errorf("receivers %+v", a.Alerts.Receivers)
	}
	m := r.metrics()
	if m[`weir_alerts_active{severity="page"}`] < 1 || m.sum("weir_alert_notifications_total", `receiver="webhook http://`+hook.address+`"`, `result="sent"`) < 1 {
		t.Errorf("active pages: %v", m[`weir_alerts_active{severity="page"}`])
	}
	awhile(t, "attempts that failed at the Alertmanager that is not there", func() bool {
		return r.metrics().sum("weir_alert_notifications_total", `result="failed"`) > 0
	})
	_, body := r.get("/weir/slo")
	for what, text := range map[string]string{"/weir/slo": string(body), "the log": strings.Join(r.logged(""), "")} {
		if strings.Contains(text, "secret-token") || strings.Contains(text, "/hook") {
			t.Errorf("%s shows a secret", what)
		}
	}

	// Long after, when no window has the trouble any more: away for an instant is not over,
	// away for long is.
	now := time.Now()
	look(now.Add(2 * time.Hour))
	if n := len(hook.pages("success")); n != 1 {
		t.Errorf("told %d times", n)
	}
	look(now.Add(2*time.Hour + 6*time.Minute))
	awhile(t, "the end at webhook and Alertmanager, on the log, and as an event", func() bool {
		hooks := hook.pages("success")
		managers := manager.pages("success")
		last := managers[len(managers)-1]
		return len(hooks) == 2 && hooks[1].Status == "resolved" && last.EndsAt.Sub(now) > 2*time.Hour && len(events("success")) == 2 &&
			len(r.logged(`"logger":"weir.alert"`, "alert is over", `"severity":"page"`, `"objective":"success"`)) == 1
	})
	if got := events("success"); !slices.Equal(got, []string{"firing", "resolved"}) {
		t.Errorf("heard %v", got)
	}
	if hooks := hook.pages("success"); hooks[0].StartsAt != hooks[1].StartsAt || !hooks[1].EndsAt.After(hooks[1].StartsAt) {
		t.Errorf("from %v to %v, which began at %v", hooks[1].StartsAt, hooks[1].EndsAt, hooks[0].StartsAt)
	}
}

// TestAlertsEndWithTheirObjectives: where objectives are switched off, alerts about them end,
// and do not stay on in somebody's Alertmanager.
func TestAlertsEndWithTheirObjectives(t *testing.T) {
	hook := newInbox(t, "/")
	upstream := serve(t, http.HandlerFunc(failing))
	s := newSite(t)
	sites, hooked := s.http("weir\nreverse_proxy "+upstream), "alert webhook http://"+hook.address+"\n"
	r := start(t, "weir {\n"+hooked+"}", sites)
	r.asks(s, "", "bad", 12, "X-Way", "fails")
	awhile(t, "a page", func() bool { return len(hook.pages("success")) > 0 })
	r.load("weir {\nslo off\n"+hooked+"}", sites)
	awhile(t, "no objectives", func() bool { status, _ := r.get("/weir/slo"); return status == http.StatusNotFound })
	look := r.lookAt()
	now := time.Now()
	look(now)
	look(now.Add(6 * time.Minute))
	awhile(t, "the end of the page", func() bool {
		pages := hook.pages("success")
		return len(pages) == 2 && pages[1].Status == "resolved"
	})
	r.asks(s, "", "bad and unjudged", 12, "X-Way", "fails")
	look(now.Add(7 * time.Minute))
	if pages := hook.pages("success"); len(pages) != 2 {
		t.Errorf("told %d times", len(pages))
	}
}

// TestAlertsGoOn: a reload neither ends an alert nor tells it again to those who know it;
// a receiver that is new is told.
func TestAlertsGoOn(t *testing.T) {
	first, second := newInbox(t, "/"), newInbox(t, "/")
	upstream := serve(t, http.HandlerFunc(failing))
	s := newSite(t)
	sites := s.http("weir\nreverse_proxy " + upstream)
	r := start(t, "weir {\nalert webhook http://"+first.address+"\n}", sites)
	r.asks(s, "", "bad", 12, "X-Way", "fails")
	awhile(t, "a page", func() bool { return len(first.pages("success")) > 0 })
	r.load("weir {\nalert webhook http://"+first.address+"\nalert webhook http://"+second.address+"\n}", sites)
	awhile(t, "a page at the new receiver", func() bool { return len(second.pages("success")) > 0 })
	if n := len(first.pages("success")); n != 1 {
		t.Errorf("the old receiver was told %d times", n)
	}
	if lines := r.logged(`"logger":"weir.alert"`, `"severity":"page"`, `"objective":"success"`, `"status":"firing"`); len(lines) != 1 {
		t.Errorf("logged %d times", len(lines))
	}
}
