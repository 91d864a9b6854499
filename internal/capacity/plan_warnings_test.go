package capacity

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

func planFor(t *testing.T, model, gpu string, tp int64) PlanInput {
	t.Helper()
	m, err := FindModel(model)
	if err != nil {
		t.Fatal(err)
	}
	g, err := FindGPU(gpu)
	if err != nil {
		t.Fatal(err)
	}
	return PlanInput{
		Model: m, GPU: g, TP: tp, Rate: 1, TTFT: 200 * time.Millisecond, TPOT: 20 * time.Millisecond,
		Input: 1024, Output: 256, Safety: DefaultSafety, MemoryShare: DefaultMemoryShare,
	}
}

func TestPlanWarnings(t *testing.T) {
	for name, c := range map[string]struct {
		in   func() PlanInput
		code string // "" for none
		says string
	}{
		"none":   {func() PlanInput { return planFor(t, "llama-3.1-70b", "h100", 8) }, "", ""},
		"single": {func() PlanInput { return planFor(t, "deepseek-v2-lite", "h100", 1) }, "", ""},
		"weights": {func() PlanInput { return planFor(t, "llama-3.1-70b", "h100", 1) }, WarnWeights,
			"The weights take 141.11 GB a GPU at TP 1, and the engine has 72 GB. TP 2 would do."},
		"weights, nowhere": {func() PlanInput {
			in := planFor(t, "kimi-k2", "l4", 8)
			in.Model.Params *= 100
			return in
		}, WarnWeights, "No TP up to 1,024 holds them"},
		"no call": {func() PlanInput {
			in := planFor(t, "llama-3.1-70b", "h100", 2)
			in.Input = 30_000
			return in
		}, WarnNoCall, "the 9.9143 GB that a call takes do not fit beside them. TP 4 would do."},
		"no call, nowhere": {func() PlanInput {
			in := planFor(t, "deepseek-v3", "h200", 8)
			in.Input = 2_000_000
			return in
		}, WarnNoCall, "No TP up to 1,024 holds them"},
		"replicated": {func() PlanInput { return planFor(t, "llama-3.1-70b", "h100", 16) }, WarnReplicas,
			"TP 16 is more than the 8 KV heads: each is held by 2 GPUs, and the KV cache of a call takes 2 times its size."},
		"latent":       {func() PlanInput { return planFor(t, "deepseek-v3", "h200", 8) }, WarnLatent, "each of the 8 GPUs of a group holds all of it"},
		"heads":        {func() PlanInput { return planFor(t, "qwen2.5-7b", "l4", 8) }, WarnHeads, "The 28 attention heads do not divide by TP 8"},
		"uneven":       {func() PlanInput { return planFor(t, "phi-4", "l4", 4) }, WarnKVHeads, "The 10 KV heads do not divide evenly by TP 4, and engines may refuse to start so. The plan counts the fullest GPU, with 3 heads."},
		"wide":         {func() PlanInput { return planFor(t, "llama-3.1-405b", "h100", 16) }, WarnWideGroup, "across machines"},
		"beyond":       {func() PlanInput { in := planFor(t, "gemma-2-9b", "h100", 1); in.Input = 8000; return in }, WarnContext, "Input and output have 8,256 tokens together, and the model's context is 8,192"},
		"just within":  {func() PlanInput { in := planFor(t, "gemma-2-9b", "h100", 1); in.Input = 8192 - 256; return in }, "", ""},
		"engine limit": {func() PlanInput { in := planFor(t, "llama-3.1-8b", "l4", 1); in.MaxSeqs = 256; return in }, WarnEngine, "The engine may run 256 sequences at once, and the memory holds 33"},
	} {
		p := planOf(t, c.in())
		i := slices.IndexFunc(p.Warnings, func(w PlanWarning) bool { return w.Code == c.code })
		switch {
		case c.code == "" && p.Warnings != nil:
			t.Errorf("%s: %v", name, p.Warnings)
		case c.code != "" && i < 0:
			t.Errorf("%s: no %s in %v", name, c.code, p.Warnings)
		case c.code != "" && !strings.Contains(p.Warnings[i].Text, c.says):
			t.Errorf("%s: %s", name, p.Warnings[i].Text)
		}
		fits := c.code != WarnWeights && c.code != WarnNoCall
		if p.Fits() != fits || fits == (p.Binds == BindsWeights) || (p.GPUs == call.Count{}) == fits {
			t.Errorf("%s: fits %v, %s, GPUs %v", name, p.Fits(), p.Binds, p.GPUs)
		}
	}
}

// TestSuggestedTP: what the warning suggests fits, and nothing smaller does.
func TestSuggestedTP(t *testing.T) {
	for _, m := range Models() {
		for _, gpu := range []string{"l4", "h100"} {
			in := planFor(t, m.Name, gpu, 1)
			least, known := planOf(t, in).LeastTP.Get()
			for tp := int64(1); tp <= maxTP; tp *= 2 {
				in.TP = tp
				p := planOf(t, in)
				refused := m.Heads%tp != 0
				if refused != slices.ContainsFunc(p.Warnings, func(w PlanWarning) bool { return w.Code == WarnHeads }) {
					t.Fatalf("%s, TP %d: heads %d, warnings %v", m.Name, tp, m.Heads, p.Warnings)
				}
				if known && tp < least && p.Fits() && !refused {
					t.Errorf("%s on %s: TP %d is called the least, and TP %d fits", m.Name, gpu, least, tp)
				}
				if known && tp == least && (!p.Fits() || refused) {
					t.Errorf("%s on %s: TP %d is suggested and does not fit", m.Name, gpu, tp)
				}
				if !known && p.Fits() && !refused {
					t.Errorf("%s on %s: TP %d fits, and none is known", m.Name, gpu, tp)
				}
			}
		}
	}
}

func TestPlanValidate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*PlanInput)
		says   string
	}{
		"sound":          {func(*PlanInput) {}, ""},
		"TP":             {func(in *PlanInput) { in.TP = 0 }, "TP 0: want 1 to 1024"},
		"much TP":        {func(in *PlanInput) { in.TP = 1025 }, "TP 1025"},
		"rate":           {func(in *PlanInput) { in.Rate = 0 }, "rate 0: want 0.000001 to 1000000"},
		"no number":      {func(in *PlanInput) { in.Rate = math.NaN() }, "rate NaN"},
		"times":          {func(in *PlanInput) { in.TTFT, in.TPOT = 0, 0 }, "both 0"},
		"TTFT":           {func(in *PlanInput) { in.TTFT = -1 }, "TTFT -1ns"},
		"TPOT":           {func(in *PlanInput) { in.TPOT = time.Hour }, "TPOT 1h0m0s: want 0 to 1m0s"},
		"input":          {func(in *PlanInput) { in.Input = 0 }, "input tokens 0: want 1"},
		"no input":       {func(in *PlanInput) { in.Input, in.KVPerCall = 0, 1e9 }, ""},
		"output":         {func(in *PlanInput) { in.Output = 0 }, "output tokens 0"},
		"safety":         {func(in *PlanInput) { in.Safety = 1.1 }, "safety 1.1: want 0.01 to 1"},
		"share":          {func(in *PlanInput) { in.MemoryShare = 0 }, "memory share 0"},
		"headroom":       {func(in *PlanInput) { in.Headroom = 0.1 }, "headroom 0.1: want 0.3 to 0.5"},
		"memory":         {func(in *PlanInput) { in.GPU = GPU{} }, "memory is missing"},
		"negative":       {func(in *PlanInput) { in.GPU.Bytes = -1 }, "out of bounds"},
		"unit":           {func(in *PlanInput) { in.Unit = "MB" }, `unit "MB": want GB or GiB`},
		"no unit":        {func(in *PlanInput) { in.Unit = "" }, ""},
		"KV":             {func(in *PlanInput) { in.KVPerCall = -1 }, "KV bytes"},
		"weights":        {func(in *PlanInput) { in.Weights = -1 }, "bytes of all weights"},
		"engine":         {func(in *PlanInput) { in.MaxSeqs = -1 }, "sequences of an engine"},
		"model":          {func(in *PlanInput) { in.Model.Layers = 0 }, "layers 0"},
		"too many GPUs":  {func(in *PlanInput) { in.Rate, in.Output, in.TPOT = 1e6, 1e6, time.Minute }, "thousand million GPUs"},
		"all at once, 1": {func(in *PlanInput) { in.TP, in.Rate = 0, 0 }, "TP 0"},
		"all at once, 2": {func(in *PlanInput) { in.TP, in.Rate = 0, 0 }, "rate 0"},
	} {
		in := planFor(t, "llama-3.1-70b", "h100", 8)
		c.change(&in)
		_, err := in.Plan()
		if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}
