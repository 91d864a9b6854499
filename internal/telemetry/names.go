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

// chunkEdges serve the gateway's own time on one chunk.
var chunkEdges = []time.Duration{
	500 * time.Nanosecond, 1 * micro, 2 * micro, 5 * micro, 10 * micro, 20 * micro, 50 * micro, 100 * micro, 200 * micro, 500 * micro,
	1 * milli, 2 * milli, 5 * milli, 10 * milli, 100 * milli, 1 * second,
}
