package gpu

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// interval is how often a Source is asked: utilisation is a mean over at
	// most a second, so that less often would leave time unseen.
	interval = time.Second
	// patience is how long one sample may take before it is reported as late. A
	// driver that wakes a GPU up takes up to a second.
	patience = 3 * time.Second
	// keep is how long samples are kept: calls that run longer are rare.
	keep = 15 * time.Minute
	// maxBackoff bounds the wait after errors.
	maxBackoff = 30 * time.Second
	// maxGPUs bounds the memory: a GPU takes about 130 KiB. The largest machines
	// have 16.
	maxGPUs = 64
)

// Options say how to sample. The zero value is fine.
type Options struct {
	// Report is told, from the goroutine of Run and one call at a time, when the
	// condition of the source changes: first when the first sample came or
	// failed, then each time an error comes, changes or goes. nil tells nobody.
	Report func(State)
}

// State is the condition of a source.
type State struct {
	Source  string    `json:"source"`
	GPUs    int       `json:"gpus"`               // in the last sample that brought any
	LeftOut int       `json:"left_out,omitempty"` // beyond the 64 that are kept
	Since   time.Time `json:"since,omitzero"`     // since when Error is what it is; zero: nothing was sampled yet
	Last    time.Time `json:"last,omitzero"`      // when the last sample that brought readings began; zero: none did
	Error   string    `json:"error,omitempty"`    // what is wrong; "" is nothing
}

// Sampler asks a Source once a second and keeps what it says. Its methods may be
// used by many goroutines; those of a nil Sampler do nothing and know nothing.
type Sampler struct {
	source Source
	report func(State)
	epoch  time.Time // times are kept as ns since then, by the monotonic clock

	mu     sync.RWMutex // guards all below but tokens
	state  State
	latest []Reading
	tracks []*track

	tokens [buckets]atomic.Uint64 // see Count
}

// NewSampler makes a Sampler of src, which Run asks and the caller closes once
// Run has returned.
func NewSampler(src Source, o Options) *Sampler {
	return &Sampler{source: src, report: o.Report, epoch: time.Now(), state: State{Source: src.Name()}}
}

// outcome is what one sample brought.
type outcome struct {
	readings []Reading
	err      error
}

// Run samples until ctx ends. One sample is under way at a time: a driver that
// hangs is reported, and asked again only once it has answered. If it hangs when
// ctx ends, Run leaves that one goroutine behind after three seconds, since a
// call of C cannot be broken off.
func (s *Sampler) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var backoff time.Duration
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if ctx.Err() != nil {
			return // both were ready
		}
		began := time.Now()
		got, ended := s.sample(ctx, began)
		if ended {
			return
		}
		s.take(began, got)
		wait := interval
		if len(got.readings) == 0 {
			backoff = min(max(interval, 2*backoff), maxBackoff)
			wait = backoff
		} else {
			backoff = 0
		}
		timer.Reset(max(0, wait-time.Since(began)))
	}
}

// sample asks the source once; ended tells that ctx did.
func (s *Sampler) sample(ctx context.Context, now time.Time) (got outcome, ended bool) {
	done := make(chan outcome, 1)
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	go func() { done <- s.ask(limited, now) }()
	select {
	case got = <-done:
		return got, ctx.Err() != nil
	case <-limited.Done():
	}
	// A source that heeds its context answers about now, others later.
	grace := time.NewTimer(interval)
	defer grace.Stop()
	late := grace.C
	ending := ctx.Done()
	for {
		select {
		case got = <-done:
			return got, ctx.Err() != nil
		case <-late:
			if ctx.Err() != nil {
				return outcome{}, true
			}
			s.change(func(state *State) {
				state.Error = fmt.Sprintf("no answer within %v; it is asked again once it has answered", patience)
			})
			late = nil
		case <-ending:
			ending = nil
			grace.Reset(patience)
			late = grace.C
		}
	}
}

// ask asks the source, and takes a panic for an error: whatever an exporter
// sends must not end the gateway.
func (s *Sampler) ask(ctx context.Context, now time.Time) (got outcome) {
	defer func() {
		if p := recover(); p != nil {
			got = outcome{err: fmt.Errorf("sampling broke off: %v", p)}
		}
	}()
	got.readings, got.err = s.source.Sample(ctx, now)
	if len(got.readings) == 0 && got.err == nil {
		got.err = errors.New("there is no GPU")
	}
	return got
}

// take keeps what a sample brought.
func (s *Sampler) take(began time.Time, got outcome) {
	leftOut := 0
	if len(got.readings) > 0 {
		leftOut = s.keep(got.readings)
	}
	s.change(func(state *State) {
		if len(got.readings) > 0 {
			state.GPUs, state.LeftOut, state.Last = len(got.readings)-leftOut, leftOut, began
		}
		state.Error = ""
		if got.err != nil {
			state.Error = got.err.Error()
		}
	})
}

// change changes the state and reports it if the error is another than before.
func (s *Sampler) change(edit func(*State)) {
	s.mu.Lock()
	before := s.state
	edit(&s.state)
	news := before.Since.IsZero() || s.state.Error != before.Error
	if news {
		s.state.Since = time.Now()
	}
	state := s.state
	s.mu.Unlock()
	if news && s.report != nil {
		s.report(state)
	}
}

// keep adds readings to their GPUs and returns how many GPUs it left out.
func (s *Sampler) keep(readings []Reading) (leftOut int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latest = s.latest[:0]
	for i := range readings {
		r := &readings[i]
		at := s.since(r.Time)
		g := s.track(r.key(), at)
		if g == nil {
			leftOut++
			continue
		}
		g.add(at, r)
		s.latest = append(s.latest, *r)
	}
	return leftOut
}

// track finds or makes the track of a GPU; nil: too many. One that was not seen
// for so long that nothing of it is of use makes room. The caller holds mu.
func (s *Sampler) track(key string, at int64) *track {
	for _, g := range s.tracks {
		if g.key == key {
			return g
		}
	}
	if len(s.tracks) < maxGPUs {
		s.tracks = append(s.tracks, &track{key: key})
		return s.tracks[len(s.tracks)-1]
	}
	for i, old := range s.tracks {
		if old.last() < at-int64(keep) {
			s.tracks[i] = &track{key: key}
			return s.tracks[i]
		}
	}
	return nil
}

// since is t as ns since the epoch.
func (s *Sampler) since(t time.Time) int64 { return int64(t.Sub(s.epoch)) }

// Latest returns the last readings, one for each GPU; their Time tells how old
// they are.
func (s *Sampler) Latest() []Reading {
	if s == nil {
		return nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return copyReadings(s.latest)
}

// State returns the condition of the source.
func (s *Sampler) State() State {
	if s == nil {
		return State{}
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.state
}
