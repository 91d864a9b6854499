package call

// Engine holds what the engine itself said of this very call. Every figure is
// optional. Prefill is the time from scheduling to the first token, however the
// engine names it.
type Engine struct {
	Queue   Duration `json:"queue_ms,omitzero"`
	Load    Duration `json:"load_ms,omitzero"` // loading the model
	Prefill Duration `json:"prefill_ms,omitzero"`
	Decode  Duration `json:"decode_ms,omitzero"`
	Total   Duration `json:"total_ms,omitzero"`
	E2E     Duration `json:"e2e_ms,omitzero"` // SGLang's e2e_latency
}

// IsZero reports an Engine of which nothing is known.
func (e Engine) IsZero() bool { return e == Engine{} }
