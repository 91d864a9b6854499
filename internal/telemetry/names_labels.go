package telemetry

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/weirgate/weir/slo"
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
	// ErrorSeriesCap is the number of label combinations of failed calls in
	// gen_ai_server_request_duration_seconds beyond which new ones have Other as
	// model and class: every model can fail in every way.
	ErrorSeriesCap = 1024
	// EngineCap is the number of engines that are shown.
	EngineCap = 32
	// GPUCap is the number of GPUs that are shown.
	GPUCap = 128
	// ObjectiveCap is the number of objectives' names, over all classes, with a
	// label of their own.
	ObjectiveCap = 256
	// ObjectiveSeriesCap is the number of combinations of class, model and objective
	// beyond which new ones have Other as model.
	ObjectiveSeriesCap = 2048
	// WindowCap is the number of windows whose burn rates are shown.
	WindowCap = 16
	// ReceiverCap is the number of receivers of alerts with a label of their own.
	ReceiverCap = 16
	// ProbeCap is the number of probes with a label of their own.
	ProbeCap = 16
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
	// labelCountedModel and labelSLOModel are not learnt from calls but from what
	// keeps the objectives, which has a bound of its own.
	labelSLOClass     = Label{"class", slo.MaxClasses, "class of service, as configured"}
	labelCountedModel = Label{"model", ModelCap, "model as the client asked for it"}
	labelSLOModel     = Label{"model", ModelCap, "model as the client asked for it; empty for all models of the class together"}
	labelKind         = Label{"kind", numKinds, "input, output, cached, cache_write, reasoning"}
	labelUsage        = Label{"source", len(usageSources), "where the figure comes from: reported, timings, counted, partial, none"}
	labelWall         = Label{"by", WallCap, "what refused: scope and dimension of a limit, queue and its reason, key, model, budget, ledger, path"}
	labelPool         = Label{"pool", PoolCap, "pool of upstreams, as the configuration names it"}
	labelScope        = Label{"scope", 4, "whose calls share the limit: key, model, key_model, pool"}
	labelDim          = Label{"dimension", 6, "what is limited, as the Caddyfile names it"}
	labelSubject      = Label{"subject", SubjectCap, "the key (alias or short id), model or pool that the limit holds for"}
	labelFile         = Label{"file", 2, "keys or prices"}
	labelReason       = Label{"reason", ReasonCap, "short code of the reason"}

	labelError      = Label{"error_type", len(errorTypes) + 1, "outcome of a call that failed, empty when it did not"}
	labelTokenType  = Label{"token_type", numTokenTypes, "input, output"}
	labelEngine     = Label{"engine", EngineCap, "address of the engine's metrics, without what may be secret in it"}
	labelEngineKind = Label{"kind", len(engineKinds) + 1, "vllm, sglang, tgi, llamacpp; empty while it is not known"}
	labelGPU        = Label{"gpu", GPUCap, "UUID of the GPU, its number where that is not known"}
	labelHost       = Label{"host", GPUCap, "machine of the GPU as an exporter names it, empty for this one"}
	labelObjective  = Label{"objective", ObjectiveCap, "name of the objective within its class"}
	labelVerdict    = Label{"verdict", len(verdicts), "good, bad, unknown, outside"}
	labelBasis      = Label{"basis", len(bases), "what N is: so_far, forecast"}
	labelWindow     = Label{"window", WindowCap, "length of the window: 5m, 1h …"}
	labelState      = Label{"state", len(slo.States), "ok, warning, ticket, freeze, exhausted, page"}
	labelSeverity   = Label{"severity", severityCap, "how urgent the alerts are: page, ticket …"}
	labelReceiver   = Label{"receiver", ReceiverCap, "who is told, as the configuration names it"}
	labelResult     = Label{"result", resultCap, "what became of the notification: sent, failed, dropped …"}
	labelProbe      = Label{"probe", ProbeCap, "name of the probe"}
	labelThrottle   = Label{"reason", len(throttleReasons), "what holds clocks down: power_cap, hw_slowdown, sw_thermal …"}
)

// conventional are the conventions' names of labels. They stand for the labels
// where a metric is exported under a name of the conventions.
var conventional = map[string]attribute.Key{
	labelModel.Name:     attrModel,
	labelClass.Name:     attrClass, // ours; the conventions have none
	labelError.Name:     attrErrorType,
	labelTokenType.Name: attrTokenType,
}

// Reasons of Unmeasured.
const (
	// UnknownPath: no dialect knows the request's path.
	UnknownPath = "unknown_path"
	// MethodWithoutBody: the method carries no inference request (GET, HEAD, OPTIONS).
	MethodWithoutBody = "method"
)
