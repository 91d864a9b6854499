package capacity

import (
	"fmt"
	"math/big"

	"github.com/weirgate/weir/internal/call"
)

// What a warning's code can be.
const (
	WarnWeights   = "weights_do_not_fit"
	WarnNoCall    = "no_call_fits"
	WarnHeads     = "heads_not_divisible"
	WarnKVHeads   = "kv_heads_not_divisible"
	WarnReplicas  = "kv_replicated"
	WarnLatent    = "latent_replicated"
	WarnContext   = "beyond_context"
	WarnEngine    = "engine_limit"
	WarnWideGroup = "group_beyond_eight"
)

// machineGPUs is how many GPUs the machines of most vendors have.
const machineGPUs = 8

// warnings says what is impossible or doubtful, the worst first.
func (in *PlanInput) warnings(b memoryBound, a planAnswer, least call.Count) (list []PlanWarning) {
	warn := func(code, format string, args ...any) {
		list = append(list, PlanWarning{Code: code, Text: fmt.Sprintf(format, args...)})
	}
	m, u := in.Model, in.Unit
	if a.memory.Sign() == 0 {
		would := "No TP up to " + planCount(maxTP) + " holds them: take a narrower type, shorter calls, or GPUs with more memory."
		if tp, some := least.Get(); some {
			would = fmt.Sprintf("TP %d would do.", tp)
		}
		if b.room.Sign() <= 0 {
			warn(WarnWeights, "The weights take %s a GPU at TP %d, and the engine has %s. %s", u.show(b.onGPU), in.TP, u.show(b.usable), would)
		} else {
			warn(WarnNoCall, "The weights fit at TP %d, but the %s that a call takes do not fit beside them. %s", in.TP, u.show(b.call), would)
		}
	}
	if m.Heads > 0 && m.Heads%in.TP != 0 {
		warn(WarnHeads, "The %s attention heads do not divide by TP %d: engines refuse to start so.", planCount(m.Heads), in.TP)
	}
	if m.Context > 0 && in.Input+in.Output > m.Context {
		warn(WarnContext, "Input and output have %s tokens together, and the model's context is %s: such calls are refused or cut.", planCount(in.Input+in.Output), planCount(m.Context))
	}
	computed := in.KVPerCall == 0
	switch {
	case !computed || in.TP == 1:
	case m.KVRank > 0:
		warn(WarnLatent, "A latent vector (MLA) is not divided: each of the %d GPUs of a group holds all of it, so a group holds no more calls than one of its GPUs. Data-parallel attention, where the engine has it, avoids that.", in.TP)
	case m.KVHeads < in.TP && in.TP%m.KVHeads == 0:
		warn(WarnReplicas, "TP %d is more than the %s: each is held by %s, and the KV cache of a call takes %s times its size.",
			in.TP, planMany(m.KVHeads, "KV head", "KV heads"), planMany(in.TP/m.KVHeads, "GPU", "GPUs"), planNumber(b.copies, planNearest))
	case m.KVHeads%in.TP != 0:
		warn(WarnKVHeads, "The %s do not divide evenly by TP %d, and engines may refuse to start so. The plan counts the fullest GPU, with %s.",
			planMany(m.KVHeads, "KV head", "KV heads"), in.TP, planMany(m.headsPerGPU(in.TP), "head", "heads"))
	}
	if in.MaxSeqs > 0 && a.memory.Sign() > 0 && a.memory.Cmp(big.NewInt(in.MaxSeqs)) < 0 {
		warn(WarnEngine, "The engine may run %s at once, and the memory holds %s: beyond that it preempts calls and computes them again.",
			planMany(in.MaxSeqs, "sequence", "sequences"), planGroups(a.memory.String()))
	}
	if in.TP > machineGPUs {
		warn(WarnWideGroup, "TP %d is more than the %d GPUs of most machines: TTFT and TPOT have to be measured across machines too.", in.TP, machineGPUs)
	}
	return list
}

// notes says what the figures rest on.
func (in *PlanInput) notes(l planLoad, a planAnswer) []string {
	notes := []string{fmt.Sprintf("Sizes are in %s of %s.", in.Unit, in.Unit.power())}
	switch {
	case in.GPU.Bytes > 0:
	case in.Unit == GiB:
		notes[0] += " The vendor does not say so of its figure: with 10⁹ bytes each the GPU has 6.9 % less."
	default:
		notes[0] += " The vendor does not say so of its figure: with 2³⁰ bytes each the GPU has 7.4 % more."
	}
	if a.groups != nil {
		batch := planGroups(planCeil(planQuo(l.mean, new(big.Rat).SetInt(a.groups))).String())
		notes = append(notes, fmt.Sprintf("TTFT and TPOT have to be means as measured at a batch of about %s: an objective is not an input. Where the engine is slower at that batch, more calls are at once, and more GPUs are needed.", batch))
	}
	if in.KVPerCall > 0 {
		notes = append(notes, "The KV cache of a call is as given: input tokens, shape and type of the model do not change it.")
	} else {
		text := "A call counts with its KV cache at its end, and shares none of it with others: on average, and with prefix caching, more calls fit."
		if in.Model.WindowLayers > 0 {
			text += " Layers with a window count with no more than it; engines that keep all tokens in them hold fewer calls."
		}
		notes = append(notes, text)
	}
	return append(notes, "Activations and CUDA graphs come out of the engine's memory too, and are not counted.")
}
