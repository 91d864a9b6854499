package workload

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Plan says what a load test sends, and when.
type Plan struct {
	Arrivals Arrivals
	// Input and Output are the lengths aimed at. Output may be none, which leaves
	// the end to the model.
	Input, Output Length
	Sharing       Sharing
	// Seed decides everything drawn by chance. Repeats that are to meet a cold
	// prefix cache need seeds of their own.
	Seed uint64
	// Trace is what Replay and lengths of kind trace follow, sorted by time. It
	// is not changed.
	Trace []Row
	// Calls ends the plan after so many calls; 0 does not.
	Calls int
	// Duration ends an open loop before the first call due at or after it; 0 does
	// not. In a closed loop the plan does not know the time: the caller stops.
	Duration time.Duration
}

// traced tells whether the plan follows its trace, and therefore ends with it.
func (p Plan) traced() bool {
	return p.Arrivals.Shape == Replay || p.Input.Kind == KindTrace || p.Output.Kind == KindTrace
}

// Validate tells whether the plan can be carried out. A plan needs an end: calls,
// a duration or, if it follows one, its trace. The zero value is no plan.
func (p Plan) Validate() error {
	if err := p.Arrivals.Validate(); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	if p.Input.IsNone() {
		return fmt.Errorf("plan: no input length given: %s", lengthExample)
	}
	if err := p.Input.Validate(); err != nil {
		return fmt.Errorf("plan: input %w", err)
	}
	if err := p.Output.Validate(); err != nil {
		return fmt.Errorf("plan: output %w", err)
	}
	if s := p.Sharing; s.Tokens < 0 || s.Tokens > MaxTokens || s.Groups < 0 {
		return fmt.Errorf("plan: a common beginning has between 0 and %d tokens, and its groups are not negative", MaxTokens)
	}
	if p.Sharing.Groups > 0 && p.Sharing.Tokens == 0 {
		return errors.New("plan: groups of prompts need a common beginning: say how many tokens of it")
	}
	if p.Input.Kind == KindFixed && p.Sharing.Tokens > 0 && int(p.Input.Mean) <= p.Sharing.Tokens {
		return fmt.Errorf("plan: prompts of %g tokens cannot have %d in common and differ after them: make them longer", p.Input.Mean, p.Sharing.Tokens)
	}
	if p.Calls < 0 || p.Duration < 0 {
		return errors.New("plan: calls and duration cannot be negative")
	}
	if p.traced() {
		if len(p.Trace) == 0 {
			return errors.New("plan: a replay and lengths of a trace need a trace, and there is none")
		}
		if !slices.IsSortedFunc(p.Trace, func(a, b Row) int { return cmp.Compare(a.At, b.At) }) || p.Trace[0].At < 0 {
			return errors.New("plan: the rows of the trace must be sorted by time, and none before 0")
		}
		if p.Input.Kind == KindTrace && !slices.ContainsFunc(p.Trace, func(r Row) bool { return r.Input > 0 }) {
			return errors.New("plan: no row of the trace knows its input tokens: give an input length")
		}
	} else if p.Calls == 0 && p.Duration == 0 {
		return errors.New("plan: no end given: say how many calls, or for how long")
	}
	return nil
}
