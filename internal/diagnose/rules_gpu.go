package diagnose

import (
	"slices"

	"github.com/weirgate/weir/internal/call"
)

// What findings of the GPUs rest on.
var (
	clockLowest  = &figure{name: "gpu.clock_ratio", unit: InShare, label: "lowest clock of a GPU at work, of its maximum"}
	clockReason  = &figure{name: "gpu.throttle_reasons", label: "held down by %", bare: true}
	clockOnce    = &figure{name: "gpu.samples", unit: InPieces, label: "samples of the GPUs", why: "the lowest counts: it may have been brief"}
	wroteSlowly  = &figure{name: "decode_per_token_ms", unit: InMilliseconds, label: "per output token, without what the client blocked"}
	busyLittle   = &figure{name: "gpu.utilization", unit: InShare, label: "GPUs busy while it ran"}
	waitedEngine = &figure{name: "phases.queue_engine_ms", unit: InMilliseconds, label: "it waited in the engine's queue"}
	waitedHere   = &figure{name: "phases.queue_gateway_ms", unit: InMilliseconds, label: "it waited in the gateway's queue before that"}
	severalGPUs  = &figure{name: "gpu.gpus", unit: InPieces, label: "GPUs watched", why: "this is their mean: those that serve the model may be busier"}
	memoryBusy   = &figure{name: "gpu.memory_bandwidth", unit: InShare, label: "memory bandwidth in use", why: "so memory is busy, if not the cores"}
	cacheHolds   = &figure{name: "engine_at_dispatch.kv_use", unit: InShare, label: "KV cache in use when it was sent", why: "so the cache is what keeps calls out"}
)

// thermal are the reasons that no GPU in good order has: heat, and the machine's
// brake. The others go with a GPU at its power limit.
var thermal = []string{"hw_slowdown", "sw_thermal", "hw_thermal", "power_brake"}

// maxReasons is how many reasons of one call are looked at: there are not so many.
const maxReasons = 16

// throttled tells whether clocks were held down by more than is usual.
func throttled(g *call.GPUWindow) bool {
	ratio, known := g.ClockRatio.Get()
	if !known || g.IsZero() || len(g.Reasons) == 0 {
		return false
	}
	if slices.ContainsFunc(g.Reasons, func(r string) bool { return slices.Contains(thermal, r) }) {
		return ratio <= ClockLoss
	}
	return ratio <= PowerClockLoss
}

// clocks finds GPUs whose clocks were held down.
func clocks(l *look, s *sheet) {
	g := &l.rec.GPU
	if !throttled(g) {
		return
	}
	s.condition(CodeClockThrottled, l)
	ratio, _ := g.ClockRatio.Get()
	s.pro(clockLowest, ratio)
	reasons := g.Reasons[:min(len(g.Reasons), maxReasons)]
	for i, r := range reasons {
		if !slices.Contains(reasons[:i], r) {
			s.named(clockReason, r)
		}
	}
	if each, known := l.interToken(); known {
		s.pro(wroteSlowly, milliseconds(each))
	}
	s.con(clockOnce, float64(g.Samples))
}

// underUsed finds GPUs with room although the call had to wait, or was written
// slowly.
func underUsed(l *look, s *sheet) {
	g := &l.rec.GPU
	busy, known := g.Utilization.Get()
	if !known || !l.sampled() || busy >= UnderUsed {
		return
	}
	own, _ := l.took(queueGateway)
	engines, _ := l.took(queueEngine)
	if load, known := l.rec.Engine.Load.Get(); known && 2*load >= engines {
		engines = 0 // no GPU works while the model is loaded
	}
	each, written := l.interToken()
	here, there, slowly := stands(own, Dominant, l.whole), stands(engines, Dominant, l.whole), written && each >= SlowTPOT
	if !here && !there && !slowly {
		return
	}
	s.condition(CodeGPUUnderUsed, l)
	s.pro(busyLittle, busy)
	if there {
		s.pro(waitedEngine, milliseconds(engines))
	}
	if here {
		s.pro(waitedHere, milliseconds(own))
	}
	if slowly {
		s.pro(wroteSlowly, milliseconds(each))
	}
	if g.GPUs > 1 {
		s.con(severalGPUs, float64(g.GPUs))
	}
	if use, known := g.MemoryBandwidth.Get(); known && use >= UnderUsed {
		s.con(memoryBusy, use)
	}
	if use, known := fresh(l.rec.AtDispatch).KVUse.Get(); known && use >= HighCache && (here || there) {
		s.pro(cacheHolds, use)
	}
}
