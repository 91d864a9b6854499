package capacity

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var updatePlans = flag.Bool("update-plans", false, "write the golden files of plans anew")

// planCases are plans whose texts were looked at and found right.
func planCases(t *testing.T) map[string]PlanInput {
	example := planExample()
	example.Model.Name = "own model"
	binary := example
	binary.Unit, binary.KVPerCall = GiB, 26<<30/10
	preset := planFor(t, "llama-3.1-70b", "h100", 8)
	preset.Rate, preset.TTFT, preset.TPOT = 20, 300*time.Millisecond, 25*time.Millisecond
	engine := preset
	engine.MaxSeqs, engine.TTFTP95, engine.Headroom = 64, 20*time.Second, 0.4
	latent := planFor(t, "deepseek-v3", "h200", 8)
	latent.Rate = 40
	window := planFor(t, "gemma-3-27b", "l40s", 4)
	window.Model.KVDtype = FP8
	replicated := planFor(t, "qwen3-235b-a22b", "h100", 8)
	replicated.GPU.Bytes = 81_559 << 20
	return map[string]PlanInput{
		"example": example, "example_gib": binary, "preset": preset, "engine": engine, "latent": latent, "window": window,
		"replicated": replicated, "weights": planFor(t, "llama-3.1-70b", "h100", 1), "quantised": planFor(t, "gpt-oss-120b", "h100", 1),
	}
}

// TestPlanText compares the texts with the golden files. After a change they are written
// by: go test ./internal/capacity -run PlanText -update-plans
func TestPlanText(t *testing.T) {
	for name, in := range planCases(t) {
		path := filepath.Join("testdata", "plan_"+name+".txt")
		got := planOf(t, in).Text()
		if *updatePlans {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, want)
		}
	}
}

// TestPlanUnits: every figure has a unit and a formula, and sizes of one plan have one unit.
func TestPlanUnits(t *testing.T) {
	units := map[string]bool{"GB": true, "GiB": true, "bytes": true, "copies": true, "calls": true, "sequences": true, "groups": true, "GPUs": true}
	for name, in := range planCases(t) {
		p := planOf(t, in)
		for _, f := range p.Figures {
			if !units[f.Unit] || f.Formula == "" || f.Label == "" || !strings.Contains(f.Shown, strings.TrimSuffix(f.Unit, "s")) {
				t.Errorf("%s: %+v", name, f)
			}
			if other := map[Unit]string{GB: "GiB", GiB: "GB"}[p.Unit]; f.Unit == other || strings.Contains(f.Formula, " "+other) {
				t.Errorf("%s: %s mixes units: %+v", name, f.Name, f)
			}
		}
	}
}

// TestPlanJSON: programs get the same, and what is unknown is absent.
func TestPlanJSON(t *testing.T) {
	cases := planCases(t)
	decode := func(name string) map[string]any {
		b, err := json.Marshal(planOf(t, cases[name]))
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	got := decode("example")
	for key, want := range map[string]any{
		"gpus": 16.0, "groups": 2.0, "gpus_at_least": 10.0, "sequences_per_group": 167.0, "sequences_per_gpu": 20.0, "mean_concurrency": 134.0,
		"binds": "concurrency", "unit": "GB", "tp": 8.0, "rate_per_second": 20.0, "least_tp": 2.0,
	} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
	if _, there := got["warnings"]; there {
		t.Error("no warnings are a list")
	}
	got = decode("weights")
	for _, key := range []string{"gpus", "groups", "gpus_at_least", "sequences_per_group", "sequences_per_gpu"} {
		if v, there := got[key]; there {
			t.Errorf("%s is %v where nothing fits", key, v)
		}
	}
	if got["binds"] != "weights" {
		t.Errorf("%v binds", got["binds"])
	}
}

// TestPlanTextNames: what came from outside does not reach a terminal as commands.
func TestPlanTextNames(t *testing.T) {
	in := planExample()
	in.Model.Name, in.GPU.Name = "m\x1b[2J\n", "g\u202e"
	text := planOf(t, in).Text()
	if strings.ContainsAny(text, "\x1b\u202e") || !strings.HasPrefix(text, "Plan for m\uFFFD[2J\uFFFD on g\uFFFD, TP 8, 20 calls/s\n") {
		t.Errorf("%q", text[:60])
	}
}

// FuzzPlan: no input makes a plan panic, and whatever it says hangs together.
func FuzzPlan(f *testing.F) {
	f.Add(int64(70e9), int64(80), int64(8), int64(128), int64(80), int64(8), 20.0, int64(3e8), int64(25e6), int64(1024), int64(256), 0.7, 0.9, int64(0), int64(0), int64(0))
	f.Add(int64(1), int64(1), int64(1), int64(1), int64(1), int64(1024), 1e6, int64(0), int64(1), int64(1), int64(1), 0.01, 0.01, int64(512), int64(1), int64(1))
	f.Fuzz(func(t *testing.T, params, layers, heads, dim, stated, tp int64, rate float64, ttft, tpot, input, output int64, safety, share float64, latent, kv, seqs int64) {
		in := PlanInput{
			Model: Model{Params: params, Layers: layers, KVHeads: heads, HeadDim: dim, KVRank: latent, Dtype: INT4, KVDtype: FP8, Wide: params / 3,
				WindowLayers: layers / 2, Window: 128, Heads: heads},
			GPU: GPU{Stated: stated}, TP: tp, Rate: rate, TTFT: time.Duration(ttft), TPOT: time.Duration(tpot), TTFTP95: time.Duration(ttft),
			Input: input, Output: output, Safety: safety, MemoryShare: share, KVPerCall: kv, MaxSeqs: seqs,
		}
		p, err := in.Plan()
		if err != nil {
			return
		}
		if len(p.Text()) > 1<<16 {
			t.Fatalf("a text of %d bytes", len(p.Text()))
		}
		if _, err := json.Marshal(p); err != nil {
			t.Fatal(err)
		}
		if !p.Fits() {
			return
		}
		held := float64(p.Groups.Or(0)) * float64(p.SequencesPerGroup.Or(0))
		if held < p.SequencesNeeded*(1-1e-9) || p.GPUsAtLeast.Or(0) > p.GPUs.Or(0) || p.GPUs.Or(0) != p.Groups.Or(0)*tp || p.GPUs.Or(0) < 1 {
			t.Fatalf("%+v: %+v", in, p)
		}
	})
}
