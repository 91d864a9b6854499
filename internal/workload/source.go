package workload

import (
	"math"
	"math/rand/v2"
	"time"
)

// Source deals a plan out, call by call. It is for one consumer at a time.
type Source struct {
	plan     Plan
	prompter *Prompter
	// Chance has a stream for each purpose, so that a change of the arrivals
	// leaves the lengths as they were.
	arrivals, input, output *rand.Rand
	known                   []int // the known input lengths of the trace
	index                   int
	since                   float64 // Poisson: seconds from the start to the last arrival
}

// New starts a plan. Prompts come from prompter.With the plan's seed and
// sharing, so one prompter may serve many plans and keep what it learned; without
// one (nil) items have no prompt.
func New(p Plan, prompter *Prompter) (*Source, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	stream := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(mix(p.Seed), n)) }
	s := &Source{plan: p, arrivals: stream(1), input: stream(2), output: stream(3)}
	if prompter != nil {
		s.prompter = prompter.With(p.Seed, p.Sharing)
	}
	if p.Input.Kind == KindTrace {
		for _, row := range p.Trace {
			if row.Input > 0 {
				s.known = append(s.known, row.Input)
			}
		}
	}
	return s, nil
}

// Next returns the next call, and false when the plan has come to its end: after
// Plan.Calls of them, in an open loop before the first that would be due at
// Plan.Duration or later, and with the last row of a trace that the plan follows. A
// trace is never begun anew.
//
// The first call of a Poisson plan is due after a gap as all others are; that of a
// constant or burst plan at once. A burst comes every Group/Rate seconds. A row
// of the trace without input tokens gets those of another row, drawn by the seed;
// without output tokens it leaves the end to the model.
func (s *Source) Next() (Item, bool) {
	p, i := &s.plan, s.index
	if p.Calls > 0 && i >= p.Calls || p.traced() && i >= len(p.Trace) {
		return Item{}, false
	}
	item := Item{Index: i}
	if p.Arrivals.Open() {
		seconds := s.due(i)
		item.Due = duration(seconds)
		if p.Duration > 0 && item.Due >= p.Duration {
			return Item{}, false
		}
	}
	s.index++
	item.Input, item.Output = s.lengths(i)
	if s.prompter != nil {
		item.Prompt, item.Words = s.prompter.Prompt(i, item.Input)
	}
	return item, true
}

// due returns when call i is due, in seconds since the start. It is to be asked
// for each call once, in order.
func (s *Source) due(i int) float64 {
	a := s.plan.Arrivals
	switch a.Shape {
	case Poisson:
		s.since += s.arrivals.ExpFloat64() / a.Rate
		return s.since
	case Burst:
		return float64(i/a.Group) * float64(a.Group) / a.Rate
	case Replay:
		speed := a.Rate
		if speed == 0 {
			speed = 1
		}
		return s.plan.Trace[i].At.Seconds() / speed
	default:
		return float64(i) / a.Rate
	}
}

func (s *Source) lengths(i int) (input, output int) {
	switch p := &s.plan; {
	case p.Input.Kind != KindTrace:
		input = p.Input.draw(s.input)
	case p.Trace[i].Input > 0:
		input = p.Input.clamp(float64(p.Trace[i].Input))
	default:
		input = p.Input.clamp(float64(s.known[s.input.IntN(len(s.known))]))
	}
	switch p := &s.plan; {
	case p.Output.IsNone():
	case p.Output.Kind != KindTrace:
		output = p.Output.draw(s.output)
	case p.Trace[i].Output > 0:
		output = p.Output.clamp(float64(p.Trace[i].Output))
	}
	return input, output
}

// duration rounds seconds to the nanosecond; what does not fit is as long as can be.
func duration(seconds float64) time.Duration {
	if ns := math.Round(seconds * 1e9); ns < math.MaxInt64 {
		return time.Duration(ns)
	}
	return math.MaxInt64
}
