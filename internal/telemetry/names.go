package telemetry

import "time"

// Type is the kind of a metric, as Prometheus names it.
type Type string

const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Other is the label value of everything beyond a label's cap, and of what is
// not in a label's fixed set.
const Other = "_other"

// Label is one dimension of a metric. Its values are a fixed set, or are learnt
// in the order of their appearance until Cap; the rest is Other.
type Label struct {
	Name string
	// Cap is the most values the label can have, Other not counted.
	Cap int
	// Help says what the label holds.
	Help string
}

// The caps of learnt labels.
const (
	// ModelCap is the number of models with a label of their own. A model is
	// learnt from its first call that brought an answer, so that names which no
	// upstream serves do not use it up. Until then, and when the request named
	// no model, its calls count under Other.
	ModelCap = 64
	// ClassCap is the number of classes with a label of their own.
	ClassCap = 16
	// DialectCap is the number of dialects with a label of their own.
	DialectCap = 32
	// ReasonCap is the number of reasons per metric with a label of their own.
	ReasonCap = 32
	// CallSeriesCap is the number of label combinations of weir_calls_total
	// beyond which new ones have Other as dialect, model and class.
	CallSeriesCap = 4096
	// WallCap is the number of walls (what refused, or would have) with a label
	// of their own. There are fewer.
	WallCap = 64
	// SubjectCap is the number of keys, models and pools whose limits are
	// shown: those whose limits are used most.
	SubjectCap = 100
	// PoolCap is the number of pools with a label of their own.
	PoolCap = 32
)

// The labels. Their order in Metric.Labels is the order of their values.
var (
	labelModel   = Label{"model", ModelCap, "model as the client asked for it, once a call to it has succeeded"}
	labelClass   = Label{"class", ClassCap, "class of service of the call"}
	labelDialect = Label{"dialect", DialectCap, "API that the call spoke"}
	labelOutcome = Label{"outcome", len(outcomes), "how the call ended"}
	labelStatus  = Label{"status_class", len(statusClasses), "1xx to 5xx as answered to the client, none when nothing was"}
	labelStream  = Label{"stream", 2, "true when the answer came, or was asked for, as a stream"}
	labelPhase   = Label{"phase", numPhases, "part of the call's time"}
	labelSource  = Label{"source", len(phaseSources), "how the phase is known: measured, engine, inferred, unattributed"}
	labelKind    = Label{"kind", numKinds, "input, output, cached, cache_write, reasoning"}
	labelUsage   = Label{"source", len(usageSources), "where the figure comes from: reported, timings, counted, partial, none"}
	labelWall    = Label{"by", WallCap, "what refused: scope and dimension of a limit, queue and its reason, key, model, budget, ledger, path"}
	labelPool    = Label{"pool", PoolCap, "pool of upstreams, as the configuration names it"}
	labelScope   = Label{"scope", 4, "whose calls share the limit: key, model, key_model, pool"}
	labelDim     = Label{"dimension", 6, "what is limited, as the Caddyfile names it"}
	labelSubject = Label{"subject", SubjectCap, "the key (alias or short id), model or pool that the limit holds for"}
	labelFile    = Label{"file", 2, "keys or prices"}
	labelReason  = Label{"reason", ReasonCap, "short code of the reason"}
)

// Reasons of Unmeasured.
const (
	// UnknownPath: no dialect knows the request's path.
	UnknownPath = "unknown_path"
	// MethodWithoutBody: the method carries no inference request (GET, HEAD, OPTIONS).
	MethodWithoutBody = "method"
)

// Metric describes one metric as it is exposed.
type Metric struct {
	// Name in Prometheus, with its base unit.
	Name string
	// OTel is the name in OpenTelemetry's conventions when the metric means
	// the same, else "".
	OTel   string
	Type   Type
	Labels []Label
	// Edges are the upper, inclusive bounds of a histogram's classic buckets.
	// The native histogram beside them has 8 buckets per power of two.
	Edges []time.Duration
	// Help is the definition of the figure.
	Help string
}

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
	phase
	tokens
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
	numMetrics
)

var perModel = []Label{labelModel, labelClass}

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
		Name: "weir_ttft_seconds", Type: Histogram, Labels: perModel, Edges: callEdges,
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
		Type: Histogram, Labels: perModel, Edges: tokenEdges,
		Help: "Time per output token of streamed calls that did not fail: from first to last model output, divided by the reported output tokens after the first; once per call.",
	},
	icl: {
		Name: "weir_icl_seconds", Type: Histogram, Labels: perModel, Edges: tokenEdges,
		Help: "Inter-chunk latency: gaps between events that carry model output. A gap stands in its bucket to within 1/32 of its length.",
	},
	e2e: {
		Name: "weir_e2e_seconds", Type: Histogram, Labels: perModel, Edges: callEdges,
		Help: "End-to-end time: from the request's arrival to the last byte of the answer. Calls that the client left are not in it.",
	},
	phase: {
		Name: "weir_phase_seconds", Type: Histogram, Labels: []Label{labelPhase, labelSource}, Edges: callEdges,
		Help: "Time of each phase of a call, by how it is known. The phases of one call add up to its whole time, whatever its outcome.",
	},
	tokens: {
		Name: "weir_tokens_total", Type: Counter, Labels: []Label{labelModel, labelClass, labelKind, labelUsage},
		Help: "Tokens of ended calls, never estimated. input includes cached and cache_write, output includes reasoning: add input and output alone.",
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
}

const (
	micro  = time.Microsecond
	milli  = time.Millisecond
	second = time.Second
)

// callEdges serve figures of a whole call: the edges that the conventions
// advise for request duration and time to first token, every objective of the
// presets, and long calls.
var callEdges = []time.Duration{
	1 * milli, 5 * milli, 10 * milli, 20 * milli, 40 * milli, 60 * milli, 80 * milli, 100 * milli, 160 * milli, 200 * milli, 250 * milli,
	320 * milli, 500 * milli, 640 * milli, 750 * milli, 1 * second, 1280 * milli, 1500 * milli, 2 * second, 2500 * milli, 2560 * milli, 5 * second,
	5120 * milli, 7500 * milli, 10 * second, 10240 * milli, 20 * second, 20480 * milli, 30 * second, 40960 * milli, 60 * second, 81920 * milli,
	120 * second, 300 * second, 600 * second,
}

// tokenEdges serve figures of one token or chunk: the conventions' edges for
// time per output token, the presets' objectives, and edges below 10 ms for
// engines that are faster than the conventions thought of.
var tokenEdges = []time.Duration{
	250 * micro, 500 * micro, 1 * milli, 2 * milli, 3 * milli, 4 * milli, 5 * milli, 6 * milli, 8 * milli, 10 * milli, 15 * milli, 20 * milli, 25 * milli,
	30 * milli, 40 * milli, 50 * milli, 75 * milli, 100 * milli, 150 * milli, 200 * milli, 300 * milli, 400 * milli, 500 * milli, 750 * milli,
	1 * second, 2 * second, 2500 * milli, 5 * second, 10 * second,
}

// WaitEdges serve waits in the gateway's queue, which counts by them itself. The
// first is for calls that did not wait.
var WaitEdges = []time.Duration{
	0, milli, 5 * milli, 10 * milli, 50 * milli, 100 * milli, 250 * milli, 500 * milli, second, 2500 * milli, 5 * second,
	10 * second, 30 * second, 60 * second,
}

// chunkEdges serve the gateway's own time on one chunk.
var chunkEdges = []time.Duration{
	500 * time.Nanosecond, 1 * micro, 2 * micro, 5 * micro, 10 * micro, 20 * micro, 50 * micro, 100 * micro, 200 * micro, 500 * micro,
	1 * milli, 2 * milli, 5 * milli, 10 * milli, 100 * milli, 1 * second,
}
