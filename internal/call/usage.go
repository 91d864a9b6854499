package call

// Usage counts tokens. Input holds everything the model read, cache reads and
// cache writes included; Output everything it wrote, reasoning included.
// Each figure is the upstream's own; none is ever an estimate.
type Usage struct {
	Input      Count `json:"input_tokens,omitzero"`
	Output     Count `json:"output_tokens,omitzero"`
	Cached     Count `json:"cached_tokens,omitzero"`
	CacheWrite Count `json:"cache_write_tokens,omitzero"`
	Reasoning  Count `json:"reasoning_tokens,omitzero"`
}

// IsZero reports a Usage of which nothing is known.
func (u Usage) IsZero() bool { return u == Usage{} }

// UsageSource says where a Usage comes from.
type UsageSource string

const (
	// UsageNone: nothing is known.
	UsageNone UsageSource = "none"
	// UsageReported: the upstream's own final figure.
	UsageReported UsageSource = "reported"
	// UsageTimings: from the engine's timing block.
	UsageTimings UsageSource = "timings"
	// UsageCounted: one event is exactly one token in that dialect.
	UsageCounted UsageSource = "counted"
	// UsagePartial: the upstream's running figure when the stream broke off.
	UsagePartial UsageSource = "partial"
)
