package diagnose

import "slices"

// The codes that only comparisons find.
const (
	CodeQueueing        Code = "queueing"
	CodeCapacity        Code = "capacity"
	CodeAdmissionCap    Code = "admission_cap"
	CodeSaturation      Code = "saturation"
	CodeKVExhausted     Code = "kv_exhausted"
	CodePrefixCache     Code = "prefix_cache"
	CodePrefillCompute  Code = "prefill_compute"
	CodeTrafficMix      Code = "traffic_mix"
	CodeDecodeBandwidth Code = "decode_bandwidth"
	CodeDecodeSlower    Code = "decode_slower"
	CodeThermal         Code = "thermal"
	CodePower           Code = "power"
	CodeHardware        Code = "hardware"
	CodeModelSlow       Code = "model_slow"
	CodeBeforeEngine    Code = "before_engine"
)

// ChangeCodes lists all codes that comparisons find, in the order in which one goes
// before another when both explain a change: what breaks calls and what is at
// the root of other things first.
func ChangeCodes() []Meaning { return slices.Clone(changeMeanings[:]) }

var changeMeanings = func() []Meaning {
	list := []Meaning{
		{Code: CodeRefused}, {Code: CodeGatewayFault}, {Code: CodeUpstreamUnreachable}, {Code: CodeUpstreamFailed},
		{Code: CodeHardware, Layer: GPU, Says: "a GPU reported an XID error, or memory errors that ECC could not correct"},
		{Code: CodeThermal, Layer: GPU, Says: "the SM clock is at least 5 % below the healthy window's, for heat, and tokens come slower at the same batch"},
		{Code: CodePower, Layer: GPU, Says: "the SM clock is at least 5 % below the healthy window's at a power draw of at least 98 % of the limit, for power, and tokens come slower at the same batch"},
		{Code: CodeSlowReader, Says: "at least half of the change is time in which writes to the client were blocked"},
		{Code: CodeUploadSlow, Says: "at least half of the change is receiving the request, and bodies are large or the round trip to the client is longer"},
		{Code: CodeUploadStalled, Says: "at least half of the change is receiving the request, of a body that is small"},
		{Code: CodeReconnects, Says: "at least half of the change is getting a connection and sending the request upstream"},
		{Code: CodeUpstreamRoundTrip, Says: "at least half of the change is the round trip to the upstream"},
		{Code: CodeFrontend, Says: "at least half of the change is the engine's HTTP and tokenizing, while the round trip to it is as it was"},
		{Code: CodeBeforeEngine, Layer: Network, Says: "at least half of the change passed on the way to the engine's queue or in its front end; or in time that nobody splits, while more than 20 % of the calls in flight here are unknown to the engine"},
		{Code: CodeKVExhausted, Layer: EngineQueue, Says: "sequences lost their place for want of KV cache more often than before, and calls are slower"},
		{Code: CodePrefixCache, Layer: Model, Says: "the prefix cache gives at least 20 points less of the prompt tokens, at equal prompts, and prefill takes longer"},
		{Code: CodeModelLoad, Says: "at least half of the queue's change is loading the model"},
		{Code: CodeModelSlow, Layer: Model, Says: "prefill takes longer for calls of the same size that ran alone, or each prompt holds up the tokens of others for longer, by at least half of their change"},
		{Code: CodeGPUUnderUsed, Says: "queueing is at least 80 % of TTFT or of its change, while GPUs are busy for less than 70 % of the time"},
		{Code: CodeGatewayQueue, Says: "queueing is at least 80 % of TTFT or of its change, and half of it or more is here"},
		{Code: CodeCapacity, Layer: EngineQueue, Says: "queueing is at least 80 % of TTFT or of its change, more waits, and the KV cache is more than 90 % in use"},
		{Code: CodeAdmissionCap, Layer: EngineQueue, Says: "the same with room in the KV cache, as many running as the engine may run, and TPOT as it was"},
		{Code: CodeSaturation, Layer: Model, Says: "TTFT and TPOT are both up with more calls at once, and the tokens a second are not"},
		{Code: CodeQueueing, Layer: EngineQueue, Says: "queueing is at least 80 % of TTFT or of its change, and what holds the queue is not known"},
		{Code: CodeTrafficMix, Layer: Traffic, Says: "at least half of the change is gone on equal cells of input and output tokens, or prefill takes as long for each token as it did"},
		{Code: CodePrefillCompute, Layer: Model, Says: "prompts take longer than their tokens explain, or hold tokens up, while more prompt tokens a second are computed"},
		{Code: CodeDecodeBandwidth, Layer: Model, Says: "TPOT is up and TTFT is not, and at least half of that is what a larger batch explains"},
		{Code: CodeDecodeSlower, Layer: GPU, Says: "TPOT is up, and at least half of that is not explained by batch, context and prompts beside it"},
		{Code: CodeEngineTail, Says: "at least half of the change passed after the last token"},
		{Code: CodeClientRoundTrip, Says: "the round trip to the client is longer by 20 ms or more"},
	}
	for i := range list {
		if at, there := places[list[i].Code]; there {
			list[i].Layer = meanings[at].Layer
			if list[i].Says == "" {
				list[i].Says = "at least 5 % of the calls failed so, twice as many as before: " + meanings[at].Says
			}
		}
	}
	return list
}()

// changePlaces are where the codes stand in changeMeanings.
var changePlaces = func() map[Code]int {
	m := make(map[Code]int, len(changeMeanings))
	for i := range changeMeanings {
		m[changeMeanings[i].Code] = i
	}
	return m
}()
