package bench

import (
	"context"
	"fmt"
	"sync"

	"github.com/weirgate/weir/internal/endpoint"
	"github.com/weirgate/weir/internal/workload"
)

// session is one load while it runs.
type session struct {
	cfg  *Config
	load *Load
	name string // in call ids
	// seed is for lengths and arrivals, promptSeed for prompts.
	seed, promptSeed uint64
	learning         *workload.Prompter // knows words and tokens
	prompter         *workload.Prompter // writes; made after the first warm-up
	prompts          int                // how many were written: none comes twice
	progress         Progress
}

// repeat sends one repeat, its warm-up first. It returns nil when ctx was done
// before anything was measured.
func (s *session) repeat(ctx context.Context, repeat int) (*take, error) {
	s.progress = Progress{Load: s.load.Label, Repeat: repeat, Repeats: s.load.Repeats}
	first := 0
	if s.load.Warmup > 0 {
		sent, err := s.warmup(ctx, repeat)
		if err != nil || ctx.Err() != nil {
			return nil, err
		}
		first = sent
	}
	if s.prompter == nil {
		s.prompter = s.learning.With(s.promptSeed, s.load.Sharing)
	}
	return s.measure(ctx, repeat, first)
}

// phase makes one phase; seeds of different phases differ.
func (s *session) phase(repeat, from int, warmup bool) (*phase, error) {
	plan := s.load.plan(seedOf(s.seed, fmt.Sprintf("%d/%t", repeat, warmup)), warmup)
	if plan.Calls == 0 || plan.Calls > maxCalls {
		plan.Calls = maxCalls
	}
	items, err := workload.New(plan, nil)
	if err != nil {
		return nil, err
	}
	prompter := s.prompter
	if prompter == nil {
		prompter = s.learning.With(s.promptSeed, s.load.Sharing)
	}
	return &phase{
		cfg: s.cfg, load: s.load, name: fmt.Sprintf("%s-%s-%d", s.cfg.Run, s.name, repeat), repeat: repeat,
		warmup: warmup, from: from, items: items, prompter: prompter, prompts: s.prompts, arrivals: plan.Arrivals,
	}, nil
}

// warmup sends calls that do not count, and learns from them. It returns how
// many were sent.
func (s *session) warmup(ctx context.Context, repeat int) (int, error) {
	p, err := s.phase(repeat, 0, true)
	if err != nil {
		return 0, err
	}
	s.progress.Warmup, s.progress.Calls, s.progress.Duration = true, s.load.Warmup, 0
	good, sent := 0, 0
	var kind endpoint.Kind
	var reason error
	err = p.run(ctx, func(one result) {
		sent++
		if one.point.ok() {
			good++
			if one.point.input > 0 {
				s.learning.Learn(one.words, int(one.point.input))
			}
		} else if reason == nil || kind == one.point.failed {
			kind, reason = one.point.failed, one.reason
		}
		s.tell(p, &one)
	}, func() { s.show(p) })
	s.prompts += p.written
	if err == nil && sent > 0 && good == 0 && hopeless(kind) && ctx.Err() == nil {
		err = fmt.Errorf("%w: %s: %w", errNothing, kind, orKind(reason, kind))
	}
	return sent, err
}

// hopeless tells whether a failure is one that more calls would not mend.
func hopeless(k endpoint.Kind) bool {
	switch k {
	case endpoint.FailedDNS, endpoint.FailedConnect, endpoint.FailedTLS, endpoint.FailedAuth,
		endpoint.FailedNotFound, endpoint.FailedRequest, endpoint.FailedShape:
		return true
	}
	return false
}

func orKind(err error, k endpoint.Kind) error {
	if err == nil {
		return fmt.Errorf("the calls ended with %s", k)
	}
	return err
}

// measure sends what counts.
func (s *session) measure(ctx context.Context, repeat, from int) (*take, error) {
	p, err := s.phase(repeat, from, false)
	if err != nil {
		return nil, err
	}
	s.progress.Warmup, s.progress.Calls, s.progress.Duration = false, s.load.Calls, s.load.Duration
	s.progress.Ended, s.progress.Failed, s.progress.OutputTokens = 0, 0, 0
	name := p.name
	t := &take{
		arrivals: s.load.Arrivals, objectives: s.cfg.Objectives, step: s.cfg.Profile.definition().steps(),
		id:    func(index int) string { return fmt.Sprintf("%s-%d", name, index) },
		token: newPool(maxGaps, s.seed), chunk: newPool(maxGaps, s.seed), delay: newPool(maxDelays, s.seed),
	}
	// A sampler of its own context: it goes on while calls end.
	sampling, stop := context.WithCancel(context.WithoutCancel(ctx))
	var sampler sync.WaitGroup
	sampler.Go(func() { sampleDelay(sampling, t.delay) })
	err = p.run(ctx, func(one result) {
		t.points = append(t.points, one.point)
		if one.point.ok() && !one.point.discarded {
			switch one.sample.GapsOf {
			case Tokens:
				t.token.addAll(one.sample.Gaps)
			case Chunks:
				t.chunk.addAll(one.sample.Gaps)
			}
		}
		s.tell(p, &one)
	}, func() { s.show(p) })
	stop()
	sampler.Wait()
	t.unsent, t.full = p.unsent, len(t.points) == maxCalls
	s.prompts += p.written
	return t, err
}

// tell hands a sample on.
func (s *session) tell(p *phase, one *result) {
	s.progress.Ended++
	if !one.point.ok() {
		s.progress.Failed++
	}
	s.progress.OutputTokens += int64(max(one.point.output, 0))
	if s.cfg.Sink != nil {
		s.cfg.Sink(one.sample)
	}
}

func (s *session) show(p *phase) {
	if s.cfg.Progress == nil {
		return
	}
	now := s.progress
	now.InFlight, now.Elapsed = int(p.inFlight.Load()), p.elapsed()
	s.cfg.Progress(now)
}
