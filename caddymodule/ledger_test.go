package caddymodule

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/keys"
	"github.com/weirgate/weir/internal/ledger"
	"github.com/weirgate/weir/internal/sim"
)

// ledgerState asks the admin endpoint how the ledger stands.
func (r *run) ledgerState() (s ledger.State) {
	r.t.Helper()
	status, body := r.get("/weir/ledger")
	if err := json.Unmarshal(body, &s); err != nil || status != http.StatusOK {
		r.t.Fatalf("GET /weir/ledger: %d %s, %v", status, body, err)
	}
	return s
}

// written waits until the database has every call of this process.
func (r *run) written(rows int64) {
	r.t.Helper()
	for deadline := time.Now().Add(patience); ; runtime.Gosched() {
		s := r.ledgerState()
		if s.Rows == rows && s.Pending == 0 {
			return
		}
		if s.Rows > rows || time.Now().After(deadline) {
			r.t.Fatalf("%d rows are not in the ledger: %+v", rows, s)
		}
	}
}

// usageAnswer is /weir/usage as a program reads it.
type usageAnswer struct {
	Zone, Currency string
	Lines          []usageLine
	Total          usageLine
}

type usageLine struct {
	ledger.Usage
	Cost     *struct{ Reported, Estimated json.Number }
	Unpriced call.Count `json:"unpriced_tokens"`
}

// usage asks /weir/usage.
func (r *run) usage(query string) (a usageAnswer) {
	r.t.Helper()
	status, body := r.get("/weir/usage?" + query)
	if err := json.Unmarshal(body, &a); err != nil || status != http.StatusOK {
		r.t.Fatalf("GET /weir/usage?%s: %d %s, %v", query, status, body, err)
	}
	return a
}

// inLedger reads calls from the database as any other program may.
func inLedger(t *testing.T, file string, f ledger.Filter) []*call.Record {
	t.Helper()
	db, err := ledger.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	calls, err := db.Calls(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return calls
}

// stop ends the configuration that runs, and returns when nothing of it is left.
func (r *run) stop() {
	r.t.Helper()
	if err := caddy.Stop(); err != nil {
		r.t.Fatal(err)
	}
	until(r.t, "everything has ended", func() bool { return current() == nil })
}

// TestLedger: every call becomes a row, whatever its end; usage per key and model
// adds up to what the upstream reported; and both reach back beyond a restart.
func TestLedger(t *testing.T) {
	up := newCounting(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Way") == "fails" {
			_, _ = io.Copy(io.Discard, r.Body)
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		brief(w, r)
	})
	s, dir := newSite(t), t.TempDir()
	db := filepath.Join(dir, "usage.db")
	prices := filepath.Join(dir, "prices.json")
	if err := os.WriteFile(prices, []byte(`{"version":1,"currency":"EUR","prices":[{"model":"m","input":1000000,"output":2000000}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	file := keyFile(t, keys.Entry{Alias: "team-a"}, keys.Entry{Alias: "team-b", Limits: keys.EntryLimits{RequestsPerMinute: counted(1)}})
	globals := "weir {\nkeys " + file + "\nprices " + prices + "\nledger sqlite " + db + "\n}"
	config := s.http("weir\nreverse_proxy " + up.address)
	run := start(t, globals, config)
	c := client(t, "http/1.1")
	ask := func(alias, name, body string, header ...string) answered {
		return fetch(t, c, with(t, s, chatPath, keyOf(alias), name, body, header...))
	}
	for i := range 3 {
		ask("team-a", fmt.Sprint("a-", i), bounded(9))
	}
	ask("team-a", "other model", `{"model":"m2","messages":[]}`)
	ask("team-a", "stream", streaming)
	ask("team-a", "fails", bounded(9), "X-Way", "fails")
	ask("team-b", "b", bounded(9))
	ask("team-b", "b refused", bounded(9))
	ask("stranger", "stranger", bounded(9))
	runs := []string{"a-0", "a-1", "a-2", "other model", "stream", "fails", "b", "b refused", "stranger"}
	before := make(map[string]*call.Record)
	for _, name := range runs {
		before[name] = run.record(name)
	}
	run.written(int64(len(runs)))

	check := func(when string) {
		t.Helper()
		total := run.usage("by=")
		if len(total.Lines) != 1 || total.Total.Calls != int64(len(runs)) || total.Total.Completed != 7 || total.Total.Refused != 1 || total.Total.NoUsage != 0 ||
			total.Total.Reported.Input != 7*7 || total.Total.Reported.Output != 7*2 || total.Total.Estimated != (ledger.Sums{}) {
			t.Errorf("%s: %+v", when, total)
		}
		byKey := run.usage("by=key&zone=Europe/Berlin")
		got := make(map[string][3]int64)
		for _, l := range byKey.Lines {
			got[l.Key] = [3]int64{l.Calls, l.Reported.Input, l.Reported.Output}
		}
		if want := [3]int64{6, 35, 10}; got["team-a"] != want {
			t.Errorf("%s: team-a %v, want %v", when, got["team-a"], want)
		}
		if want := [3]int64{2, 7, 2}; got["team-b"] != want {
			t.Errorf("%s: team-b %v, want %v", when, got["team-b"], want)
		}
		if want := [3]int64{1, 7, 2}; len(got) != 3 || got[before["stranger"].Key] != want {
			t.Errorf("%s: by key %v", when, got)
		}
		// Costs: seven tokens at 1 and two at 2 a call, and nothing for the model without a price.
		if priced := run.usage("by=model,day&key=team-a&model=m"); priced.Currency != "EUR" || priced.Total.Cost == nil || priced.Total.Cost.Reported != "44" || priced.Total.Cost.Estimated != "0" || priced.Zone != "UTC" {
			t.Errorf("%s: %+v", when, priced)
		}
		if unpriced := run.usage("key=team-a&model=m2"); len(unpriced.Lines) != 1 || unpriced.Lines[0].Cost != nil || unpriced.Lines[0].Unpriced.Or(0) != 9 {
			t.Errorf("%s: %+v", when, unpriced)
		}
	}
	check("while it runs")

	run.stop()
	for _, name := range runs {
		if rows := inLedger(t, db, ledger.Filter{Run: name}); len(rows) != 1 || rows[0].ID != before[name].ID || rows[0].Outcome != before[name].Outcome {
			t.Errorf("%s has the rows %v", name, rows)
		}
	}
	run.load(globals, config)
	for _, name := range runs {
		was, is := before[name], run.record(name)
		a, _ := json.Marshal(was)
		b, _ := json.Marshal(is)
		if !bytes.Equal(a, b) {
			t.Errorf("%s:\nbefore the restart %s\nafter it           %s", name, a, b)
		}
	}
	check("after the restart")
	// What is in memory and what is in the ledger are one list, without gaps and
	// without anything twice, the newest first.
	for i := range 3 {
		if got := s.status(t, keyOf("team-a"), fmt.Sprint("later-", i)); got != 200 {
			t.Fatal(got)
		}
		run.record(fmt.Sprint("later-", i))
	}
	list := run.records("limit=1000")
	if n := len(list); n != len(runs)+3 {
		t.Errorf("%d calls are listed: %s", n, names(list))
	}
	if !slices.IsSortedFunc(list, func(a, b *call.Record) int { return b.Time.Compare(a.Time) }) {
		t.Errorf("not in order: %s", names(list))
	}
	for q, want := range map[string]string{
		"limit=4":                        "later-2 later-1 later-0 stranger",
		query("key", "team-b"):           "b refused b",
		"failed=true":                    "fails",
		query("outcome", "refused"):      "b refused",
		query("model", "m2"):             "other model",
		query("id", before["a-1"].ID):    "a-1",
		query("key", before["b"].ID):     "",
		query("run", "a-2") + "&limit=5": "a-2",
	} {
		if got := names(run.records(q)); got != want {
			t.Errorf("%s: %q, want %q", q, got, want)
		}
	}
	if status, body := run.get("/weir/calls?min_ttft_ms=1"); status != 200 || !strings.Contains(string(body), `"ledger_error":"min_ttft_ms looks at calls in memory only`) {
		t.Errorf("%d %s", status, body)
	}
	for q, want := range map[string]string{"by=colour": "by", "since=tomorrow": "since", "zone=Nowhere": "zone", "colour=red": "unknown parameter", "since=2026-01-02&until=2026-01-01": "empty", "by=%zz": "query"} {
		if status, body := run.get("/weir/usage?" + q); status != 400 || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d %s", q, status, body)
		}
	}
	if m := run.metrics(); m.sum("weir_ledger_degraded") != 0 || m.sum("weir_ledger_dropped_total") != 0 || m.sum("weir_ledger_uncovered_total") != 0 {
		t.Error("the metrics tell of losses")
	}
}

// TestNoLedger: where none is configured the admin endpoint says so.
func TestNoLedger(t *testing.T) {
	run := start(t, "", newSite(t).http("weir"))
	for target, want := range map[string]string{"/weir/ledger": "weir { ledger sqlite usage.db }", "/weir/usage": "weir { ledger sqlite usage.db }", "/weir/keys": "weir { keys keys.json }"} {
		if status, body := run.get(target); status != 404 || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d %s", target, status, body)
		}
	}
	m := run.metrics()
	for name := range m {
		if strings.HasPrefix(name, "weir_ledger_") || strings.HasPrefix(name, "weir_file_error") {
			t.Errorf("%s without a ledger and files", name)
		}
	}
}

// TestFreshLedger: before its first call a ledger has no rows, which is no error:
// neither for who asks nor for budgets, which know at once that nothing is spent.
func TestFreshLedger(t *testing.T) {
	s, dir := newSite(t), t.TempDir()
	file := keyFile(t, keys.Entry{Alias: "team-a", Budget: &keys.EntryBudget{Tokens: counted(20)}})
	run := start(t, "weir {\nkeys "+file+"\nledger sqlite "+dir+"/usage.db\n}", s.http("weir\nrespond ok"))
	if status, body := run.get("/weir/usage?by="); status != 200 || !strings.Contains(string(body), `"calls":0`) {
		t.Errorf("/weir/usage: %d %s", status, body)
	}
	if status, body := run.get("/weir/calls"); status != 200 || string(body) != `{"calls":[]}`+"\n" {
		t.Errorf("/weir/calls: %d %s", status, body)
	}
	if log, err := os.ReadFile(run.dir + "/caddy.log"); err != nil || bytes.Contains(log, []byte("could not be read from the ledger")) {
		t.Errorf("a fresh ledger makes the log warn, %v", err)
	}
	if t.Failed() {
		return // what follows would be waited for in vain
	}
	until(t, "budgets know what is spent", func() bool {
		_, body := run.get("/weir/keys")
		return strings.Contains(string(body), `"seeded":true`)
	})
}

// TestLedgerKeepsNoSecret (cases row 43): neither a key, nor its hash, nor a word
// of a prompt or an answer is in the database, its log, or the spill, whatever
// became of the calls.
func TestLedgerKeepsNoSecret(t *testing.T) {
	up := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !bytes.Contains(body, []byte(promptMark)) {
			t.Error("the prompt did not arrive")
		}
		switch r.Header.Get("X-Way") {
		case "401":
			w.WriteHeader(401)
			fmt.Fprintf(w, `{"error":{"message":%q,"code":%q}}`, answerMark+r.Header.Get("Authorization"), "no "+r.Header.Get("Authorization"))
		case "break off":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, chunk(0))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, strings.Replace(chunk(0), `"0"`, `"`+answerMark+`"`, 1)+usageEvent+done)
		}
	}))
	s, dir := newSite(t), t.TempDir()
	db := filepath.Join(dir, "usage.db")
	run := start(t, "weir {\nkeys "+keyFile(t, keys.Entry{Alias: "team-a"})+"\nledger sqlite "+db+"\n}", s.http("weir {\nlimit pool {\nrequests_per_minute 9\n}\n}\nreverse_proxy "+up))
	c := client(t, "http/1.1")
	body := `{"model":"m","stream":true,"messages":[{"role":"user","content":"` + promptMark + `"}]}`
	stranger := keyOf("nobody")
	n := int64(0)
	for _, place := range keyPlaces {
		for _, key := range []string{keyOf("team-a"), stranger} {
			for _, way := range []string{"well", "401", "break off"} { // the last of them are refused
				target := place.path
				if place.header == "" {
					target += key
				}
				r := with(t, s, target, "", "secret", body, "X-Way", way)
				if place.header != "" {
					r.Header.Set(place.header, place.prefix+key)
				}
				if res, err := c.Do(r); err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
				n++
			}
		}
	}
	run.recordsOf("secret", int(n))
	run.written(n)
	digest, err := keys.Digest(keyOf("team-a"))
	if err != nil {
		t.Fatal(err)
	}
	look := func(when string) {
		t.Helper()
		all := contents(t, dir)
		for _, there := range []string{"usage.db\n", "usage.db.spill/", "team-a", "chat/completions"} {
			if !strings.Contains(all, there) {
				t.Errorf("%s: %q is not in the files: this test does not see what it should", when, there)
			}
		}
		for _, secret := range []string{keyOf("team-a"), stranger, digest, promptMark, answerMark, "0123456789abcdef"} {
			if i := strings.Index(all, secret); i >= 0 {
				t.Errorf("%s: %s is in the files: %.200q", when, secret, all[max(0, i-100):])
			}
		}
	}
	look("while it runs")
	if _, err := os.Stat(db + "-wal"); err != nil {
		t.Error(err)
	}
	run.stop()
	all := contents(t, dir)
	for _, secret := range []string{keyOf("team-a"), stranger, digest, promptMark, answerMark} {
		if strings.Contains(all, secret) {
			t.Errorf("after the end: %s is in the files", secret)
		}
	}
}

// TestLedgerOverReloads (cases row 45): streams that are open while
// configurations change, with the same ledger, with another and with none, are
// recorded once, in the ledger of the configuration that they began under.
func TestLedgerOverReloads(t *testing.T) {
	up := newScript(t)
	s, dir := newSite(t), t.TempDir()
	first, second := filepath.Join(dir, "first.db"), filepath.Join(dir, "second.db")
	load := func(db, class string) (globals, sites string) {
		if db != "" {
			globals = "weir {\nledger sqlite " + db + "\n}"
		}
		return globals, s.http("weir {\nclass " + class + "\n}\nreverse_proxy " + up.address)
	}
	run := start(t, "", s.http("weir\nreverse_proxy "+up.address))
	type stream struct {
		res *http.Response
		x   *exchange
	}
	var streams []stream
	var want = map[string][]string{}
	for i, db := range []string{first, first, second, "", first} {
		run.load(load(db, fmt.Sprint("class-", i)))
		// A connection may still have been taken by the configuration before; one
		// call that has ended says that this is over.
		until(t, "calls run on the new configuration", func() bool {
			name := fmt.Sprint("probe-", i, "-", len(want[db]), "-", time.Now().UnixNano())
			res, x := open(t, up, client(t, "http/1.1"), with(t, s, chatPath, "sk-a", name, streaming))
			x.send(usageEvent + done)
			x.finish()
			_, _ = io.ReadAll(res.Body)
			res.Body.Close()
			return run.record(name).Class == fmt.Sprint("class-", i)
		})
		name := fmt.Sprint("open-", i)
		res, x := open(t, up, client(t, "http/1.1"), with(t, s, chatPath, "sk-a", name, streaming))
		streams = append(streams, stream{res, x})
		want[db] = append(want[db], name)
	}
	for i, st := range streams {
		st.x.send(chunk(1) + usageEvent + done)
		st.x.finish()
		expect(t, st.res.Body, chunk(0)+chunk(1)+usageEvent+done)
		st.res.Body.Close()
		run.record(fmt.Sprint("open-", i))
	}
	run.stop()
	for _, db := range []string{first, second} {
		for i := range streams {
			name := fmt.Sprint("open-", i)
			rows := inLedger(t, db, ledger.Filter{Run: name})
			if n := map[bool]int{true: 1}[slices.Contains(want[db], name)]; len(rows) != n {
				t.Errorf("%s has %d rows of %s, want %d", filepath.Base(db), len(rows), name, n)
			}
			for _, rec := range rows {
				if rec.Outcome != call.Completed || rec.Output.Or(-1) != 2 {
					t.Errorf("%s: %+v", name, rec)
				}
			}
		}
		if n := len(inLedger(t, db, ledger.Filter{Outcome: call.Crashed})); n > 0 {
			t.Errorf("%s has %d calls that crashed", filepath.Base(db), n)
		}
	}
}

// TestLedgerThatCannotBe: with a ledger whose directory cannot be calls go on,
// and the admin endpoint, a metric and the log say so and why. Only where
// fail_closed is set calls are refused that cannot be recorded.
func TestLedgerThatCannotBe(t *testing.T) {
	up := newCounting(t, nil)
	s := newSite(t)
	db := filepath.Join(t.TempDir(), "taken", "usage.db")
	if err := os.WriteFile(filepath.Dir(db), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	config := s.http("weir\nreverse_proxy " + up.address)
	run := start(t, "weir {\nledger sqlite "+db+"\n}", config)
	for i := range 5 {
		if got := s.status(t, "sk-a", fmt.Sprint("goes-on-", i)); got != 200 {
			t.Errorf("call %d: %d", i, got)
		}
	}
	state := run.ledgerState()
	if !state.Degraded || !strings.Contains(state.Reason, filepath.Dir(db)) || state.Since.IsZero() || state.Rows != 0 || state.Uncovered == 0 {
		t.Errorf("%+v", state)
	}
	m := run.metrics()
	if m.sum("weir_ledger_degraded") != 1 || m.sum("weir_ledger_uncovered_total") == 0 || m.sum("weir_ledger_rows_total") != 0 {
		t.Error("the metrics do not tell")
	}
	for i := range 5 {
		if rec := run.record(fmt.Sprint("goes-on-", i)); rec.Outcome != call.Completed {
			t.Errorf("%+v", rec)
		}
	}
	if status, body := run.get("/weir/usage"); status != 500 && status != 503 || !strings.Contains(string(body), "error") {
		t.Errorf("/weir/usage: %d %s", status, body)
	}
	if _, body := run.get("/weir/calls"); !strings.Contains(string(body), `"ledger_error"`) {
		t.Errorf("/weir/calls does not say that older calls are missing: %s", body)
	}
	if log, err := os.ReadFile(run.dir + "/caddy.log"); err != nil || !bytes.Contains(log, []byte("ledger")) {
		t.Errorf("the log does not say a word of the ledger, %v", err)
	}
	// It heals by itself.
	if err := os.Remove(filepath.Dir(db)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Dir(db), 0o700); err != nil {
		t.Fatal(err)
	}
	until(t, "the ledger has recovered", func() bool { return !run.ledgerState().Degraded })
	if got := s.status(t, "sk-a", "healed"); got != 200 {
		t.Error(got)
	}
	until(t, "the database has all rows", func() bool { st := run.ledgerState(); return st.Rows > 0 && st.Pending == 0 })
	if n := len(inLedger(t, db, ledger.Filter{Run: "healed"})); n != 1 {
		t.Errorf("%d rows of a call after it", n)
	}
	if st := run.ledgerState(); st.Rows+int64(st.Dropped) < 6 {
		t.Errorf("calls are neither in the database nor counted as lost: %+v", st)
	}

	run.stop()
	closed := filepath.Join(t.TempDir(), "taken", "usage.db")
	if err := os.WriteFile(filepath.Dir(closed), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run.load("weir {\nledger sqlite "+closed+" {\nfail_closed\n}\n}", s.http("weir {\nlimit key {\nrequests_per_minute 5\nconcurrency 1\n}\n}\nreverse_proxy "+up.address))
	up.take()
	for range 10 { // more than the limit: a call that the ledger refuses takes nothing
		got := steady(t, with(t, s, chatPath, "sk-a", "closed", bounded(9)))
		if f := faultOf(t, got); got.status != 503 || f.Error.Code != "usage_not_recordable" || got.header.Get("Retry-After") != "5" {
			t.Fatalf("%d %v %s", got.status, got.header, got.body)
		}
	}
	if seen := up.take(); len(seen) > 0 {
		t.Errorf("the upstream saw %v", seen)
	}
	for _, rec := range run.recordsOf("closed", 10) {
		if rec.Outcome != call.Refused || rec.RefusedBy != "ledger" {
			t.Errorf("%+v", rec)
		}
	}
}

// TestBudgets: a key with a budget is warned of at its share, then its calls are
// refused as out of quota, which waiting does not mend; other keys go on. What
// was spent is known again after a restart.
func TestBudgets(t *testing.T) {
	up := newCounting(t, nil)
	s, dir := newSite(t), t.TempDir()
	prices := filepath.Join(dir, "prices.json")
	if err := os.WriteFile(prices, []byte(`{"version":1,"currency":"USD","prices":[{"model":"m","input":1000000,"output":2000000}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	half, eleven := 0.5, 11.0
	file := keyFile(t,
		keys.Entry{Alias: "tokens", Budget: &keys.EntryBudget{Tokens: counted(20), Per: keys.Daily, Zone: "Europe/Berlin", Warn: &half}},
		keys.Entry{Alias: "money", Budget: &keys.EntryBudget{Money: &eleven}},
		keys.Entry{Alias: "free"})
	globals := "weir {\nkeys " + file + "\nprices " + prices + "\nledger sqlite " + dir + "/usage.db\n}"
	config := s.http("weir\nreverse_proxy " + up.address)
	run := start(t, globals, config)
	budget := func(alias string) (b budgetView) {
		t.Helper()
		_, body := run.get("/weir/keys")
		var state struct {
			All []struct {
				Alias  string
				Budget *budgetView
			}
		}
		if err := json.Unmarshal(body, &state); err != nil {
			t.Fatal(err)
		}
		for _, k := range state.All {
			if k.Alias == alias && k.Budget != nil {
				return *k.Budget
			}
		}
		t.Fatalf("no budget of %s in %s", alias, body)
		return b
	}
	spendOne := func(alias string, i int) {
		t.Helper()
		name := fmt.Sprint(alias, "-", i)
		if got := s.status(t, keyOf(alias), name); got != 200 {
			t.Fatalf("%s: %d", name, got)
		}
		run.record(name)
	}
	// Nine tokens a call: 9, 18, 27 of 20.
	for i, want := range []budgetView{{Tokens: 9}, {Tokens: 18, Warn: true}, {Tokens: 27, Warn: true, Exceeded: true}} {
		spendOne("tokens", i)
		b := budget("tokens")
		if b.Tokens != want.Tokens || b.Warn != want.Warn || b.Exceeded != want.Exceeded || b.TokenLimit.Or(0) != 20 || b.Share != float64(want.Tokens)/20 || !b.Resets.After(time.Now()) {
			t.Errorf("after call %d: %+v", i, b)
		}
		if n := run.metrics().sum("weir_budget_used_ratio", `subject="tokens"`); n != b.Share {
			t.Errorf("the metric says %v", n)
		}
	}
	// Eleven a call: the budget is met exactly, and nothing more may be spent.
	spendOne("money", 0)
	if b := budget("money"); b.Money != "11" || b.MoneyLimit != "11" || !b.Exceeded || b.Unpriced != 0 {
		t.Errorf("%+v", b)
	}
	up.take()
	refused := func(when string) {
		t.Helper()
		for _, alias := range []string{"tokens", "money"} {
			got := steady(t, with(t, s, chatPath, keyOf(alias), when+alias, bounded(9)))
			f := faultOf(t, got)
			if got.status != 429 || f.Error.Code != "insufficient_quota" || f.Error.Type != "insufficient_quota" || !strings.Contains(f.Error.Message, budget(alias).Resets.Format(time.RFC3339)) ||
				!strings.Contains(f.Error.Message, alias) || got.header.Get("X-Should-Retry") != "false" || got.header.Get("Retry-After") != "" {
				t.Errorf("%s, %s: %d %v %s", when, alias, got.status, got.header, got.body)
			}
			if rec := run.record(when + alias); rec.Outcome != call.Refused || rec.RefusedBy != "budget" || rec.Attempts != 0 {
				t.Errorf("%+v", rec)
			}
		}
		if got := s.status(t, keyOf("free"), when+"free"); got != 200 {
			t.Errorf("%s: a key without a budget: %d", when, got)
		}
		run.record(when + "free")
		if seen := up.take(); len(seen) != 1 {
			t.Errorf("%s: the upstream saw %v", when, seen)
		}
	}
	refused("at once ")
	anthropic := fetch(t, client(t, "http/1.1"), with(t, s, messagesPath, keyOf("tokens"), "", bounded(9)))
	if f := faultOf(t, anthropic); anthropic.status != 429 || f.Type != "error" || f.Error.Type != "rate_limit_error" {
		t.Errorf("%d %s", anthropic.status, anthropic.body)
	}
	if b := budget("tokens"); b.Tokens != 27 {
		t.Errorf("refused calls were charged: %+v", b)
	}
	if n := run.metrics().sum("weir_refusals_total", `by="budget"`); n != 3 {
		t.Errorf("%v refusals by a budget", n)
	}
	run.load(globals, s.http("weir {\nclass batch\n}\nreverse_proxy "+up.address))
	refused("after a reload ")
	run.stop()
	run.load(globals, config)
	until(t, "the ledger was asked after the restart", func() bool { return budget("tokens").Exceeded && budget("money").Exceeded })
	if b := budget("tokens"); b.Tokens != 27 {
		t.Errorf("after the restart: %+v", b)
	}
	refused("after a restart ")
}

// TestStrangersFillNoLedger: whoever is refused for want of a good key leaves no
// row, so that nobody without one can fill the disk; calls of a key that was
// revoked are the key's, and known.
func TestStrangersFillNoLedger(t *testing.T) {
	up := newCounting(t, nil)
	s, dir := newSite(t), t.TempDir()
	db := filepath.Join(dir, "usage.db")
	file := keyFile(t, keys.Entry{Alias: "good", Limits: keys.EntryLimits{RequestsPerMinute: counted(1)}}, keys.Entry{Alias: "revoked", Revoked: ago(time.Hour)})
	run := start(t, "weir {\nkeys "+file+"\nledger sqlite "+db+"\n}", s.http("weir {\nrequire_key\n}\nreverse_proxy "+up.address))
	c := client(t, "http/1.1")
	for i := range 20 {
		for _, key := range []string{"", keyOf(fmt.Sprint("nobody-", i))} {
			if got := fetch(t, c, with(t, s, chatPath, key, "stranger", bounded(9))); got.status != 401 {
				t.Fatal(got.status)
			}
		}
	}
	for _, want := range []int{200, 429} {
		if got := fetch(t, c, with(t, s, chatPath, keyOf("good"), "good", bounded(9))); got.status != want {
			t.Fatal(got.status)
		}
	}
	if got := fetch(t, c, with(t, s, chatPath, keyOf("revoked"), "revoked", bounded(9))); got.status != 401 {
		t.Fatal(got.status)
	}
	run.recordsOf("stranger", 40)
	run.recordsOf("good", 2)
	run.record("revoked")
	run.written(3)
	run.stop()
	var rows []string
	for _, rec := range inLedger(t, db, ledger.Filter{}) {
		rows = append(rows, fmt.Sprint(rec.Key, " ", rec.Status))
	}
	slices.Sort(rows)
	if want := []string{"good 200", "good 429", "revoked 401"}; !slices.Equal(rows, want) {
		t.Errorf("rows %q, want %q", rows, want)
	}
}

// TestLedgerAgainstAnEngine: over many mixed calls, some of which the client
// leaves, the ledger's sums are those of the engine's own truth.
func TestLedgerAgainstAnEngine(t *testing.T) {
	engine, err := sim.Start(sim.Config{Seed: 4, PrefillBase: sim.None, PrefillPerToken: sim.None, DecodeBase: time.Millisecond, DecodePerSequence: sim.None, OutputMin: 3, OutputMax: 12})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	s, dir := newSite(t), t.TempDir()
	db := filepath.Join(dir, "usage.db")
	run := start(t, "weir {\nledger sqlite "+db+"\n}", s.http("weir {\nusage_policy inject\nlimit key {\nconcurrency 8\n}\nqueue {\ncalls 6\n}\n}\nreverse_proxy "+serve(t, engine)))
	const workers, each = 6, 20
	done := make(chan [2]int, workers)
	for w := range workers {
		go func() {
			tr := new(http.Transport)
			defer tr.CloseIdleConnections()
			c, completed, left := &http.Client{Transport: tr}, 0, 0
			for i := range each {
				ctx, leave := context.WithCancel(context.Background())
				path, body := chatPath, fmt.Sprintf(`{"model":"m","stream":%v,"messages":[{"role":"user","content":"call %d of %d"}]}`, i%2 == 0, i, w)
				if i%3 == 0 {
					path, body = "/v1/completions", fmt.Sprintf(`{"model":"m2","stream":%v,"max_tokens":8,"prompt":"call %d of %d"}`, i%2 == 0, i, w)
				}
				r, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.url("http/1.1", path), strings.NewReader(body))
				r.Header.Set("Authorization", fmt.Sprint("Bearer sk-", w))
				r.Header.Set("X-Weir-Run", "engine")
				if res, err := c.Do(r); err == nil {
					if i%5 == 4 && i%2 == 0 {
						_, _ = io.ReadFull(res.Body, make([]byte, 16))
						leave()
						left++
					} else if _, err := io.Copy(io.Discard, res.Body); err == nil && res.StatusCode == 200 {
						completed++
					}
					res.Body.Close()
				}
				leave()
			}
			done <- [2]int{completed, left}
		}()
	}
	var completed, left int
	for range workers {
		n := await(t, done, "end of a worker")
		completed, left = completed+n[0], left+n[1]
	}
	if completed+left != workers*each {
		t.Fatalf("%d completed and %d left of %d", completed, left, workers*each)
	}
	recs := run.recordsOf("engine", workers*each)
	run.written(workers * each)
	truths := make(map[string]sim.Truth)
	for _, truth := range engine.Truths() {
		truths[truth.ID] = truth
	}
	var want [2]int64
	for _, rec := range recs {
		if rec.Outcome != call.Completed {
			continue
		}
		truth, ok := truths[rec.ResponseID]
		if !ok {
			t.Fatalf("the engine knows nothing of %s", rec.ResponseID)
		}
		want[0] += int64(truth.Input)
		want[1] += int64(truth.Output)
		if rec.Input.Or(-1) != int64(truth.Input) || rec.Output.Or(-1) != int64(truth.Output) {
			t.Errorf("%s: %d and %d tokens, the engine says %d and %d", rec.ID, rec.Input.Or(-1), rec.Output.Or(-1), truth.Input, truth.Output)
		}
	}
	total := run.usage("by=").Total
	var reported [2]int64
	for _, rec := range recs {
		if rec.Outcome != call.Completed && rec.UsageSource != call.UsageNone { // a running figure of a call that was left
			reported[0] += rec.Input.Or(0)
			reported[1] += rec.Output.Or(0)
		}
	}
	if total.Calls != workers*each || total.Reported.Input != want[0]+reported[0] || total.Reported.Output != want[1]+reported[1] {
		t.Errorf("the ledger has %+v, the engine %v beside %v of calls that were left", total, want, reported)
	}
	if s := run.ledgerState(); s.Crashed != 0 || s.Dropped != 0 || s.Repeated != 0 {
		t.Errorf("%+v", s)
	}
}
