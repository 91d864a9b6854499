package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirgate/weir/internal/saturation"
	"github.com/weirgate/weir/internal/workload"
)

// Ladder puts loads on the endpoint, one after the other, and finds the load at
// which it stops keeping up. All loads are closed loops, or all have a rate.
// Objectives of the options are those of the configuration unless given.
//
// When ctx is done, the steps measured in full until then are judged; the run of
// one that was not is returned with the others. With an error come the runs before it.
func (r *Runner) Ladder(ctx context.Context, loads []Load, o saturation.Options) ([]Run, Ladder, error) {
	unit, err := unitOf(loads)
	if err != nil {
		return nil, Ladder{}, fmt.Errorf("climb the ladder: %w", err)
	}
	if o.TTFT == 0 && o.TPOT == 0 {
		o.TTFT, o.TPOT = r.cfg.Objectives.TTFT, r.cfg.Objectives.TPOT
	}
	var runs []Run
	var l Ladder
	for _, load := range loads {
		run, err := r.Run(ctx, load)
		if err != nil {
			return runs, l, fmt.Errorf("climb the ladder: %w", err)
		}
		if len(run.Repeats) > 0 {
			runs = append(runs, run)
		}
		if run.Interrupted {
			break // a part of a step says little of it
		}
		l.Steps = append(l.Steps, StepOf(&run))
	}
	l.Knee = saturation.FindKnee(unit, l.Steps, o)
	return runs, l, nil
}

func unitOf(loads []Load) (saturation.Unit, error) {
	if len(loads) == 0 {
		return "", errors.New("it has no steps; give some, such as 1,4,8,16,32")
	}
	unit := saturation.Rate
	for i := range loads {
		this := saturation.Rate
		switch loads[i].Arrivals.Shape {
		case workload.Closed, "":
			this = saturation.Concurrency
		case workload.Replay:
			return "", errors.New("a replay has the rate of its trace; give steps of concurrency or of calls a second")
		}
		if i == 0 {
			unit = this
		}
		if this != unit {
			return "", errors.New("steps of concurrency and of calls a second cannot be compared; use one of them")
		}
	}
	return unit, nil
}

// StepOf turns a run into a step of a ladder.
//
// Of a closed loop throughput is what the figures say. Of an open loop it is
// that of the time in which calls were sent: Achieved of the figures, and as many
// tokens as these calls have on average. Where that is not known it is what the whole
// run came to, which is less.
//
// The step is distorted when the client's delay is too much of its TTFT p95, or of its
// E2E p95 where that is not known; see saturation.Unusable.
func StepOf(run *Run) saturation.Step {
	m := &run.Median
	s := saturation.Step{
		Load: float64(run.Arrivals.Concurrency), Calls: m.Calls, Achieved: m.CallsPerSecond, TPM: m.TotalPerMinute,
		TTFTP95: pick(m.TTFT, p95), TPOTP95: pick(m.TPOT, p95), Delay: pick(m.Client.Delay, p99),
	}
	if s.Delay != nil {
		against, ok := p95(m.TTFT)
		if !ok {
			against, _ = p95(m.E2E)
		}
		s.Distorted = saturation.Unusable(*s.Delay, against)
	}
	if m.Calls > 0 {
		s.Succeeded = float64(m.Good) / float64(m.Calls)
	}
	if run.Arrivals.Shape == workload.Closed {
		return s
	}
	s.Load, s.TPM = run.Arrivals.Rate, nil
	s.Offered = m.Offered
	if m.Achieved != nil {
		s.Achieved = *m.Achieved
	} else {
		s.AtLeast = true
	}
	if m.TotalPerMinute != nil && m.Input != nil && m.Output != nil {
		tpm := s.Achieved * 60 * (m.Input.Mean + m.Output.Mean)
		s.TPM = &tpm
	}
	return s
}
