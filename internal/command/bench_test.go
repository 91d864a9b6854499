package command

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/bench"
	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/sim"
)

func readResult(t *testing.T, text string) bench.Result {
	t.Helper()
	var r bench.Result
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%v in %.300s", err, text)
	}
	return r
}

// TestBenchForms: every form is written, can be read, and says the same.
func TestBenchForms(t *testing.T) {
	s := serve(t, fastEngine(t, sim.Config{}), nil)
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	r := runBench(t, t.Context(), s.url, "--concurrency", "2", "--calls", "12", "--repeat", "2", "--warmup", "3", "--objective", "ttft=1m",
		"--save", in("save.json"), "--json="+in("r.json"), "--csv="+in("r.csv"), "--markdown="+in("r.md"), "--html", in("r.html"), "--raw", in("raw.jsonl"))
	if r.err != nil || s.calls.Load() != 2*(12+3) {
		t.Fatalf("%v after %d calls\n%s", r.err, s.calls.Load(), r.errs)
	}
	if !strings.Contains(r.out, "weir bench: weir-sim") || !strings.Contains(r.out, "concurrency 2") || strings.Contains(r.out, "\x1b") {
		t.Errorf("the table:\n%s", r.out)
	}
	got := files(t, dir)
	if len(got) != 6 || got["save.json"] != got["r.json"] {
		t.Fatalf("files %d", len(got))
	}
	result := readResult(t, got["save.json"])
	if len(result.Runs) != 1 || result.Interrupted || result.Version != 1 || !result.Streamed || result.Environment.Model != "weir-sim" || result.Environment.Engine["name"] != "vllm" {
		t.Fatalf("got %+v", result.Environment)
	}
	run := result.Runs[0]
	if run.Load != "concurrency 2" || len(run.Repeats) != 2 || run.Median.Good != 12 || run.Median.Output.Mean != 4 || *run.Median.Goodput != 1 || run.Warmup != 3 || len(run.Raw[1].TTFT) != 12 {
		t.Errorf("got %+v", run.Median)
	}
	again, err := json.MarshalIndent(result, "", "  ")
	if err != nil || len(again) != len(bytes.TrimSpace([]byte(got["save.json"]))) {
		t.Errorf("another result when written again: %d and %d bytes (%v)", len(again), len(got["save.json"]), err)
	}
	rows, err := csv.NewReader(strings.NewReader(got["r.csv"])).ReadAll()
	if err != nil || len(rows) != 1+2+1 || rows[0][0] != "load" || rows[3][1] != "median" {
		t.Errorf("CSV: %v %v", rows, err)
	}
	if !strings.HasPrefix(got["r.md"], "# weir bench: weir-sim") {
		t.Errorf("Markdown: %.100s", got["r.md"])
	}
	if h := got["r.html"]; !strings.Contains(h, "</html>") || !strings.Contains(h, "uPlot") || !strings.Contains(h, "concurrency 2") {
		t.Errorf("HTML: %.100s", h)
	}
	warm, all := 0, 0
	for line := range strings.Lines(got["raw.jsonl"]) {
		var sample bench.Sample
		if err := json.Unmarshal([]byte(line), &sample); err != nil {
			t.Fatal(err)
		}
		if all++; sample.Warmup {
			warm++
		}
		if sample.Output != call.Known(4) || !sample.TTFT.IsKnown() || sample.Outcome != call.Completed {
			t.Errorf("got %s", line)
		}
	}
	if all != 30 || warm != 6 {
		t.Errorf("%d lines, %d of them of the warm-up", all, warm)
	}
}

// TestBenchStdout: a form on standard output stands there alone.
func TestBenchStdout(t *testing.T) {
	s := serve(t, fastEngine(t, sim.Config{}), nil)
	small := []string{"--concurrency", "1", "--calls", "2", "--repeat", "1", "--warmup", "1", "--quiet"}
	for _, tt := range []struct{ flag, begins, ends string }{
		{"--json", "{\n", "}\n"}, {"--csv", "load,repeat,", "\n"}, {"--markdown", "# weir bench", "\n"}, {"--html=-", "<!doctype html>", "</html>\n"}, {"--save=-", "{\n", "}\n"},
	} {
		r := runBench(t, t.Context(), s.url, append(small, tt.flag)...)
		if r.err != nil || !strings.HasPrefix(strings.ToLower(r.out), strings.ToLower(tt.begins)) || !strings.HasSuffix(r.out, tt.ends) || r.errs != "" {
			t.Errorf("%s: %.100q … %q (%v)", tt.flag, r.out, r.errs, r.err)
		}
	}
	before := s.calls.Load()
	if r := runBench(t, t.Context(), s.url, append(small, "--json", "--csv")...); r.err == nil || !strings.Contains(r.err.Error(), "cannot both go to standard output") {
		t.Errorf("got %v", r.err)
	}
	if s.calls.Load() != before {
		t.Error("calls were sent all the same")
	}
}

// TestBenchAPIs: each API, with streams and without.
func TestBenchAPIs(t *testing.T) {
	s := serve(t, fastEngine(t, sim.Config{}), nil)
	for _, args := range []string{"--api completions", "--api responses", "--api messages", "--stream=false", "--temperature -1 --timeout 0", "--metrics-profile vllm_bench", `--extra {"top_p":0.9}`, "--rate 2000", "--load=burst_3_at_3000/s"} {
		words := strings.Fields(args)
		for i := range words {
			if strings.HasPrefix(words[i], "--load") {
				words[i] = strings.ReplaceAll(words[i], "_", " ")
			}
		}
		if !strings.Contains(args, "load") && !strings.Contains(args, "rate ") {
			words = append(words, "--concurrency", "2")
		}
		r := runBench(t, t.Context(), s.url, append(words, "--calls", "6", "--repeat", "1", "--json")...)
		if r.err != nil {
			t.Errorf("%s: %v", args, r.err)
			continue
		}
		if m := readResult(t, r.out).Runs[0].Median; m.Good != 6 || m.Output == nil || m.Output.Mean != 4 || (m.TTFT == nil) != (args == "--stream=false") {
			t.Errorf("%s: got %+v", args, m)
		}
	}
}

// TestBenchSearches: a ladder, a staircase, a matrix and a thermal run come to
// their ends.
func TestBenchSearches(t *testing.T) {
	s := serve(t, fastEngine(t, sim.Config{}), nil)
	r := runBench(t, t.Context(), s.url, "--ladder", "1,2,4", "--calls", "8", "--repeat", "1", "--json")
	if r.err != nil {
		t.Fatal(r.err)
	}
	if got := readResult(t, r.out); len(got.Runs) != 3 || got.Ladder == nil || len(got.Ladder.Steps) != 3 || len(got.Ladder.Knee.Reasons) == 0 {
		t.Errorf("got %+v", got.Ladder)
	}
	r = runBench(t, t.Context(), s.url, "--staircase", "200/s", "--stair", "100ms", "--objective", "ttft=10s", "--warmup", "1", "--json")
	if r.err != nil {
		t.Fatal(r.err)
	}
	if got := readResult(t, r.out); got.Staircase == nil || len(got.Staircase.Windows) != len(got.Runs) || len(got.Runs) == 0 || got.Staircase.Verdict.Target != 200 || got.Staircase.Verdict.Say == "" {
		t.Errorf("got %+v", got.Staircase)
	}
	file := writeText(t, "loads.toml", "warmup = 1\n[[load]]\nconcurrency = [1, 2, 1]\ncalls = 10\n")
	r = runBench(t, t.Context(), s.url, "--matrix", file, "--repeat", "1", "--json")
	if r.err != nil {
		t.Fatal(r.err)
	}
	got := readResult(t, r.out)
	if len(got.Runs) != 3 || got.Runs[2].Load != "concurrency 1, 20 in, 4 out (2)" || got.Runs[0].Discard != 0.1 || got.Runs[0].Median.Calls != 9 {
		t.Errorf("got %d runs, %+v", len(got.Runs), got.Runs[len(got.Runs)-1].Load)
	}
	r = runBench(t, t.Context(), s.url, "--concurrency", "1", "--thermal", "--duration", "300ms", "--window", "100ms", "--json")
	if r.err != nil {
		t.Fatal(r.err)
	}
	if got = readResult(t, r.out); len(got.Runs) != 1 || got.Runs[0].Thermal == nil && !strings.Contains(strings.Join(got.Runs[0].Notes, " "), "two --window") {
		t.Errorf("neither windows nor a word on them: %+v", got.Runs[0].Notes)
	}
}

// TestBenchReplay: the raw data of a run, an access log and a ledger are replayed,
// with their lengths.
func TestBenchReplay(t *testing.T) {
	s := serve(t, fastEngine(t, sim.Config{}), nil)
	raw := filepath.Join(t.TempDir(), "raw.jsonl")
	if r := runBench(t, t.Context(), s.url, "--rate", "1000", "--input", "uniform 10-30", "--output", "uniform 2-6", "--calls", "8", "--repeat", "1", "--raw", raw); r.err != nil {
		t.Fatal(r.err)
	}
	text, err := os.ReadFile(raw)
	if err != nil {
		t.Fatal(err)
	}
	want := 0.0 // output tokens
	for line := range strings.Lines(string(text)) {
		var sample bench.Sample
		if err := json.Unmarshal([]byte(line), &sample); err != nil {
			t.Fatal(err)
		}
		if !sample.Warmup {
			want += float64(sample.Output.Or(0))
		}
	}
	log := writeText(t, "access.log", `{"level":"info","ts":1.0,"logger":"http.log.access","request":{"uri":"/"},"status":404}
{"level":"info","ts":2.0,"logger":"http.log.access","request":{"uri":"/v1/x"},"weir":{"time":"2026-11-30T08:00:00Z","input_tokens":12,"output_tokens":3},"status":200}
{"level":"info","ts":3.0,"logger":"http.log.access","request":{"uri":"/v1/x"},"weir":{"time":"2026-11-30T08:00:00.01Z","input_tokens":15,"output_tokens":5},"status":200}
`)
	now := time.Now().UTC()
	at := func(ago time.Duration) string { return now.Add(-ago).Format(time.RFC3339) }
	db := writeLedger(t, used("old", at(2*time.Hour), "k", "m", 99, 99, nil), used("2", at(10*time.Minute), "k", "m", 14, 4, func(r *call.Record) { r.Time = r.Time.Add(20 * time.Millisecond) }), used("1", at(10*time.Minute), "k", "m", 12, 3, nil))
	for _, tt := range []struct {
		args   []string
		calls  int
		tokens float64
	}{
		{[]string{"--replay", raw}, 8, want},
		{[]string{"--replay", log, "--speed", "2"}, 2, 8},
		{[]string{"--replay", log, "--load", "concurrency 1", "--calls", "1"}, 1, 3},
		{[]string{"--replay-ledger", db}, 2, 7},
		{[]string{"--replay-ledger", db, "--since", at(20 * time.Minute), "--duration", "15m"}, 2, 7},
	} {
		r := runBench(t, t.Context(), s.url, append(tt.args, "--input", "trace", "--output", "trace", "--repeat", "1", "--json")...)
		if r.err != nil {
			t.Errorf("%q: %v", tt.args, r.err)
			continue
		}
		m := readResult(t, r.out).Runs[0].Median
		if m.Good != tt.calls || m.Output == nil || m.Output.Mean*float64(m.Output.N) != tt.tokens {
			t.Errorf("%q: %d calls, output %+v, want %d with %v", tt.args, m.Good, m.Output, tt.calls, tt.tokens)
		}
	}
	if r := runBench(t, t.Context(), s.url, "--replay-ledger", db, "--since", "1m"); r.err == nil || !strings.Contains(r.err.Error(), "choose another --since") {
		t.Errorf("got %v", r.err)
	}
}

// TestBenchInterrupted: what was measured is written in every form, and the status
// says that it is a part. A comparison is not made of it.
func TestBenchInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := serve(t, fastEngine(t, sim.Config{}), func(_ http.ResponseWriter, _ *http.Request, n int64) bool {
		if n == 40 {
			cancel()
		}
		return false
	})
	base := filepath.Join(t.TempDir(), "base.json")
	if r := runBench(t, t.Context(), s.url, "--concurrency", "1", "--calls", "4", "--repeat", "1", "--save", base); r.err != nil {
		t.Fatal(r.err)
	}
	dir := t.TempDir()
	r := runBench(t, ctx, s.url, "--concurrency", "1", "--duration", "1h", "--calls", "100000", "--save", filepath.Join(dir, "s"), "--csv="+filepath.Join(dir, "c"),
		"--markdown="+filepath.Join(dir, "m"), "--html", filepath.Join(dir, "h"), "--raw", filepath.Join(dir, "r"), "--baseline", base)
	if r.status() != statusInterrupted || !strings.Contains(r.out, "INTERRUPTED") || !strings.Contains(r.err.Error(), "was not compared with the baseline") {
		t.Fatalf("%v\n%s", r.err, r.out)
	}
	got := files(t, dir)
	if len(got) != 5 || !readResult(t, got["s"]).Interrupted || readResult(t, got["s"]).Runs[0].Median.Good == 0 || strings.Count(got["r"], "\n") < 20 || len(got["c"])*len(got["m"])*len(got["h"]) == 0 {
		t.Errorf("files %d", len(got))
	}

	early, end := context.WithCancel(t.Context())
	s = serve(t, fastEngine(t, sim.Config{}), func(_ http.ResponseWriter, _ *http.Request, n int64) bool {
		if n == 2 { // of the warm-up
			end()
		}
		return false
	})
	r = runBench(t, early, s.url, "--concurrency", "1", "--json")
	if r.status() != statusInterrupted || r.out != "" || !strings.Contains(r.err.Error(), "interrupted before anything was measured") {
		t.Errorf("%v\n%s", r.err, r.out)
	}
	if r = runBench(t, early, s.url, "--concurrency", "1"); r.status() != statusInterrupted || !strings.Contains(r.err.Error(), "before anything") {
		t.Errorf("got %v", r.err)
	}
}
