package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// statusOf is what the process would end with.
func statusOf(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	end, ended := errors.AsType[*ending](err)
	if !ended {
		return 1
	}
	var status int
	if _, err := fmt.Sscanf(end.status.Error(), "exiting with status %d", &status); err != nil {
		t.Fatal(err)
	}
	return status
}

// TestSLOGate: what each state of the budgets comes to.
func TestSLOGate(t *testing.T) {
	a := newSLOAdmin(t, someObjectives(t))
	for name, c := range map[string]struct {
		args           []string
		status         int
		out, told, err []string
	}{
		"all": {nil, statusStop, []string{
			"interactive: ttft p99 <= 2s: page: the burn rate is above 14.4 over 1h and over 5m, where 1,200 of 1,200 calls are bad; look now what is wrong: weir diagnose\n",
			"batch: ttft p95 <= 1.5s when input_tokens <= 8000, output_tokens <= 500: freeze: 85.1% of the error budget of calendar_month Europe/Berlin is used: 43 bad calls, and 95% allows 50.5 by the forecast; hold back what is risky until the budget recovers: weir diagnose\n",
			"batch: e2e p95 <= 1m: exhausted: 1333.3% of the error budget of calendar_month Europe/Berlin is used: 20,000 bad calls, and 95% allows 1,500 so far; release only what mends it: weir diagnose\n",
		}, []string{
			"warning: interactive: success 99.9%: ticket: it burned too fast until just now, and the alert has not ended yet; look within days",
			"note: 1 of 8 objectives have too few calls in the period to tell; the first is batch: prefill",
		}, []string{"stop: 3 of 8 objectives hold up the release"}},
		"warnings":  {[]string{"--objective", "success,goodput,network"}, 0, []string{"go: no objective of 4 is at freeze or worse (budget of calendar_month Europe/Berlin)\n"}, []string{"warning: interactive: success 99.9%: ticket"}, nil},
		"strict":    {[]string{"--objective", "success", "--fail-on", "warning"}, statusStop, []string{"interactive: success 99.9%: ticket: "}, nil, []string{"stop: 1 of 2"}},
		"ticket":    {[]string{"--objective", "success", "--fail-on", "ticket"}, statusStop, nil, nil, []string{"stop: 1 of 2"}},
		"exhausted": {[]string{"--class", "batch", "--objective", "ttft_p95", "--fail-on", "exhausted"}, 0, []string{"go: no objective of 1 is at exhausted or worse"}, []string{"warning: batch: ttft p95"}, nil},
		"page only": {[]string{"--class", "batch", "--fail-on", "page"}, 0, []string{"go: "}, []string{"exhausted"}, nil},
		"a model":   {[]string{"--model", "llama-3.3-70b-instruct-with-a-long-name"}, statusStop, []string{"interactive: ttft p99 <= 2s of llama-3.3-70b-instruct-with-a-long-name: page: nearly all calls of the last half minute are bad (30 of 30); look now what is wrong: weir diagnose --model llama-3.3-70b-instruct-with-a-long-name\n"}, nil, []string{"stop: 1 of 1"}},
		"healthy":   {[]string{"--model", "qwen\x1b[31m"}, 0, []string{"go: no objective of 1 "}, nil, nil},
		"too little": {[]string{"--class", "batch", "--objective", "prefill,success", "--min-data", "1k"}, 1, nil, nil,
			[]string{"it cannot be told: 2 of 2 objectives have fewer calls than --min-data 1k; the first: batch: prefill p99 <= 10s else ttft_upstream has 251 good and bad calls"}},
		"stop before too little": {[]string{"--class", "batch", "--min-data", "1M"}, statusStop, nil, nil, []string{"stop: 2 of 4"}},
		"no such class":          {[]string{"--class", "bach"}, 1, nil, nil, []string{"--class bach: there is none"}},
		"no such state":          {[]string{"--fail-on", "ok"}, statusUsage, nil, nil, []string{"use one of warning, ticket, freeze, exhausted, page"}},
		"no count":               {[]string{"--min-data", "many"}, statusUsage, nil, nil, []string{"--min-data: "}},
		"no such flag":           {[]string{"--strict"}, statusUsage, nil, nil, []string{"unknown flag"}},
		"surplus":                {[]string{"surplus"}, statusUsage, nil, nil, []string{"takes no arguments"}},
		"nobody":                 {[]string{"--admin", "http://127.0.0.1:1"}, 1, nil, nil, []string{"ask the gateway"}},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"gate"}, c.args...)
			if !slices.Contains(args, "--admin") {
				args = append(args, "--admin", a.URL)
			}
			out, told, err := runSLO(t, args...)
			if got := statusOf(t, err); got != c.status {
				t.Errorf("status %d, want %d: %v", got, c.status, err)
			}
			for _, want := range c.out {
				if !strings.Contains(out, want) {
					t.Errorf("wrote %q, not %q", out, want)
				}
			}
			if lines := strings.Count(out, "\n"); c.out != nil && lines != len(c.out) || c.status == 1 && out != "" {
				t.Errorf("wrote %d lines: %q", lines, out)
			}
			for _, want := range c.told {
				if !strings.Contains(told, want) {
					t.Errorf("told %q, not %q", told, want)
				}
			}
			for _, want := range c.err {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q", err, want)
				}
			}
			if strings.ContainsRune(out+told, '\x1b') {
				t.Errorf("a terminal obeys %q", out+told)
			}
		})
	}
}

// TestSLOGateJSON: programs are told the same, whatever the status.
func TestSLOGateJSON(t *testing.T) {
	a := newSLOAdmin(t, someObjectives(t))
	for verdict, args := range map[string][]string{
		"stop":    nil,
		"go":      {"--objective", "success"},
		"unknown": {"--objective", "success", "--min-data", "1"},
	} {
		out, _, err := runSLO(t, append([]string{"gate", "--json", "--admin", a.URL}, args...)...)
		var j judgement
		if bad := json.Unmarshal([]byte(out), &j); bad != nil || j.Verdict != verdict || (err == nil) != (verdict == "go") {
			t.Errorf("%s: %v, %+v, %v", verdict, bad, j, err)
		}
		if verdict == "stop" {
			golden(t, "slo_gate.json", out)
		}
	}
}

// TestSLOGateNewState: a state that this version does not know is no reason to go.
func TestSLOGateNewState(t *testing.T) {
	s := someObjectives(t)
	s.Objectives = s.Objectives[:1]
	s.Objectives[0].State = "on_fire"
	a := newSLOAdmin(t, s)
	if out, _, err := runSLO(t, "gate", "--admin", a.URL); statusOf(t, err) != statusStop || !strings.Contains(out, "on_fire") {
		t.Errorf("%q %v", out, err)
	}
	a.status.Objectives = nil
	if _, _, err := runSLO(t, "gate", "--admin", a.URL); statusOf(t, err) != 1 || !strings.Contains(err.Error(), "nothing can be told") {
		t.Error(err)
	}
	a.answer = func(w http.ResponseWriter, _ string) bool {
		http.Error(w, `{"error":"no class has objectives"}`, http.StatusNotFound)
		return true
	}
	if _, _, err := runSLO(t, "gate", "--admin", a.URL); statusOf(t, err) != 1 || !strings.Contains(err.Error(), "no class has objectives") {
		t.Error(err)
	}
}
