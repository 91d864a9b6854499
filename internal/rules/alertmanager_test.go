package rules

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"

	goyaml "gopkg.in/yaml.v3"
)

func TestGoldenAlertmanager(t *testing.T) { golden(t, "alertmanager.yml", Alertmanager) }

// routes is the configuration as Alertmanager reads it.
type routes struct {
	Route     route
	Inhibit   []inhibit `yaml:"inhibit_rules"`
	Receivers []struct{ Name string }
}

type route struct {
	Receiver string
	Matchers []string
	GroupBy  []string `yaml:"group_by"`
	Wait     string   `yaml:"group_wait"`
	Interval string   `yaml:"group_interval"`
	Repeat   string   `yaml:"repeat_interval"`
	Routes   []route
}

type inhibit struct {
	Source []string `yaml:"source_matchers"`
	Target []string `yaml:"target_matchers"`
	Equal  []string
}

func readRoutes(t *testing.T) routes {
	t.Helper()
	var b bytes.Buffer
	if err := Alertmanager(&b); err != nil {
		t.Fatal(err)
	}
	var r routes
	d := goyaml.NewDecoder(&b)
	d.KnownFields(true)
	if err := d.Decode(&r); err != nil {
		t.Fatal(err)
	}
	if err := d.Decode(new(any)); err != io.EOF {
		t.Errorf("there is more than one document: %v", err)
	}
	return r
}

var matcher = regexp.MustCompile(`^([a-z]+)(=~|!=|=)"([^"]*)"$`)

// matches applies matchers as Alertmanager does: a label that is missing is empty, and
// patterns are anchored.
func matches(t *testing.T, matchers []string, labels map[string]string) bool {
	t.Helper()
	for _, m := range matchers {
		part := matcher.FindStringSubmatch(m)
		if part == nil {
			t.Fatalf("matcher %q is of no form that the test knows", m)
		}
		got := labels[part[1]]
		var holds bool
		switch part[2] {
		case "=":
			holds = got == part[3]
		case "!=":
			holds = got != part[3]
		case "=~":
			holds = regexp.MustCompile("^(?:" + part[3] + ")$").MatchString(got)
		}
		if !holds {
			return false
		}
	}
	return true
}

// silences tells whether one alert is silent while another stands.
func silences(t *testing.T, r routes, source, target map[string]string) bool {
	for _, rule := range r.Inhibit {
		same := true
		for _, name := range rule.Equal {
			same = same && source[name] == target[name]
		}
		if same && matches(t, rule.Source, source) && matches(t, rule.Target, target) {
			return true
		}
	}
	return false
}

func labels(severity, model string) map[string]string {
	l := map[string]string{"service": "weir", "class": "chat", "objective": "ttft_p99", "severity": severity}
	if model != "" {
		l["model"] = model
	}
	return l
}

// TestInhibitions: just those alerts are silent that the gateway keeps silent itself.
func TestInhibitions(t *testing.T) {
	r := readRoutes(t)
	louder := map[string]string{ticket: "page", warning: "page exhausted freeze", freeze: "exhausted"}
	rank := func(s string) int { return strings.Index("warning ticket freeze exhausted page", s) }
	for _, source := range severities {
		for _, target := range severities {
			for _, models := range [][2]string{{"", ""}, {"", "a"}, {"a", ""}, {"a", "a"}, {"a", "b"}} {
				want := models[0] == models[1] && strings.Contains(louder[target], source) ||
					models[0] == "" && models[1] != "" && rank(source) >= rank(target)
				if got := silences(t, r, labels(source, models[0]), labels(target, models[1])); got != want {
					t.Errorf("%s of model %q silences %s of model %q: %v, want %v", source, models[0], target, models[1], got, want)
				}
			}
			for name, value := range map[string]string{"class": "batch", "objective": "e2e_p95", "service": "another"} {
				other := labels(target, "a")
				other[name] = value
				if silences(t, r, labels(source, ""), other) {
					t.Errorf("%s silences %s of another %s", source, target, name)
				}
			}
		}
	}
	down := map[string]string{"service": "weir", "severity": page, "alertname": alertDown, "instance": "a"}
	for _, s := range severities {
		if silences(t, r, down, labels(s, "")) || silences(t, r, labels(s, ""), down) {
			t.Errorf("an alert without a class and %s have nothing to do with each other", s)
		}
	}
}

// TestRoutes: pages go to those who are woken, all else of ours to the others, and nothing of
// anybody else to either.
func TestRoutes(t *testing.T) {
	r := readRoutes(t)
	known := map[string]bool{}
	for _, receiver := range r.Receivers {
		known[receiver.Name] = true
	}
	for _, c := range []struct {
		labels map[string]string
		want   string
	}{
		{labels(page, ""), "weir-pages"}, {labels(ticket, "a"), "weir-tickets"}, {labels(freeze, ""), "weir-tickets"},
		{map[string]string{"service": "weir", "severity": page, "alertname": alertDown}, "weir-pages"},
		{map[string]string{"severity": page, "alertname": "Other"}, "nobody"},
	} {
		to := &r.Route
		for again := true; again; {
			again = false
			for i := range to.Routes {
				if matches(t, to.Routes[i].Matchers, c.labels) {
					to, again = &to.Routes[i], true
					break
				}
			}
		}
		if to.Receiver != c.want || !known[to.Receiver] {
			t.Errorf("%v goes to %q, want %q", c.labels, to.Receiver, c.want)
		}
	}
}
