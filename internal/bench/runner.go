package bench

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/weirgate/weir/internal/workload"
)

const (
	// progressEvery is how often Progress is called at most.
	progressEvery = 250 * time.Millisecond
	// maxCalls ends a repeat: what is kept of so many calls takes some 350 MB.
	maxCalls = 2_000_000
)

// Runner puts loads on an endpoint, one after the other, and measures. It is not
// for concurrent use.
type Runner struct {
	cfg Config
	// prompter learns during warm-ups how many tokens a word is, and keeps that
	// from load to load.
	prompter *workload.Prompter
	names    map[string]bool // of loads, in call ids
	ran      bool            // whether something was sent, so that a pause is due
}

// New returns a Runner, or says what is missing in cfg.
func New(cfg Config) (*Runner, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("prepare the load test: %w", err)
	}
	return &Runner{cfg: cfg, prompter: workload.NewPrompter(), names: map[string]bool{}}, nil
}

// Run puts one load on the endpoint, all its repeats, and sums up. It returns
// when nothing of it runs any more.
//
// When ctx is done, calls in flight are cancelled and left out; what was
// measured until then is returned as Interrupted, with no error. An error means
// that the load cannot be planned, or that no call of the warm-up succeeded for a reason
// that more calls would not mend, such as a wrong key.
func (r *Runner) Run(ctx context.Context, load Load) (Run, error) {
	l, err := load.filled()
	if err != nil {
		return Run{}, fmt.Errorf("run %s: %w", l.Label, err)
	}
	run := Run{Load: l.Label, Arrivals: l.Arrivals, Input: l.Input, Output: l.Output, Sharing: l.Sharing, Warmup: l.Warmup, Discard: l.Discard}
	s := &session{cfg: &r.cfg, load: &l, name: r.name(l.Label)}
	s.seed = seedOf(r.cfg.Seed, s.name)
	s.promptSeed = seedOf(r.cfg.Seed, r.cfg.Run+"/"+s.name)
	s.learning = r.prompter
	for repeat := 1; repeat <= l.Repeats; repeat++ {
		if r.ran && !wait(ctx, l.Pause) {
			break
		}
		r.ran = true
		t, err := s.repeat(ctx, repeat)
		switch {
		case err != nil:
			return Run{}, fmt.Errorf("run %s: %w", l.Label, err)
		case t == nil:
		case len(t.points) > 0:
			run.add(t, &l, repeat)
		case ctx.Err() == nil:
			return Run{}, fmt.Errorf("run %s: no call was due in the time given; make it longer, or the rate higher", l.Label)
		}
		if ctx.Err() != nil {
			break
		}
	}
	run.Interrupted = len(run.Repeats) < l.Repeats || ctx.Err() != nil
	run.Median, run.Spread = median(run.Repeats)
	run.Failures = failures(run.Repeats)
	return run, nil
}

// add takes a repeat into the run.
func (run *Run) add(t *take, l *Load, repeat int) {
	run.Repeats = append(run.Repeats, t.figures())
	if l.Thermal && run.Thermal == nil {
		run.Thermal = t.thermal(l.Window)
	}
	run.Raw = append(run.Raw, t.raw(RawCalls/l.Repeats))
	for _, note := range t.notes(&run.Repeats[len(run.Repeats)-1]) {
		if l.Repeats > 1 {
			note = fmt.Sprintf("repeat %d: %s", repeat, note)
		}
		run.Notes = append(run.Notes, note)
	}
	t.token, t.chunk, t.delay = nil, nil, nil // the bulk of it
}

// name returns what stands for a load in call ids, different for each load.
func (r *Runner) name(label string) string {
	base := slug(label)
	if base == "" {
		base = "load"
	}
	name := base
	for n := 2; r.names[name]; n++ {
		name = base + "." + strconv.Itoa(n)
	}
	r.names[name] = true
	return name
}

// seedOf derives a seed for one purpose.
func seedOf(seed uint64, purpose string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(purpose)) // a hash takes everything
	return seed ^ h.Sum64()
}

// wait returns after d, or false when ctx is done before.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// errNothing says that a load was sent to no avail.
var errNothing = errors.New("no call of the warm-up succeeded, so there is nothing to measure")
