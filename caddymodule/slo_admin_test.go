package caddymodule

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/capacity"
	"github.com/weirgate/weir/internal/diagnose"
	"github.com/weirgate/weir/internal/sim"
	"github.com/weirgate/weir/slo"
)

// burnLabels are the windows of burn rates as metrics name them.
var burnLabels = map[time.Duration]string{5 * time.Minute: "5m", 30 * time.Minute: "30m", time.Hour: "1h", 6 * time.Hour: "6h", 72 * time.Hour: "3d"}

// TestSLOAdmin: what /weir/slo, its config and its snapshot say, and the metrics, is the
// same, and is what the calls were.
func TestSLOAdmin(t *testing.T) {
	upstream := serve(t, http.HandlerFunc(failing))
	s := newSite(t)
	r := start(t, "", s.http("weir {\nclass batch header X-Job *\n}\nreverse_proxy "+upstream))
	if a := r.slo(); len(a.Status.Objectives) != 21 || a.Status.Period.Name != "rolling 30d" || a.Status.Since.IsZero() || len(a.Alerts.Receivers) != 1 {
		t.Errorf("before the first call: %+v", a)
	}
	r.asks(s, "", "good", 4)
	r.asks(s, "", "bad", 2, "X-Way", "fails")
	r.asks(s, "", "job", 3, "X-Job", "1")
	a := r.slo()
	for class, want := range map[string]slo.Counts{"interactive": {Good: 4, Bad: 2}, "batch": {Good: 3}, "completion": {}} {
		if got := a.of(t, class, "success").Counts; got != want {
			t.Errorf("success of %s is %+v, want %+v", class, got, want)
		}
	}

	// A reader that has only the snapshot and the configuration says the same.
	var config struct{ Config slo.Config }
	_, body := r.get("/weir/slo/config")
	if err := json.Unmarshal(body, &config); err != nil {
		t.Fatal(err)
	}
	status, snapshot := r.get("/weir/slo/snapshot")
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, snapshot)
	}
	reader := slo.New()
	if err := reader.Configure(config.Config, a.Status.At); err != nil {
		t.Fatal(err)
	}
	for range 2 { // as those of two gateways
		if err := reader.Merge(snapshot); err != nil {
			t.Fatal(err)
		}
	}
	merged := reader.Status(a.Status.At)
	if len(merged.Objectives) != len(a.Status.Objectives) {
		t.Fatalf("%d objectives of the snapshot, %d of the page", len(merged.Objectives), len(a.Status.Objectives))
	}
	metrics := r.metrics()
	for i, m := range merged.Objectives {
		o := a.Status.Objectives[i]
		if twice := (slo.Counts{Good: 2 * o.Good, Bad: 2 * o.Bad, Unknown: 2 * o.Unknown}); m.Class != o.Class || m.Model != o.Model || m.Text != o.Text || m.Counts != twice {
			t.Errorf("%s %s %q: the snapshot twice has %+v, the page %+v", o.Class, o.Text, o.Model, m.Counts, o.Counts)
		}
		series := fmt.Sprintf(`class="%s",model="%s",objective="%s"`, o.Class, o.Model, o.Objective.Name)
		if o.Model != slo.AllModels {
			for verdict, n := range map[string]int64{"good": o.Good, "bad": o.Bad, "unknown": o.Unknown, "outside": 0} {
				if got, there := metrics["weir_slo_calls_total{"+series+`,verdict="`+verdict+`"}`]; !there || got != float64(n) {
					t.Errorf("weir_slo_calls_total{%s} %s is %v (%t), want %d", series, verdict, got, there, n)
				}
			}
		}
		if got := metrics["weir_slo_period_calls{"+series+"}"]; got != float64(o.Budget.Calls) {
			t.Errorf("weir_slo_period_calls{%s} is %v, want %d", series, got, o.Budget.Calls)
		}
		for _, state := range slo.States {
			if got, there := metrics["weir_slo_state{"+series+`,state="`+string(state)+`"}`]; !there || got == 1 != (o.State == state) {
				t.Errorf("weir_slo_state{%s} %s is %v (%t), the page says %s", series, state, got, there, o.State)
			}
		}
		if o.Budget.Consumed != nil {
			if got := metrics[`weir_slo_budget_consumed_ratio{basis="so_far",`+series+"}"]; got != *o.Budget.Consumed {
				t.Errorf("weir_slo_budget_consumed_ratio{%s} is %v, want %v", series, got, *o.Budget.Consumed)
			}
		}
		for _, b := range o.Burn {
			got, there := metrics["weir_slo_burn_rate{"+series+`,window="`+burnLabels[b.Window]+`"}`]
			if there != (b.Rate != nil) || there && got != *b.Rate {
				t.Errorf("weir_slo_burn_rate{%s} of %v is %v (%t), want %v", series, b.Window, got, there, b.Rate)
			}
		}
	}
	for series, want := range map[string]float64{
		`weir_slo_target_ratio{class="interactive",objective="ttft_p99"}`: 0.99, `weir_slo_threshold_seconds{class="interactive",objective="ttft_p99"}`: 2,
		`weir_slo_awaiting{class="interactive"}`: 0,
	} {
		if got, there := metrics[series]; !there || got != want {
			t.Errorf("%s is %v (%t), want %v", series, got, there, want)
		}
	}
	if since := metrics.sum("weir_slo_data_since_timestamp_seconds"); since < float64(time.Now().Add(-time.Hour).Unix()) {
		t.Errorf("data since %v", since)
	}
}

// TestSLOOff: switched off, nothing is judged, and the pages say how to switch it on.
func TestSLOOff(t *testing.T) {
	upstream := serve(t, http.HandlerFunc(failing))
	s := newSite(t)
	r := start(t, "weir {\nslo off\n}", s.http("weir {\nclass own\n}\nreverse_proxy "+upstream))
	r.asks(s, "", "unjudged", 2)
	for _, page := range []string{"/weir/slo", "/weir/slo/config", "/weir/slo/snapshot"} {
		if status, body := r.get(page); status != http.StatusNotFound || !strings.Contains(string(body), "take slo off out of the global option weir") {
			t.Errorf("%s: %d %s", page, status, body)
		}
	}
	if status, body := r.get("/weir/probes"); status != http.StatusOK || strings.TrimSpace(string(body)) != `{"probes":[]}` {
		t.Errorf("/weir/probes: %d %s", status, body)
	}
	for series := range r.metrics() {
		if strings.HasPrefix(series, "weir_slo_") {
			t.Errorf("there is %s", series)
		}
	}
	if lines := r.logged("counted for no objective"); len(lines) > 0 {
		t.Errorf("nothing is counted, and a class is warned of: %v", lines)
	}
	for _, page := range []string{"/weir/slo", "/weir/slo/config", "/weir/slo/snapshot", "/weir/probes", "/weir/capacity"} {
		res, err := http.Post("http://"+r.admin+page, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", page, res.StatusCode)
		}
	}
	r.load("", s.http("weir\nreverse_proxy "+upstream))
	until(t, "objectives that are kept on disk", func() bool {
		status, body := r.get("/weir/slo")
		return status == http.StatusOK && strings.Contains(string(body), `"kept":true`)
	})
	r.asks(s, "", "judged", 1)
	r.wantCounts("switched on", "interactive", map[string]slo.Counts{"success": {Good: 1}})
}

// TestCapacityAdmin: what is asked wrongly is told, too few calls are refused with the
// reason, and with enough of them there is an answer that names its bound.
func TestCapacityAdmin(t *testing.T) {
	// An answer takes some tens of milliseconds: one that comes whole at once, on a busy
	// machine, tells no time per output token.
	engine, err := sim.Start(sim.Config{Slots: 8, PrefillBase: 2 * time.Millisecond, PrefillPerToken: 10 * time.Microsecond, DecodeBase: 3 * time.Millisecond,
		DecodePerSequence: 100 * time.Microsecond, OutputMin: 8, OutputMax: 16})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	upstream := serve(t, engine)
	s := newSite(t)
	r := start(t, fmt.Sprintf("weir {\nengine vllm http://%s {\nmax_num_seqs 8\nevery 100ms\n}\n}", upstream), s.http("weir\nreverse_proxy "+upstream))
	for query, says := range map[string]string{
		"speed=1":                             `unknown parameter \"speed\"; use model, upstream, class, since, target_rate, ttft, tpot or format`,
		"model=a&model=b":                     "model is given 2 times; give it once",
		"since=soon":                          "neither an age such as 15m nor a time",
		"target_rate=0":                       "is not a number of calls a second above 0",
		"target_rate=fast":                    "is not a number of calls a second above 0",
		"ttft=2":                              "is not a time such as 500ms",
		"tpot=-1s":                            "is not a time such as 500ms",
		"class=batch":                         "class batch has no objective for TTFT, which decides how much fits; give one with ttft=2s, or another class",
		"class=" + url.QueryEscape("no such"): "class no such has no objective for TTFT",
	} {
		if status, body := r.get("/weir/capacity?" + query); status != http.StatusBadRequest || !strings.Contains(string(body), says) {
			t.Errorf("%s: %d %s, want %q", query, status, body, says)
		}
	}
	ask := func(query string) (a capacity.Result) {
		t.Helper()
		status, body := r.get("/weir/capacity?" + query)
		if err := json.Unmarshal(body, &a); err != nil || status != http.StatusOK {
			t.Fatalf("%s: %d %s, %v", query, status, body, err)
		}
		return a
	}
	if a := ask(""); len(a.Upstreams) != 0 || a.TTFTObjective.Or(0) != 2*time.Second || a.TTFTQuantile != 0.99 || a.Class != "interactive" {
		t.Errorf("of no call: %+v", a)
	}
	manyCalls(t, s, 1, 30)
	if a := ask("ttft=500ms"); len(a.Upstreams) != 1 || a.Upstreams[0].Label != capacity.Refused || len(a.Upstreams[0].Reasons) == 0 || a.TTFTObjective.Or(0) != 500*time.Millisecond {
		t.Errorf("of few calls: %+v", a)
	}
	for _, atOnce := range []int{2, 4, 8, 12} { // quiet and busy times
		manyCalls(t, s, atOnce, 100)
	}
	if a := ask("class=batch&ttft=50ms"); len(a.Upstreams) != 1 || a.Class != "batch" {
		t.Errorf("of a class without calls: %+v", a)
	}
	a := ask("target_rate=1000")
	if len(a.Upstreams) != 1 || a.Upstreams[0].Upstream != upstream || a.Upstreams[0].Model != "m" || a.Upstreams[0].Calls != 430 {
		t.Fatalf("of enough calls: %+v", a)
	}
	// Twelve at once on eight slots are about all that fits.
	u := a.Upstreams[0]
	if knee, known := u.Knee.Get(); u.Label == capacity.Refused || !known || knee <= 0 || u.KneeLow.Or(-1) <= 0 || u.Bound == "" {
		t.Errorf("no estimate of %d usable calls: %+v", u.Usable, u)
	}
	t.Logf("%s, %s %v calls/s: %v", u.Label, u.Bound, u.Knee, u.Reasons)
	if status, text := r.get("/weir/capacity?format=text"); status != http.StatusOK || !strings.Contains(string(text), upstream) {
		t.Errorf("as text: %d %s", status, text)
	}
}

// manyCalls makes n streamed calls, some at a time.
func manyCalls(t *testing.T, s site, atOnce, n int) {
	t.Helper()
	c := client(t, "http/1.1")
	c.Transport.(*http.Transport).MaxIdleConnsPerHost = atOnce
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	var callers sync.WaitGroup
	for range atOnce {
		callers.Go(func() {
			for i := range next {
				res, err := c.Do(post(t.Context(), t, s.url("http/1.1", chatPath), "capacity",
					fmt.Sprintf(`{"model":"m","stream":true,"stream_options":{"include_usage":true},"max_tokens":12,"messages":[{"role":"user","content":"question %d"}]}`, i)))
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
		})
	}
	callers.Wait()
}

// TestDiagnoseAgainst: two times are set beside each other, and what that cannot mean is refused.
func TestDiagnoseAgainst(t *testing.T) {
	upstream := serve(t, http.HandlerFunc(failing))
	s := newSite(t)
	r := start(t, "", s.http("weir\nreverse_proxy "+upstream))
	r.asks(s, "", "before", 3)
	for query, says := range map[string]string{
		"against=long":                 "is not a span of time such as 1h",
		"against=-1h":                  "is not a span of time such as 1h",
		"against=1h&failed=true":       "against compares all calls of two times: leave out id, failed, outcome and min_ttft_ms",
		"against=1h&id=x":              "leave out id",
		"against=1h&min_ttft_ms=5":     "leave out id",
		"against=1h&outcome=truncated": "leave out id",
		"against=1h&speed=1":           "unknown parameter",
	} {
		if status, body := r.get("/weir/diagnose?" + query); status != http.StatusBadRequest || !strings.Contains(string(body), says) {
			t.Errorf("%s: %d %s, want %q", query, status, body, says)
		}
	}
	status, body := r.get("/weir/diagnose?against=1h&since=1m&class=interactive&model=m")
	var c diagnose.Comparison
	if err := json.Unmarshal(body, &c); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s, %v", status, body, err)
	}
	if c.Fault() || len(c.Reasons) == 0 {
		t.Errorf("of three calls, with nothing before: %s", body)
	}
	if status, text := r.get("/weir/diagnose?against=1h&format=text"); status != http.StatusOK || !strings.Contains(string(text), "TOO FEW CALLS TO TELL") {
		t.Errorf("as text: %d %s", status, text)
	}
}
