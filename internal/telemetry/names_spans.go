package telemetry

import "go.opentelemetry.io/otel/attribute"

// Names of spans. The conventions for HTTP and GenAI have no name for what a
// call's time is made of, so the phases' are ours.
const (
	// spanServer is the SERVER span's: the method alone, since the path is the
	// client's own text and Weir knows no route.
	// https://github.com/open-telemetry/semantic-conventions/blob/main/docs/http/http-spans.md#name
	spanServer = "POST"
	// spanAttempt is that of one request upstream, by the same rule.
	spanAttempt = "POST"
	// The CLIENT span over all attempts is "{gen_ai.operation.name} {gen_ai.request.model}".
	// https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-spans.md

	spanNetwork = "network"
	spanQueue   = "queue"
	spanPrefill = "prefill"
	spanDecode  = "decode"
)

// Attributes of the HTTP conventions.
// https://github.com/open-telemetry/semantic-conventions/blob/main/docs/http/http-spans.md
const (
	attrMethod      = attribute.Key("http.request.method")
	attrResendCount = attribute.Key("http.request.resend_count")
	attrStatus      = attribute.Key("http.response.status_code")
	attrPath        = attribute.Key("url.path")
	attrErrorType   = attribute.Key("error.type")
	attrAddress     = attribute.Key("server.address")
	attrPort        = attribute.Key("server.port")
	attrProtocol    = attribute.Key("network.protocol.version")
)

// Attributes of the GenAI conventions.
// https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-spans.md
const (
	attrOperation     = attribute.Key("gen_ai.operation.name")
	attrProvider      = attribute.Key("gen_ai.provider.name")
	attrModel         = attribute.Key("gen_ai.request.model")
	attrResponseModel = attribute.Key("gen_ai.response.model")
	attrResponseID    = attribute.Key("gen_ai.response.id")
	attrFinish        = attribute.Key("gen_ai.response.finish_reasons")
	attrFirstChunk    = attribute.Key("gen_ai.response.time_to_first_chunk")
	attrInput         = attribute.Key("gen_ai.usage.input_tokens")
	attrOutput        = attribute.Key("gen_ai.usage.output_tokens")
	attrCached        = attribute.Key("gen_ai.usage.cache_read.input_tokens")
	attrCacheWrite    = attribute.Key("gen_ai.usage.cache_creation.input_tokens")
	attrReasoning     = attribute.Key("gen_ai.usage.reasoning.output_tokens")
	attrTokenType     = attribute.Key("gen_ai.token.type") // of metrics
)

// Attributes that vLLM and SGLang give their own spans, in seconds.
// https://github.com/vllm-project/vllm/blob/main/vllm/tracing/utils.py
const (
	attrQueueTime   = attribute.Key("gen_ai.latency.time_in_queue")
	attrPrefillTime = attribute.Key("gen_ai.latency.time_in_model_prefill")
	attrDecodeTime  = attribute.Key("gen_ai.latency.time_in_model_decode")
)

// Attributes of our own. Times are seconds.
const (
	attrCallID      = attribute.Key("weir.call.id")
	attrOutcome     = attribute.Key("weir.outcome")
	attrClass       = attribute.Key("weir.class")
	attrKey         = attribute.Key("weir.key") // alias or short id
	attrDialect     = attribute.Key("weir.dialect")
	attrTTFT        = attribute.Key("weir.ttft")
	attrTPOT        = attribute.Key("weir.tpot")
	attrUsageSource = attribute.Key("weir.usage.source")
	attrReused      = attribute.Key("weir.connection.reused")
	attrReplayed    = attribute.Key("weir.replayed")
	// attrPhase and the phase's name: every known phase of the call, on the CLIENT
	// span. They add up to the call's whole time.
	attrPhase = "weir.phase."
	// attrSource is how the phases of a span are known; of several that differ, the weakest.
	attrSource = attribute.Key("weir.phase.source")
)

// phaseKeys are the attributes of the phases, in their order.
var phaseKeys = func() (keys [numPhases]attribute.Key) {
	for i, name := range phases {
		keys[i] = attribute.Key(attrPhase + name)
	}
	return keys
}()
