package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/slo"
)

// sloNow is the gateway's time in these tests.
var sloNow = time.Date(2026, 11, 30, 16, 20, 11, 0, time.FixedZone("", 3600))

// stood makes how an objective stands, as a gateway computes it from counts.
func stood(t *testing.T, class, model, text string, good, bad, unknown int64, change func(*slo.ObjectiveStatus)) slo.ObjectiveStatus {
	t.Helper()
	o, err := slo.ParseObjective(text)
	if err != nil {
		t.Fatal(err)
	}
	if o.Name = o.Number.String(); o.Number.Timed() {
		o.Name += "_" + o.Target.String()
	}
	s := slo.ObjectiveStatus{Class: class, Model: model, Objective: o, Text: o.Text(), Since: sloNow.AddDate(0, 0, -12),
		Counts: slo.Counts{Good: good, Bad: bad, Unknown: unknown}, State: slo.StateOK}
	s.Budget.State = slo.StateOK
	s.Budget.Calls = s.Total()
	for _, window := range []time.Duration{5 * time.Minute, 30 * time.Minute, time.Hour, 6 * time.Hour, 72 * time.Hour} {
		s.Burn = append(s.Burn, slo.Burn{Window: window})
	}
	if all := s.Total() + unknown; all > 0 {
		s.UnknownShare = new(float64(unknown) / float64(all))
	}
	if n := s.Total(); n > 0 {
		budget := float64(1_000_000-o.Target) / 1e6
		low, high := slo.ClopperPearson(good, n, 0.95)
		s.Compliance, s.ComplianceLow, s.ComplianceHigh = new(float64(good)/float64(n)), &low, &high
		s.Budget.Allowed = new(budget * float64(n))
		s.Budget.Consumed = new(float64(bad) / *s.Budget.Allowed)
		s.Budget.Left = new(1 - *s.Budget.Consumed)
		for i := range s.Burn {
			s.Burn[i].Rate = new(float64(bad) / float64(n) / budget)
		}
	}
	if change != nil {
		change(&s)
	}
	return s
}

// someObjectives has a bit of everything.
func someObjectives(t *testing.T) slo.Status {
	t.Helper()
	month := slo.PeriodStatus{Name: "calendar_month Europe/Berlin", From: time.Date(2026, 10, 31, 23, 0, 0, 0, time.UTC), To: time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC)}
	page := slo.BurnRule{Long: time.Hour, Short: 5 * time.Minute, Factor: 14.4, Page: true}
	waits := func(s *slo.ObjectiveStatus) {
		s.Awaiting, s.OldestReceived = 1234, sloNow.Add(-12_345*time.Millisecond)
	}
	return slo.Status{At: sloNow, Since: sloNow.AddDate(0, 0, -12), Period: month, Lost: 3, Objectives: []slo.ObjectiveStatus{
		stood(t, "interactive", "", "goodput 95%", 9_800_000, 200_000, 0, nil),
		stood(t, "interactive", "", "network p99 <= 20ms", 0, 0, 10_000_000, nil),
		stood(t, "interactive", "", "ttft p99 <= 2s", 9_899_999, 100_001, 42, func(s *slo.ObjectiveStatus) {
			waits(s)
			s.State, s.Budget.State = slo.StatePage, slo.StateExhausted
			s.Burn[0].Rate, s.Burn[2].Rate = new(100.0), new(33.333)
			s.Firing = []slo.Firing{{Rule: slo.BurnRule{Long: 72 * time.Hour, Short: 6 * time.Hour, Factor: 1}, Bad: 80_000, Total: 90_000},
				{Rule: page, Page: true, Bad: 1200, Total: 1200}}
		}),
		stood(t, "interactive", "llama-3.3-70b-instruct-with-a-long-name", "ttft p99 <= 2s", 5_000_000, 100_001, 0, func(s *slo.ObjectiveStatus) {
			s.State, s.Budget.State = slo.StatePage, slo.StateExhausted
			s.Firing = []slo.Firing{{Outage: true, Page: true, Bad: 30, Total: 30}}
		}),
		stood(t, "interactive", "qwen\x1b[31m", "ttft p99 <= 2s", 4_899_999, 0, 42, nil),
		stood(t, "interactive", "", "success 99.9%", 9_994_000, 6_000, 0, func(s *slo.ObjectiveStatus) { s.State, s.Budget.State = slo.StateWarning, slo.StateWarning }),
		stood(t, "batch", "", "prefill p99 <= 10s else ttft_upstream", 250, 1, 8, func(s *slo.ObjectiveStatus) {
			s.Budget.TooFew = true
			s.Burn[0].Rate, s.Burn[1].Rate = new(0.0), new(0.004)
		}),
		stood(t, "batch", "", "ttft p95 <= 1500ms when input_tokens <= 8000, output_tokens <= 500", 900, 43, 0, func(s *slo.ObjectiveStatus) {
			s.Outside, s.OutsideMinutes = slo.Counts{Good: 1000, Bad: 200, Unknown: 5}, 1042
			s.State, s.Budget.State = slo.StateFreeze, slo.StateFreeze
			s.Budget.Forecast, s.Budget.AllowedForecast, s.Budget.ConsumedForecast, s.Budget.Left = new(int64(1010)), new(50.5), new(0.851), new(0.149)
		}),
		stood(t, "batch", "", "success 99.5%", 0, 0, 0, nil),
		stood(t, "batch", "", "e2e p95 <= 1m", 10_000, 20_000, 0, func(s *slo.ObjectiveStatus) { s.State, s.Budget.State = slo.StateExhausted, slo.StateExhausted }),
	}}
}

const someAlerts = `{"alerts":[
	{"status":"firing","severity":"page","class":"interactive","objective":"ttft_p99","startsAt":"2026-11-30T15:02:00Z","labels":{"a":"b"}},
	{"status":"firing","severity":"exhausted","class":"interactive","objective":"ttft_p99","startsAt":"2026-11-28T09:00:00Z"},
	{"status":"firing","severity":"ticket","class":"interactive","objective":"success","startsAt":"2026-11-05T09:00:00Z"},
	{"status":"resolved","severity":"page","class":"batch","objective":"success","startsAt":"2026-11-05T09:00:00Z"}
],"left_out":0,"receivers":[]}`

// sloAdmin is a gateway's admin endpoint.
type sloAdmin struct {
	*httptest.Server
	status slo.Status
	alerts string
	answer func(w http.ResponseWriter, path string) bool // in place of all below
	asked  []string
}

func newSLOAdmin(t *testing.T, status slo.Status) *sloAdmin {
	t.Helper()
	a := &sloAdmin{status: status, alerts: someAlerts}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.asked = append(a.asked, r.Method+" "+r.URL.RequestURI())
		if a.answer != nil && a.answer(w, r.URL.Path) {
			return
		}
		if r.URL.Path != "/weir/slo" {
			http.NotFound(w, r)
			return
		}
		b, err := json.Marshal(a.status)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"status":%s,"alerts":%s,"config":{"anything":1}}`, b, a.alerts)
	}))
	t.Cleanup(a.Close)
	return a
}

// runSLO runs the command and returns what it wrote.
func runSLO(t *testing.T, args ...string) (out, errOut string, err error) {
	t.Helper()
	cmd := build(t, "slo")
	var o, e bytes.Buffer
	cmd.SetOut(&o)
	cmd.SetErr(&e)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append([]string{}, args...)) // never nil: cobra takes the test's own then
	err = cmd.ExecuteContext(t.Context())
	return o.String(), e.String(), err
}

// atHost makes output the same whatever port a server got.
func atHost(text string, servers ...*sloAdmin) string {
	for i, s := range servers {
		text = strings.ReplaceAll(text, s.URL, fmt.Sprintf("http://gateway%d:2019", i+1))
	}
	return text
}
