package capacity

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// Dtype names how a number is stored in a GPU's memory.
type Dtype string

// The number formats. The narrow ones carry scales beside the numbers, and their
// sizes count them: MXFP4 one byte for each 32 numbers, NVFP4 one for each 16, INT4
// (AWQ, GPTQ) two bytes and a zero point of four bits for each 128. The scales of FP8
// and INT8, one for a row or for a block of 128 by 128, are below 0.1 % and left out.
const (
	FP32  Dtype = "fp32"
	BF16  Dtype = "bf16"
	FP16  Dtype = "fp16"
	FP8   Dtype = "fp8"
	INT8  Dtype = "int8"
	NVFP4 Dtype = "nvfp4"
	MXFP4 Dtype = "mxfp4"
	INT4  Dtype = "int4"
)

// Dtypes are the formats of weights, KVDtypes those of the KV cache.
var (
	Dtypes   = []Dtype{FP32, BF16, FP16, FP8, INT8, NVFP4, MXFP4, INT4}
	KVDtypes = []Dtype{FP32, BF16, FP16, FP8, INT8}
)

// modelBits is how many bits 32 numbers take, scales included.
var modelBits = map[Dtype]int64{
	FP32: 32 * 32, BF16: 32 * 16, FP16: 32 * 16, FP8: 32 * 8, INT8: 32 * 8,
	NVFP4: 32*4 + 16, MXFP4: 32*4 + 8, INT4: 32*4 + 5,
}

// bytes is the exact size of one number; 0 for an unknown format.
func (d Dtype) bytes() *big.Rat { return big.NewRat(modelBits[d], 32*8) }

// narrow tells whether a number takes less than 16 bits.
func (d Dtype) narrow() bool { return modelBits[d] < 32*16 }

// Model is what of a model decides the memory it takes. The zero value of a field is
// "none" or, for Heads, Hidden and Context, "unknown".
type Model struct {
	Name string `json:"name,omitempty"`

	// Params counts all parameters that are in memory: of a mixture of experts every
	// expert, and not only those that a token passes.
	Params int64 `json:"params"`
	// Wide of them stay at 16 bits when Dtype is narrower: embeddings, output head, norms,
	// biases and routers in published checkpoints, and whatever else a preset says. 0 makes
	// the weights Params × bytes exactly.
	Wide int64 `json:"wide_params,omitempty"`

	Layers  int64 `json:"layers"`
	Hidden  int64 `json:"hidden_size,omitempty"`
	Heads   int64 `json:"attention_heads,omitempty"`
	KVHeads int64 `json:"kv_heads,omitempty"`
	HeadDim int64 `json:"head_dim,omitempty"`

	// KVRank and RopeDim are, with multi-head latent attention (MLA), the numbers that a
	// layer keeps of a token instead of heads: one latent vector (kv_lora_rank) and one
	// rotary key (qk_rope_head_dim). A KVRank of 0 is ordinary attention.
	KVRank  int64 `json:"kv_lora_rank,omitempty"`
	RopeDim int64 `json:"qk_rope_head_dim,omitempty"`

	// WindowLayers of the layers attend to the last Window tokens only, and keep no more.
	WindowLayers int64 `json:"window_layers,omitempty"`
	Window       int64 `json:"window,omitempty"`

	// Context is the most tokens that input and output may have together.
	Context int64 `json:"context,omitempty"`

	Dtype   Dtype `json:"dtype"`
	KVDtype Dtype `json:"kv_dtype"`
}

// Bounds of a model's figures: far beyond any model, so that no figure derived from
// them overflows and a slip of the keyboard is found.
const (
	modelMaxParams = 1_000_000_000_000_000
	modelMaxDim    = 1 << 24
	modelMaxTokens = 1_000_000_000
)

// Validate tells what is wrong with the figures, all of it at once. hasWeights and
// hasKV say that the size of the weights and the KV cache of a call are known
// otherwise, so that the figures they follow from may be missing.
func (m Model) Validate(hasWeights, hasKV bool) error {
	var errs []error
	within := func(name string, v, least, most int64) {
		if v < least || v > most {
			errs = append(errs, fmt.Errorf("%s %d: want %d to %d", name, v, least, most))
		}
	}
	if !hasWeights {
		within("parameters", m.Params, 1, modelMaxParams)
		within("parameters kept at 16 bits", m.Wide, 0, max(m.Params, 0))
		if !slices.Contains(Dtypes, m.Dtype) {
			errs = append(errs, fmt.Errorf("weights of type %q: want one of %s", m.Dtype, modelNames(Dtypes)))
		}
	}
	if !hasKV {
		within("layers", m.Layers, 1, modelMaxDim)
		if m.KVRank != 0 {
			within("latent dimension (kv_lora_rank)", m.KVRank, 1, modelMaxDim)
			within("rotary dimension (qk_rope_head_dim)", m.RopeDim, 0, modelMaxDim)
		} else {
			within("KV heads", m.KVHeads, 1, modelMaxDim)
			within("head dimension", m.HeadDim, 1, modelMaxDim)
		}
		within("layers with a window", m.WindowLayers, 0, max(m.Layers, 0))
		if m.WindowLayers > 0 {
			within("window", m.Window, 1, modelMaxTokens)
		}
		if !slices.Contains(KVDtypes, m.KVDtype) {
			errs = append(errs, fmt.Errorf("KV cache of type %q: want one of %s", m.KVDtype, modelNames(KVDtypes)))
		}
	}
	within("attention heads", m.Heads, 0, modelMaxDim)
	within("context", m.Context, 0, modelMaxTokens)
	return errors.Join(errs...)
}

func modelNames(types []Dtype) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	return strings.Join(names, ", ")
}

// weights is the exact size of all weights in bytes.
func (m Model) weights() *big.Rat {
	wide := m.wide()
	size := new(big.Rat).Mul(planInt(m.Params-wide), m.Dtype.bytes())
	return size.Add(size, new(big.Rat).Mul(planInt(wide), BF16.bytes()))
}

// wide is how many parameters are stored at 16 bits in spite of Dtype.
func (m Model) wide() int64 {
	if m.Dtype.narrow() {
		return m.Wide
	}
	return 0
}

// perLayer is what one layer keeps of one token, in bytes and once, however many GPUs
// share the layer: 2 × KV heads × head dimension × bytes, for a key and a value, or with
// MLA (kv_lora_rank + qk_rope_head_dim) × bytes.
func (m Model) perLayer() *big.Rat {
	numbers := planInt(2 * m.KVHeads)
	numbers.Mul(numbers, planInt(m.HeadDim))
	if m.KVRank > 0 {
		numbers = planInt(m.KVRank + m.RopeDim)
	}
	return numbers.Mul(numbers, m.KVDtype.bytes())
}

// KVPerToken is what a token adds to the KV cache, in bytes, counted once however many
// GPUs share the model. Layers with a window add theirs only until it is full.
func (m Model) KVPerToken() float64 {
	v, _ := m.kvOf(1).Float64()
	return v
}

// kvOf is the KV cache of so many tokens, in bytes, counted once: all of them in the
// layers that attend to everything, at most a window in the others.
func (m Model) kvOf(tokens int64) *big.Rat {
	layerTokens := new(big.Rat).Mul(planInt(m.Layers-m.WindowLayers), planInt(tokens))
	if m.WindowLayers > 0 {
		layerTokens.Add(layerTokens, new(big.Rat).Mul(planInt(m.WindowLayers), planInt(min(tokens, m.Window))))
	}
	return layerTokens.Mul(layerTokens, m.perLayer())
}

// headsPerGPU is how many KV heads each of tp GPUs holds. A head is not divided, so it
// is at least one, and where the heads do not divide evenly the fullest GPU counts.
func (m Model) headsPerGPU(tp int64) int64 {
	return max(1, (m.KVHeads+tp-1)/tp)
}

// kvCopies is how often tp GPUs hold the KV cache of a call among them: once where
// its heads divide evenly, more often where heads are replicated, and tp times with MLA,
// whose latent vector has no heads to divide.
func (m Model) kvCopies(tp int64) *big.Rat {
	if m.KVRank > 0 {
		return planInt(tp)
	}
	return new(big.Rat).Mul(big.NewRat(tp, m.KVHeads), planInt(m.headsPerGPU(tp)))
}
