package capacity

import (
	"time"

	"github.com/weirgate/weir/internal/call"
)

// Label says how far an estimate rests on what was seen.
type Label string

const (
	// Observed: the records hold the limit itself; at rates about that of the knee calls
	// missed the watermark.
	Observed Label = "observed"
	// Interpolated: the knee lies within the loads seen.
	Interpolated Label = "interpolated"
	// Extrapolated: the knee lies beyond the highest load seen, by Reach at most.
	Extrapolated Label = "extrapolated"
	// Refused: the records cannot carry an estimate; Reasons say why and Advice what to do.
	Refused Label = "refused"
)

// Bound says how an estimate is to be read.
type Bound string

const (
	// About: the knee lies in the interval with 95 % confidence.
	About Bound = "about"
	// AtLeast: a limit of the engine is unknown, and the knee lies at the estimate or above.
	AtLeast Bound = "at_least"
)

// Result is what Estimate says. A figure that is not known is absent.
type Result struct {
	From  time.Time `json:"from,omitzero"`   // the first call was received
	To    time.Time `json:"to,omitzero"`     // the last call was received
	Calls int       `json:"calls"`           // records looked at
	Class string    `json:"class,omitempty"` // whose calls the objectives are for; "" is all
	// The objectives, and their quantiles, 0–1.
	TTFTObjective call.Duration `json:"ttft_objective_ms,omitzero"`
	TTFTQuantile  float64       `json:"ttft_quantile"`
	TPOTObjective call.Duration `json:"tpot_objective_ms,omitzero"`
	TPOTQuantile  float64       `json:"tpot_quantile"`
	// Watermark and Derate as used, shares.
	Watermark float64 `json:"watermark"`
	Derate    float64 `json:"derate"`

	Upstreams []Upstream `json:"upstreams"`
	Fleets    []Fleet    `json:"fleets"`
}

// Upstream is the estimate for one upstream and model.
type Upstream struct {
	Upstream string `json:"upstream"`
	Model    string `json:"model,omitempty"` // "" for all of a shared engine
	Calls    int    `json:"calls"`           // that were sent there
	Usable   int    `json:"calls_usable"`    // of these, with first token and both token counts

	Label Label `json:"label"`
	Bound Bound `json:"bound,omitempty"`
	// Reasons say why the estimate is refused or labelled as it is, and Advice what to do.
	Reasons []string `json:"reasons,omitempty"`
	Advice  []string `json:"advice,omitempty"`
	// Notes are what was assumed.
	Notes []string `json:"notes,omitempty"`

	// Rate is that of the whole time, Present that of the last stretch without a change of rate, Highest
	// that of the busiest HighestCalls calls in a row.
	Rate         call.Number `json:"mean_rate_calls_per_second,omitzero"`
	Present      call.Number `json:"present_rate_calls_per_second,omitzero"`
	Highest      call.Number `json:"highest_rate_calls_per_second,omitzero"`
	HighestCalls int         `json:"highest_rate_over_calls,omitempty"`

	// Knee is the rate at which the watermark is reached, KneeLow and KneeHigh its interval of 95 %.
	Knee     call.Number `json:"knee_calls_per_second,omitzero"`
	KneeLow  call.Number `json:"knee_low_calls_per_second,omitzero"`
	KneeHigh call.Number `json:"knee_high_calls_per_second,omitzero"`
	// KneeConcurrency is how many calls are in flight on average at the knee.
	KneeConcurrency call.Number `json:"knee_concurrency_calls,omitzero"`
	// KneeTTFT and KneeTPOT are the quantiles there, as replayed.
	KneeTTFT call.Duration `json:"knee_ttft_ms,omitzero"`
	KneeTPOT call.Duration `json:"knee_tpot_ms,omitzero"`
	// Binds is what is reached first: BindsTTFT, BindsTPOT or BindsAssumed.
	Binds string `json:"binds,omitempty"`

	// Sustainable is the knee less Derate, in calls and in tokens.
	Sustainable       call.Number `json:"sustainable_calls_per_second,omitzero"`
	SustainableInput  call.Number `json:"sustainable_input_tokens_per_second,omitzero"`
	SustainableOutput call.Number `json:"sustainable_output_tokens_per_second,omitzero"`
	// Headroom is 1 − Present/Sustainable, a share; negative beyond what is sustainable. It
	// is a lower bound where Bound is AtLeast.
	Headroom call.Number `json:"headroom_share,omitzero"`

	Limits  UsedLimits `json:"limits"`
	Fit     *Fit       `json:"fit,omitempty"`
	Balance *Balance   `json:"littles_law,omitempty"`
	// Factor is the concurrency factor: how many calls may await their first token at the present rate.
	Factor call.Number `json:"concurrency_factor_calls,omitzero"`

	roomy bool // it was refused because the knee lies far beyond what was seen
}

// What an Upstream's knee comes from.
const (
	BindsTTFT = "ttft" // the objective of the time to first token
	BindsTPOT = "tpot" // that of the time per output token
	// BindsAssumed: no objective, but a limit of the engine that nobody told, and that is
	// taken to be what was seen.
	BindsAssumed = "assumed_limits"
)

// UsedLimits are the limits of the engine that the replay had.
type UsedLimits struct {
	MaxNumSeqs UsedLimit  `json:"max_num_seqs_sequences"`
	KVTokens   UsedLimit  `json:"kv_cache_tokens"`
	StepTokens UsedLimit  `json:"step_tokens"`
	GPUs       call.Count `json:"gpus_per_replica,omitzero"`
}

// UsedLimit is a limit and where it comes from: "given", "seen" (no more than this was
// seen at once, so that it can be higher) or "assumed".
type UsedLimit struct {
	Value  call.Count `json:"value,omitzero"`
	Source string     `json:"source,omitempty"`
}

// Fit is what calls cost, as read from the records:
//
//	TPOT    = Alpha + Beta·batch + Gamma·(time of others' prompts for each own token)
//	prefill = Base for each step + PerToken·uncached tokens
type Fit struct {
	Alpha    call.Duration `json:"alpha_ms"`
	Beta     call.Duration `json:"beta_ms_per_sequence"`
	Gamma    float64       `json:"gamma_share"`
	Base     call.Duration `json:"prefill_base_ms"`
	PerToken float64       `json:"prefill_us_per_token"`
	// Front passes once for each prompt, in the front end and on the way, and keeps no step busy. Where all
	// prompts take one step and the engine does not report it, it is part of Base, and Gamma is less than 1.
	Front call.Duration `json:"prefill_front_ms"`
	// Prefill says what the prompt's cost was read from: "engine" (its own figures), "inferred"
	// (the gauges told that there was no queue) or "low load" (upstream TTFT of calls that met no other's prompt).
	Prefill string `json:"prefill_from"`
	// Batch says what the batch was read from: "calls" in flight here, or "gauges" where these
	// show that others use the engine too; then Share is this gateway's part of its load.
	Batch string  `json:"batch_from"`
	Share float64 `json:"share_of_engine"`
	// Calls is how many TPOTs were fitted, PrefillCalls how many prefills.
	Calls        int `json:"calls_fitted"`
	PrefillCalls int `json:"prefills_fitted"`
	// BatchLow and BatchHigh are the 5th and 95th percentile of the batch, sequences.
	BatchLow  float64 `json:"batch_p5_sequences"`
	BatchHigh float64 `json:"batch_p95_sequences"`
	// Residual is the median, and ResidualP95 the 95th percentile, of |measured − fitted|/measured of TPOT, shares.
	Residual    float64 `json:"tpot_residual_median"`
	ResidualP95 float64 `json:"tpot_residual_p95"`
	// Drift is how much longer (less: negative) the busiest third of the calls took for a token than a fit
	// of the other two thirds foretold, a share: what going beyond the loads seen is worth.
	Drift call.Number `json:"tpot_drift_busiest_third,omitzero"`
}

// Fleet is all upstreams of one model, each a replica.
type Fleet struct {
	Model    string `json:"model,omitempty"`
	Replicas int    `json:"replicas"` // upstreams with calls
	// Estimated is how many of these have an estimate.
	Estimated int `json:"replicas_estimated"`
	// Present is the present rate of all, calls a second; Highest the sum of the highest.
	Present call.Number `json:"present_rate_calls_per_second,omitzero"`
	Highest call.Number `json:"highest_rate_calls_per_second,omitzero"`
	// PerReplica is what a replica sustains, the mean of those estimated.
	PerReplica  call.Number `json:"sustainable_calls_per_second_per_replica,omitzero"`
	Sustainable call.Number `json:"sustainable_calls_per_second,omitzero"` // of all replicas
	Bound       Bound       `json:"bound,omitempty"`
	// Needed is how many replicas carry the present rate with headroom, and the highest without.
	Needed call.Count `json:"replicas_needed,omitzero"`
	// ShrinkBelow is the present rate below which one replica fewer will do; absent with one replica.
	ShrinkBelow call.Number `json:"shrink_below_calls_per_second,omitzero"`
	// Target is the rate asked for, and what it needs. With Bound at_least, no more than this.
	Target         call.Number `json:"target_calls_per_second,omitzero"`
	TargetReplicas call.Count  `json:"target_replicas,omitzero"`
	TargetGPUs     call.Count  `json:"target_gpus,omitzero"`
	NeededGPUs     call.Count  `json:"gpus_needed,omitzero"`
	// Say is "add", "enough", "shrink" or "undetermined", and Why the reason in one sentence.
	Say string `json:"verdict"`
	Why string `json:"why"`
}
