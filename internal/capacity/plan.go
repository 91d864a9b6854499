package capacity

import (
	"errors"
	"fmt"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// What a plan takes unless told otherwise.
const (
	// DefaultMemoryShare is how much of a GPU's memory an engine takes: vLLM's default of
	// gpu_memory_utilization. Activations, which the plan does not count, come out of it.
	DefaultMemoryShare = 0.9
	// DefaultSafety is how full the sequences may be on average: the rest is for bursts, for
	// calls longer than the mean, and for a replica less.
	DefaultSafety = 0.7
)

// PlanInput is what a plan starts from. TTFT and TPOT are means that were measured, at
// about the batch that the plan says: an objective is not an input, since an engine does not
// keep it just because it was wished for. All fields are needed unless they say otherwise.
type PlanInput struct {
	Model Model
	GPU   GPU
	Unit  Unit // how GPU.Stated is read and sizes are shown; "" is GB

	TP   int64   // GPUs of one group, which share each sequence (tensor parallelism): 1 to 1,024
	Rate float64 // calls a second, mean; a millionth to a million

	TTFT   time.Duration // mean, from arrival to the first token; up to an hour
	TPOT   time.Duration // mean time of an output token; up to a minute
	Input  int64         // tokens of a call, mean; may be 0 where KVPerCall is given
	Output int64         // tokens of a call, mean, at least 1

	TTFTP95  time.Duration // 0 leaves the concurrency factor out
	Headroom float64       // of the concurrency factor: MinHeadroom to MaxHeadroom; 0 is DefaultHeadroom
	Safety   float64       // how full the sequences are on average: 0.01 to 1

	MemoryShare float64 // of a GPU's memory that the engine takes: 0.01 to 1
	KVPerCall   int64   // bytes that a call takes in its whole group; 0 computes it from the model
	Weights     int64   // bytes of all weights; 0 computes them from the model
	MaxSeqs     int64   // the most sequences that the engine of a group runs at once; 0 is unknown
}

// Validate tells what is wrong with the input, all of it at once. It does not look
// whether anything fits: that is what the plan says.
func (in PlanInput) Validate() error {
	var errs []error
	if err := in.Unit.Validate(); err != nil {
		errs = append(errs, err)
	}
	number := func(name string, v, least, most float64) {
		if !(v >= least && v <= most) { // NaN too
			errs = append(errs, fmt.Errorf("%s %v: want %v to %v", name, v, planShort(least), planShort(most)))
		}
	}
	whole := func(name string, v, least, most int64) {
		if v < least || v > most {
			errs = append(errs, fmt.Errorf("%s %d: want %d to %d", name, v, least, most))
		}
	}
	span := func(name string, v, most time.Duration) {
		if v < 0 || v > most {
			errs = append(errs, fmt.Errorf("%s %v: want 0 to %v", name, v, most))
		}
	}
	whole("TP", in.TP, 1, maxTP)
	number("rate", in.Rate, 1e-6, 1e6)
	span("TTFT", in.TTFT, time.Hour)
	span("TPOT", in.TPOT, time.Minute)
	span("TTFT p95", in.TTFTP95, time.Hour)
	if in.TTFT <= 0 && in.TPOT <= 0 {
		errs = append(errs, errors.New("TTFT and TPOT are both 0: give the means that were measured"))
	}
	least := int64(0)
	if in.KVPerCall <= 0 {
		least = 1
	}
	whole("input tokens", in.Input, least, modelMaxTokens)
	whole("output tokens", in.Output, 1, modelMaxTokens)
	number("safety", in.Safety, 0.01, 1)
	number("memory share", in.MemoryShare, 0.01, 1)
	if in.Headroom != 0 {
		number("headroom", in.Headroom, MinHeadroom, MaxHeadroom)
	}
	const most = int64(1) << 60
	whole("KV bytes of a call", in.KVPerCall, 0, most)
	whole("bytes of all weights", in.Weights, 0, most)
	whole("sequences of an engine", in.MaxSeqs, 0, modelMaxTokens)
	switch {
	case in.GPU.Bytes < 0 || in.GPU.Bytes > most || in.GPU.Stated < 0 || in.GPU.Stated > 1e6:
		errs = append(errs, errors.New("a GPU's memory is out of bounds: want up to a million GB"))
	case in.GPU.Bytes == 0 && in.GPU.Stated == 0:
		errs = append(errs, errors.New("a GPU's memory is missing"))
	}
	if err := in.Model.Validate(in.Weights > 0, in.KVPerCall > 0); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("check the plan's input: %w", err)
	}
	return nil
}

// Binding says what decides the number of GPUs.
type Binding string

// What can decide it.
const (
	// BindsMemory: one group is enough, and it is there to hold the weights and the KV cache.
	BindsMemory Binding = "memory"
	// BindsConcurrency: more calls are at once than the memory of one group holds.
	BindsConcurrency Binding = "concurrency"
	// BindsEngine: the engine admits fewer sequences than the memory would hold.
	BindsEngine Binding = "engine limit"
	// BindsWeights: the weights, or the weights and one call, do not fit a group at all.
	BindsWeights Binding = "weights"
)

// Plan says how many GPUs a load needs, with every figure on the way. What is unknown,
// because nothing fits, is absent.
type Plan struct {
	Model string  `json:"model,omitempty"`
	GPU   string  `json:"gpu,omitempty"`
	Unit  Unit    `json:"unit"`
	TP    int64   `json:"tp"`
	Rate  float64 `json:"rate_per_second"`

	// GPUs is Groups × TP. GPUsAtLeast is what whole sequences on each GPU would need if
	// groups could be cut anywhere; it is at most GPUs.
	GPUs        call.Count `json:"gpus,omitzero"`
	Groups      call.Count `json:"groups,omitzero"`
	GPUsAtLeast call.Count `json:"gpus_at_least,omitzero"`

	SequencesPerGroup call.Count `json:"sequences_per_group,omitzero"` // floor, and the engine's limit
	SequencesPerGPU   call.Count `json:"sequences_per_gpu,omitzero"`   // floor
	MeanConcurrency   float64    `json:"mean_concurrency"`             // Little's law
	SequencesNeeded   float64    `json:"sequences_needed"`
	// LeastTP is the smallest power of two at which the weights and a call fit.
	LeastTP call.Count `json:"least_tp,omitzero"`

	Binds Binding `json:"binds"`
	Why   string  `json:"why"` // a sentence or two

	Figures  []PlanFigure  `json:"figures"`
	Warnings []PlanWarning `json:"warnings,omitempty"`
	Notes    []string      `json:"notes"`
}

// Fits tells whether the weights and at least one call fit a group.
func (p Plan) Fits() bool { return p.GPUs.IsKnown() }

// PlanFigure is one figure on the way, which its formula lets a person check by hand.
type PlanFigure struct {
	Name    string  `json:"name"`
	Label   string  `json:"label"` // for people
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
	Shown   string  `json:"shown"` // the value and its unit, for people
	Formula string  `json:"formula"`
}

// PlanWarning is something impossible or doubtful about the input.
type PlanWarning struct {
	Code string `json:"code"`
	Text string `json:"text"`
}
