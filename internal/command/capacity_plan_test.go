package command

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/capacity"
)

// planFlags are those of the worked example.
func planFlags(more ...string) []string {
	return append([]string{"plan", "--params", "70e9", "--dtype", "bf16", "--memory", "80GB", "--tp", "8", "--rate", "20",
		"--ttft", "300ms", "--tpot", "25ms", "--output", "256", "--kv-per-call", "2.6GB"}, more...)
}

// TestCapacityPlan: the worked example, and each flag changed alone. A flag that is
// given twice counts as it stands last.
func TestCapacityPlan(t *testing.T) {
	for name, c := range map[string]struct {
		flags []string
		says  []string
	}{
		"example":        {nil, []string{"Plan for own model on a GPU, TP 8, 20 calls/s\n", "16 GPUs needed: 2 groups of TP 8 (at least 10,", "What binds: concurrency.", "134 calls ", "floor of 20.961"}},
		"binary":         {[]string{"--memory", "80GiB", "--kv-per-call", "2.6GiB"}, []string{"130.39 GiB", "floor of 21.423", "16 GPUs needed"}},
		"vendor, binary": {[]string{"--memory", "", "--gpu", "h100", "--unit", "GiB", "--kv-per-call", "2.6GiB"}, []string{"on h100,", "80 as the vendor states it, of 2³⁰ bytes each", "floor of 21.423"}},
		"vendor":         {[]string{"--memory", "", "--gpu", "H100"}, []string{"of 10⁹ bytes each", "floor of 20.961"}},
		"measured":       {[]string{"--ttft", "600ms", "--tpot", "45ms"}, []string{"24 GPUs needed: 3 groups"}},
		"rate":           {[]string{"--rate", "10"}, []string{"8 GPUs needed", "What binds: memory."}},
		"fp8":            {[]string{"--dtype", "FP8"}, []string{"70,000,000,000 parameters × 1 byte (fp8)", "8 GPUs needed"}},
		"safety":         {[]string{"--safety", "1"}, []string{"134 ÷ safety 1", "8 GPUs needed"}},
		"share":          {[]string{"--memory-share", "0.5"}, []string{"80 GB × share 0.5", "24 GPUs needed"}},
		"engine":         {[]string{"--max-num-seqs", "64"}, []string{"What binds: engine limit.", "24 GPUs needed"}},
		"factor":         {[]string{"--ttft-p95", "20s", "--headroom", "0.4"}, []string{"20 calls/s × TTFT p95 20 s × (1 + headroom 0.4)", "32 GPUs needed"}},
		"weights":        {[]string{"--weights", "39.8GB"}, []string{"39.8 GB  39,800,000,000 bytes as given", "8 GPUs needed"}},
		"preset":         {[]string{"--params", "", "--dtype", "", "--model", "meta-llama/Llama-3.1-70B-Instruct"}, []string{"Plan for llama-3.1-70b", "70,553,706,496 parameters", "floor of 20.908", "16 GPUs needed"}},
		"computed KV": {[]string{"--kv-per-call", "", "--input", "1k", "--layers", "80", "--kv-heads", "8", "--head-dim", "128", "--kv-dtype", "fp8", "--heads", "64"},
			[]string{"2 × 80 layers × 8 KV heads × 128 dimensions × 1 byte (fp8)", "(1,000 + 256) tokens × 163,840 bytes"}},
		"latent": {[]string{"--kv-per-call", "", "--input", "1k", "--layers", "61", "--kv-lora-rank", "512", "--qk-rope-head-dim", "64"},
			[]string{"61 layers × (512 latent + 64 rotary) × 2 bytes (bf16)", "8 copies", "WARNING  A latent vector"}},
		"window": {[]string{"--kv-per-call", "", "--input", "1k", "--layers", "62", "--kv-heads", "16", "--head-dim", "128", "--window-layers", "52", "--window", "1024"},
			[]string{"2 × 52 layers", "the last 1,024 tokens"}},
		"preset without windows": {[]string{"--params", "", "--model", "gemma-3-27b", "--kv-per-call", "", "--input", "4096", "--window-layers", "0"}, []string{"2 × 62 layers × 16 KV heads"}},
		"context":                {[]string{"--params", "", "--model", "llama-3.1-70b", "--kv-per-call", "", "--input", "8000", "--context", "8192"}, []string{"WARNING  Input and output have 8,256 tokens together, and the model's context is 8,192"}},
		"nvidia-smi":             {[]string{"--memory", "81559MiB"}, []string{"79.647 GiB  85,520,809,984 bytes as given"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := runCapacity(t, planFlags(c.flags...)...)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.says {
				if !strings.Contains(out, want) {
					t.Errorf("the plan lacks %q:\n%s", want, out)
				}
			}
		})
	}
}

// TestCapacityPlanErrors: what is missing or wrong is said, with the flag's name.
func TestCapacityPlanErrors(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"nothing":     {[]string{"plan"}, "give --model, or --params and the fields of config.json; --gpu or --memory; --rate; --ttft; --tpot; --output; --input or --kv-per-call as well"},
		"no rate":     {planFlags("--rate", "0"), "give --rate as well"},
		"no KV":       {planFlags("--kv-per-call", ""), "give --input or --kv-per-call as well"},
		"no layers":   {planFlags("--kv-per-call", "", "--input", "10"), "layers 0: want 1"},
		"model":       {planFlags("--model", "gpt-5"), `--model: no preset for model "gpt-5"`},
		"GPU":         {planFlags("--gpu", "a100"), "--gpu: which"},
		"memory":      {planFlags("--memory", "80G"), "--memory: "},
		"memory 0":    {planFlags("--memory", "0GB"), "--memory is 0"},
		"no unit":     {planFlags("--memory", "80"), "--memory: it has no unit; write it like 80GB"},
		"size":        {planFlags("--kv-per-call", "lots"), "--kv-per-call: "},
		"huge":        {planFlags("--kv-per-call", "9999999999.5EiB"), "--kv-per-call: "},
		"parameters":  {planFlags("--params", "many"), "--params: "},
		"time":        {planFlags("--ttft", "300"), "--ttft: "},
		"type":        {planFlags("--dtype", "bits"), `weights of type "bits": want one of fp32, bf16`},
		"unit":        {planFlags("--unit", "MB"), `unit "MB": want GB or GiB`},
		"headroom":    {planFlags("--headroom", "3"), "headroom 3: want 0.3 to 0.5"},
		"TP":          {planFlags("--tp", "0"), "TP 0: want 1 to 1024"},
		"two at once": {planFlags("--ttft", "x", "--params", "y"), "--params: "},
		"argument":    {planFlags("surplus"), "surplus"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := runCapacity(t, c.args...)
			if err == nil || !strings.Contains(err.Error(), c.says) || out != "" {
				t.Errorf("error %v, wrote %q; want %q", err, out, c.says)
			}
		})
	}
}

// TestCapacityPlanDoesNotFit: the figures are shown all the same, and the status says it.
func TestCapacityPlanDoesNotFit(t *testing.T) {
	out, err := runCapacity(t, planFlags("--tp", "1")...)
	if err == nil || !strings.Contains(err.Error(), "the weights do not fit: they take 140 GB a GPU, which has 72 GB for the engine") {
		t.Errorf("error %v", err)
	}
	for _, want := range []string{"Nothing fits.", "TP 2 would do.", "−68 GB"} {
		if !strings.Contains(out, want) {
			t.Errorf("the plan lacks %q:\n%s", want, out)
		}
	}
}

func TestCapacityPlanJSON(t *testing.T) {
	out, err := runCapacity(t, planFlags("--json")...)
	if err != nil {
		t.Fatal(err)
	}
	var plan capacity.Plan
	if err := json.Unmarshal([]byte(out), &plan); err != nil {
		t.Fatal(err)
	}
	if plan.GPUs.Or(0) != 16 || plan.GPUsAtLeast.Or(0) != 10 || plan.MeanConcurrency != 134 || plan.Binds != capacity.BindsConcurrency || len(plan.Figures) < 10 {
		t.Errorf("%+v", plan)
	}
}

func TestCapacityPlanList(t *testing.T) {
	out, err := runCapacity(t, "plan", "--list")
	if err != nil {
		t.Fatal(err)
	}
	closed := strings.Join(strings.Fields(out), " ") // columns are a blank apart
	for _, want := range []string{
		"MODEL PARAMETERS TYPE", "llama-3.1-70b 70,553,706,496 bf16 80 8 128 327,680 131,072",
		"deepseek-v3 671,026,419,200 fp8 61 - - 70,272 163,840 latent (MLA), 512 + 64 a layer",
		"window of 1,024 tokens in 52 layers", "GPU MEMORY", "h200 141", "as the vendor states it, in GB",
	} {
		if !strings.Contains(closed, want) {
			t.Errorf("the list lacks %q:\n%s", want, out)
		}
	}
	out, err = runCapacity(t, "plan", "--list", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Models []capacity.Model `json:"models"`
		GPUs   []capacity.GPU   `json:"gpus"`
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(list.GPUs, capacity.GPUs()) || !slices.Equal(list.Models, capacity.Models()) {
		t.Error("the list differs from the presets")
	}
}

// TestSizeInBytes: sizes are exact where they can be, and else the nearest byte.
func TestSizeInBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"80GB": 80e9, "80 GiB": 80 << 30, "2.6GB": 2_600_000_000, "2.6GiB": 2_791_728_742, "2.6 GiB": 2_791_728_742, "81559MiB": 81_559 << 20, "0.3KiB": 307, "512B": 512,
	} {
		if got, err := sizeInBytes(text); got != want || err != nil {
			t.Errorf("%s is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "GB", "80G", "80", "1e3", "1.2.3GiB", "-1GB", "2.6", "1e-3GiB", strings.Repeat("9", 40) + "GiB", "9.5EiB"} {
		if got, err := sizeInBytes(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}

// TestCapacityPlanHelp: the examples of the help are what they say: they run.
func TestCapacityPlanHelp(t *testing.T) {
	cmd := build(t, "capacity")
	plan, _, err := cmd.Find([]string{"plan"})
	if err != nil {
		t.Fatal(err)
	}
	for _, example := range strings.Split(strings.ReplaceAll(plan.Example, "\\\n", " "), "\n") {
		args := strings.Fields(example)
		if len(args) < 3 || args[0] != "weir" || args[1] != "capacity" {
			t.Fatalf("no example: %q", example)
		}
		if out, err := runCapacity(t, args[2:]...); err != nil || out == "" {
			t.Errorf("%s: %v", example, err)
		}
	}
}
