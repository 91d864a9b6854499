package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/doctor"
	"github.com/weirgate/weir/internal/sim"
)

// examine runs the command and returns what it wrote and its error.
func examine(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := build(t, "doctor")
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceErrors = true
	cmd.SetArgs(append([]string{}, args...)) // never nil: cobra takes the test's own then
	err := cmd.Execute()
	return out.String(), err
}

func TestDoctor(t *testing.T) {
	engine, err := sim.Start(sim.Config{PrefillBase: 1e6, DecodeBase: 1e5, PerRequestMetrics: true, ForceUsage: true})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	server := httptest.NewServer(engine)
	defer server.Close()
	for _, args := range [][]string{{server.URL}, {"--url", server.URL + "/v1"}} {
		out, err := examine(t, args...)
		if err != nil || !strings.Contains(out, " 0 FAIL, ") || !strings.Contains(out, "ok") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	// A port that nothing listens on: one fault, one line of what is not checked.
	out, err := examine(t, "http://127.0.0.1:1")
	if err == nil || strings.Count(out, "not made because") != 1 || strings.Count(out, "not checked because") != 0 ||
		!strings.Contains(out, " 1 FAIL, ") || !strings.HasSuffix(out, " not known\n") {
		t.Errorf("nothing there: %v\n%s", err, out)
	}
	for line := range strings.Lines(out) {
		if len(line) > 81 {
			t.Errorf("wider than 80 columns: %s", line)
		}
	}
	out, err = examine(t, server.URL, "--json")
	var report doctor.Report
	if err != nil || json.Unmarshal([]byte(out), &report) != nil || len(report.Findings) < 15 || report.Worst == doctor.Red {
		t.Errorf("--json: %v\n%s", err, out)
	}
}

// TestDoctorStatus: 1 when something is broken, 2 when the command line is wrong.
func TestDoctorStatus(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html>welcome</html>"))
	}))
	defer page.Close()
	t.Setenv("EMPTY_KEY", "")
	for name, c := range map[string]struct {
		args  []string
		says  string // in the error
		usage bool   // status 2
	}{
		"broken":        {[]string{page.URL}, "FAIL", false},
		"no URL":        {nil, "name the endpoint", true},
		"two URLs":      {[]string{page.URL, page.URL}, "one endpoint at a time", true},
		"URL twice":     {[]string{page.URL, "--url", page.URL}, "given twice", true},
		"unknown API":   {[]string{page.URL, "--api", "grpc"}, "choose chat", true},
		"empty key":     {[]string{page.URL, "--key-env", "EMPTY_KEY"}, "EMPTY_KEY is empty", true},
		"no time":       {[]string{page.URL, "--timeout", "0s"}, "give a time", true},
		"unknown flag":  {[]string{page.URL, "--fast"}, "unknown flag", true},
		"flag not read": {[]string{page.URL, "--timeout", "soon"}, "invalid argument", true},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := examine(t, c.args...)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("error %v, want %q\n%s", err, c.says, out)
			}
			end, _ := errors.AsType[*ending](err)
			if usage := end != nil && strings.Contains(end.status.Error(), "status 2"); usage != c.usage {
				t.Errorf("status 2 is %v, want %v: %v", usage, c.usage, err)
			}
		})
	}
}
