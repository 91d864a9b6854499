package call

import "time"

// Record is everything known of one call after its end. It is made once per
// call, on every path, and never changes. Its JSON form is public: durations
// are milliseconds, what is unknown is absent, and 0 is zero.
type Record struct {
	Identity
	Result
	Tokens
	Timing
	Phases       Phases       `json:"phases,omitzero"`
	PhaseSources PhaseSources `json:"phase_sources,omitzero"`
	Engine       Engine       `json:"engine,omitzero"`
	Surroundings
	Admission
	Transport
}

// Identity tells calls apart, and whose they are.
type Identity struct {
	ID         string    `json:"id"`                    // ours, unique
	RequestID  string    `json:"request_id,omitempty"`  // the client's X-Request-Id header
	ResponseID string    `json:"response_id,omitempty"` // the upstream's, from the answer
	TraceID    string    `json:"trace_id,omitempty"`    // 32 hex digits
	Run        string    `json:"run,omitempty"`         // the client's X-Weir-Run header
	Time       time.Time `json:"time"`                  // received, wall clock
	Key        string    `json:"key,omitempty"`         // alias or short id, never the key
	Model      string    `json:"model,omitempty"`       // as asked for
	// ResponseModel is the model that the upstream says it used.
	ResponseModel string `json:"response_model,omitempty"`
	Class         string `json:"class,omitempty"`
	// Bench marks a load test by its key: such a call counts for its key, and
	// not for objectives.
	Bench bool `json:"bench,omitempty"`
	// Probe marks a call that the gateway made itself, to see whether it can be
	// made: it counts for nobody, neither in bills nor for objectives.
	Probe bool `json:"probe,omitempty"`
	// ClientRetries is how often the client says it has sent this call before
	// (header X-Stainless-Retry-Count).
	ClientRetries int    `json:"client_retries,omitempty"`
	Dialect       string `json:"dialect"`
	// Operation is what the dialect does, as OpenTelemetry's conventions name it
	// (chat, embeddings …); for spans, and no part of the JSON form.
	Operation string `json:"-"`
	Path      string `json:"path"`
	// Stream is whether the answer came as a stream or, without an answer,
	// was asked to.
	Stream bool `json:"stream"`
}

// Result says how the call ended.
type Result struct {
	Status       int     `json:"status,omitempty"` // as answered to the client; absent when nothing was
	Outcome      Outcome `json:"outcome"`
	Error        string  `json:"error,omitempty"` // a short code
	FinishReason Finish  `json:"finish_reason,omitzero"`
	// Terminated is whether the dialect's terminal event was seen.
	Terminated bool `json:"terminated"`
	// Degraded lists the reasons why metering is incomplete.
	Degraded []Degradation `json:"degraded,omitempty"`
}

// Tokens counts what was read and written.
type Tokens struct {
	Usage
	UsageSource       UsageSource `json:"usage_source"`
	ContentEvents     Count       `json:"content_events,omitzero"`
	FirstContentEvent Count       `json:"first_content_event,omitzero"`
	ParseErrors       int64       `json:"parse_errors,omitempty"`
}

// Timing holds the call's numbers as the README defines them.
type Timing struct {
	TTFT         Duration `json:"ttft_ms,omitzero"`
	TTFTUpstream Duration `json:"ttft_upstream_ms,omitzero"`
	TTFB         Duration `json:"ttfb_ms,omitzero"`
	TTFTVisible  Duration `json:"ttft_visible_ms,omitzero"`
	TPOT         Duration `json:"tpot_ms,omitzero"`
	E2E          Duration `json:"e2e_ms,omitzero"`
	ICLP50       Duration `json:"icl_p50_ms,omitzero"` // within GapError
	ICLMax       Duration `json:"icl_max_ms,omitzero"` // exact
	ClientRTT    Duration `json:"client_rtt_ms,omitzero"`
	UpstreamRTT  Duration `json:"upstream_rtt_ms,omitzero"`
}

// Transport tells how the bytes travelled.
type Transport struct {
	Upstream       string `json:"upstream,omitempty"` // host:port of the last attempt
	Attempts       int    `json:"attempts"`           // requests started upstream
	Replayed       bool   `json:"replayed,omitempty"` // sent again over a fresh connection
	BytesIn        Count  `json:"bytes_in,omitzero"`  // request body
	BytesOut       int64  `json:"bytes_out"`          // response body
	ClientProtocol string `json:"client_protocol,omitempty"`

	// Instants and Gaps feed histograms, Trail and Sampled spans; they are not
	// part of the JSON form. Trail is nil unless spans are made.
	Instants Instants  `json:"-"`
	Gaps     *Gaps     `json:"-"`
	Trail    []Attempt `json:"-"`
	Sampled  bool      `json:"-"` // its spans are exported, so that TraceID leads somewhere
}

// Attempt is one request upstream, as the transport told of it. Times are offsets
// from the instant at which the call was received.
type Attempt struct {
	Start     Duration // a connection was asked for
	Connected Duration // there was one
	Sent      Duration // the request had been written whole
	FirstByte Duration // the first byte of an answer came
	Upstream  string   // host:port
	Reused    bool     // the connection had served before
}

// Degradation is a reason why metering of a call is incomplete.
type Degradation string

const (
	// BodyTooLarge: the request body passed the look's cap; fields beyond it are unknown.
	BodyTooLarge Degradation = "request_body_too_large"
	// BodyBudget: too many bytes were being looked at in all; this body was not.
	BodyBudget Degradation = "request_body_budget"
	// BodyMalformed: the request body is not what its dialect demands.
	BodyMalformed Degradation = "request_body_malformed"
	// BodyEncoded: the request body has a Content-Encoding and was not looked at.
	BodyEncoded Degradation = "request_body_encoded"
	// EventTooLong: an event passed the parse buffer's cap and was not read.
	EventTooLong Degradation = "event_too_long"
	// ParseErrors: at least one event could not be read.
	ParseErrors Degradation = "parse_errors"
	// EncodingUnknown: the answer's Content-Encoding is not one of gzip, br, zstd, deflate.
	EncodingUnknown Degradation = "encoding_unknown"
	// InflateFailed: the answer is not what its Content-Encoding says.
	InflateFailed Degradation = "inflate_failed"
	// InflateLimit: the answer inflates to more than may be looked at.
	InflateLimit Degradation = "inflate_limit"
	// PhaseClamped: the engine's figures add up to more than the time that passed.
	PhaseClamped Degradation = "phase_clamped"
	// UsageHidden: the client did not ask for usage, and the upstream sent none.
	// usage_policy, or an engine flag such as vLLM's --enable-force-include-usage, brings it.
	UsageHidden Degradation = "usage_not_requested"
	// MeterFault: the meter itself failed and was taken out of the call.
	MeterFault Degradation = "meter_fault"
)
