package diagnose

// Code names what was found; it is stable.
type Code string

// The codes. Codes lists them with their layers and meanings.
const (
	CodeRefused             Code = "refused"
	CodeGatewayFault        Code = "gateway_fault"
	CodeUpstreamUnreachable Code = "upstream_unreachable"
	CodeUpstreamFailed      Code = "upstream_failed"
	CodeGatewayQueue        Code = "gateway_queue"
	CodeEngineQueue         Code = "engine_queue"
	CodeModelLoad           Code = "model_load"
	CodeKVCacheFull         Code = "kv_cache_full"
	CodePrefillSlow         Code = "prefill_slow"
	CodePrefillLong         Code = "prefill_long"
	CodeFrontend            Code = "frontend_overhead"
	CodeEngineTail          Code = "engine_tail"
	CodeUploadSlow          Code = "upload_slow"
	CodeUploadStalled       Code = "upload_stalled"
	CodeReconnects          Code = "upstream_reconnects"
	CodeUpstreamRoundTrip   Code = "upstream_round_trip"
	CodeClientRoundTrip     Code = "client_round_trip"
	CodeSlowReader          Code = "slow_reader"
	CodeClockThrottled      Code = "clock_throttled"
	CodeGPUUnderUsed        Code = "gpu_under_used"
	CodeUnattributed        Code = "unattributed"
)

// Meaning says what a code stands for.
type Meaning struct {
	Code  Code   `json:"code"`
	Layer Layer  `json:"layer"`
	Says  string `json:"says"` // when it is found

	// subject begins the summary: the subject of "took" for a span of time, a whole
	// sentence else.
	subject string
	// failure is whether the call broke off: it is told of however rare it is.
	failure bool
	next    func(*group) string
}

// Codes lists all codes, those of failures first.
func Codes() []Meaning { return append([]Meaning(nil), meanings[:]...) }

func always(text string) func(*group) string { return func(*group) string { return text } }

var meanings = [...]Meaning{
	{CodeRefused, Gateway, "the gateway's own limits, keys or budgets refused the call",
		"Refused by the gateway itself", true,
		func(g *group) string { return walls[g.wall].next }},
	{CodeGatewayFault, Gateway, "the gateway's process stopped, crashed or had a fault while the call ran",
		"Broken off by the gateway's process", true,
		always("Read the gateway's log around this time; with gateway_shutdown, give calls longer to end (Caddy's grace_period).")},
	{CodeUpstreamUnreachable, Network, "the upstream could not be reached, or broke off before it had the request",
		"The upstream did not get the request", true,
		always("Check that the engine listens at the upstream's address, and what lies between: name resolution, firewall, certificates.")},
	{CodeUpstreamFailed, Unknown, "the upstream had the request and answered with an error (5xx, 429, 408), broke off, or ran out of time",
		"The upstream failed", true, nextFailed},
	{CodeGatewayQueue, Gateway, "waiting in the gateway's own queue, with the engine's, was at least 80 % of TTFT (half of the call without a first token), and a quarter of it or more was here",
		"The gateway's own queue", false, nextGatewayQueue},
	{CodeEngineQueue, EngineQueue, "the same of the engine's queue; with source inferred also where calls of the same model and size that met an idle engine were so much quicker, and calls waited; with source unattributed where calls waited and nothing else tells",
		"The engine's queue", false, nextEngineQueue},
	{CodeModelLoad, Model, "the engine queue stands out as above, and half of it or more was loading the model",
		"Loading the model", false,
		always("Keep the model loaded (Ollama: OLLAMA_KEEP_ALIVE or keep_alive), or send one call ahead; see whether models push each other out of memory.")},
	{CodeKVCacheFull, EngineQueue, "the KV cache was at least 95 % in use when the call was sent, and calls waited",
		"The KV cache was full and calls waited", false,
		func(g *group) string {
			return "Give the KV cache more memory" + g.scene.with(kvFlags) + ", run fewer sequences, or add replicas."
		}},
	{CodePrefillSlow, Model, "prefill was at least half of TTFT while at most one other request ran, and was slow: 1 s or more at 2 ms or more per computed token, or 3 times the median of calls of that size",
		"Prefill", false, nextPrefillSlow},
	{CodePrefillLong, Model, "prefill was 1 s or more and at least 80 % of TTFT, and it is not shown that the model is slow",
		"Prefill", false, nextPrefillLong},
	{CodeFrontend, EngineFrontend, "the engine's HTTP and tokenizing were at least a quarter of TTFT",
		"The engine's front end (HTTP, tokenizing)", false,
		func(g *group) string {
			return "Give the engine's API server more CPU or more processes" + g.scene.with(frontendFlags) + ", and see whether tokenizing, chat templates or media in the prompt take it."
		}},
	{CodeEngineTail, EngineFrontend, "at least a quarter of a streamed call passed after its last token",
		"The time after the last token", false,
		always("See in the engine's log why the stream was not ended: a stalled engine, a filter or a proxy that holds the end back.")},
	{CodeUploadSlow, Network, "receiving the request was at least half of TTFT, and its body was large or of unknown size",
		"Receiving the request", false,
		always("The way from the client is slow for bodies of this size: send less (images, files), or move the client or the gateway nearer.")},
	{CodeUploadStalled, Client, "the same with a body of less than 64 KiB, or the client stopped sending",
		"Waiting for the client to send its request", false,
		always("The client opened a request and did not send it: look at the client's program, or at a proxy before the gateway.")},
	{CodeReconnects, Network, "getting a connection and sending the request upstream, earlier attempts included, was at least half of TTFT",
		"Reaching the upstream", false, nextReconnects},
	{CodeUpstreamRoundTrip, Network, "one round trip to the upstream was at least half of TTFT",
		"The round trip to the upstream", false,
		always("Put the gateway nearer to the engine, or find what makes the way long: a tunnel, another region, a full link.")},
	{CodeClientRoundTrip, Network, "one round trip to the client was at least as long as TTFT",
		"The round trip to the client", false,
		always("The service is faster than the way to its user: put a gateway nearer to the clients.")},
	{CodeSlowReader, Client, "writes to the client were blocked for at least a quarter of the call, or it was cut for not reading",
		"Writes blocked by the client", false,
		always("The client, or the way to it, takes the answer slower than it is written: look at its program, its machine and its link. The engine is not at fault.")},
	{CodeClockThrottled, GPU, "a GPU's clock fell to 95 % of its maximum or less for heat or a power brake, or to 90 % or less at its power limit",
		"GPU clocks were held down", false, nextClock},
	{CodeGPUUnderUsed, GPU, "the GPUs were busy for less than 70 % of the call's time, yet a queue or 100 ms and more per token slowed it",
		"The GPUs had room while the call was slow", false, nextUnderUsed},
	{CodeUnattributed, Unknown, "1 s or more and at least half of TTFT cannot be split (of an answer that is not streamed: 1 s beyond 100 ms per token)",
		"Time that cannot be split", false, nextUnattributed},
}

// places are where the codes stand in meanings.
var places = func() map[Code]int {
	m := make(map[Code]int, len(meanings))
	for i := range meanings {
		m[meanings[i].Code] = i
	}
	return m
}()
