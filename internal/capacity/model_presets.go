package capacity

import (
	"fmt"
	"strings"
)

// modelPreset is a well-known open model.
type modelPreset struct {
	name   string
	config modelConfig
}

// modelPresets are models whose config.json was looked up, and whose parameters,
// counted from it, agree with the published number. Fields in the order of modelConfig;
// what a family does not have is left out:
//
//   - Llama, Mistral, Mixtral, Phi-4: vocab_size, hidden_size, num_hidden_layers,
//     num_attention_heads, num_key_value_heads, head_dim, intermediate_size,
//     max_position_embeddings, and num_local_experts of Mixtral.
//   - Qwen2.5: the same, with biases of q, k and v; its context beyond 32,768 tokens
//     needs YaRN. Qwen3: no biases, norms of queries and keys; num_experts and
//     moe_intermediate_size of the mixtures.
//   - Gemma 2: sliding_window in every second layer, beginning with the first. Gemma 3:
//     sliding_window_pattern 6, so every sixth layer attends to everything; from 4B on with
//     the vision tower of the same config (SigLIP, 27 layers of 1,152) and its projector.
//   - DeepSeek and Kimi: MLA with kv_lora_rank and qk_rope_head_dim, first_k_dense_replace,
//     n_routed_experts, n_shared_experts, moe_intermediate_size; without the module for
//     multi-token prediction, which engines load for speculative decoding alone.
//   - gpt-oss: layer_types alternate, sliding_window 128; the experts are MXFP4, all else
//     is BF16 (quantization_config.modules_to_not_convert).
var modelPresets = []modelPreset{
	{"llama-3.1-8b", modelLlama(4096, 32, 32, 14336)},
	{"llama-3.1-70b", modelLlama(8192, 80, 64, 28672)},
	{"llama-3.3-70b", modelLlama(8192, 80, 64, 28672)},
	{"llama-3.1-405b", modelLlama(16384, 126, 128, 53248)},

	{"mistral-7b-v0.3", modelConfig{vocab: 32768, hidden: 4096, layers: 32, heads: 32, kvHeads: 8, headDim: 128, inter: 14336, context: 32768}},
	{"mistral-small-24b", modelConfig{vocab: 131072, hidden: 5120, layers: 40, heads: 32, kvHeads: 8, headDim: 128, inter: 32768, context: 32768}},
	{"mixtral-8x7b", modelConfig{vocab: 32000, hidden: 4096, layers: 32, heads: 32, kvHeads: 8, headDim: 128, context: 32768, experts: 8, expertInter: 14336}},
	{"mixtral-8x22b", modelConfig{vocab: 32768, hidden: 6144, layers: 56, heads: 48, kvHeads: 8, headDim: 128, context: 65536, experts: 8, expertInter: 16384}},

	{"phi-4", modelConfig{vocab: 100352, hidden: 5120, layers: 40, heads: 40, kvHeads: 10, headDim: 128, inter: 17920, context: 16384}},

	{"qwen2.5-7b", modelQwen25(3584, 28, 28, 4, 18944)},
	{"qwen2.5-14b", modelQwen25(5120, 48, 40, 8, 13824)},
	{"qwen2.5-32b", modelQwen25(5120, 64, 40, 8, 27648)},
	{"qwen2.5-72b", modelQwen25(8192, 80, 64, 8, 29568)},

	{"qwen3-0.6b", modelQwen3(1024, 28, 16, 8, 3072, true)},
	{"qwen3-4b", modelQwen3(2560, 36, 32, 8, 9728, true)},
	{"qwen3-8b", modelQwen3(4096, 36, 32, 8, 12288, false)},
	{"qwen3-14b", modelQwen3(5120, 40, 40, 8, 17408, false)},
	{"qwen3-32b", modelQwen3(5120, 64, 64, 8, 25600, false)},
	{"qwen3-30b-a3b", modelQwen3Mixture(2048, 48, 32, 4, 128, 768, 40960)},
	{"qwen3-235b-a22b", modelQwen3Mixture(4096, 94, 64, 4, 128, 1536, 40960)},
	{"qwen3-coder-480b-a35b", modelQwen3Mixture(6144, 62, 96, 8, 160, 2560, 262144)},

	{"gemma-2-2b", modelGemma2(2304, 26, 8, 4, 256, 9216)},
	{"gemma-2-9b", modelGemma2(3584, 42, 16, 8, 256, 14336)},
	{"gemma-2-27b", modelGemma2(4608, 46, 32, 16, 128, 36864)},
	{"gemma-3-4b", modelGemma3(2560, 34, 8, 4, 256, 10240)},
	{"gemma-3-12b", modelGemma3(3840, 48, 16, 8, 256, 15360)},
	{"gemma-3-27b", modelGemma3(5376, 62, 32, 16, 128, 21504)},

	{"deepseek-v2-lite", modelConfig{vocab: 102400, hidden: 2048, layers: 27, heads: 16, inter: 10944, context: 163840,
		experts: 64, expertInter: 1408, shared: 2, dense: 1, kvRank: 512, nope: 128, rope: 64, vDim: 128}},
	{"deepseek-v3", modelDeepSeekV3},
	{"deepseek-r1", modelDeepSeekV3},
	{"kimi-k2", modelConfig{vocab: 163840, hidden: 7168, layers: 61, heads: 64, inter: 18432, context: 131072,
		experts: 384, expertInter: 2048, shared: 1, dense: 1, routerBias: true,
		qRank: 1536, kvRank: 512, nope: 128, rope: 64, vDim: 128, dtype: FP8}},

	{"gpt-oss-20b", modelGPTOSS(24, 32)},
	{"gpt-oss-120b", modelGPTOSS(36, 128)},
}

var modelDeepSeekV3 = modelConfig{vocab: 129280, hidden: 7168, layers: 61, heads: 128, inter: 18432, context: 163840,
	experts: 256, expertInter: 2048, shared: 1, dense: 3, routerBias: true,
	qRank: 1536, kvRank: 512, nope: 128, rope: 64, vDim: 128, dtype: FP8}

func modelLlama(hidden, layers, heads, inter int64) modelConfig {
	return modelConfig{vocab: 128256, hidden: hidden, layers: layers, heads: heads, kvHeads: 8, headDim: 128, inter: inter, context: 131072}
}

func modelQwen25(hidden, layers, heads, kvHeads, inter int64) modelConfig {
	return modelConfig{vocab: 152064, hidden: hidden, layers: layers, heads: heads, kvHeads: kvHeads, headDim: 128, inter: inter, context: 131072, qkvBias: true}
}

func modelQwen3(hidden, layers, heads, kvHeads, inter int64, tied bool) modelConfig {
	return modelConfig{vocab: 151936, hidden: hidden, layers: layers, heads: heads, kvHeads: kvHeads, headDim: 128, inter: inter, context: 40960, tied: tied, qkNorm: true}
}

func modelQwen3Mixture(hidden, layers, heads, kvHeads, experts, expertInter, context int64) modelConfig {
	c := modelQwen3(hidden, layers, heads, kvHeads, 0, false)
	c.experts, c.expertInter, c.context = experts, expertInter, context
	return c
}

func modelGemma2(hidden, layers, heads, kvHeads, headDim, inter int64) modelConfig {
	return modelConfig{vocab: 256000, hidden: hidden, layers: layers, heads: heads, kvHeads: kvHeads, headDim: headDim, inter: inter,
		context: 8192, tied: true, norms: 4, window: 4096, windowLayers: (layers + 1) / 2}
}

func modelGemma3(hidden, layers, heads, kvHeads, headDim, inter int64) modelConfig {
	// The tower (SigLIP So400m: patches of 14, 64 × 64 positions, 27 layers of 1,152 with an
	// MLP of 4,304, all with biases) and a projector into the model's width.
	const wide, mlp, towerLayers = 1152, 4304, 27
	const tower = 3*14*14*wide + wide + 64*64*wide + 2*wide +
		towerLayers*(4*(wide*wide+wide)+2*wide*mlp+mlp+wide+4*wide)
	return modelConfig{vocab: 262208, hidden: hidden, layers: layers, heads: heads, kvHeads: kvHeads, headDim: headDim, inter: inter,
		context: 131072, tied: true, qkNorm: true, norms: 4, window: 1024, windowLayers: layers - layers/6,
		vision: tower + wide*hidden + wide}
}

func modelGPTOSS(layers, experts int64) modelConfig {
	return modelConfig{vocab: 201088, hidden: 2880, layers: layers, heads: 64, kvHeads: 8, headDim: 64, context: 131072,
		qkvBias: true, outBias: true, sinks: true, experts: experts, expertInter: 2880, routerBias: true, expertBias: true,
		window: 128, windowLayers: layers / 2, wideAttn: true, dtype: MXFP4}
}

// Models lists the presets, families together and small ones first.
func Models() []Model {
	models := make([]Model, len(modelPresets))
	for i, p := range modelPresets {
		models[i] = p.config.model(p.name)
	}
	return models
}

// FindModel returns the preset of a name. Case, punctuation, the organisation before
// a slash and the endings -Instruct and -it do not matter: meta-llama/Llama-3.1-70B-Instruct
// and llama3.1:70b are llama-3.1-70b.
func FindModel(name string) (Model, error) {
	wanted := modelKey(name)
	for _, p := range modelPresets {
		if modelKey(p.name) == wanted {
			return p.config.model(p.name), nil
		}
	}
	names := make([]string, len(modelPresets))
	for i, p := range modelPresets {
		names[i] = p.name
	}
	return Model{}, fmt.Errorf("no preset for model %s: choose one of %s, or describe the model by its config.json", planQuote(name), planSome(names, wanted))
}

// modelKey is what of a name counts.
func modelKey(name string) string {
	name = strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
	for _, ending := range [...]string{"-instruct", "-it"} {
		name = strings.TrimSuffix(name, ending)
	}
	return planKey(strings.TrimPrefix(name, "meta-"))
}
