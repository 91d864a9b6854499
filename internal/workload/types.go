package workload

import "time"

// Shape is how arrivals come.
type Shape string

// The shapes of arrivals.
const (
	Closed   Shape = "closed"   // so many calls at a time, the next when one ends
	Poisson  Shape = "poisson"  // independent arrivals at a mean rate
	Constant Shape = "constant" // evenly spaced arrivals
	Burst    Shape = "burst"    // groups of simultaneous arrivals at a mean rate
	Replay   Shape = "replay"   // arrivals of a trace
)

// Arrivals say when calls are sent.
type Arrivals struct {
	Shape Shape `json:"shape"`
	// Concurrency is the number of calls at a time of a closed loop; in an open
	// loop it bounds the calls in flight, 0 is no bound.
	Concurrency int `json:"concurrency,omitempty"`
	// Rate is calls a second of an open loop; of a replay it is a factor on the
	// trace's speed, 0 is 1.
	Rate float64 `json:"rate,omitempty"`
	// Group is how many calls come together in a burst.
	Group int `json:"group,omitempty"`
}

// Length is a distribution of lengths in tokens. The zero value is none.
type Length struct {
	// Kind is fixed, uniform, lognormal or trace.
	Kind string `json:"kind"`
	// Mean is the length (fixed) or the mean (lognormal).
	Mean float64 `json:"mean,omitempty"`
	// Deviation is the standard deviation of a lognormal, in tokens.
	Deviation float64 `json:"deviation,omitempty"`
	// Min and Max bound all kinds but fixed; of uniform they are the ends, both included.
	Min int `json:"min,omitempty"`
	Max int `json:"max,omitempty"`
}

// Sharing says what prompts have in common, for the engine's prefix cache.
type Sharing struct {
	// Tokens is how long the common beginning is. 0 makes every prompt differ
	// from its first word on, so that no cache helps.
	Tokens int `json:"tokens,omitempty"`
	// Groups is the number of different beginnings, by turns; 0 is 1.
	Groups int `json:"groups,omitempty"`
}

// Row is one call of a trace.
type Row struct {
	At     time.Duration // since the trace's first arrival
	Input  int           // tokens, 0 unknown
	Output int           // tokens, 0 unknown
}

// Item is one call to send.
type Item struct {
	Index int
	// Due is when to send it, since the start; 0 in a closed loop, where the
	// end of another call decides.
	Due time.Duration
	// Input and Output are the lengths aimed at, in tokens; Output 0 leaves the
	// end to the model.
	Input, Output int
	Prompt        string
	// Words is how many words the prompt has, for Prompter.Learn.
	Words int
}
