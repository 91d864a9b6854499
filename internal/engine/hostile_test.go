package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/exposition"
)

// checkGauges says what no page may bring about.
func checkGauges(t *testing.T, g Gauges) {
	t.Helper()
	if !slices.Contains(Kinds, g.Kind) || !g.Running.Known && !g.Waiting.Known {
		t.Errorf("an engine %q without gauges", g.Kind)
	}
	for _, f := range []Figure{g.Running, g.Waiting, g.Swapped, g.MaxSeqs, g.KVTokens, g.Preemptions, g.PrefixQueries, g.PrefixHits, g.Prompt, g.Generated} {
		if f.N < 0 || f.N > largest || !f.Known && f != (Figure{}) {
			t.Errorf("a figure of %+v", f)
		}
	}
	for _, s := range []Share{g.KVUse, g.KVMean} {
		if !(s.X >= 0 && s.X <= 1) || !s.Known && s != (Share{}) {
			t.Errorf("a share of %+v", s)
		}
	}
	if g.KVMean.X > g.KVUse.X {
		t.Errorf("the caches are %v full in the mean, %v at most", g.KVMean.X, g.KVUse.X)
	}
	if g.RankCount < 1 || len(g.Ranks) > MaxRanks || len(g.Ranks) > g.RankCount || len(g.Ranks) == 1 || len(g.Odd) > MaxOdd {
		t.Errorf("%d ranks of %d, %d odd figures", len(g.Ranks), g.RankCount, len(g.Odd))
	}
	var running int64
	for _, r := range g.Ranks {
		running += r.Running.N
	}
	if g.Running.Known && running > g.Running.N {
		t.Errorf("ranks run %d requests, the engine %d", running, g.Running.N)
	}
	// Bounded, whatever the page: a reading is kept 900 times.
	if b, err := json.Marshal(g); err != nil || len(b) > 32<<10 {
		t.Errorf("%d bytes of JSON (%v)", len(b), err)
	}
}

// FuzzGauges reads any page: it never panics, what it keeps is bounded, and
// leaving lines out before parsing changes nothing.
func FuzzGauges(f *testing.F) {
	pages, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(pages) == 0 {
		f.Fatalf("no pages (%v)", err)
	}
	for _, name := range pages {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("vllm:num_requests_running NaN\nvllm:num_requests_waiting 1e309\n"))
	f.Add([]byte(" \t vllm:num_requests_running\t{engine=\"\\n\\\"\"} 3 1700000000000\r\n"))
	f.Add([]byte("sglang:num_running_reqs{tp_rank=\"0\"} NaN\nsglang:num_running_reqs{tp_rank=\"1\"} 2\n"))
	f.Add([]byte("# TYPE vllm:num_requests_running gauge\n{} 1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, want := range append([]Kind{Auto}, Kinds...) {
			g, err := parseGauges(b, want)
			if err == nil {
				checkGauges(t, g)
				if want != Auto && g.Kind != want {
					t.Errorf("asked for %s, got %s", want, g.Kind)
				}
			} else if len(err.Error()) > 4096 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		}
		all, err := exposition.Parse(b)
		if err != nil || bytes.Contains(b, []byte(`{"`)) { // names in quotes, which no engine needs
			return
		}
		picked, _, err := pick(b)
		if err != nil {
			if strings.Contains(err.Error(), "more than") {
				return
			}
			t.Fatalf("the page can be read, the lines picked cannot: %v", err)
		}
		for name := range wanted {
			whole := all[name]
			if whole == nil || whole.GetType().String() == "HISTOGRAM" || whole.GetType().String() == "SUMMARY" || len(whole.Metric) == 0 {
				continue
			}
			if picked[name] == nil || len(picked[name].Metric) != len(whole.Metric) {
				t.Fatalf("%s has %d samples, picked were %v", name, len(whole.Metric), picked[name])
			}
			for i, m := range whole.Metric {
				if v, w := value(m), value(picked[name].Metric[i]); v != w && v == v {
					t.Fatalf("%s is %v, picked was %v", name, v, w)
				}
			}
		}
	})
}

// TestManyRanks: sums are over all ranks, shown are those that matter.
func TestManyRanks(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for trial := range 50 {
		n := 2 + rng.IntN(300)
		var text strings.Builder
		var running, waiting int64
		waits := map[string]int64{}
		for _, rank := range rng.Perm(n) {
			r, w := rng.Int64N(100), int64(0)
			if rng.IntN(20) == 0 {
				w = 1 + rng.Int64N(100)
				waits[fmt.Sprint(rank)] = w
			}
			running, waiting = running+r, waiting+w
			fmt.Fprintf(&text, "vllm:num_requests_running{engine=\"%d\"} %d\nvllm:num_requests_waiting{engine=\"%d\"} %d\n", rank, r, rank, w)
			fmt.Fprintf(&text, "vllm:cache_config_info{engine=\"%d\",block_size=\"16\",num_gpu_blocks=\"100\"} 1\n", rank)
		}
		g, err := parseGauges([]byte(text.String()), Auto)
		if err != nil {
			t.Fatal(err)
		}
		checkGauges(t, g)
		if g.Running != exactly(running) || g.Waiting != exactly(waiting) || g.KVTokens != exactly(int64(n)*1600) || g.RankCount != n || len(g.Ranks) != min(n, MaxRanks) {
			t.Fatalf("trial %d of %d ranks: %+v", trial, n, g)
		}
		found := 0
		for i, r := range g.Ranks {
			if r.Waiting.N > 0 {
				found++
			}
			var a, b int
			if _, err := fmt.Sscan(r.Name, &b); err != nil {
				t.Fatal(err)
			}
			if i > 0 {
				if _, err := fmt.Sscan(g.Ranks[i-1].Name, &a); err != nil || a >= b {
					t.Fatalf("rank %d comes before %d (%v)", a, b, err)
				}
			}
		}
		if found != min(len(waits), MaxRanks) {
			t.Errorf("%d ranks have requests waiting, %d of them are shown", len(waits), found)
		}
	}
}

// TestHostileLabels: a page with endless labels is refused, or bounded.
func TestHostileLabels(t *testing.T) {
	long := strings.Repeat("é", 1<<16)
	g, err := parseGauges([]byte(`vllm:num_requests_running{engine="`+long+`",model_name="`+long+`"} 1`+"\n"), Auto)
	if err != nil {
		t.Fatal(err)
	}
	checkGauges(t, g)
	var text strings.Builder
	for i := range maxSamples {
		fmt.Fprintf(&text, "vllm:num_requests_running{engine=\"%d%s\"} -1\n", i, strings.Repeat("x", 200))
	}
	if _, err := parseGauges([]byte(text.String()), Auto); err == nil || len(err.Error()) > 4096 {
		t.Errorf("error %.200v", err)
	}
	text.Reset()
	for i := range maxSamples - 1 {
		fmt.Fprintf(&text, "vllm:num_requests_running{engine=\"%d%s\"} 9007199254740992\n", i, strings.Repeat("x", 200))
	}
	text.WriteString("vllm:num_requests_waiting 0\n")
	if g, err = parseGauges([]byte(text.String()), Auto); err != nil || g.Running.Known || len(g.Odd) != MaxOdd {
		t.Fatalf("got %+v (%v)", g, err)
	}
	checkGauges(t, g)
}
