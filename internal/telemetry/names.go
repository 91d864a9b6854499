package telemetry

// The rows of the table.
const (
	calls = iota
	callsInFlight
	callsAwaiting
	oldestAwaiting
	ttft
	ttftUpstream
	ttftVisible
	ttfb
	tpot
	icl
	e2e
	serverDuration
	phase
	clientRTT
	upstreamRTT
	tokens
	tokenUsage
	callJoules
	unmeasured
	degraded
	attempts
	replays
	parseErrors
	bytesIn
	bytesOut
	addedDelay
	refusals
	wouldRefuse
	upstreamLimited
	clientRetries
	estimatedTokens
	limitValue
	limitUsed
	limitsMeasureOnly
	queueWaiting
	queueInFlight
	queueTokens
	queueWait
	queueLeft
	budgetUsed
	ledgerDegraded
	ledgerRows
	ledgerUncovered
	ledgerDropped
	ledgerSpill
	ledgerLag
	fileError

	engineUp
	engineRunning
	engineWaiting
	engineMaxSeqs
	engineKVUse
	engineKVTokens
	enginePreemptions
	enginePrefixQueries
	enginePrefixHits
	enginePrompt
	engineGenerated

	gpuUtilization
	gpuMemoryBandwidth
	gpuClock
	gpuMaxClock
	gpuThrottled
	gpuPower
	gpuPowerLimit
	gpuEnergy
	gpuTemperature
	gpuMemoryUsed
	gpuMemorySize
	gpuXID
	gpuUncorrected

	spansExported
	spansFailed
	spansDropped
	spansWaiting
	spansJoined
	spansUnjoined
	spansUntracked
	spansLate
	spansAmbiguous
	spansOverflow
	spansForwarded
	spansForwardDropped

	sloCalls
	sloTarget
	sloThreshold
	sloBudget
	sloPeriodCalls
	sloBurn
	sloState
	sloAwaiting
	sloOldest
	sloSince
	alertsActive
	alertsSent

	probeCalls
	probeTTFT
	probeTPOT
	probeE2E
	numMetrics
)

var (
	perModel  = []Label{labelModel, labelClass}
	perEngine = []Label{labelEngine}
	perGPU    = []Label{labelGPU, labelHost}
	perProbe  = []Label{labelProbe}
)

// table holds every metric of Weir.
var table = [numMetrics]Metric{
	calls: {
		Name: "weir_calls_total", Type: Counter,
		Labels: []Label{labelDialect, labelModel, labelClass, labelOutcome, labelStatus, labelStream},
		Help:   "Inference calls that ended, by how they ended. Successful calls have outcome completed.",
	},
	callsInFlight: {
		Name: "weir_calls_in_flight", Type: Gauge,
		Help: "Inference calls received and not yet ended.",
	},
	callsAwaiting: {
		Name: "weir_calls_awaiting_first_token", Type: Gauge,
		Help: "Streamed calls in flight of which no model output has come yet.",
	},
	oldestAwaiting: {
		Name: "weir_oldest_awaiting_first_token_seconds", Type: Gauge,
		Help: "Age of the oldest call that awaits its first token; absent when none does.",
	},
	ttft: {
		Name: "weir_ttft_seconds", Type: Histogram, Labels: perModel, Edges: callEdges, Exemplars: true,
		Help: "Time to first token of streamed calls: from the request's arrival to the first event that carries model output, time queued in the gateway included.",
	},
	ttftUpstream: {
		// https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-metrics.md
		Name: "gen_ai_server_time_to_first_token_seconds", OTel: "gen_ai.server.time_to_first_token",
		Type: Histogram, Labels: perModel, Edges: callEdges,
		Help: "Upstream time to first token of streamed calls that did not fail: from the request written upstream to the first event that carries model output.",
	},
	ttftVisible: {
		Name: "weir_ttft_visible_seconds", Type: Histogram, Labels: perModel, Edges: callEdges,
		Help: "Time to first visible token of streamed calls: from the request's arrival to the first event with more than reasoning.",
	},
	ttfb: {
		Name: "weir_ttfb_seconds", Type: Histogram, Labels: perModel, Edges: callEdges,
		Help: "Time to first byte: from the request's arrival to the first byte of the answer.",
	},
	tpot: {
		// https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-metrics.md
		Name: "gen_ai_server_time_per_output_token_seconds", OTel: "gen_ai.server.time_per_output_token",
		Type: Histogram, Labels: perModel, Edges: tokenEdges, Exemplars: true,
		Help: "Time per output token of streamed calls that did not fail: from first to last model output, divided by the reported output tokens after the first; once per call.",
	},
	icl: {
		Name: "weir_icl_seconds", Type: Histogram, Labels: perModel, Edges: tokenEdges,
		Help: "Inter-chunk latency: gaps between events that carry model output. A gap stands in its bucket to within 1/32 of its length.",
	},
	e2e: {
		Name: "weir_e2e_seconds", Type: Histogram, Labels: perModel, Edges: callEdges, Exemplars: true,
		Help: "End-to-end time: from the request's arrival to the last byte of the answer. Calls that the client left are not in it.",
	},
	serverDuration: {
		// https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-metrics.md
		Name: "gen_ai_server_request_duration_seconds", OTel: "gen_ai.server.request.duration",
		Type: Histogram, Labels: []Label{labelModel, labelClass, labelError}, Edges: callEdges, Exemplars: true,
		Help: "Upstream time of calls that were sent, failed ones too: from the request written upstream to the call's end. Calls that the client left are not in it.",
	},
	phase: {
		Name: "weir_phase_seconds", Type: Histogram, Labels: []Label{labelPhase, labelSource}, Edges: callEdges,
		Help: "Time of each phase of a call, by how it is known. The phases of one call add up to its whole time, whatever its outcome.",
	},
	clientRTT: {
		Name: "weir_client_rtt_seconds", Type: Histogram, Edges: rttEdges,
		Help: "The kernel's smoothed round trip to the client, once per call where it is to be had (not over HTTP/3).",
	},
	upstreamRTT: {
		Name: "weir_upstream_rtt_seconds", Type: Histogram, Edges: rttEdges,
		Help: "The kernel's smoothed round trip of the connection upstream, once per call where it is to be had.",
	},
	tokens: {
		Name: "weir_tokens_total", Type: Counter, Labels: []Label{labelModel, labelClass, labelKind, labelUsage},
		Help: "Tokens of ended calls, never estimated. input includes cached and cache_write, output includes reasoning: add input and output alone.",
	},
	tokenUsage: {
		// https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-metrics.md
		Name: "gen_ai_client_token_usage", OTel: "gen_ai.client.token.usage",
		Type: Histogram, Labels: []Label{labelModel, labelClass, labelTokenType}, TokenEdges: usageEdges,
		Help: "Tokens of one call, never estimated: input includes cached and cache_write, output includes reasoning.",
	},
	callJoules: {
		Name: "weir_gpu_call_joules_total", Type: Counter, Labels: perModel,
		Help: "Energy of the watched GPUs attributed to calls: each call's share, by output tokens, of what the GPUs took while it ran.",
	},
	unmeasured: {
		Name: "weir_unmeasured_requests_total", Type: Counter, Labels: []Label{labelReason},
		Help: "Requests that passed without a record because they are no inference call that Weir knows.",
	},
	degraded: {
		Name: "weir_degraded_calls_total", Type: Counter, Labels: []Label{labelReason},
		Help: "Calls whose metering is incomplete, once for each reason of a call.",
	},
	attempts: {
		Name: "weir_upstream_attempts_total", Type: Counter,
		Help: "Requests started upstream, retries and replays included.",
	},
	replays: {
		Name: "weir_replays_total", Type: Counter,
		Help: "Calls sent again because the upstream had closed a reused connection before answering.",
	},
	parseErrors: {
		Name: "weir_parse_errors_total", Type: Counter, Labels: []Label{labelDialect},
		Help: "Events of answers that could not be read. Their bytes were forwarded unchanged.",
	},
	bytesIn: {
		Name: "weir_request_body_bytes_total", Type: Counter,
		Help: "Bytes of request bodies, where known.",
	},
	bytesOut: {
		Name: "weir_response_body_bytes_total", Type: Counter,
		Help: "Bytes of response bodies handed to clients, as encoded.",
	},
	refusals: {
		Name: "weir_refusals_total", Type: Counter, Labels: []Label{labelWall},
		Help: "Requests that the gateway itself refused, by what stood in their way. An upstream's own refusals are not in it.",
	},
	wouldRefuse: {
		Name: "weir_would_refuse_total", Type: Counter, Labels: []Label{labelWall},
		Help: "Calls that limits in mode shadow let pass and mode enforce would have refused.",
	},
	upstreamLimited: {
		Name: "weir_upstream_limited_total", Type: Counter,
		Help: "Calls that the upstream answered with its own 429.",
	},
	clientRetries: {
		Name: "weir_client_retries_total", Type: Counter,
		Help: "Calls that the client says it has sent before (X-Stainless-Retry-Count above 0). A rise warns of a retry storm.",
	},
	estimatedTokens: {
		Name: "weir_estimated_tokens_total", Type: Counter, Labels: []Label{labelKind},
		Help: "Estimated tokens of calls whose upstream reported no usage, input from the request and output from the events that came; never part of weir_tokens_total.",
	},
	limitValue: {
		Name: "weir_limit", Type: Gauge, Labels: []Label{labelPool, labelScope, labelDim, labelSubject},
		Help: "This gateway's part of a limit: per minute for rates, at once for caps. The most used are shown.",
	},
	limitUsed: {
		Name: "weir_limit_used", Type: Gauge, Labels: []Label{labelPool, labelScope, labelDim, labelSubject},
		Help: "What is used of the limit of the same labels: more than all of it is a debt, which blocks until it is repaid.",
	},
	limitsMeasureOnly: {
		Name: "weir_limits_measure_only", Type: Gauge, Labels: []Label{labelPool},
		Help: "1 while the runtime switch keeps limits from refusing anything, else 0.",
	},
	queueWaiting: {
		Name: "weir_queue_waiting", Type: Gauge, Labels: []Label{labelPool, labelClass},
		Help: "Calls that wait for a place upstream.",
	},
	queueInFlight: {
		Name: "weir_queue_in_flight", Type: Gauge, Labels: []Label{labelPool, labelClass},
		Help: "Calls that hold a place upstream.",
	},
	queueTokens: {
		Name: "weir_queue_tokens_in_flight", Type: Gauge, Labels: []Label{labelPool},
		Help: "Reserved tokens of the calls that hold a place upstream.",
	},
	queueWait: {
		Name: "weir_queue_wait_seconds", Type: Histogram, Labels: []Label{labelPool, labelClass}, Edges: WaitEdges,
		Help: "How long admitted calls waited for their place; 0 for those that did not have to.",
	},
	queueLeft: {
		Name: "weir_queue_left_total", Type: Counter, Labels: []Label{labelPool, labelClass},
		Help: "Calls whose client went away while they waited.",
	},
	budgetUsed: {
		Name: "weir_budget_used_ratio", Type: Gauge, Labels: []Label{labelSubject},
		Help: "Share of a key's budget that is spent in the current period; from 1 on its calls are refused.",
	},
	ledgerDegraded: {
		Name: "weir_ledger_degraded", Type: Gauge,
		Help: "1 while the ledger or its disk takes nothing, so that calls are recorded less safely, else 0. Absent without a ledger.",
	},
	ledgerRows: {
		Name: "weir_ledger_rows_total", Type: Counter,
		Help: "Rows written to the ledger.",
	},
	ledgerUncovered: {
		Name: "weir_ledger_uncovered_total", Type: Counter,
		Help: "Starts and ends of calls that were not on disk when the call went on: a crash at that moment would have lost them.",
	},
	ledgerDropped: {
		Name: "weir_ledger_dropped_total", Type: Counter,
		Help: "Starts and ends of calls that the ledger has lost. Any is a reason to look.",
	},
	ledgerSpill: {
		Name: "weir_ledger_spill_bytes", Type: Gauge,
		Help: "Size of the spill log, which holds what the database does not have yet.",
	},
	ledgerLag: {
		Name: "weir_ledger_lag_seconds", Type: Gauge,
		Help: "How long the oldest record has waited for the database.",
	},
	fileError: {
		Name: "weir_file_error", Type: Gauge, Labels: []Label{labelFile},
		Help: "1 while the file on disk cannot be used and the last good content holds, else 0.",
	},
	addedDelay: {
		Name: "weir_added_delay_seconds", Type: Histogram, Edges: chunkEdges,
		Help: "The gateway's own time on one chunk of an answer, beside the write to the client; from a sample of chunks.",
	},

	engineUp: {
		Name: "weir_engine_up", Type: Gauge, Labels: []Label{labelEngine, labelEngineKind},
		Help: "1 while the engine's own metrics can be read, else 0, and then nothing else of it is shown.",
	},
	engineRunning: {
		Name: "weir_engine_running", Type: Gauge, Labels: perEngine,
		Help: "Requests that the engine works on, by its own metrics.",
	},
	engineWaiting: {
		Name: "weir_engine_waiting", Type: Gauge, Labels: perEngine,
		Help: "Requests in the engine's own queue, by its own metrics.",
	},
	engineMaxSeqs: {
		Name: "weir_engine_max_seqs", Type: Gauge, Labels: perEngine,
		Help: "The most requests that the engine works on at once, as it tells or as configured.",
	},
	engineKVUse: {
		Name: "weir_engine_kv_use_ratio", Type: Gauge, Labels: perEngine,
		Help: "Share of the engine's KV cache that is in use, 0 to 1; of several ranks the fullest.",
	},
	engineKVTokens: {
		Name: "weir_engine_kv_capacity_tokens", Type: Gauge, Labels: perEngine,
		Help: "Tokens that the engine's KV cache holds, as it tells or as configured.",
	},
	enginePreemptions: {
		Name: "weir_engine_preemptions_total", Type: Counter, Labels: perEngine,
		Help: "Requests that the engine put back because its KV cache was full, by its own metrics.",
	},
	enginePrefixQueries: {
		Name: "weir_engine_prefix_cache_queried_tokens_total", Type: Counter, Labels: perEngine,
		Help: "Prompt tokens that the engine looked for in its prefix cache, by its own metrics.",
	},
	enginePrefixHits: {
		Name: "weir_engine_prefix_cache_hit_tokens_total", Type: Counter, Labels: perEngine,
		Help: "Prompt tokens that the engine found in its prefix cache, by its own metrics.",
	},
	enginePrompt: {
		Name: "weir_engine_prompt_tokens_total", Type: Counter, Labels: perEngine,
		Help: "Prompt tokens of the engine's requests, whoever sent them, by its own metrics.",
	},
	engineGenerated: {
		Name: "weir_engine_generated_tokens_total", Type: Counter, Labels: perEngine,
		Help: "Tokens that the engine generated, for whomever, by its own metrics.",
	},

	gpuUtilization: {
		Name: "weir_gpu_utilization_ratio", Type: Gauge, Labels: perGPU,
		Help: "Share of time in which a kernel was resident, 0 to 1. It does not say how much of the GPU the kernel used.",
	},
	gpuMemoryBandwidth: {
		Name: "weir_gpu_memory_bandwidth_ratio", Type: Gauge, Labels: perGPU,
		Help: "Traffic of the device memory as a share of the most that it can carry, 0 to 1.",
	},
	gpuClock: {
		Name: "weir_gpu_sm_clock_hertz", Type: Gauge, Labels: perGPU,
		Help: "Clock of the GPU's multiprocessors.",
	},
	gpuMaxClock: {
		Name: "weir_gpu_sm_clock_max_hertz", Type: Gauge, Labels: perGPU,
		Help: "The highest clock that the GPU's multiprocessors can have.",
	},
	gpuThrottled: {
		Name: "weir_gpu_throttled", Type: Gauge, Labels: []Label{labelGPU, labelHost, labelThrottle},
		Help: "1 while the reason holds the GPU's clocks down, else 0. Being idle and clocks that the owner set are no reasons.",
	},
	gpuPower: {
		Name: "weir_gpu_power_watts", Type: Gauge, Labels: perGPU,
		Help: "Power that the GPU draws.",
	},
	gpuPowerLimit: {
		Name: "weir_gpu_power_limit_watts", Type: Gauge, Labels: perGPU,
		Help: "The power limit that is enforced.",
	},
	gpuEnergy: {
		Name: "weir_gpu_energy_joules_total", Type: Counter, Labels: perGPU,
		Help: "Energy that the GPU has used since its driver was loaded.",
	},
	gpuTemperature: {
		Name: "weir_gpu_temperature_celsius", Type: Gauge, Labels: perGPU,
		Help: "Temperature of the GPU.",
	},
	gpuMemoryUsed: {
		Name: "weir_gpu_memory_used_bytes", Type: Gauge, Labels: perGPU,
		Help: "Device memory in use.",
	},
	gpuMemorySize: {
		Name: "weir_gpu_memory_size_bytes", Type: Gauge, Labels: perGPU,
		Help: "Device memory that there is.",
	},
	gpuXID: {
		Name: "weir_gpu_xid", Type: Gauge, Labels: perGPU,
		Help: "Number (XID) of the last error that the driver reported; 0 when there was none.",
	},
	gpuUncorrected: {
		Name: "weir_gpu_ecc_uncorrected_errors_total", Type: Counter, Labels: perGPU,
		Help: "Memory errors since the driver was loaded that ECC could not correct.",
	},

	spansExported: {
		Name: "weir_spans_exported_total", Type: Counter,
		Help: "Spans of calls that the collector took.",
	},
	spansFailed: {
		Name: "weir_spans_failed_total", Type: Counter,
		Help: "Spans of calls that were sent to the collector in vain.",
	},
	spansDropped: {
		Name: "weir_spans_dropped_total", Type: Counter,
		Help: "Spans of calls that were not made because too many waited for the collector.",
	},
	spansWaiting: {
		Name: "weir_spans_waiting", Type: Gauge,
		Help: "Spans of calls that wait for the collector.",
	},
	spansJoined: {
		Name: "weir_engine_spans_joined_total", Type: Counter,
		Help: "Calls that an engine's own span was joined to.",
	},
	spansUnjoined: {
		Name: "weir_engine_spans_unjoined_total", Type: Counter,
		Help: "Calls that waited for an engine's span in vain.",
	},
	spansUntracked: {
		Name: "weir_engine_spans_untracked_total", Type: Counter,
		Help: "Calls that could not wait for an engine's span, because too many did or because they had no trace.",
	},
	spansLate: {
		Name: "weir_engine_spans_late_total", Type: Counter,
		Help: "Engines' spans that came after the join window of their call. A longer window would have joined them.",
	},
	spansAmbiguous: {
		Name: "weir_engine_spans_ambiguous_total", Type: Counter,
		Help: "Engines' spans that belong to one of several calls and do not show which.",
	},
	spansOverflow: {
		Name: "weir_engine_spans_overflow_total", Type: Counter,
		Help: "Engines' spans that were not kept because too many were.",
	},
	spansForwarded: {
		Name: "weir_engine_spans_forwarded_total", Type: Counter,
		Help: "Spans from engines that were passed on to the collector. Absent when none are passed on.",
	},
	spansForwardDropped: {
		Name: "weir_engine_spans_forward_dropped_total", Type: Counter,
		Help: "Spans from engines that were to be passed on and were dropped. Absent when none are passed on.",
	},

	sloCalls: {
		Name: "weir_slo_calls_total", Type: Counter, Labels: []Label{labelSLOClass, labelCountedModel, labelObjective, labelVerdict},
		Help: "Calls that an objective counts, by their verdict; those of minutes outside the class's envelope are outside, whatever they were. An error ratio is bad / (good + bad). Add up over models for a class.",
	},
	sloTarget: {
		Name: "weir_slo_target_ratio", Type: Gauge, Labels: []Label{labelSLOClass, labelObjective},
		Help: "Share of calls that the objective promises to be good.",
	},
	sloThreshold: {
		Name: "weir_slo_threshold_seconds", Type: Gauge, Labels: []Label{labelSLOClass, labelObjective},
		Help: "Time that a call may take to be good for the objective; absent of objectives that are not about a time.",
	},
	sloBudget: {
		Name: "weir_slo_budget_consumed_ratio", Type: Gauge, Labels: []Label{labelSLOClass, labelSLOModel, labelObjective, labelBasis},
		Help: "Share of the period's error budget that is used, 1 being all of it: bad / ((1 - target) * N), with N the calls so far or those forecast for the whole calendar period. Absent where there is no N.",
	},
	sloPeriodCalls: {
		Name: "weir_slo_period_calls", Type: Gauge, Labels: []Label{labelSLOClass, labelSLOModel, labelObjective},
		Help: "Calls of the budget's period so far that are known to be good or bad for the objective: the N of what is consumed.",
	},
	sloBurn: {
		Name: "weir_slo_burn_rate", Type: Gauge, Labels: []Label{labelSLOClass, labelSLOModel, labelObjective, labelWindow},
		Help: "Burn rate over the window: share of bad calls / (1 - target). 1 uses up the budget just by the end of its period. Absent without calls in the window.",
	},
	sloState: {
		Name: "weir_slo_state", Type: Gauge, Labels: []Label{labelSLOClass, labelSLOModel, labelObjective, labelState},
		Help: "1 for the state that the objective is in, 0 for the others, without the hysteresis that alerts have.",
	},
	sloAwaiting: {
		Name: "weir_slo_awaiting", Type: Gauge, Labels: []Label{labelSLOClass},
		Help: "Calls of the class that await their first token. Absent of classes without an objective about it.",
	},
	sloOldest: {
		Name: "weir_slo_oldest_awaiting_seconds", Type: Gauge, Labels: []Label{labelSLOClass},
		Help: "Age of the class's oldest call that awaits its first token; absent when none does.",
	},
	sloSince: {
		Name: "weir_slo_data_since_timestamp_seconds", Type: Gauge,
		Help: "Unix time at which the oldest count of objectives began: figures of longer windows cover no more.",
	},
	alertsActive: {
		Name: "weir_alerts_active", Type: Gauge, Labels: []Label{labelSeverity},
		Help: "Alerts that stand at this moment.",
	},
	alertsSent: {
		Name: "weir_alert_notifications_total", Type: Counter, Labels: []Label{labelReceiver, labelResult},
		Help: "Notifications of alerts, by what became of them.",
	},

	probeCalls: {
		Name: "weir_probe_calls_total", Type: Counter, Labels: []Label{labelProbe, labelOutcome},
		Help: "Synthetic calls that ended, by how they ended. They are in no other figure of calls.",
	},
	probeTTFT: {
		Name: "weir_probe_ttft_seconds", Type: Histogram, Labels: perProbe, Edges: callEdges,
		Help: "Time to first token of synthetic calls, as weir_ttft_seconds has it of others.",
	},
	probeTPOT: {
		Name: "weir_probe_tpot_seconds", Type: Histogram, Labels: perProbe, Edges: tokenEdges,
		Help: "Time per output token of synthetic calls that did not fail: from first to last model output, divided by the reported output tokens after the first.",
	},
	probeE2E: {
		Name: "weir_probe_e2e_seconds", Type: Histogram, Labels: perProbe, Edges: callEdges,
		Help: "End-to-end time of synthetic calls, as weir_e2e_seconds has it of others.",
	},
}
