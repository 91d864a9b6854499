package slo

import "time"

// Target is a share of calls in millionths: 990_000 is 99 %, or p99. Whole numbers
// keep budgets exact. A target lies between 1 and 999_999; 0 is none.
type Target int32

// Objective is a promise about one number of a class's calls: at least Target
// of them stay within Threshold.
type Objective struct {
	// Name tells objectives of a class apart, in metrics and alerts. "" is made
	// by Complete: the number and, for timed ones, the percentile, as in ttft_p99.
	Name   string `json:"name"`
	Number Number `json:"number"`
	Target Target `json:"target_millionths"`
	// Threshold is 0 for Success and Goodput, which have none.
	Threshold time.Duration `json:"threshold_ns,omitempty"`
	// Fallback is judged by the same threshold where Number is unknown: a batch
	// call's upstream TTFT in place of its prefill. It equals Number when there is none.
	Fallback Number `json:"fallback"`
	// When narrows the objective to calls that meet all conditions; a call of which
	// the quantity is unknown counts as unknown.
	When []Condition `json:"when,omitempty"`
}

// Quantity is what conditions and envelopes look at.
type Quantity string

// The quantities.
const (
	InputTokens  Quantity = "input_tokens"
	OutputTokens Quantity = "output_tokens"
)

// Condition is one test of a call: quantity ≤ AtMost.
type Condition struct {
	Quantity Quantity `json:"quantity"`
	AtMost   int64    `json:"at_most"`
}

// Envelope says in which minutes a class's objectives hold: where the traffic was
// what it was promised for. Minutes outside it do not charge the budget, and are
// shown as outside. The zero value is always inside.
type Envelope struct {
	// Terms are percentiles of tokens, each over the calls that ended in the minute.
	Terms []Term `json:"terms,omitempty"`
	// CallsPerMinute is the most calls received in a minute; 0 is any.
	CallsPerMinute int64 `json:"calls_per_minute,omitempty"`
}

// Term is one percentile of an envelope: at least Target of a minute's calls whose
// quantity is known have at most AtMost.
type Term struct {
	Quantity Quantity `json:"quantity"`
	Target   Target   `json:"target_millionths"`
	AtMost   int64    `json:"at_most"`
}

// Class is a service class with its objectives.
type Class struct {
	Name       string      `json:"name"`
	Objectives []Objective `json:"objectives"`
	Valid      Envelope    `json:"valid,omitzero"`
}

// Period is the time that a budget is for.
type Period struct {
	// Rolling is a length such as 30 days; 0 is a calendar month in Zone.
	Rolling time.Duration
	Zone    *time.Location // nil is UTC
}

// BurnRule is one pair of windows: it fires while the budget burns faster than
// Factor in both.
type BurnRule struct {
	Long   time.Duration `json:"long_ns"`
	Short  time.Duration `json:"short_ns"`
	Factor float64       `json:"factor"`
	// Page wakes somebody; else it is a ticket.
	Page bool `json:"page"`
}

// Config is what a Tracker judges by. Complete makes one whole and Validate tells what
// cannot be.
type Config struct {
	Classes []Class    `json:"classes"`
	Period  Period     `json:"period"`
	Burn    []BurnRule `json:"burn"`
	// MinBad is how many bad calls the short window of a rule needs.
	MinBad int64 `json:"min_bad"`
	// Warn and Freeze are shares of the budget; MinCalls is how many calls the
	// period needs before it can freeze.
	Warn     float64 `json:"warn"`
	Freeze   float64 `json:"freeze"`
	MinCalls int64   `json:"min_calls"`
}

// Objective returns the objective of a name in a class, nil where there is none.
func (c *Config) Objective(class, name string) *Objective {
	for i := range c.Classes {
		if c.Classes[i].Name != class {
			continue
		}
		for j := range c.Classes[i].Objectives {
			if c.Classes[i].Objectives[j].Name == name {
				return &c.Classes[i].Objectives[j]
			}
		}
	}
	return nil
}
