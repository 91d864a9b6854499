package alert

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/common/model"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/slo"
)

// TestSummaries: one sentence with the figures that are known.
func TestSummaries(t *testing.T) {
	at := time.Date(2026, 5, 1, 3, 12, 45, 0, time.UTC)
	bare := slo.ObjectiveStatus{Class: "interactive", Objective: slo.Objective{Name: "ttft_p99"}}
	forecast := standing{class: "interactive", objective: "ttft_p99", consumed: 5}.status()
	forecast.Bad = 5200
	forecast.Budget.ConsumedForecast, forecast.Budget.AllowedForecast = ptr(0.52), ptr(10_000.4)
	over := standing{class: "interactive", objective: "ttft_p99", consumed: 1.234}.status()
	for name, tt := range map[string]struct {
		severity Severity
		o        slo.ObjectiveStatus
		ends     time.Time
		summary  string
		windows  string
		budget   string
	}{
		"page": {Page, standing{page: true}.status(), time.Time{}, ` p99 <= 2s" uses up its error budget 16 times as fast as it may: 32 bad of 200 in the last 5m`,
			"burn rate above 14.4 over 1h and 5m: 15.4 over 1h (618 bad of 4,000), 16 over 5m (32 bad of 200)", ""},
		"outage": {Page, standing{page: true, outage: true}.status(), time.Time{}, ` p99 <= 2s" is missed by nearly every call: 58 bad of 60 in the last half minute`,
			"outage: 58 bad of 60 in the last half minute\nburn rate above 14.4 over 1h and 5m: 15.4 over 1h (618 bad of 4,000), 16 over 5m (32 bad of 200)", ""},
		"ticket": {Ticket, standing{page: true, ticket: true}.status(), time.Time{}, ` p99 <= 2s" uses up its error budget 1.5 times as fast as it may: 300 bad of 20,000 in the last 6h`,
			"burn rate above 1 over 3d and 6h: 1.3 over 3d (2,600 bad of 200,000), 1.5 over 6h (300 bad of 20,000)", ""},
		"windows that are not kept": {Page, slo.ObjectiveStatus{Text: "ttft_p99 p99 <= 2s", Firing: []slo.Firing{{Rule: slo.BurnRule{Long: 12 * time.Second, Short: time.Second, Factor: 14.4}, Page: true, Bad: 3, Total: 9}}}, time.Time{},
			` p99 <= 2s" uses up its error budget more than 14.4 times as fast as it may: 3 bad of 9 in the last 1s`, "burn rate above 14.4 over 12s and 1s: more over 12s, over 1s 3 bad of 9", ""},
		"two rules": {Page, slo.ObjectiveStatus{Text: "ttft_p99 p99 <= 2s", Firing: []slo.Firing{{Rule: mediumRule, Page: true, Bad: 40, Total: 90}, {Rule: fastRule, Page: true, Bad: 3, Total: 9}}}, time.Time{},
			` p99 <= 2s" uses up its error budget more than 14.4 times as fast as it may: 3 bad of 9 in the last 5m`,
			"burn rate above 6 over 6h and 30m: more over 6h, over 30m 40 bad of 90\nburn rate above 14.4 over 1h and 5m: more over 1h, over 5m 3 bad of 9", ""},
		"over": {Page, standing{page: true}.status(), at.Add(90 * time.Minute), ` p99 <= 2s": the page is over; it lasted 1h30m, until 2026-05-01T04:42:45Z`,
			"burn rate above 14.4 over 1h and 5m: 15.4 over 1h (618 bad of 4,000), 16 over 5m (32 bad of 200)", ""},
		"forecast": {Warning, forecast, time.Time{}, ` p99 <= 2s" has used 52 % of the error budget of calendar_month Europe/Berlin (5,200 bad of 10,000 allowed by the forecast of its calls)`, "", ""},
		"overspent": {Exhausted, over, time.Time{}, ` p99 <= 2s" has used 123 % of the error budget of calendar_month Europe/Berlin (123 bad of 100 allowed)`, "",
			"123 % of the error budget of calendar_month Europe/Berlin (123 bad of 100 allowed) is used, 23.4 % more than there is"},
		"nothing is known": {Freeze, bare, at.Add(time.Second), `": the freeze is over; it lasted 1s, until 2026-05-01T03:12:46Z`, "", ""},
	} {
		if name != "nothing is known" {
			tt.o.Text = "ttft_p99 p99 <= 2s"
		}
		v := &view{key: key{"interactive", "ttft_p99", "", tt.severity}, starts: at, ends: tt.ends, objective: tt.o, period: slo.PeriodStatus{Name: "calendar_month Europe/Berlin"}}
		a := v.annotations(&Options{})
		if want := `interactive, all models: "ttft_p99` + tt.summary; a["summary"] != want {
			t.Errorf("%s: the summary is\n%s, want\n%s", name, a["summary"], want)
		}
		if a["windows"] != tt.windows {
			t.Errorf("%s: the windows are\n%s, want\n%s", name, a["windows"], tt.windows)
		}
		if tt.budget != "" && a["budget"] != tt.budget {
			t.Errorf("%s: the budget is\n%s, want\n%s", name, a["budget"], tt.budget)
		}
		for field, text := range a {
			if text == "" {
				t.Errorf("%s: %s is empty", name, field)
			}
		}
		if a["objective_url"] != "" || a["diagnosis_url"] != "" {
			t.Errorf("%s: a link without an address: %q", name, a)
		}
	}
}

func TestBlameText(t *testing.T) {
	for want, b := range map[string]Blame{
		"": {},
		"Calls wait (phase queue_engine, share 83 %)":           {Phase: "queue_engine", Text: "Calls wait.", Share: call.Figure(0.83)},
		"Calls wait (phase queue_engine)":                       {Phase: "queue_engine", Text: "Calls wait"},
		"To blame is phase decode":                              {Phase: "decode"},
		"Which phase is to blame cannot be told":                {Phase: "undetermined"},
		"Which phase is to blame cannot be told: too few calls": {Phase: "undetermined", Text: "too few calls."},
		"Only evidence speaks":                                  {Text: "Only evidence speaks"},
	} {
		if got := b.text(); got != want {
			t.Errorf("%+v says %q, want %q", b, got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", 1500 * time.Millisecond: "1.5s", 12 * time.Millisecond: "12ms", 5 * time.Minute: "5m", 90 * time.Second: "1m30s",
		30 * time.Minute: "30m", time.Hour: "1h", 90 * time.Minute: "1h30m", 6 * time.Hour: "6h", 72 * time.Hour: "3d", 25*time.Hour + time.Minute: "1d1h1m",
		20 * time.Hour: "20h", time.Hour + 20*time.Second: "1h0m20s", time.Hour + 10*time.Second + 3*time.Millisecond: "1h0m10s", 10*time.Minute + 20*time.Second: "10m20s", 24*time.Hour + 10*time.Second: "1d10s",
	} {
		if got := span(d); got != want {
			t.Errorf("%d is %q, want %q", d, got, want)
		}
	}
}

func TestFigures(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 1: "1", 14.4: "14.4", 0.001234: "0.00123", 1234.5: "1234", 99.96: "100", -3.14159: "-3.14"} {
		if got := figure(x); got != want {
			t.Errorf("%v is %q, want %q", x, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", 100: "100"} {
		if got := whole(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

// TestLately: how far back the commands look follows from what fired.
func TestLately(t *testing.T) {
	medium := slo.ObjectiveStatus{Firing: []slo.Firing{{Rule: mediumRule, Page: true}}}
	for want, v := range map[string]*view{
		"5m":  {key: key{severity: Page}, objective: standing{page: true}.status()},
		"30m": {key: key{severity: Page}, objective: medium},
		"6h":  {key: key{severity: Ticket}, objective: standing{ticket: true}.status()},
		"1h":  {key: key{severity: Freeze}, objective: standing{page: true}.status()},
	} {
		if got := v.lately(); got != want {
			t.Errorf("%s looks back %s, want %s", v.key.severity, got, want)
		}
	}
	if got := (&view{key: key{severity: Page}, objective: standing{outage: true, page: true}.status()}).lately(); got != "5m" {
		t.Errorf("an outage looks back %s", got)
	}
}

// TestFingerprint is Alertmanager's.
func TestFingerprint(t *testing.T) {
	for _, labels := range []map[string]string{
		{}, {"a": "b"}, {"alertname": "WeirSLOPage", "class": "interactive", "service": "weir", "model": "ä/ö:1"},
	} {
		set := make(model.LabelSet)
		for k, v := range labels {
			set[model.LabelName(k)] = model.LabelValue(v)
		}
		if got, want := fingerprint(labels), set.Fingerprint().String(); got != want {
			t.Errorf("%v has %s, Alertmanager says %s", labels, got, want)
		}
	}
}

// FuzzLabelValue: whatever clients call a model, the label is bounded text, and another name
// is another label.
func FuzzLabelValue(f *testing.F) {
	f.Add("llama-3", "llama-3 ")
	f.Add("a\x00b", "ab")
	f.Add(strings.Repeat("ä", 150), strings.Repeat("ä", 151))
	f.Add("\xff", "\xfe")
	f.Add("a\n", "a ~"+"8a2d1c3e")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := labelValue(a), labelValue(b)
		if again := labelValue(x); x != a && again == x {
			t.Errorf("a model may be called %q, as %q is", x, a)
		}
		for _, v := range []string{x, y} {
			if len(v) > maxLabel || !utf8.ValidString(v) || call.OneLine(v) != v {
				t.Errorf("%q is a label of %d bytes", v, len(v))
			}
		}
		if a != b && x == y {
			t.Errorf("%q and %q are both %q", a, b, x)
		}
		if a != "" && x == "" {
			t.Errorf("%q is lost", a)
		}
	})
}
