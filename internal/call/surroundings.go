package call

import (
	"encoding/json"
	"fmt"
	"math"
)

// Surroundings is what engine and GPUs were doing while the call ran.
type Surroundings struct {
	// AtDispatch and AtFirstToken are the engine's gauges as last read before
	// the call was sent upstream, and before its first token.
	AtDispatch   EngineLoad `json:"engine_at_dispatch,omitzero"`
	AtFirstToken EngineLoad `json:"engine_at_first_token,omitzero"`
	// QueueBound is the most that the engine's queue can have taken of the call,
	// where it is not known and the gauges say so: nothing waited at the first
	// reading after the call was sent.
	QueueBound Duration `json:"queue_engine_at_most_ms,omitzero"`
	// GPU is what the GPUs did between sent and ended.
	GPU GPUWindow `json:"gpu,omitzero"`
}

// EngineLoad is one reading of an engine's gauges. The zero value is none.
type EngineLoad struct {
	Running Count    `json:"running,omitzero"` // requests being worked on
	Waiting Count    `json:"waiting,omitzero"` // requests in the engine's queue
	KVUse   Number   `json:"kv_use,omitzero"`  // share of the KV cache in use, 0–1
	Age     Duration `json:"age_ms,omitzero"`  // how old the reading was
}

// IsZero reports that there was no reading.
func (l EngineLoad) IsZero() bool { return l == EngineLoad{} }

// GPUWindow sums up the samples of all watched GPUs over the time of a call.
// The zero value is that none were watched, or that no sample fell into the call.
type GPUWindow struct {
	GPUs    int `json:"gpus,omitempty"`    // how many were sampled
	Samples int `json:"samples,omitempty"` // of all of them together
	// Utilization is the mean share of time in which a kernel was resident, 0–1:
	// it does not say how much of the GPU the kernel used.
	Utilization Number `json:"utilization,omitzero"`
	// MemoryBandwidth is the mean traffic of device memory as a share of the most
	// that it can carry, 0–1.
	MemoryBandwidth Number `json:"memory_bandwidth,omitzero"`
	// ClockRatio is the lowest SM clock seen as a share of its maximum, 0–1.
	ClockRatio Number `json:"clock_ratio,omitzero"`
	// Reasons are those seen for which clocks were held down, benign ones left out.
	Reasons []string `json:"throttle_reasons,omitempty"`
	// Joules is this call's share of the energy that the GPUs took while it
	// ran, by output tokens of the calls that ran beside it.
	Joules Number `json:"joules,omitzero"`
}

// IsZero reports that nothing was sampled.
func (w GPUWindow) IsZero() bool { return w.Samples == 0 }

// Number is a figure that may be unknown. The zero value is unknown; a known 0
// is a figure. In JSON an unknown Number is left out (use the omitzero tag).
type Number struct {
	bits uint64 // of the figure, each turned over: 0 would be a NaN, and is none
}

// Figure returns a Number that is x; one that is no finite number is unknown.
func Figure(x float64) Number {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return Number{}
	}
	return Number{^math.Float64bits(x)}
}

// Get returns the figure and whether it is known.
func (n Number) Get() (float64, bool) {
	if n.bits == 0 {
		return 0, false
	}
	return math.Float64frombits(^n.bits), true
}

// Or returns the figure, or def when it is unknown.
func (n Number) Or(def float64) float64 {
	if x, known := n.Get(); known {
		return x
	}
	return def
}

// IsKnown tells whether the figure is known.
func (n Number) IsKnown() bool { return n.bits != 0 }

// IsZero reports an unknown Number, so that omitzero leaves it out.
func (n Number) IsZero() bool { return n.bits == 0 }

// MarshalJSON writes the figure, or null when it is unknown.
func (n Number) MarshalJSON() ([]byte, error) {
	x, known := n.Get()
	if !known {
		return []byte("null"), nil
	}
	return json.Marshal(x)
}

// UnmarshalJSON reads a number; null is unknown.
func (n *Number) UnmarshalJSON(b []byte) error {
	*n = Number{}
	if string(b) == "null" {
		return nil
	}
	var x float64
	if err := json.Unmarshal(b, &x); err != nil {
		return fmt.Errorf("read number: %w", err)
	}
	*n = Figure(x)
	return nil
}
