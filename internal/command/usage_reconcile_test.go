package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/engine"
	"github.com/weirgate/weir/internal/ledger"
	"github.com/weirgate/weir/internal/sim"
)

// stage is an engine at an address that stays, and a ledger of the calls to it.
type stage struct {
	url, db string
	engine  atomic.Pointer[sim.Engine]
	seen    int // of the engine's truths, how many are in the ledger
	rows    int
}

func newStage(t *testing.T, quirks sim.Quirks) *stage {
	t.Helper()
	s := &stage{db: filepath.Join(t.TempDir(), "usage.db")}
	s.restart(t, quirks)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.engine.Load().ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	s.url = server.URL
	// A refused call makes the ledger's file, and counts for nothing.
	addToLedger(t, s.db, used("refused", "2026-11-30T00:00:00Z", "k", "m", 0, 0, func(r *call.Record) {
		r.Outcome, r.UsageSource, r.Upstream, r.Status, r.Attempts = call.Refused, "", "", 429, 0
	}))
	return s
}

// restart puts a new engine in the place of the old one.
func (s *stage) restart(t *testing.T, quirks sim.Quirks) {
	t.Helper()
	e, err := sim.Start(sim.Config{Quirks: quirks, PrefillBase: sim.None, PrefillPerToken: sim.None, DecodeBase: time.Millisecond, DecodePerSequence: sim.None})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	s.engine.Store(e)
	s.seen = 0
}

// send makes calls with this fault, "" for none.
func (s *stage) send(t *testing.T, n int, fault string) {
	t.Helper()
	for i := range n {
		length := 5 + i%7
		if fault != "" {
			length = 2000 // what breaks off is far from its end
		}
		body := fmt.Sprintf(`{"stream":true,"max_tokens":%d,"messages":[{"role":"user","content":"How wide is the river, and why does nobody swim in it? %d"}]}`, length, i/3)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Sim-Fault", fault)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body) // some are broken off
		res.Body.Close()
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		c, err := engine.Scrape(t.Context(), nil, s.url)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the engine does not come to rest: %+v (%v)", c, err)
		}
		if c.InFlight.N == 0 {
			return
		}
	}
}

// record puts the calls since the last time into the ledger: completed ones as the
// engine reported, the others with an estimate that is this much too low.
func (s *stage) record(t *testing.T, low int) {
	t.Helper()
	truths := s.engine.Load().Truths()
	var rows []*call.Record
	for _, truth := range truths[s.seen:] {
		s.rows++
		r := used(fmt.Sprint(s.rows), time.Now().UTC().Format(time.RFC3339), "k", truth.Model, int64(truth.Input), int64(truth.Output), nil)
		r.Upstream = strings.TrimPrefix(s.url, "http://")
		r.Cached = call.Known(int64(truth.Cached))
		if truth.Aborted {
			r.Input, r.Output = call.Known(int64(truth.Input-low)), call.Known(int64(truth.Output-low))
			unreported(r)
		}
		rows = append(rows, r)
	}
	s.seen = len(truths)
	addToLedger(t, s.db, rows...)
}

// reconcile runs the command; the comparison is empty where none was made.
func (s *stage) reconcile(t *testing.T, args ...string) (comparison, error) {
	t.Helper()
	out, err := runUsage(t, append([]string{"reconcile", "--engine", s.url, "--db", s.db, "--json"}, args...)...)
	var c comparison
	if out != "" && out[0] == '{' {
		if err := json.Unmarshal([]byte(out), &c); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
	}
	return c, err
}

func notes(c comparison) string { return strings.Join(c.Notes, "\n") }

// TestReconcileExactly: for each engine, calls that completed agree to the last
// token, and one call around the gateway is seen.
func TestReconcileExactly(t *testing.T) {
	for _, quirks := range []sim.Quirks{sim.VLLM, sim.SGLang, sim.LlamaCPP} {
		s := newStage(t, quirks)
		s.send(t, 12, "")
		s.record(t, 0)
		c, err := s.reconcile(t)
		if err != nil || !c.Exact || !c.Explained || c.Prompt.Engine == 0 || c.Generated.Engine == 0 || c.Calls != 12 || !strings.Contains(notes(c), "agree exactly") {
			t.Errorf("%s: %+v (%v)", quirks, c, err)
		}
		if quirks == sim.LlamaCPP && c.Prompt.Cached == 0 {
			t.Errorf("%s: no cached tokens: %+v", quirks, c.Prompt)
		}
		s.send(t, 1, "") // nobody records it
		c, err = s.reconcile(t)
		if err == nil || !strings.Contains(err.Error(), "generated tokens remain unexplained; the tolerance is 0") || c.Explained || c.Generated.Unexplained != 5 ||
			!strings.Contains(notes(c), "came around it") {
			t.Errorf("%s: %+v (%v)", quirks, c, err)
		}
		if quirks == sim.VLLM && !strings.Contains(notes(c), "engine ended: 13, calls in the ledger: 12. The 1 more: probes of the gateway, requests around it,") {
			t.Errorf("%s", notes(c))
		}
		if _, err = s.reconcile(t, "--tolerance", "1k"); err != nil {
			t.Errorf("%s: beyond the tolerance: %v", quirks, err)
		}
		// The ledger holds more than the engine counted.
		s.record(t, 0)
		s.restart(t, quirks)
		c, err = s.reconcile(t)
		if err == nil || c.Prompt.Unexplained >= 0 || !strings.Contains(notes(c), "more than the engine counted") {
			t.Errorf("%s: %+v (%v)", quirks, c, err)
		}
	}
}

// TestReconcileAborts: calls that broke off are explained by their estimates, and,
// when no request came around the gateway, by what the estimates miss.
func TestReconcileAborts(t *testing.T) {
	s := newStage(t, sim.VLLM)
	s.send(t, 5, "")
	s.send(t, 4, "abort:3")
	s.record(t, 0)
	c, err := s.reconcile(t)
	if err != nil || c.Exact || !c.Explained || c.Prompt.Estimated != c.Prompt.Difference || c.Prompt.Difference == 0 || c.Generated.Estimated != c.Generated.Difference || c.Generated.Difference < 12 {
		t.Errorf("%+v (%v)", c, err)
	}
	low := newStage(t, sim.VLLM)
	low.send(t, 4, "abort:3")
	low.record(t, 1)
	c, err = low.reconcile(t)
	if err != nil || !c.Explained || c.Prompt.Missed != 4 || c.Generated.Missed != 4 {
		t.Errorf("%+v (%v)", c, err)
	}
	low.send(t, 1, "")
	if c, err = low.reconcile(t); err == nil || c.Explained || c.Prompt.Missed != 0 {
		t.Errorf("%+v (%v)", c, err)
	}
}

// TestReconcileSnapshots: only what was counted since the snapshot is compared, and
// a restart in between is seen.
func TestReconcileSnapshots(t *testing.T) {
	s := newStage(t, sim.VLLM)
	s.send(t, 3, "") // before anybody kept books
	file, second := filepath.Join(t.TempDir(), "monday.json"), filepath.Join(t.TempDir(), "tuesday.json")
	s.seen = 3
	out, err := runUsage(t, "reconcile", "--engine", s.url, "--db", s.db, "--save", file)
	if err != nil || !strings.Contains(out, "Saved the counters of vllm") || !strings.Contains(out, "--from "+file) {
		t.Fatalf("%s (%v)", out, err)
	}
	s.send(t, 6, "")
	s.send(t, 1, "abort:2")
	s.record(t, 0)
	c, err := s.reconcile(t, "--from", file, "--save", second)
	if err != nil || !c.Explained || c.Exact || c.Calls != 7 || c.Completed != 6 || c.Requests.N != 7 {
		t.Errorf("%+v (%v)", c, err)
	}
	s.send(t, 2, "")
	s.record(t, 0)
	if c, err = s.reconcile(t, "--from", second); err != nil || !c.Exact || c.Calls != 2 {
		t.Errorf("%+v (%v)", c, err)
	}
	s.restart(t, sim.VLLM)
	s.send(t, 1, "")
	s.record(t, 0)
	if c, err = s.reconcile(t, "--from", second); err == nil || !strings.Contains(err.Error(), "restarted") || !c.Restarted || c.Explained {
		t.Errorf("%+v (%v)", c, err)
	}
	s.restart(t, sim.SGLang)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--from", second}, "is a snapshot of vllm, and the engine is sglang"},
		{[]string{"--from", second, "--since", "3d"}, "are those of the snapshot"},
		{[]string{"--from", filepath.Join(t.TempDir(), "none.json")}, "make one with --save"},
		{[]string{"--from", s.db}, "make a new one with --save"},
		{[]string{"--save", filepath.Join(t.TempDir(), "no", "where.json")}, "name a file that can be written"},
		{[]string{"--tolerance", "much"}, "--tolerance"},
		{[]string{"--since", "once"}, "--since"},
		{[]string{"--engine", "127.0.0.1:8000"}, "write it like http://127.0.0.1:8000"},
		{[]string{"--engine", ""}, "--engine is missing"},
		{[]string{"--db", filepath.Join(t.TempDir(), "none.db")}, "none.db"},
	} {
		if _, err := s.reconcile(t, tt.args...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: error %v does not say %q", tt.args, err, tt.want)
		}
	}
	var old snapshot
	b, err := os.ReadFile(second)
	if err == nil {
		err = json.Unmarshal(b, &old)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := since(&old, &snapshot{Engine: old.Engine}); err == nil || !strings.Contains(err.Error(), "is it another file") {
		t.Errorf("an emptied ledger: %v", err)
	}
	if left, err := filepath.Glob(second + ".*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

// TestReconcileUpstreams: calls to other engines are left out, and a name that the
// ledger does not know is said to be unknown.
func TestReconcileUpstreams(t *testing.T) {
	s := newStage(t, sim.VLLM)
	s.send(t, 2, "")
	addToLedger(t, s.db, used("x", "2026-11-30T00:00:00Z", "k", "m", 1000, 10, nil))
	if _, err := s.reconcile(t); err == nil || !strings.Contains(err.Error(), "but to 127.0.0.1:8000: name the engine as the ledger does with --upstream") {
		t.Errorf("got %v", err)
	}
	s.record(t, 0)
	if c, err := s.reconcile(t); err != nil || !c.Exact {
		t.Errorf("%+v (%v)", c, err)
	}
	if c, err := s.reconcile(t, "--upstream", "*"); err == nil || c.Prompt.Unexplained != -1000 {
		t.Errorf("%+v (%v)", c, err)
	}
	if c, err := s.reconcile(t, "--upstream", "127.0.0.1:8000", "--upstream", strings.TrimPrefix(s.url, "http://"), "--model", "weir-sim", "--since", "2026-01-01"); err != nil || !c.Exact {
		t.Errorf("%+v (%v)", c, err)
	}
	for address, want := range map[string]string{"http://h:1/v1": "h:1", "http://h": "h:80", "https://h/x": "h:443", "http://[::1]:2": "[::1]:2"} {
		if got := hostPort(address); got != want {
			t.Errorf("%s is %s, want %s", address, got, want)
		}
	}
}

// TestReconcileGolden: what people are shown.
func TestReconcileGolden(t *testing.T) {
	until := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	n := func(n int64) engine.Figure { return engine.Figure{N: n, Known: true} }
	for name, tt := range map[string]struct {
		counters engine.Counters
		sums     ledger.Usage
	}{
		"reconcile_exact.txt": {engine.Counters{Kind: engine.VLLM, Prompt: n(12345), Generated: n(678), Requests: n(9)},
			ledger.Usage{Calls: 9, Completed: 9, Reported: ledger.Sums{Input: 12345, Output: 678}}},
		"reconcile_aborts.txt": {engine.Counters{Kind: engine.VLLM, Prompt: n(13000), Generated: n(800), Requests: n(11), Aborted: n(2), InFlight: n(1)},
			ledger.Usage{Calls: 12, Completed: 9, Refused: 1, NoUsage: 1, Reported: ledger.Sums{Input: 12345, Output: 678}, Estimated: ledger.Sums{Input: 600, Output: 200}}},
		"reconcile_around.txt": {engine.Counters{Kind: engine.SGLang, Prompt: n(1_013_000), Generated: n(800), Requests: n(11)},
			ledger.Usage{Calls: 9, Completed: 9, Reported: ledger.Sums{Input: 12345, Output: 850}, BySource: map[string]int64{"partial": 30}}},
		"reconcile_llamacpp.txt": {engine.Counters{Kind: engine.LlamaCPP, Prompt: engine.Figure{N: 1234570, Known: true, Within: 5}, Generated: n(678)},
			ledger.Usage{Calls: 9, Completed: 9, Reported: ledger.Sums{Input: 2234567, Cached: 1_000_000, Output: 678}}},
		"reconcile_llamacpp_cache.txt": {engine.Counters{Kind: engine.LlamaCPP, Prompt: n(1000), Generated: n(678)},
			ledger.Usage{Calls: 9, Completed: 9, Reported: ledger.Sums{Input: 1500, Output: 678}}},
	} {
		c := explain(tt.counters, tt.sums)
		c.Until = until
		var out bytes.Buffer
		if err := c.table(&out); err != nil {
			t.Fatal(err)
		}
		if err := c.verdict(); err != nil {
			fmt.Fprintln(&out, "Error:", err)
		}
		golden(t, name, out.String())
	}
}

// TestExplanationsAddUp: whatever the figures, the parts of a difference are the
// difference, and each has the sign and size that its name allows.
func TestExplanationsAddUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	around := func(n int64) int64 { return max(0, n+rng.Int64N(400)-200) }
	for range 20_000 {
		base := rng.Int64N(2000)
		e := engine.Counters{Kind: []engine.Kind{engine.VLLM, engine.SGLang, engine.LlamaCPP}[rng.IntN(3)],
			Prompt: engine.Figure{N: around(base), Known: true}, Generated: engine.Figure{N: around(base), Known: true, Within: rng.Int64N(20)}}
		if rng.IntN(2) == 0 {
			e.Requests = engine.Figure{N: rng.Int64N(20), Known: true}
			e.Cached = engine.Figure{N: rng.Int64N(200), Known: true, Within: rng.Int64N(5)}
		}
		l := ledger.Usage{Calls: rng.Int64N(20), NoUsage: rng.Int64N(2), BySource: map[string]int64{"partial": rng.Int64N(50)},
			Reported: ledger.Sums{Input: around(base), Cached: rng.Int64N(100), Output: around(base)}}
		if rng.IntN(2) == 0 {
			l.Estimated = ledger.Sums{Input: rng.Int64N(100), Output: rng.Int64N(100)}
		}
		c := explain(e, l)
		for _, s := range []side{c.Prompt, c.Generated} {
			if s.Difference != s.Engine+s.Cached-s.Reported || s.Difference != s.Estimated+s.Missed+s.BrokenOff+s.Rounding+s.Unexplained {
				t.Fatalf("%+v does not add up, for %+v and %+v", s, e, l)
			}
			if s.Estimated < 0 || s.Missed < 0 || s.BrokenOff > 0 || s.BrokenOff < 0 && e.Kind == engine.VLLM || s.Missed > 0 && s.Unexplained > 0 ||
				s.Difference == 0 && s != (side{Engine: s.Engine, Cached: s.Cached, Reported: s.Reported}) || s.Difference > 0 && s.Unexplained < 0 || s.Difference < 0 && s.Unexplained > 0 {
				t.Fatalf("%+v, for %+v and %+v", s, e, l)
			}
		}
		if c.Exact && !c.Explained || c.Explained != (c.verdict() == nil) {
			t.Fatalf("%+v", c)
		}
	}
}
