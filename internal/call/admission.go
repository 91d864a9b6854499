package call

// Limits are the rates and caps of one subject: a key, a model, a pool. A limit
// that is unknown does not apply; a known 0 admits nothing.
type Limits struct {
	TokensPerMinute       Count `json:"tokens_per_minute,omitzero"` // input and output together
	InputTokensPerMinute  Count `json:"input_tokens_per_minute,omitzero"`
	OutputTokensPerMinute Count `json:"output_tokens_per_minute,omitzero"`
	RequestsPerMinute     Count `json:"requests_per_minute,omitzero"`
	Concurrency           Count `json:"concurrency,omitzero"`      // calls at once
	TokensInFlight        Count `json:"tokens_in_flight,omitzero"` // reserved tokens of the calls at once
}

// IsZero reports Limits of which none applies.
func (l Limits) IsZero() bool { return l == Limits{} }

// Admission is what the gateway expected of a call before it was sent, and
// which limit stood in its way. Expectations steer admission and stand in for
// usage that was never reported; they are never shown as reported.
type Admission struct {
	EstimatedInput  Count `json:"estimated_input_tokens,omitzero"`
	EstimatedOutput Count `json:"estimated_output_tokens,omitzero"`
	Reserved        Count `json:"reserved_tokens,omitzero"` // taken from the limits at admission
	// RefusedBy names the limit that refused the call, such as
	// "key tokens_per_minute", or another reason of the gateway's own.
	RefusedBy string `json:"refused_by,omitempty"`
	// WouldRefuse is the same where limits are only watched (mode shadow).
	WouldRefuse string `json:"would_refuse,omitempty"`
}
