package diagnose

import "github.com/weirgate/weir/internal/call"

// Layer is a part of the way from the client to the model and back.
type Layer string

// The layers.
const (
	Network        Layer = "network"
	Gateway        Layer = "gateway" // Weir itself: its limits, its queue, its process
	EngineQueue    Layer = "engine_queue"
	EngineFrontend Layer = "engine_frontend" // the engine's HTTP and tokenizing
	Model          Layer = "model"           // prefill and decode
	GPU            Layer = "gpu"
	Client         Layer = "client"
	Traffic        Layer = "traffic" // what clients ask for: no fault of the service
	Unknown        Layer = "unknown"
)

// Whole is what the share of a finding is a share of.
type Whole string

// The wholes. Shares of the same whole never overlap: they add up to 1 at most.
const (
	// OfTTFT: received to first token, of a streamed call that has one.
	OfTTFT Whole = "ttft"
	// OfElapsed: received to ended, whatever the outcome.
	OfElapsed Whole = "elapsed"
	// OfTTFTAtClient: TTFT and one round trip to the client: what its user waits.
	OfTTFTAtClient Whole = "ttft_at_client"

	// Of comparisons: the change of the mean of TTFT, TPOT or E2E.
	OfTTFTChange Whole = "ttft_change"
	OfTPOTChange Whole = "tpot_change"
	OfE2EChange  Whole = "e2e_change"
)

// Finding is something found in one call, or in the calls of a window. Its texts
// hold no prompt, no answer and no key.
type Finding struct {
	Layer Layer `json:"layer"`
	Code  Code  `json:"code"`
	// Source says how it is known. Unattributed is the weak one: the time is there,
	// but that it is what the finding says is a possibility.
	Source call.Source `json:"source"`
	// Share is Time as a share of Of, 0–1: of the one call, or of all calls of the
	// window that have such a whole. Unknown for what is a condition and not a
	// span of time; then Time is unknown too.
	Share call.Number `json:"share,omitzero"`
	Of    Whole       `json:"of,omitempty"`
	// Time is what it explains, summed over Calls; at most so much where Source is
	// unattributed, at least so much where the engine's queue was bounded by gauges.
	Time call.Duration `json:"time_ms,omitzero"`
	// Calls is how many calls show it, 1 for one call.
	Calls int `json:"calls"`
	// Summary is one sentence with the figures.
	Summary string `json:"summary"`
	// For and Against are what supports it and what speaks against it, or makes it
	// less certain.
	For     []Evidence `json:"for,omitempty"`
	Against []Evidence `json:"against,omitempty"`
	// Next says what to do or where to look next.
	Next string `json:"next"`
	// Examples are the calls that show it most, worst first; only of a window.
	Examples []Example `json:"examples,omitempty"`
}

// Evidence is one figure that speaks for or against a finding.
type Evidence struct {
	Text string `json:"text"`
	// Figure is the name of the figure: that of the record's own field as
	// call.FieldNames has it, or one derived from such fields.
	Figure string `json:"figure,omitempty"`
	// Value is the figure, of a window its mean over Calls. Unknown where the
	// evidence is no number.
	Value call.Number `json:"value,omitzero"`
	Unit  Unit        `json:"unit,omitempty"`
	// Calls is how many of the finding's calls have it; only of a window.
	Calls int `json:"calls,omitempty"`
}

// Unit is the unit of a Value.
type Unit string

// The units. A share is 0–1.
const (
	InMilliseconds Unit = "ms"
	InShare        Unit = "share"
	InCalls        Unit = "calls"
	InTokens       Unit = "tokens"
	InBytes        Unit = "bytes"
	InBytesASecond Unit = "bytes/s"
	InPieces       Unit = "count"
	InMegahertz    Unit = "MHz"
	NoUnit         Unit = ""
)

// Example is a call that shows a finding.
type Example struct {
	ID string `json:"id"`
	// TraceID is there when the call's spans were exported.
	TraceID string `json:"trace_id,omitempty"`
	// Time is what the finding explains of this call, unknown for a condition, and
	// Whole the time it is a part of.
	Time  call.Duration `json:"time_ms,omitzero"`
	Whole call.Duration `json:"whole_ms"`
}
