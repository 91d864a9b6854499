package saturation

import "time"

// Step is what was measured at one load of a ladder. A pointer that is nil is a
// figure that is not known.
type Step struct {
	Load      float64  `json:"load"` // concurrency, or calls a second offered
	Calls     int      `json:"calls"`
	Succeeded float64  `json:"succeeded"` // share, 0–1
	Achieved  float64  `json:"achieved"`  // calls a second that succeeded; see FindKnee
	TPM       *float64 `json:"tpm,omitempty"`
	TTFTP95   *float64 `json:"ttft_p95_ms,omitempty"`
	TPOTP95   *float64 `json:"tpot_p95_ms,omitempty"`
	// Distorted is whether the client itself was too slow at this load.
	Distorted bool `json:"distorted,omitempty"`
}

// Unit is what the load of a ladder counts.
type Unit string

// The units of load.
const (
	Concurrency Unit = "concurrency"
	Rate        Unit = "calls/s"
)

// Options steer the search for the knee.
type Options struct {
	// Headroom is the share of the last good load that the recommendation
	// leaves free, above 0 and below 1; anything else stands for 0.25.
	Headroom float64
	// TTFT and TPOT are objectives that a good step keeps at p95; 0 is none.
	TTFT, TPOT time.Duration
}

// Knee is where throughput stops growing and waiting begins.
type Knee struct {
	Unit      Unit `json:"unit"`
	Saturated bool `json:"saturated"` // whether a knee was seen at all
	// After and Before are the neighbouring loads between which it lies; Before
	// is 0 when the run did not saturate, After when even the first step is
	// beyond the knee.
	After  float64 `json:"after,omitempty"`
	Before float64 `json:"before,omitempty"`
	// LastGood is the highest load before the knee; 0 when no step was good.
	LastGood float64 `json:"last_good,omitempty"`
	// Recommended is LastGood less the headroom: rounded down to a whole number for
	// concurrency, and at least 1 there; to three digits for a rate. 0 without LastGood.
	Recommended float64 `json:"recommended,omitempty"`
	// Reasons are the figures that say so, a sentence or two each; never empty.
	Reasons []string `json:"reasons"`
	// Promise is the SLO sentence that the last good step supports.
	Promise string `json:"promise,omitempty"`
}

// Window is what was measured on one stair.
type Window struct {
	Rate      float64  `json:"rate"`     // offered, calls a second
	Achieved  float64  `json:"achieved"` // succeeded, calls a second, without the time to drain
	Calls     int      `json:"calls"`
	Succeeded float64  `json:"succeeded"` // share, 0–1
	TTFTP99   *float64 `json:"ttft_p99_ms,omitempty"`
	Distorted bool     `json:"distorted,omitempty"`
}

// Verdict is what a staircase says of a target rate.
type Verdict struct {
	Target    float64 `json:"target"` // calls a second
	Objective float64 `json:"ttft_objective_ms"`
	Safe      float64 `json:"safe"`    // the highest rate whose TTFT p99 stayed within 80 % of the objective; 0 none
	Reached   bool    `json:"reached"` // whether the 80 % were passed, so that Safe is the limit and not just a bound from below
	// Say is add, enough, shrink or undetermined.
	Say     string   `json:"verdict"`
	Reasons []string `json:"reasons"` // the verdict first, then the figures that say so
}
