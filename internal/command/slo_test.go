package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weirgate/weir/slo"
)

// TestSLOGolden: what people and programs are shown, to the letter.
func TestSLOGolden(t *testing.T) {
	a := newSLOAdmin(t, someObjectives(t))
	for name, args := range map[string][]string{
		"slo.txt":           nil,
		"slo_models.txt":    {"--models"},
		"slo_one_model.txt": {"--model", "llama-3.3-70b-instruct-with-a-long-name"},
		"slo_class.txt":     {"--class", "batch", "--objective", "ttft,e2e_p95"},
		"slo.json":          {"--class", "batch", "--objective", "success", "--json"},
	} {
		out, errOut, err := runSLO(t, append(args, "--admin", a.URL+"/")...)
		if err != nil || errOut != "" {
			t.Errorf("%s: %v %q", name, err, errOut)
			continue
		}
		golden(t, name, atHost(out, a))
		for _, line := range strings.Split(out, "\n") {
			if n := utf8.RuneCountInString(line); n >= 120 && !strings.HasSuffix(name, ".json") {
				t.Errorf("%s: %d characters: %s", name, n, line)
			}
			if strings.ContainsRune(line, '\x1b') {
				t.Errorf("%s: a terminal obeys %q", name, line)
			}
		}
	}
	if slices.ContainsFunc(a.asked, func(s string) bool { return s != "GET /weir/slo" }) {
		t.Errorf("asked %q", a.asked)
	}
	a.status, a.alerts = slo.Status{At: sloNow, Period: slo.PeriodStatus{Name: "rolling 30d"}}, `null`
	out, _, err := runSLO(t, "--admin", a.URL)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "slo_nothing.txt", out)
}

// TestSLOWidth: the longest figures there can be still fit.
func TestSLOWidth(t *testing.T) {
	long := strings.Repeat("x", 200)
	wide := func(s *slo.ObjectiveStatus) {
		s.Budget.Left, s.UnknownShare = new(-1e6), new(0.9999)
		for i := range s.Burn {
			s.Burn[i].Rate = new(1e6)
		}
		s.State, s.Awaiting, s.OldestReceived = slo.StateExhausted, 1<<62, sloNow.AddDate(-200, 0, 0)
		s.OutsideMinutes, s.Outside, s.Since = 48_960, slo.Counts{Good: 1 << 62}, sloNow
		s.Firing = []slo.Firing{{Rule: slo.BurnRule{Long: 72 * time.Hour, Short: 6*time.Hour + time.Second, Factor: 14.4}, Bad: 1 << 62, Total: 1 << 62}}
	}
	var objectives []slo.ObjectiveStatus
	for _, model := range []string{"", long} {
		objectives = append(objectives,
			stood(t, long[:64], model, "ttft_upstream p99.9999 <= 23h59m59.999999999s when input_tokens <= 1000000000", 900_000, 99_999, 1, wide),
			stood(t, long[:64], model, "ttft_upstream p99.1 <= 23h59m59.999999999s", 2985, 4, 1, wide))
	}
	a := newSLOAdmin(t, slo.Status{At: sloNow, Since: sloNow.AddDate(-1, 0, 0), Period: slo.PeriodStatus{Name: "calendar_month America/Argentina/ComodRivadavia"}, Lost: 1 << 62, Objectives: objectives})
	a.alerts = fmt.Sprintf(`{"alerts":[{"status":"firing","severity":"exhausted","class":"%s","objective":"ttft_upstream_p99.1","startsAt":"2026-11-28T10:00:00Z"}]}`, long[:64])
	out, _, err := runSLO(t, "--admin", a.URL, "--models")
	if err != nil {
		t.Fatal(err)
	}
	most := 0
	for _, line := range strings.Split(out, "\n") {
		most = max(most, utf8.RuneCountInString(line))
	}
	if most >= 120 || most < 110 {
		t.Errorf("%d characters wide:\n%s", most, out)
	}
}

// TestSLOErrors: what is not a gateway's answer says what it is and what to do.
func TestSLOErrors(t *testing.T) {
	a := newSLOAdmin(t, someObjectives(t))
	says := func(status int, body string) func(http.ResponseWriter, string) bool {
		return func(w http.ResponseWriter, _ string) bool {
			w.WriteHeader(status)
			fmt.Fprint(w, body)
			return true
		}
	}
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, string) bool
		args   []string
		want   string
	}{
		"web page":        {says(200, "<!DOCTYPE html><title>x</title>"), nil, "it is a web page; name the gateway's admin endpoint with --admin"},
		"missing page":    {says(404, "<!DOCTYPE html><title>x</title>"), nil, "answers 404: a web page; name the gateway's admin endpoint"},
		"old gateway":     {says(404, "404 page not found\n"), nil, "has no /weir/slo (404): it is a weir without objectives of an older version"},
		"no objectives":   {says(404, `{"error":"no class has objectives; see class in the README"}`), nil, "answers 404: no class has objectives; see class in the README"},
		"forbidden":       {says(403, `{"error":"host not allowed\u001b[2J"}`), nil, "answers 403: host not allowed [2J"},
		"no JSON":         {says(200, "ok"), nil, "invalid character 'o'"},
		"another's JSON":  {says(200, `{"object":"list","data":[]}`), nil, "it has no status; ask it with the weir that it runs"},
		"status null":     {says(200, `{"status":null}`), nil, "it has no status"},
		"wrong types":     {says(200, `{"status":{"at":7}}`), nil, "ask it with the weir that it runs"},
		"cut":             {says(200, `{"status":{"at":"2026-11-30T15:00:00Z","objectives":[`), nil, "unexpected end"},
		"endless":         {says(200, `{"a":"`+strings.Repeat("x", maxAnswer)), nil, "is longer than 16 MiB"},
		"no URL":          {nil, []string{"--admin", "localhost"}, "write it like http://127.0.0.1:2019"},
		"empty":           {nil, []string{"--admin", ""}, "write it like http://127.0.0.1:2019"},
		"twice":           {nil, []string{"--admin", "http://127.0.0.1:1,http://127.0.0.1:1/"}, "twice: its calls would be counted twice"},
		"nobody":          {nil, []string{"--admin", "http://user:secret@127.0.0.1:1"}, "name its admin endpoint with --admin"},
		"too many":        {nil, []string{"--admin", manyAdmins(65)}, "65 gateways, and 64 can be asked"},
		"no such class":   {nil, []string{"--class", "interactiv"}, "--class interactiv: there is none with calls; there are: interactive, batch"},
		"no such model":   {nil, []string{"--model", "gpt"}, "--model gpt: there is none with calls; there are: llama-3.3-70b-instruct-with-a-long-name, qwen"},
		"no model":        {nil, []string{"--model", ""}, "--model -: there is none"},
		"not of class":    {nil, []string{"--class", "batch", "--objective", "network"}, "--objective network: there is none with calls; there are: prefill_p99, ttft_p95, success, e2e_p95"},
		"watch no time":   {nil, []string{"--watch", "5"}, "--watch: "},
		"watch too often": {nil, []string{"--watch", "100ms"}, "--watch 100ms is too often"},
		"surplus":         {nil, []string{"surplus"}, "unknown command"},
	} {
		t.Run(name, func(t *testing.T) {
			a.answer = c.answer
			args := c.args
			if !slices.Contains(args, "--admin") {
				args = append(args, "--admin", a.URL)
			}
			out, _, err := runSLO(t, args...)
			if err == nil || !strings.Contains(err.Error(), c.want) || out != "" {
				t.Errorf("error %v does not say %q; wrote %q", err, c.want, out)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Error("a password is shown")
			}
		})
	}
}

func manyAdmins(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("http://127.0.0.1:%d", i+1)
	}
	return strings.Join(all, ",")
}

// TestSLOLenient: what only another version's weir can read is left out, and said so.
func TestSLOLenient(t *testing.T) {
	a := newSLOAdmin(t, slo.Status{})
	known, err := json.Marshal(stood(t, "c", "", "success 99%", 1000, 0, 0, nil))
	if err != nil {
		t.Fatal(err)
	}
	a.answer = func(w http.ResponseWriter, _ string) bool {
		fmt.Fprintf(w, `{"status":{"at":"2026-11-30T15:20:11Z","period":{"name":"rolling 30d"},"new":{},"objectives":[%s,
			{"class":"c","text":"joules p99 <= 3","objective":{"name":"joules","number":"joules"}},7]},"alerts":"none","kept":{"kept":false,"since":"2026-11-30T15:00:00Z","error":"disk\u001b[2J is full"},"alerts_kept":{"kept":false,"since":"2026-11-30T15:01:00Z","error":"disk hangs"},"more":[]}`, known)
		return true
	}
	out, _, err := runSLO(t, "--admin", a.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"success 99%", "Objectives left out, since only the weir of the gateway's version can read them: 2.", "The gateway's alerts cannot be read by this version.", "Counts are in memory alone since 2026-11-30 15:00: disk\uFFFD[2J is full.", "Alerts are in memory alone since 2026-11-30 15:01: disk hangs."} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

// TestSLOWatch shows it again and again, over a gateway that is away for a while.
func TestSLOWatch(t *testing.T) {
	a := newSLOAdmin(t, someObjectives(t))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	n := 0
	a.answer = func(w http.ResponseWriter, _ string) bool {
		if n++; n == 2 {
			http.Error(w, "restarting", http.StatusServiceUnavailable)
			return true
		}
		return false
	}
	out := &endAfter{stop: stop, most: 2}
	var errOut strings.Builder
	p := &promises{ask: sloAsk{admins: []string{a.URL}}, watch: "1s", json: true, out: out, errOut: &errOut}
	if err := p.run(ctx); err != nil {
		t.Fatal(err)
	}
	if n != 3 || strings.Count(errOut.String(), "503: restarting") != 1 {
		t.Errorf("asked %d times, told %q", n, &errOut)
	}
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		var doc struct{ Status slo.Status }
		if err := json.Unmarshal([]byte(line), &doc); err != nil || len(doc.Status.Objectives) != 10 {
			t.Errorf("%v in %.100s", err, line)
		}
	}
	// Whoever reads it goes away, or the gateway was never there.
	p.out = deaf{}
	if err := p.run(t.Context()); err == nil || !strings.Contains(err.Error(), "write the objectives: gone") {
		t.Error(err)
	}
	p.ask.admins = []string{"http://127.0.0.1:1"}
	if err := p.run(t.Context()); err == nil {
		t.Error("watches a gateway that never answered")
	}
}

// endAfter stops after some writes.
type endAfter struct {
	strings.Builder
	stop context.CancelFunc
	most int
}

func (w *endAfter) Write(b []byte) (int, error) {
	if w.most--; w.most == 0 {
		w.stop()
	}
	return w.Builder.Write(b)
}

// TestSLONumbers: what is shown of a figure.
func TestSLONumbers(t *testing.T) {
	of := func(target slo.Target, good, bad int64) slo.ObjectiveStatus {
		return slo.ObjectiveStatus{Objective: slo.Objective{Target: target}, Counts: slo.Counts{Good: good, Bad: bad}}
	}
	for want, o := range map[string]slo.ObjectiveStatus{
		"–":         of(990_000, 0, 0),
		"0.00%":     of(990_000, 0, 5),
		"100.00%":   of(990_000, 5, 0),
		"98.99%":    of(990_000, 98_999_999, 1_000_001),
		"99.00%":    of(990_000, 99, 1),
		"99.99%":    of(990_000, 999_999_999_999, 1),
		"<0.01%":    of(990_000, 1, 999_999_999_999),
		"66.66%":    of(999_000, 2, 1),
		"99.8999%":  of(999_990, 998_999, 1001),
		"99.89999%": of(999_999, 9_223_372_036_854_775_807/1000*999-1e12, 9_223_372_036_854_775_807/1000),
	} {
		if got := keptText(o); got != want {
			t.Errorf("%d good and %d bad at %s are %s, want %s", o.Good, o.Bad, o.Objective.Target, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999_999: "999,999", 1_000_000: "1.0M", 12_345_678: "12.3M", 999_949_999: "999.9M", 999_950_000: "1.0G", 9_000_000_000_000: "9.0T"} {
		if got := shortCount(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
	for want, rate := range map[string]*float64{"–": nil, "0": new(0.0), "<0.01": new(0.009), "0.01": new(0.01), "9.99": new(9.994), "10.0": new(9.996), "14.4": new(14.4), "100": new(99.96), "1000": new(1000.0), "10k": new(10_000.0), "1000k": new(1e6)} {
		if got := burnText(rate); got != want {
			t.Errorf("burn %v is %s, want %s", rate, got, want)
		}
	}
	for want, left := range map[string]*float64{"–": nil, "100.0%": new(1.0), ">99.9%": new(0.99999), "0.0%": new(0.0), "<0.1%": new(0.0001), "<0%": new(-0.0001), "-5.0%": new(-0.05), "-999.9%": new(-9.999), "-1000%": new(-9.9999), "-9999%": new(-99.99), "<-9999%": new(-1234.567)} {
		if got := leftText(left); got != want {
			t.Errorf("left %v is %s, want %s", *left, got, want)
		}
	}
	if got := wrapped("a "+strings.Repeat("b", 40)+" cc", 10); !slices.Equal(got, []string{"a bbbbbbb…", "  cc"}) {
		t.Errorf("wrapped %q", got)
	}
	if s, err := readSight([]byte(`{"status":{"at":"2026-11-30T15:20:11Z"}}`)); err != nil || !s.status.At.Equal(time.Date(2026, 11, 30, 15, 20, 11, 0, time.UTC)) {
		t.Errorf("%+v, %v", s, err)
	}
	if err := error(&writeError{context.Canceled}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
