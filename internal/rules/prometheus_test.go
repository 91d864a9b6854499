package rules

import (
	"bytes"
	"errors"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	goyaml "gopkg.in/yaml.v3"

	"github.com/weirgate/weir/internal/alert"
	"github.com/weirgate/weir/internal/telemetry"
	"github.com/weirgate/weir/slo"
)

// readRule is a rule as Prometheus reads it.
type readRule struct {
	Record, Alert, Expr string
	For                 string
	Keep                string `yaml:"keep_firing_for"`
	Labels, Annotations map[string]string
}

// read reads a file of rules back, strictly.
func read(t testing.TB, c slo.Config, o Options) []readRule {
	t.Helper()
	var b bytes.Buffer
	if err := Prometheus(&b, c, o); err != nil {
		t.Fatal(err)
	}
	var f struct {
		Groups []struct {
			Name, Interval string
			Rules          []readRule
		}
	}
	d := goyaml.NewDecoder(&b)
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil {
		t.Fatal(err)
	}
	var rules []readRule
	names := map[string]bool{}
	for _, g := range f.Groups {
		if g.Name == "" || names[g.Name] {
			t.Errorf("group %q is there twice or has no name", g.Name)
		}
		names[g.Name] = true
		rules = append(rules, g.Rules...)
	}
	return rules
}

func TestGoldenRules(t *testing.T) {
	golden(t, "small.rules.yml", func(w io.Writer) error { return Prometheus(w, small(t), Options{}) })
	golden(t, "monthly.rules.yml", func(w io.Writer) error { return Prometheus(w, monthly(t), Options{}) })
	golden(t, "drill.rules.yml", func(w io.Writer) error { return Prometheus(w, small(t), Options{Scale: 300}) })
}

// word finds what may be the name of a series.
var word = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)

// series are the names of series in an expression.
func series(expr string) []string {
	quoted := regexp.MustCompile(`"(\\.|[^"\\])*"`)
	var found []string
	for _, name := range word.FindAllString(quoted.ReplaceAllString(expr, `""`), -1) {
		if strings.HasPrefix(name, "weir") || strings.HasPrefix(name, "gen_ai") {
			found = append(found, name)
		}
	}
	return found
}

// exposed are the names of all series that the gateway has.
func exposed() map[string]bool {
	all := map[string]bool{}
	for _, m := range telemetry.Table() {
		if m.Type != telemetry.Histogram {
			all[m.Name] = true
			continue
		}
		for _, part := range []string{"_bucket", "_sum", "_count"} {
			all[m.Name+part] = true
		}
	}
	return all
}

// TestRulesUseWhatThereIs: every series of a rule is a metric of the table or recorded by
// an earlier rule, and no rule is there twice.
func TestRulesUseWhatThereIs(t *testing.T) {
	for name, c := range map[string]slo.Config{"small": small(t), "monthly": monthly(t), "presets": presets(t)} {
		there := exposed()
		twice := map[string]bool{}
		for _, r := range read(t, c, Options{}) {
			used := series(r.Expr)
			if len(used) == 0 {
				t.Errorf("%s: %s%s looks at nothing: %s", name, r.Record, r.Alert, r.Expr)
			}
			for _, s := range used {
				if !there[s] {
					t.Errorf("%s: %s%s looks at %s, which nobody makes", name, r.Record, r.Alert, s)
				}
			}
			if r.Record != "" {
				there[r.Record] = true
			}
			id := r.Record + r.Alert + r.Labels["class"] + "/" + r.Labels["objective"]
			if twice[id] {
				t.Errorf("%s: %s is there twice", name, id)
			}
			twice[id] = true
		}
	}
}

// TestAlertsAreTheGatewaysOwn: names and labels are those that the gateway's alerts have, so that
// Alertmanager takes both for one.
func TestAlertsAreTheGatewaysOwn(t *testing.T) {
	c := small(t)
	burning := slo.ObjectiveStatus{Class: "chat", Objective: c.Classes[0].Objectives[0], State: slo.StatePage,
		Firing: []slo.Firing{{Rule: c.Burn[0], Page: true}, {Rule: c.Burn[2]}}, Budget: slo.Budget{State: slo.StateExhausted}}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	m := alert.New(alert.Options{})
	m.Observe(now, slo.Status{At: now, Objectives: []slo.ObjectiveStatus{burning}})
	own := map[string]map[string]string{}
	for _, a := range m.State().Alerts {
		own[a.Labels["alertname"]] = a.Labels
	}
	if len(own) != len(severities) {
		t.Fatalf("the gateway has %d alerts, want one of each of %d severities: %v", len(own), len(severities), own)
	}
	for _, r := range read(t, c, Options{}) {
		want, has := own[r.Alert]
		if !has || r.Labels["objective"] != "ttft_p99" {
			continue
		}
		got := map[string]string{"alertname": r.Alert}
		for name, value := range r.Labels {
			got[name] = value
		}
		if len(got) != len(want) {
			t.Errorf("%s: labels %v, the gateway's are %v", r.Alert, got, want)
		}
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%s: label %s is %q, the gateway's is %q", r.Alert, name, got[name], value)
			}
		}
		delete(own, r.Alert)
	}
	for name := range own {
		t.Errorf("no rule raises %s", name)
	}
	if len(alert.Severities) != len(severities) {
		t.Errorf("severities %v, the gateway's are %v", severities, alert.Severities)
	}
	for i, s := range alert.Severities {
		if string(s) != severities[i] {
			t.Errorf("severity %d is %s, the gateway's is %s", i, severities[i], s)
		}
	}
}

// TestHeldAsLong: alerts end as long after their cause as the gateway's own.
func TestHeldAsLong(t *testing.T) {
	c := small(t)
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, k := range []struct {
		firing slo.Firing
		hold   time.Duration
	}{{slo.Firing{Rule: c.Burn[0], Page: true}, held}, {slo.Firing{Rule: c.Burn[2]}, heldSlowly}} {
		m := alert.New(alert.Options{})
		o := slo.ObjectiveStatus{Class: "chat", Objective: c.Classes[0].Objectives[0], Firing: []slo.Firing{k.firing}}
		observe := func(at time.Time) int {
			m.Observe(at, slo.Status{At: at, Objectives: []slo.ObjectiveStatus{o}})
			return len(m.State().Alerts)
		}
		if observe(now) != 1 {
			t.Fatal("no alert")
		}
		o.Firing = nil
		observe(now)
		if before, after := observe(now.Add(k.hold-time.Second)), observe(now.Add(k.hold)); before != 1 || after != 0 {
			t.Errorf("%s: %d alerts just before %v and %d then, want 1 and 0", k.firing.Rule, before, k.hold, after)
		}
	}
}

// TestEveryObjectiveHasItsAlerts: by class, objective and kind; and only what can fire.
func TestEveryObjectiveHasItsAlerts(t *testing.T) {
	c := presets(t)
	has := map[string]bool{}
	for _, r := range read(t, c, Options{}) {
		if r.Alert != "" {
			has[r.Alert+" "+r.Labels["class"]+" "+r.Labels["objective"]] = true
			if r.Annotations["summary"] == "" || r.Annotations["look_closer"] == "" {
				t.Errorf("%s says %v", r.Alert, r.Annotations)
			}
		}
	}
	for _, class := range c.Classes {
		for _, o := range class.Objectives {
			for _, name := range []string{alertPage, alertTicket, alertWarning, alertFreeze, alertExhausted} {
				if id := name + " " + class.Name + " " + o.Name; !has[id] {
					t.Errorf("no alert %s", id)
				}
			}
			if id := alertHang + " " + class.Name + " " + o.Name; has[id] != (o.Number == slo.TTFT) {
				t.Errorf("alert %s: %v", id, has[id])
			}
		}
	}
}

// TestFactors: a factor that a target cannot burn is lowered as the gateway lowers it.
func TestFactors(t *testing.T) {
	for _, r := range read(t, small(t), Options{}) {
		if r.Alert != alertPage {
			continue
		}
		want := "ratio1h{class=\"chat\",objective=\"ttft_p99\"} > 14.4 * 0.01\n"
		if r.Labels["objective"] == "success" {
			want = "ratio1h{class=\"chat\",objective=\"success\"} > 9 * 0.1\n"
		}
		if !strings.Contains(r.Expr, want) {
			t.Errorf("the page of %s lacks %q:\n%s", r.Labels["objective"], want, r.Expr)
		}
	}
}

// TestScale: a drill divides every time, and no threshold.
func TestScale(t *testing.T) {
	real, drill := read(t, small(t), Options{}), read(t, small(t), Options{Scale: 300})
	if len(real) != len(drill) {
		t.Fatalf("%d rules, %d in a drill", len(real), len(drill))
	}
	times := regexp.MustCompile(`\[[0-9a-z]+\]`)
	shorter := map[string]string{"[1m]": "[1s]", "[5m]": "[1s]", "[30m]": "[6s]", "[1h]": "[12s]", "[6h]": "[1m12s]", "[3d]": "[14m24s]", "[30d]": "[2h24m]"}
	for i, r := range real {
		want := times.ReplaceAllStringFunc(r.Expr, func(s string) string {
			if shorter[s] == "" {
				t.Errorf("a window that the test does not know: %s", s)
			}
			return shorter[s]
		})
		if drill[i].Expr != want {
			t.Errorf("in a drill\n%s\nwant\n%s", drill[i].Expr, want)
		}
		if holds := map[string]string{"": "", "2m": "400ms", "5m": "1s", "30m": "6s"}; drill[i].For != holds[r.For] || drill[i].Keep != holds[r.Keep] {
			t.Errorf("%s: for %s and %s become %s and %s", r.Alert, r.For, r.Keep, drill[i].For, drill[i].Keep)
		}
	}
}

// TestRefused: what rules cannot be made of.
func TestRefused(t *testing.T) {
	for _, scale := range []float64{-1, 0.5, 1e9, math.NaN(), math.Inf(1)} {
		if err := Prometheus(io.Discard, small(t), Options{Scale: scale}); err == nil || !strings.Contains(err.Error(), "scale") {
			t.Errorf("scale %v: %v", scale, err)
		}
	}
	for name, c := range map[string]slo.Config{"nothing": {}, "no class": complete(t, slo.Config{})} {
		if Prometheus(io.Discard, c, Options{}) == nil || Grafana(io.Discard, c) == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, err := range map[string]error{
		"rules": Prometheus(broken{}, small(t), Options{}), "routes": Alertmanager(broken{}), "dashboard": Grafana(broken{}, small(t)),
	} {
		if !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s to a writer that fails: %v", name, err)
		}
	}
}

func TestPromSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		5 * time.Minute: "5m", 72 * time.Hour: "3d", 90 * time.Minute: "1h30m", 864 * time.Second: "14m24s", 200 * time.Millisecond: "200ms",
		1500 * time.Millisecond: "1s500ms", time.Microsecond: "1ms", 25 * time.Hour: "1d1h",
	} {
		if got := promSpan(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}

// TestWindows: each is recorded once, whoever wants it.
func TestWindows(t *testing.T) {
	c := monthly(t)
	want := []time.Duration{5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 90 * time.Minute, 6 * time.Hour, 72 * time.Hour}
	if got := windows(&c); !slices.Equal(got, want) {
		t.Errorf("windows %v, want %v", got, want)
	}
	// A period that is as long as a window shares its series; a class may be named as anything.
	c = small(t)
	c.Period.Rolling = 72 * time.Hour
	c.Classes[0].Name = "a-b.c_0"
	for _, r := range read(t, c, Options{}) {
		if strings.Contains(r.Record, "30d") {
			t.Errorf("%s is recorded for nobody", r.Record)
		}
	}
}
