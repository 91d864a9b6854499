package command

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	_ "time/tzdata" // for machines that have no time zones

	"github.com/weirgate/weir/slo"
)

// promised is what a gateway answers to GET /weir/slo/config.
func promised(t *testing.T, c slo.Config) string {
	t.Helper()
	c, _, err := c.Complete()
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(map[string]any{"config": c})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// interactive is a configuration of the one class.
func interactive(period slo.Period) slo.Config {
	class, _ := slo.Preset(slo.Interactive)
	return slo.Config{Classes: []slo.Class{class}, Period: period}
}

// ruled runs weir rules and returns what it wrote.
func ruled(t *testing.T, input string, args ...string) (string, error) {
	t.Helper()
	cmd := build(t, "rules")
	var out bytes.Buffer
	cmd.SetIn(strings.NewReader(input))
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceErrors = true
	cmd.SetArgs(append([]string{}, args...)) // never nil: cobra takes the test's own then
	err := cmd.Execute()
	return out.String(), err
}

func TestRules(t *testing.T) {
	answer := promised(t, interactive(slo.Period{}))
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.RequestURI()
		if !strings.HasPrefix(asked, "/weir/slo/config") {
			http.Error(w, `{"error":"no objectives are configured"}`, http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "slo.json")
	if err := os.WriteFile(file, []byte(answer), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		input string
		args  []string
		asks  string
		has   []string
		err   string
	}{
		"rules":       {args: []string{"--prometheus", "--admin", server.URL}, asks: "/weir/slo/config", has: []string{"groups:\n", "alert: WeirSLOPage", "ratio1h{class=\"interactive\",objective=\"ttft_p99\"} > 14.4 * 0.01", "[30d]"}},
		"drill":       {args: []string{"--prometheus", "--admin", server.URL, "--scale", "300"}, asks: "/weir/slo/config", has: []string{"[2h24m]", "divided by 300"}},
		"file":        {args: []string{"--prometheus", "--from", file}, has: []string{"alert: WeirSLOTicket"}},
		"input":       {args: []string{"--grafana", "--from", "-"}, input: answer, has: []string{`"title": "Weir"`, "weir_slo_burn_rate"}},
		"routes":      {args: []string{"--alertmanager", "--admin", "http://127.0.0.1:1"}, has: []string{"inhibit_rules:\n", "weir-pages"}},
		"no form":     {args: []string{"--admin", server.URL}, err: "one of --prometheus, --alertmanager and --grafana"},
		"two forms":   {args: []string{"--prometheus", "--grafana"}, err: "one of --prometheus, --alertmanager and --grafana"},
		"wrong scale": {args: []string{"--prometheus", "--from", file, "--scale", "0.5"}, err: "write a factor from 1"},
		"lost scale":  {args: []string{"--grafana", "--from", file, "--scale", "2"}, err: "--scale is for --prometheus"},
		"nobody":      {args: []string{"--prometheus", "--admin", "http://127.0.0.1:1"}, err: "--admin"},
		"elsewhere":   {args: []string{"--prometheus", "--admin", server.URL + "/other"}, asks: "/other/weir/slo/config", err: "the gateway answers 404: no objectives are configured"},
		"no file":     {args: []string{"--prometheus", "--from", file + "x"}, err: "--from: open"},
		"no JSON":     {args: []string{"--prometheus", "--from", "-"}, input: "class chat", err: "read standard input: invalid character 'c' looking for beginning of value; it is to be what GET /weir/slo/config answers"},
		"other JSON":  {args: []string{"--prometheus", "--from", "-"}, input: `{"calls":[]}`, err: "it has no field config"},
		"no classes":  {args: []string{"--prometheus", "--from", "-"}, input: promised(t, slo.Config{}), err: "there are no objectives"},
	} {
		t.Run(name, func(t *testing.T) {
			asked = ""
			out, err := ruled(t, c.input, c.args...)
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("error %v, want %q", err, c.err)
			}
			if asked != c.asks {
				t.Errorf("asked %q, want %q", asked, c.asks)
			}
			for _, want := range c.has {
				if !strings.Contains(out, want) {
					t.Errorf("what is written lacks %q:\n%.2000s", want, out)
				}
			}
			if c.err != "" && out != "" {
				t.Errorf("an error, and something is written: %q", out)
			}
		})
	}
}

// TestRulesToFile: a file is written whole or not at all.
func TestRulesToFile(t *testing.T) {
	input := promised(t, interactive(slo.Period{}))
	file := filepath.Join(t.TempDir(), "weir.yml")
	if err := os.WriteFile(file, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := ruled(t, "{}", "--prometheus", "--from", "-", "--out", file); err == nil || out != "" {
		t.Errorf("rules of nothing: %q, %v", out, err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "old" {
		t.Errorf("after an error the file has %.20q, %v", b, err)
	}
	if out, err := ruled(t, input, "--prometheus", "--from", "-", "--out", file); err != nil || out != "" {
		t.Errorf("%q, %v", out, err)
	}
	whole, err := ruled(t, input, "--prometheus", "--from", "-")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != whole {
		t.Errorf("the file has %d bytes, want the %d that standard output gets; %v", len(b), len(whole), err)
	}
	if _, err := ruled(t, input, "--prometheus", "--from", "-", "--out", filepath.Join(file, "below")); err == nil || !strings.Contains(err.Error(), "--out: ") {
		t.Errorf("to where no file can be: %v", err)
	}
}

// TestRulesKeepThePeriod: a calendar period comes through what the gateway answers.
func TestRulesKeepThePeriod(t *testing.T) {
	period, err := slo.ParsePeriod("calendar_month Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	out, err := ruled(t, promised(t, interactive(period)), "--prometheus", "--from", "-")
	if err != nil || !strings.Contains(out, "calendar_month Europe/Berlin") {
		t.Errorf("%v\n%.500s", err, out)
	}
}
