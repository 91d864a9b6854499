package saturation

import "time"

// Step is what was measured at one load of a ladder. A pointer that is nil is a
// figure that is not known.
type Step struct {
	Load      float64 `json:"load"` // concurrency, or calls a second asked for
	Calls     int     `json:"calls"`
	Succeeded float64 `json:"succeeded"` // share, 0–1
	// Offered is how many calls a second fell due in an open loop. Chance makes
	// that more or less than Load; nil stands for Load itself.
	Offered  *float64 `json:"offered,omitempty"`
	Achieved float64  `json:"achieved"` // calls a second that succeeded; see FindKnee
	// AtLeast is whether Achieved holds the time to drain because the rate without it
	// cannot be told, so that the service may have achieved more.
	AtLeast bool     `json:"achieved_at_least,omitempty"`
	TPM     *float64 `json:"tpm,omitempty"`
	TTFTP95 *float64 `json:"ttft_p95_ms,omitempty"`
	TPOTP95 *float64 `json:"tpot_p95_ms,omitempty"`
	// Delay is the client's own scheduling delay at p99, in milliseconds.
	Delay *float64 `json:"client_delay_p99_ms,omitempty"`
	// Distorted is whether that is so much of TTFTP95 that the step is of no use.
	Distorted bool `json:"distorted,omitempty"`
}

// What a client's own scheduling delay may be, at p99, before a step or a stair is
// of no use: TolerableDelay always, and else BearableShare of the time it is
// measured against.
const (
	TolerableDelay = 2.0 // milliseconds
	BearableShare  = 0.1
)

// Unusable tells whether a client's delay at p99 spoils what it measured: it is
// more than both TolerableDelay and BearableShare of the time given. Both are
// milliseconds; a time that is not positive bears no more than TolerableDelay.
func Unusable(delay, of float64) bool {
	return delay > TolerableDelay && !(of > 0 && delay <= BearableShare*of)
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
	Rate float64 `json:"rate"` // asked for, calls a second
	// Offered is how many calls a second fell due; chance makes that more or less
	// than Rate, which stands for it when it is nil. Achieved is Offered times the
	// share answered of what was due, without the time to drain; nil when that
	// cannot be told.
	Offered  *float64 `json:"offered,omitempty"`
	Achieved *float64 `json:"achieved,omitempty"`
	// PerSecond is calls that succeeded a second, with the time to drain in it.
	PerSecond float64  `json:"succeeded_per_second"`
	Calls     int      `json:"calls"`
	Succeeded float64  `json:"succeeded"` // share, 0–1
	TTFTP99   *float64 `json:"ttft_p99_ms,omitempty"`
	// Delay is the client's own scheduling delay at p99, in milliseconds.
	Delay *float64 `json:"client_delay_p99_ms,omitempty"`
	// Distorted is whether that is so much of the objective that the stair is of no
	// use.
	Distorted bool `json:"distorted,omitempty"`
}

// offered is the rate that fell due.
func (w *Window) offered() float64 {
	if o := known(w.Offered); o != nil {
		return *o
	}
	return w.Rate
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
