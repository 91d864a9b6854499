package caddymodule

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/keys"
	"github.com/weirgate/weir/slo"
)

// TestSLOIsChecked: what can never hold is refused when the configuration is loaded, with
// the reason, and what ran before goes on.
func TestSLOIsChecked(t *testing.T) {
	upstream := serve(t, http.HandlerFunc(telling))
	s := newSite(t)
	sites := s.http("weir\nreverse_proxy " + upstream)
	r := start(t, "", sites)
	for block, says := range map[string]string{
		"class a interactive\nclass a batch": "class a is given twice",
		"class _a interactive":               "class _a: names that begin with _ are Weir's own",
		"class a":                            "class a: it has no objectives; add one, such as ttft p99 <= 2s",
		"class a/b interactive":              "point, hyphen and underscore",
		"class batch {\nno prefill network queue tpot e2e success\n}":                          "goodput asks whether all other objectives hold, and there is none",
		"class a {\nttft p99 <= 2s\nttft p99 <= 2s\n}":                                         `the objective "ttft p99 <= 2s" is there twice; remove one`,
		"slo off\nclass a interactive":                                                         "slo is off, and there are classes with objectives; take out one or the other",
		"slo {\nburn page 1h 5m 30\n}":                                                         "burns at most 20, when all calls are bad, so a factor above 18 waits for nine bad calls in ten or for ever; use at most 18, or raise the target",
		"slo {\nburn page 5m 1h 14.4\n}":                                                       "the short window comes second",
		"slo {\nburn page 1h 90s 14.4\n}":                                                      "windows are whole minutes",
		"slo {\nburn ticket 7d 6h 1\n}":                                                        "a window is at most 3d long",
		"slo {\nburn page 1h 5m 0\n}":                                                          "the factor is above 0",
		"slo {\nburn page 1h 5m 14.4\nburn page 1h 5m 10\n}":                                   "its windows are there twice",
		"slo {\nperiod weekly\n}":                                                              "calendar_month",
		"slo {\nperiod rolling 90d\n}":                                                         "1d",
		"slo {\nperiod calendar_month Mars/Base\n}":                                            "Mars/Base",
		"slo {\nwarn 90%\n}":                                                                   "warn at 0.9 comes after freeze at 0.8",
		"alert pager http://127.0.0.1:1":                                                       `alert "pager" is not known; use alertmanager or webhook`,
		"alert webhook ftp://127.0.0.1":                                                        "alert webhook needs a URL",
		"alert alertmanager 127.0.0.1:9093":                                                    "alert alertmanager needs a URL, such as http://127.0.0.1:9093",
		"alert alertmanager http://127.0.0.1:9093/api/v1":                                      "version 1 API, which is gone",
		"alert webhook http://127.0.0.1:1 {\nlabel my-team x\n}":                               "a name is letters, digits and _",
		"alert webhook http://127.0.0.1:1 {\nlabel severity x\n}":                              "alert label severity: every alert sets it itself",
		"alert webhook http://a {\nlabel team a\n}\nalert webhook http://b {\nlabel team b\n}": `alert label team is "a" and "b", and all alerts have all labels`,
		"probe chat http://127.0.0.1:1":                                                        "probe chat needs the name of a model to ask for",
		"probe chat 127.0.0.1:1 {\nmodel m\n}":                                                 "probe chat needs the URL of a site of this gateway",
		"probe chat http://127.0.0.1:1 {\nmodel m\nevery 100ms\n}":                             "every is at least 1s",
		"probe chat http://127.0.0.1:1 {\nmodel m\noutput_tokens 1000\n}":                      "a probe writes 1 to 256 tokens",
		"probe a http://127.0.0.1:1 {\nmodel m\n}\nprobe a http://127.0.0.1:1 {\nmodel n\n}":   "probe a is given twice",
	} {
		if err := r.tryLoad("weir {\n"+block+"\n}", sites); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", block, err, says)
		}
	}
	if promised := current().rooms.theRunning().promised; len(promised.Classes) != len(presets) {
		t.Errorf("what ran before has become %+v", promised)
	}
}

// logged returns the lines of Caddy's own log that have all of the texts.
func (r *run) logged(texts ...string) (lines []string) {
	r.t.Helper()
	b, err := os.ReadFile(r.dir + "/caddy.log")
	if err != nil {
		r.t.Fatal(err)
	}
next:
	for line := range strings.Lines(plain(string(b))) {
		for _, text := range texts {
			if !strings.Contains(line, text) {
				continue next
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// TestSLOWarns: what works and may not be meant is in the log, once each time it is
// loaded. Presets as they are give no cause.
func TestSLOWarns(t *testing.T) {
	upstream := serve(t, http.HandlerFunc(telling))
	s := newSite(t)
	r := start(t, "", s.http("weir\nreverse_proxy "+upstream))
	if lines := r.logged(`"level":"warn"`, "weir"); len(lines) > 0 {
		t.Errorf("without a word of objectives: %v", lines)
	}
	file := keyFile(t, keys.Entry{Alias: "team-a", Class: "unheard"}, keys.Entry{Alias: "team-b", Class: "chat"})
	r.load("weir {\nkeys "+file+"\nclass chat interactive {\nttft p99 <= 500ms\n}\nclass batch {\ne2e p90 <= 2m\n}\nslo {\nperiod rolling 1d\n}\n}",
		s.http("weir {\nclass chats\nclass own header X-Own *\nclass chat header X-Chat *\n}\nreverse_proxy "+upstream))
	for _, texts := range [][]string{
		{`"logger":"weir.slo"`, "ttft p99 <= 500ms is below queue p99 <= 1s, which is a part of it", `"class":"chat"`, `"objective":"ttft_p99"`},
		{`"logger":"weir.slo"`, "these reach e2e p95 <= 5s after 112 tokens", `"class":"chat"`},
		{`"logger":"weir.slo"`, "the burn rule 1h/5m x 14.4 page needs more than it can burn in practice", `"class":"batch"`, "e2e_p90"},
		{`"logger":"weir.slo"`, "the burn rule 6h/30m x 6 page fires when 150% of the budget of rolling 1d is spent"},
		{"calls of this class are counted for no objective", `"class":"chats"`},
		{"calls of this class are counted for no objective", `"class":"own"`},
		{"calls of this class are counted for no objective", `"class":"unheard"`, `"key":"team-a"`},
	} {
		if lines := r.logged(texts...); len(lines) != 1 || !strings.Contains(lines[0], `"level":"warn"`) {
			t.Errorf("%v is logged %d times: %v", texts, len(lines), lines)
		}
	}
	if lines := r.logged("counted for no objective", `"class":"chat"`); len(lines) > 0 {
		t.Errorf("a class that is configured is warned of: %v", lines)
	}
}

// TestClassesAreWhole: what a configuration says of classes is what objectives are kept by.
func TestClassesAreWhole(t *testing.T) {
	upstream := serve(t, http.HandlerFunc(telling))
	s := newSite(t)
	r := start(t, "weir {\nclass interactive {\nttft p95 <= 300ms\nttft p99 <= 1s\nno network queue\n}\nclass agents batch {\n"+
		"ttft p99 <= 5s when input_tokens <= 32k\nvalid while input_tokens p95 <= 8000, rate <= 2/s\n}\nclass own {\nsuccess 99.5%\n}\n"+
		"slo {\nperiod calendar_month Europe/Berlin\nburn page 30m 2m 10\nmin_bad 3\nmin_calls 100\nwarn 40%\nfreeze 70%\n}\n}",
		s.http("weir\nreverse_proxy "+upstream))
	status, body := r.get("/weir/slo/config")
	var answer struct{ Config slo.Config }
	if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s, %v", status, body, err)
	}
	c := answer.Config
	if err := c.Validate(); err != nil {
		t.Errorf("what it shows is not whole: %v", err)
	}
	got := make(map[string]string)
	for _, class := range c.Classes {
		var all []string
		for _, o := range class.Objectives {
			all = append(all, o.Name+": "+o.Text())
		}
		got[class.Name] = strings.Join(all, "; ")
	}
	for name, want := range map[string]string{
		"interactive": "tpot_p95: tpot p95 <= 40ms; e2e_p95: e2e p95 <= 5s; success: success 99.9%; goodput: goodput 95%; ttft_p95: ttft p95 <= 300ms; ttft_p99: ttft p99 <= 1s",
		"completion": "network_p99: network p99 <= 10ms; queue_p99: queue p99 <= 200ms; ttft_p99: ttft p99 <= 500ms; tpot_p95: tpot p95 <= 20ms; e2e_p95: e2e p95 <= 1s; " +
			"success: success 99.9%; goodput: goodput 95%",
		"batch": "network_p99: network p99 <= 100ms; queue_p99: queue p99 <= 30s; prefill_p99: prefill p99 <= 10s else ttft_upstream; tpot_p95: tpot p95 <= 100ms; " +
			"e2e_p95: e2e p95 <= 1m; success: success 99.5%; goodput: goodput 95%",
		"agents": "network_p99: network p99 <= 100ms; queue_p99: queue p99 <= 30s; prefill_p99: prefill p99 <= 10s else ttft_upstream; tpot_p95: tpot p95 <= 100ms; " +
			"e2e_p95: e2e p95 <= 1m; success: success 99.5%; goodput: goodput 95%; ttft_p99: ttft p99 <= 5s when input_tokens <= 32000",
		"own": "success: success 99.5%",
	} {
		// The place of a replaced objective means nothing.
		if sorted(got[name]) != sorted(want) {
			t.Errorf("class %s:\n got %s\nwant %s", name, got[name], want)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("more classes: %v", got)
	}
	if c.Period.Name() != "calendar_month Europe/Berlin" || len(c.Burn) != 1 || c.Burn[0].String() != "30m/2m x 10 page" || c.MinBad != 3 || c.MinCalls != 100 ||
		c.Warn != 0.4 || c.Freeze != 0.7 {
		t.Errorf("%s, %v, %d, %d, %v, %v", c.Period.Name(), c.Burn, c.MinBad, c.MinCalls, c.Warn, c.Freeze)
	}
}

func sorted(list string) string {
	all := strings.Split(list, "; ")
	slices.Sort(all)
	return strings.Join(all, "; ")
}
