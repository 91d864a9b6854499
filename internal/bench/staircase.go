package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirgate/weir/internal/saturation"
	"github.com/weirgate/weir/internal/workload"
)

const (
	// DefaultStair is how long each stair lasts: long enough for a queue that
	// grows to be seen.
	DefaultStair = 2 * time.Minute
	// stairDiscard is the share of each stair in which the service gets used to
	// the new rate.
	stairDiscard = 0.1
)

// Stairs is a series of rates around a target.
type Stairs struct {
	// Load is what each stair sends; its arrivals are Poisson unless they are
	// constant or bursts, their rate is the stair's. Calls and Repeats do not apply.
	Load Load
	// Target is the rate to be judged, in calls a second.
	Target float64
	// Objective bounds TTFT; that of the configuration by default.
	Objective time.Duration
	// Top is the highest rate; twice the target by default.
	Top float64
	// Each is how long a stair lasts, 2 min by default.
	Each time.Duration
}

// Staircase climbs from half the target rate in steps of a fifth of it, until
// TTFT p99 passes 80 % of its objective, more than half of the calls fail, two stairs
// in a row show nothing (see saturation.Ended) or Top is reached, and judges the target. There is no pause between the stairs.
//
// When ctx is done, the stairs climbed in full until then are judged; the run of
// one that was not is returned with the others. With an error come the runs before it.
func (r *Runner) Staircase(ctx context.Context, s Stairs) ([]Run, Staircase, error) {
	if s.Objective == 0 {
		s.Objective = r.cfg.Objectives.TTFT
	}
	rates := saturation.Rates(s.Target, s.Top)
	switch {
	case len(rates) == 0:
		return nil, Staircase{}, errors.New("climb the staircase: it needs a target rate above 0, in calls a second")
	case s.Objective <= 0:
		return nil, Staircase{}, errors.New("climb the staircase: it needs an objective for TTFT, such as 2s")
	case !r.cfg.Ask.Stream:
		return nil, Staircase{}, errors.New("climb the staircase: TTFT is only known of streamed answers; ask for streams")
	}
	var runs []Run
	var all Staircase
	for i, rate := range rates {
		run, err := r.Run(ctx, s.stair(rate, i == 0))
		if err != nil {
			return runs, all, fmt.Errorf("climb the staircase: %w", err)
		}
		if len(run.Repeats) > 0 {
			runs = append(runs, run)
		}
		if run.Interrupted {
			break // a part of a stair says little of it
		}
		all.Windows = append(all.Windows, WindowOf(&run, s.Objective))
		if saturation.Ended(s.Objective, all.Windows) {
			break
		}
	}
	all.Verdict = saturation.Judge(s.Target, s.Objective, all.Windows)
	return runs, all, nil
}

// stair is the load of one stair.
func (s *Stairs) stair(rate float64, first bool) Load {
	l := s.Load
	if sh := l.Arrivals.Shape; sh != workload.Constant && sh != workload.Burst {
		l.Arrivals.Shape = workload.Poisson
	}
	l.Arrivals.Rate = rate
	l.Label, l.Calls, l.Repeats, l.Thermal = "", 0, 1, false
	l.Duration = orDefault(s.Each, DefaultStair)
	if l.Discard == 0 {
		l.Discard = stairDiscard
	}
	if !first {
		l.Warmup, l.Pause = None, None
	}
	return l
}

// WindowOf turns a run into a window of a staircase. It is distorted when the
// client's delay is too much of the objective for TTFT; see saturation.Unusable.
func WindowOf(run *Run, objective time.Duration) saturation.Window {
	m := &run.Median
	w := saturation.Window{
		Rate: run.Arrivals.Rate, Offered: m.Offered, Achieved: m.Achieved, PerSecond: m.CallsPerSecond,
		Calls: m.Calls, TTFTP99: pick(m.TTFT, p99), Delay: pick(m.Client.Delay, p99),
	}
	if w.Delay != nil {
		w.Distorted = saturation.Unusable(*w.Delay, float64(objective)/float64(time.Millisecond))
	}
	if m.Calls > 0 {
		w.Succeeded = float64(m.Good) / float64(m.Calls)
	}
	return w
}
