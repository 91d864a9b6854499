package diagnose

import "strings"

// What to do next, where it depends on the evidence. Each text names the flag or
// the setting.

func nextFailed(g *group) string {
	if g.mostly(outOfRoom) {
		return "The upstream sheds load: limit concurrency here (limit, queue), add replicas, or ask its provider for more."
	}
	return "Read the engine's log around these calls; if it shows none of them, look at what lies between, such as a proxy with a shorter time-out."
}

func nextGatewayQueue(g *group) string {
	switch {
	case g.mostly(engineWaited, cacheHigh):
		return "The limits here protect an engine that is full: add replicas, or shed earlier; raising the limits would only move the wait."
	case g.mostly(gpuRoom):
		return "The GPUs had room: raise the limits on concurrency, or the number of calls at once that the queue lets through."
	case g.mostly(noneWaited):
		return "Nothing queued in the engine: raise the limits on concurrency step by step, and watch its queue, KV cache and GPUs."
	}
	if g.scene.gauged {
		return "See whether the engine has room, by its gauges (GET /weir/engines); if so raise the limits, else add replicas."
	}
	return "See whether the engine has room (the engine option of the global block shows running, waiting and KV cache); if so raise the limits, else add replicas."
}

func nextEngineQueue(g *group) string {
	switch {
	case g.mostly(cacheHigh):
		return "The KV cache is the limit: add replicas, give the cache more memory, or let fewer and shorter calls in (limit concurrency here)."
	case g.mostly(cacheRoom, roomLater):
		return "The cache has room: if running stands at the engine's cap, raise it" + g.scene.with(capFlags) + "; if the GPUs are busy, add replicas."
	}
	then := " If running stands at the engine's cap, raise it" + g.scene.with(capFlags) + "; if the KV cache is full or the GPUs are busy, add replicas."
	switch {
	case g.scene.gauged && g.scene.sampled:
		return "See why calls wait, by the engine's gauges (GET /weir/engines) and the GPUs' (GET /weir/gpus)." + then
	case g.scene.gauged:
		return "See why calls wait, by the engine's gauges (GET /weir/engines); the gpu option of the global block shows whether the GPUs are busy." + then
	case g.scene.sampled:
		return "See why calls wait: the engine option of the global block shows running, waiting and KV cache." + then
	}
	return "See why calls wait: the engine option of the global block shows running, waiting and KV cache, the gpu option whether the GPUs are busy." + then
}

func nextPrefillSlow(g *group) string {
	if g.mostly(clockThen) {
		return "The GPUs' clocks were held down: see to cooling and power first. More replicas would not help a single call."
	}
	return "Look at the model and its kernels (attention backend, quantisation, tensor parallelism, layers on the CPU), or at a neighbour on the same GPU; more replicas do not help."
}

func nextPrefillLong(g *group) string {
	each, known := g.has(perToken)
	switch {
	case g.mostly(crowdThen, crowdLater):
		return "Others ran beside it: bound prefill in each step" + g.scene.with(chunkFlags) + ", split prefill from decode, or add replicas."
	case known > 0 && each < milliseconds(SlowToken):
		return "The prompts are long and nothing shows that the model is slow: reuse prompts' beginnings (prefix cache), shorten them, or accept it."
	}
	if known == 0 && g.mostly(aloneThen) {
		return "Hardly anything ran beside it, but how many tokens were computed is not known: have clients ask for usage (stream_options.include_usage, or usage_policy here)."
	}
	const alone = "Send one such call to an engine without other work: if it is as slow, look at model and kernels; if not, it is load."
	if g.scene.gauged {
		return alone
	}
	return alone + " The engine option of the global block shows how many run."
}

func nextReconnects(g *group) string {
	switch {
	case g.mostly(attempts, replayed):
		return "Earlier attempts failed: look for an upstream that goes away, and for an idle time-out of its that is shorter than the gateway's (keepalive in reverse_proxy's transport)."
	case g.mostly(bodyWritten):
		return "Large bodies take long to be written upstream: look at the link between, and at an engine that is slow to read."
	}
	return "Keep connections open (keepalive, keepalive_idle_conns_per_host in reverse_proxy's transport), and look at name resolution, TLS and the upstream's backlog."
}

func nextClock(g *group) string {
	for i := range g.sums {
		for _, r := range thermal[:3] {
			if g.sums[i].figure == clockReason && g.sums[i].name == r {
				return "See to cooling: temperature, fans, air flow and neighbours (nvidia-smi -q -d TEMPERATURE,PERFORMANCE)."
			}
		}
	}
	return "Compare the power drawn with the limit (nvidia-smi -q -d POWER,PERFORMANCE): raise the limit, or place the work elsewhere."
}

func nextUnderUsed(g *group) string {
	switch {
	case g.mostly(cacheHolds):
		return "The KV cache is full while the GPUs idle: give it more memory" + g.scene.with(kvFlags) + "."
	case g.mostly(waitedEngine):
		return "Let the engine run more at once" + g.scene.with(stepFlags) + ", and look at its CPU: scheduling and tokenizing may starve the GPU."
	case g.mostly(waitedHere):
		return "Raise the gateway's own limits on concurrency, for the GPUs have room."
	}
	return "Look at the engine's CPU and its launch overhead (CUDA graphs off, eager mode, a slow tokenizer), and whether the model runs on these GPUs at all."
}

func nextUnattributed(g *group) string {
	gauges := " The engine option of the global block bounds the queue by its gauges."
	if g.scene.gauged {
		gauges = ""
	}
	switch name, _, _ := strings.Cut(g.dialect, "."); name {
	case "cohere", "gemini":
		return "A hosted service tells nothing more: compare with its status page, another region or another model."
	}
	switch g.scene.maker {
	case vllm:
		return "Have vLLM tell: start it with --enable-per-request-metrics, or send its spans to the gateway with --otlp-traces-endpoint." + gauges
	case sglang:
		return "Start SGLang with --enable-metrics: it then tells the queue of each call." + gauges
	case tgi:
		return "TGI tells the queue only of answers that are not streamed; watch its gauges." + gauges
	case llamaCPP, ollama:
		return "The engine tells prefill and decode of its calls at their end; these lack them: see what takes them out of the answers, or whether they broke off." + gauges
	}
	return "Have the engine tell: vLLM with --enable-per-request-metrics, or its spans with --otlp-traces-endpoint at the gateway; SGLang by its own /generate with --enable-metrics." + gauges
}
