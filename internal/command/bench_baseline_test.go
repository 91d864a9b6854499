package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/bench"
	"github.com/weirgate/weir/internal/sim"
)

// slower is a result whose calls all take so many times as long.
func slower(t *testing.T, r bench.Result, times float64) bench.Result {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	r = readResult(t, string(text)) // a copy
	for i := range r.Runs {
		run := &r.Runs[i]
		for _, f := range append([]*bench.Figures{&run.Median}, pointers(run.Repeats)...) {
			f.Client = bench.Client{} // whatever else this machine had to do
			for _, q := range []*bench.Quantiles{f.TTFT, f.TPOT} {
				q.P99 *= times
			}
			*f.TotalPerSecond /= times
		}
		for j := range run.Raw {
			raw := &run.Raw[j]
			raw.Seconds *= times
			for _, series := range []bench.Series{raw.At, raw.TTFT, raw.TPOT, raw.E2E} {
				for k := range series {
					series[k] *= float32(times)
				}
			}
		}
	}
	return r
}

func pointers[T any](list []T) []*T {
	all := make([]*T, len(list))
	for i := range list {
		all[i] = &list[i]
	}
	return all
}

// TestBenchBaseline: a regression has a status of its own, results of other setups
// are refused before the load, and --force compares them.
func TestBenchBaseline(t *testing.T) {
	s := serve(t, fastEngine(t, sim.Config{}), nil)
	dir := t.TempDir()
	base := filepath.Join(dir, "base.json")
	args := []string{"--calls", "40", "--quiet"}
	r := runBench(t, t.Context(), s.url, append(args, "--concurrency", "2", "--save", base)...)
	if r.err != nil {
		t.Fatal(r.err)
	}
	text, err := os.ReadFile(base)
	if err != nil {
		t.Fatal(err)
	}
	before := readResult(t, string(text))

	for _, tt := range []struct {
		times  float64
		status int
		says   string
	}{{1000, statusRegression, "regressed"}, {0.001, 0, "improved"}, {1, 0, "Against the baseline"}} {
		var out bytes.Buffer
		b := &benchmark{out: &out, benchFlags: benchFlags{threshold: 10, baseline: base}}
		err := b.judge(slower(t, before, 1), slower(t, before, tt.times))
		if got := (ran{err: err}).status(); got != tt.status || !strings.Contains(out.String(), tt.says) {
			t.Errorf("%g times as slow: status %d (%v)\n%s", tt.times, got, err, &out)
		}
		b.json, b.errs, out = stdout, new(bytes.Buffer), bytes.Buffer{}
		if err := b.judge(slower(t, before, 1), before); out.Len() > 0 || err != nil && (ran{err: err}).status() != statusRegression || b.errs.(*bytes.Buffer).Len() == 0 {
			t.Errorf("beside a form on standard output: %s (%v)", &out, err)
		}
	}

	// The same again: it must not end in an error other than a regression.
	r = runBench(t, t.Context(), s.url, append(args, "--concurrency", "2", "--baseline", base)...)
	if status := r.status(); status != 0 && status != statusRegression || !strings.Contains(r.out, "TTFT p99") {
		t.Errorf("status %d (%v)\n%s", status, r.err, r.out)
	}
	calls := s.calls.Load()
	for _, tt := range []struct{ flags, want string }{
		{"--concurrency 3", `load "concurrency 2" is only in the baseline; load "concurrency 3" is not in the baseline`},
		{"--concurrency 2 --input 21", "has other arrivals, lengths or common beginnings"},
		{"--concurrency 2 --model other", "model weir-sim, now other"},
		{"--concurrency 2 --stream=false", "streamed true, now false"},
		{"--concurrency 2 --api completions", "API chat, now completions"},
		{"--concurrency 2 --metrics-profile vllm_bench", "metrics profile weir, now vllm_bench"},
		{"--ladder 1,2", `load "concurrency 1" is not in the baseline`},
		{"--concurrency 3 --force", "no load in common"},
	} {
		r := runBench(t, t.Context(), s.url, append(append(args, "--baseline", base), strings.Fields(tt.flags)...)...)
		if r.status() != 1 || !strings.Contains(r.err.Error(), tt.want) || strings.Contains(tt.flags, "force") == strings.Contains(r.err.Error(), "with --force") {
			t.Errorf("%s: error %v does not say %q", tt.flags, r.err, tt.want)
		}
	}
	if s.calls.Load() != calls {
		t.Error("a load was sent whose result could not be compared")
	}
	r = runBench(t, t.Context(), s.url, append(args, "--concurrency", "2", "--baseline", base, "--model", "other", "--force")...)
	if status := r.status(); status != 0 && status != statusRegression || !strings.Contains(without(r.out), without("odel weir-sim, now other")) {
		t.Errorf("forced: status %d (%v)\n%s", status, r.err, r.out)
	}

	for text, want := range map[string]string{`{"version": 1}`: "is not a result", `{"version": 2, "runs": [{}]}`: "use a newer weir", `[]`: "is not a result"} {
		file := writeText(t, "b.json", text)
		if r := runBench(t, t.Context(), s.url, "--concurrency", "1", "--baseline", file); r.err == nil || !strings.Contains(r.err.Error(), want) {
			t.Errorf("%s: %v", text, r.err)
		}
	}
}

// TestExit: an error that ends the process with a status of its own says nothing of
// it, and keeps it when it is worded anew.
func TestExit(t *testing.T) {
	err := exit(statusRegression, errRegression)
	if err.Error() != errRegression.Error() || (ran{err: err}).status() != statusRegression {
		t.Errorf("got %v", err)
	}
	key := secret("baseline")
	if err = key.hideError(err); strings.Contains(err.Error(), "baseline") || (ran{err: err}).status() != statusRegression {
		t.Errorf("got %v", err)
	}
	if err = key.hideError(errNothing); err != errNothing {
		t.Errorf("got %v", err)
	}
	if key.hideError(nil) != nil {
		t.Error("an error of none")
	}
}

// TestVersion: of the module, of a build with it, or of the commit.
func TestVersion(t *testing.T) {
	setting := func(key, value string) debug.BuildSetting { return debug.BuildSetting{Key: key, Value: value} }
	ours := debug.Module{Path: modulePath, Version: "(devel)"}
	for want, info := range map[string]debug.BuildInfo{
		"v1.2.3":             {Main: debug.Module{Path: modulePath, Version: "v1.2.3"}},
		"v1.2.4":             {Main: debug.Module{Path: "caddy"}, Deps: []*debug.Module{{Path: "x", Version: "v9.9.9"}, {Path: modulePath, Version: "v1.2.4"}}},
		"v1.2.5":             {Main: debug.Module{Path: "caddy"}, Deps: []*debug.Module{{Path: modulePath, Version: "v0.0.0", Replace: &debug.Module{Version: "v1.2.5"}}}},
		"0123456789ab":       {Main: ours, Settings: []debug.BuildSetting{setting("vcs.revision", "0123456789abcdef")}},
		"0123456789ab+dirty": {Main: ours, Settings: []debug.BuildSetting{setting("vcs.modified", "true"), setting("vcs.revision", "0123456789abcdef")}},
		"": {Main: debug.Module{Path: "caddy", Version: "v3.0.0"}, Deps: []*debug.Module{{Path: modulePath, Version: "(devel)"}},
			Settings: []debug.BuildSetting{setting("vcs.revision", "of another repository")}},
	} {
		if got := versionOf(&info); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := versionOf(&debug.BuildInfo{Main: ours}); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}
