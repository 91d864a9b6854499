package capacity

import (
	"math/big"
	"strings"
	"testing"
)

// TestPresetParameters: counted from config.json, the parameters are those that the
// published checkpoints have, exactly.
func TestPresetParameters(t *testing.T) {
	published := map[string]int64{
		"llama-3.1-8b": 8_030_261_248, "llama-3.1-70b": 70_553_706_496, "llama-3.3-70b": 70_553_706_496, "llama-3.1-405b": 405_853_388_800,
		"mistral-7b-v0.3": 7_248_023_552, "mistral-small-24b": 23_572_403_200, "mixtral-8x7b": 46_702_792_704, "mixtral-8x22b": 140_630_071_296,
		"phi-4":      14_659_507_200,
		"qwen2.5-7b": 7_615_616_512, "qwen2.5-14b": 14_770_033_664, "qwen2.5-32b": 32_763_876_352, "qwen2.5-72b": 72_706_203_648,
		"qwen3-0.6b": 596_049_920, "qwen3-4b": 4_022_468_096, "qwen3-8b": 8_190_735_360, "qwen3-14b": 14_768_307_200, "qwen3-32b": 32_762_123_264,
		"qwen3-30b-a3b": 30_532_122_624, "qwen3-235b-a22b": 235_093_634_560, "qwen3-coder-480b-a35b": 480_154_875_392,
		"gemma-2-2b": 2_614_341_888, "gemma-2-9b": 9_241_705_984, "gemma-2-27b": 27_227_128_320,
		"gemma-3-4b": 4_300_079_472, "gemma-3-12b": 12_187_325_040, "gemma-3-27b": 27_432_406_640,
		"deepseek-v2-lite": 15_706_484_224, "deepseek-v3": 671_026_419_200, "deepseek-r1": 671_026_419_200, "kimi-k2": 1_026_408_232_448,
		"gpt-oss-20b": 20_914_757_184, "gpt-oss-120b": 116_829_156_672,
	}
	for _, m := range Models() {
		if m.Params != published[m.Name] {
			t.Errorf("%s: %d parameters, published are %d", m.Name, m.Params, published[m.Name])
		}
		if err := m.Validate(false, false); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
		if m.Heads == 0 || m.Hidden == 0 || m.Context == 0 {
			t.Errorf("%s lacks heads, width or context", m.Name)
		}
		delete(published, m.Name)
	}
	for name := range published {
		t.Errorf("no preset %s", name)
	}
}

// TestPresetWeights: sizes of published narrow checkpoints. gpt-oss: 60.8 GiB and 12.8 GiB by its
// model card; the checkpoint of DeepSeek-V3 has FP8 matrices and 16 bits elsewhere.
func TestPresetWeights(t *testing.T) {
	for name, want := range map[string]string{"gpt-oss-120b": "60.8", "gpt-oss-20b": "12.8"} {
		m, err := FindModel(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := GiB.of(m.weights()).FloatString(1); got != want {
			t.Errorf("%s: weights take %s GiB, want %s", name, got, want)
		}
	}
	m, err := FindModel("llama-3.1-70b")
	if err != nil {
		t.Fatal(err)
	}
	if want := planInt(2 * 70_553_706_496); m.weights().Cmp(want) != 0 {
		t.Errorf("bf16 weights take %s bytes, want %s", m.weights(), want)
	}
	// Embedding, head and norms: (2 × 128,256 + 2 × 80 + 1) × 8,192.
	if want := int64((2*128256 + 2*80 + 1) * 8192); m.Wide != want {
		t.Errorf("%d parameters stay at 16 bits, want %d", m.Wide, want)
	}
	m.Dtype = INT4
	want := new(big.Rat).Mul(planInt(m.Params-m.Wide), big.NewRat(133, 256))
	if want.Add(want, planInt(2*m.Wide)); m.weights().Cmp(want) != 0 {
		t.Errorf("int4 weights take %s bytes, want %s", m.weights(), want)
	}
	m.Dtype = FP32
	if want := planInt(4 * m.Params); m.weights().Cmp(want) != 0 {
		t.Errorf("fp32 weights take %s bytes, want %s", m.weights(), want)
	}
}

// TestKVPerToken: bytes of a token in all layers, worked out by hand.
func TestKVPerToken(t *testing.T) {
	for name, want := range map[string]float64{
		"llama-3.1-8b":   131_072, // 2 × 32 × 8 × 128 × 2
		"llama-3.1-70b":  327_680, // 2 × 80 × 8 × 128 × 2
		"llama-3.1-405b": 516_096, // 2 × 126 × 8 × 128 × 2
		"qwen2.5-7b":     57_344,  // 2 × 28 × 4 × 128 × 2
		"phi-4":          204_800, // 2 × 40 × 10 × 128 × 2
		"gemma-2-9b":     344_064, // 2 × 42 × 8 × 256 × 2
		"gemma-3-27b":    507_904, // 2 × 62 × 16 × 128 × 2
		"deepseek-v3":    70_272,  // 61 × 576 × 2
		"kimi-k2":        70_272,
		"gpt-oss-120b":   73_728, // 2 × 36 × 8 × 64 × 2
	} {
		m, err := FindModel(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.KVPerToken(); got != want {
			t.Errorf("%s: %v bytes a token, want %v", name, got, want)
		}
		m.KVDtype = FP8
		if got := m.KVPerToken(); got != want/2 {
			t.Errorf("%s: %v bytes a token at fp8, want %v", name, got, want/2)
		}
	}
}

// TestWindow: a layer with a window keeps no more than it, and less while it is not full.
func TestWindow(t *testing.T) {
	m, err := FindModel("gemma-3-27b")
	if err != nil {
		t.Fatal(err)
	}
	const layer = 2 * 16 * 128 * 2
	for tokens, want := range map[int64]int64{
		1: 62 * layer, 1000: 62 * 1000 * layer, 1024: 62 * 1024 * layer, 1025: (62*1024 + 10) * layer, 100_000: (52*1024 + 10*100_000) * layer,
	} {
		if got := m.kvOf(tokens); got.Cmp(planInt(want)) != 0 {
			t.Errorf("%d tokens take %s bytes, want %d", tokens, got, want)
		}
	}
	m.WindowLayers = 0
	if got := m.kvOf(100_000); got.Cmp(planInt(62*100_000*layer)) != 0 {
		t.Errorf("without windows: %s", got)
	}
	mistral, err := FindModel("gpt-oss-20b")
	if err != nil {
		t.Fatal(err)
	}
	if mistral.WindowLayers != 12 || mistral.Window != 128 {
		t.Errorf("gpt-oss-20b has %d layers with a window of %d", mistral.WindowLayers, mistral.Window)
	}
}

// TestCopies: KV heads are not divided below one, and a latent vector not at all.
func TestCopies(t *testing.T) {
	for _, c := range []struct {
		heads, latent, tp int64
		each              int64
		copies            string
	}{
		{8, 0, 1, 8, "1"}, {8, 0, 2, 4, "1"}, {8, 0, 8, 1, "1"}, {8, 0, 16, 1, "2"}, {8, 0, 64, 1, "8"},
		{1, 0, 4, 1, "4"}, {10, 0, 4, 3, "6/5"}, {4, 0, 6, 1, "3/2"}, {128, 0, 8, 16, "1"},
		{0, 512, 1, 1, "1"}, {0, 512, 8, 1, "8"},
	} {
		m := Model{KVHeads: c.heads, KVRank: c.latent}
		if got := m.kvCopies(c.tp).RatString(); got != c.copies {
			t.Errorf("%d heads, latent %d, TP %d: %s copies, want %s", c.heads, c.latent, c.tp, got, c.copies)
		}
		if c.latent == 0 && m.headsPerGPU(c.tp) != c.each {
			t.Errorf("%d heads, TP %d: %d a GPU, want %d", c.heads, c.tp, m.headsPerGPU(c.tp), c.each)
		}
	}
}

func TestFindModel(t *testing.T) {
	for name, want := range map[string]string{
		"llama-3.1-70b": "llama-3.1-70b", "LLAMA-3.1-70B": "llama-3.1-70b", "meta-llama/Llama-3.1-70B-Instruct": "llama-3.1-70b",
		"meta-llama/Meta-Llama-3.1-70B-Instruct": "llama-3.1-70b", "llama3.1:70b": "llama-3.1-70b",
		"google/gemma-3-27b-it": "gemma-3-27b", "openai/gpt-oss-120b": "gpt-oss-120b", "Qwen/Qwen3-30B-A3B": "qwen3-30b-a3b", "deepseek-ai/DeepSeek-V3": "deepseek-v3",
	} {
		if m, err := FindModel(name); err != nil || m.Name != want {
			t.Errorf("%s is %q, %v", name, m.Name, err)
		}
	}
	for name, says := range map[string]string{
		"":              "choose one of llama-3.1-8b",
		"qwen3-72b":     "choose one of qwen3-0.6b, qwen3-4b, qwen3-8b",
		"gpt-5":         "config.json",
		"x\x1b[2J":      `"x\x1b[2J"`,
		"llama-3.1-13b": "llama-3.1-8b, llama-3.1-70b, llama-3.1-405b,",
	} {
		_, err := FindModel(name)
		if err == nil || !strings.Contains(err.Error()+",", says) {
			t.Errorf("%q: %v, want %s", name, err, says)
		}
	}
	if _, err := FindModel(strings.Repeat("a", 1<<16)); err == nil || len(err.Error()) > 2000 {
		t.Errorf("a long name makes an error of %d bytes", len(err.Error()))
	}
	// Presets are distinct under the same reading.
	seen := map[string]string{}
	for _, p := range modelPresets {
		if other, twice := seen[modelKey(p.name)]; twice {
			t.Errorf("%s and %s read the same", p.name, other)
		}
		seen[modelKey(p.name)] = p.name
	}
}

func TestModelValidate(t *testing.T) {
	sound := Model{Params: 7e9, Layers: 32, KVHeads: 8, HeadDim: 128, Dtype: BF16, KVDtype: BF16}
	for name, c := range map[string]struct {
		change func(*Model)
		says   string
	}{
		"sound":       {func(*Model) {}, ""},
		"parameters":  {func(m *Model) { m.Params = 0 }, "parameters 0: want 1"},
		"negative":    {func(m *Model) { m.Params = -1 }, "parameters -1"},
		"wide":        {func(m *Model) { m.Wide = m.Params + 1 }, "16 bits"},
		"type":        {func(m *Model) { m.Dtype = "float" }, "bf16"},
		"KV type":     {func(m *Model) { m.KVDtype = MXFP4 }, `KV cache of type "mxfp4"`},
		"layers":      {func(m *Model) { m.Layers = 0 }, "layers 0"},
		"heads":       {func(m *Model) { m.KVHeads = 0 }, "KV heads 0"},
		"dimension":   {func(m *Model) { m.HeadDim = 1 << 30 }, "head dimension"},
		"latent":      {func(m *Model) { m.KVHeads, m.HeadDim, m.KVRank, m.RopeDim = 0, 0, 512, 64 }, ""},
		"bad latent":  {func(m *Model) { m.KVRank = -512 }, "latent dimension"},
		"window":      {func(m *Model) { m.WindowLayers = 16 }, "window 0"},
		"windows":     {func(m *Model) { m.WindowLayers, m.Window = 33, 128 }, "layers with a window 33: want 0 to 32"},
		"context":     {func(m *Model) { m.Context = -1 }, "context -1"},
		"all at once": {func(m *Model) { *m = Model{} }, "parameters 0"},
	} {
		m := sound
		c.change(&m)
		err := m.Validate(false, false)
		if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	if err := (Model{}).Validate(true, true); err != nil {
		t.Errorf("with weights and KV cache given nothing of the model is needed: %v", err)
	}
	if err := (Model{}).Validate(false, false); strings.Count(err.Error(), "\n") < 4 {
		t.Errorf("not all is said at once: %v", err)
	}
}
