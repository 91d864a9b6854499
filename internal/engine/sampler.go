package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// DefaultEvery is how often a Sampler reads: a queue that matters to a user
	// lasts a second or more, and a page of metrics costs an engine milliseconds,
	// which it takes from the process that also serves requests.
	DefaultEvery = time.Second
	// minEvery and maxEvery bound Options.Every: more often, reading would be a
	// load of its own; less often, a reading says nothing of a call.
	minEvery = 100 * time.Millisecond
	maxEvery = time.Minute
	// pollTimeout is the most that one reading may take. An engine that needs
	// longer is too busy to be asked again soon.
	pollTimeout = 2 * time.Second
	// maxBackoff is the longest pause after failures.
	maxBackoff = 30 * time.Second
	// kept is how far back readings are kept: 900 of them by default, some
	// hundred bytes each and some hundred more for every rank listed.
	kept = 15 * time.Minute
)

// Options say what a Sampler reads. Only Address is needed.
type Options struct {
	// Address is the engine's base URL or that of its metrics.
	Address string
	// Kind is the engine that it is; Auto or "" tells it by the page.
	Kind Kind
	// Every is the time from one question to the next, 100 ms to 1 min; 0 is
	// DefaultEvery.
	Every time.Duration
	// Client may be nil.
	Client *http.Client
	// MaxSeqs and KVTokens are what most engines' metrics do not tell: how many
	// requests one data-parallel rank runs at once (vLLM --max-num-seqs, SGLang
	// --max-running-requests, llama.cpp --parallel) and how many tokens its KV
	// cache holds. 0 is not told; what the engine shows goes before it.
	MaxSeqs, KVTokens int64
	// Report is told when reading begins to fail, with the error, and when it
	// works again, with nil: once for each, not for every try. It may be nil, is
	// called on Run's goroutine, and holds up the next reading only.
	Report func(error)
}

// Sampler reads an engine's gauges again and again while Run runs, and keeps
// those of the last 15 minutes. All methods may be called from any goroutine.
type Sampler struct {
	options Options
	url     *url.URL
	stale   time.Duration // a reading older than this says nothing of now

	// now is the newest reading; nil before the first, while reading fails and
	// when Run has returned.
	now atomic.Pointer[Gauges]

	mu       sync.Mutex
	readings []reading // oldest first, none older than kept
	// state is what State returns, but for what follows from readings.
	state State
}

// reading is a reading among others.
type reading struct {
	*Gauges
	lost time.Time // when the next try failed; zero if it did not
}

// NewSampler makes a Sampler; it reads nothing until Run.
func NewSampler(options Options) (*Sampler, error) {
	u, err := metricsURL(options.Address)
	if err != nil {
		return nil, err
	}
	if options.Kind, err = ParseKind(string(options.Kind)); err != nil {
		return nil, err
	}
	if options.Every == 0 {
		options.Every = DefaultEvery
	}
	if options.Every < minEvery || options.Every > maxEvery {
		return nil, fmt.Errorf("read an engine every %v: write a time between %v and %v", options.Every, minEvery, maxEvery)
	}
	if options.MaxSeqs < 0 || options.MaxSeqs > 1<<31 || options.KVTokens < 0 || options.KVTokens > largest/(1<<20) {
		return nil, errors.New("the engine's max_num_seqs and KV size are not sizes of an engine: write whole numbers above 0, or leave them out")
	}
	return &Sampler{options: options, url: u, stale: 3 * options.Every,
		state: State{Address: shown(u), Configured: options.Kind, EveryMS: milliseconds(options.Every)}}, nil
}

// Run reads until ctx is done, one reading at a time, the first at once. After
// failures it pauses: for twice Every, then twice as long each time, up to 30 s,
// less a random part of up to a half. Run is not called again while it runs, and
// whoever starts it in a goroutine waits for its return.
func (s *Sampler) Run(ctx context.Context) {
	defer s.now.Store(nil)
	failures := 0
	for {
		began := time.Now()
		g, err := s.poll(ctx)
		if ctx.Err() != nil {
			return
		}
		ended := time.Now()
		s.note(ended, g, err)
		var wait time.Duration
		if err == nil {
			failures = 0
			// An engine that answers slowly gets its pause nevertheless.
			wait = max(s.options.Every-ended.Sub(began), s.options.Every/2)
		} else {
			failures++
			wait = backoff(s.options.Every, failures)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// backoff is the pause after so many failures in a row.
func backoff(every time.Duration, failures int) time.Duration {
	longest := max(maxBackoff, every)
	pause := every
	for range failures {
		if pause *= 2; pause >= longest {
			pause = longest
			break
		}
	}
	return pause/2 + rand.N(pause/2+1)
}

// poll makes one reading.
func (s *Sampler) poll(ctx context.Context) (*Gauges, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	g, err := ReadGauges(ctx, s.options.Client, s.url.String(), s.options.Kind)
	if err != nil {
		return nil, err
	}
	s.complete(&g)
	return &g, nil
}

// complete adds what the engine did not tell.
func (s *Sampler) complete(g *Gauges) {
	if !g.MaxSeqs.Known && s.options.MaxSeqs > 0 {
		g.MaxSeqs = exactly(s.options.MaxSeqs * int64(g.RankCount))
		for i := range g.Ranks {
			g.Ranks[i].MaxSeqs = exactly(s.options.MaxSeqs)
		}
	}
	if !g.KVTokens.Known && s.options.KVTokens > 0 {
		g.KVTokens = exactly(s.options.KVTokens * int64(g.RankCount))
		for i := range g.Ranks {
			g.Ranks[i].KVTokens = exactly(s.options.KVTokens)
		}
	}
}

// note keeps what became of a try and reports a change.
func (s *Sampler) note(now time.Time, g *Gauges, err error) {
	s.mu.Lock()
	s.forget(now)
	st := &s.state
	changed := (err != nil) != (st.Failures > 0)
	if err != nil {
		s.now.Store(nil)
		if last := len(s.readings) - 1; last >= 0 && st.Failures == 0 {
			s.readings[last].lost = now
		}
		st.Failures++
		st.LastFailure, st.LastError = now.UTC(), shorten(err.Error(), 4*maxText)
	} else {
		s.now.Store(g)
		s.readings = append(s.readings, reading{Gauges: g})
		st.Failures = 0
		st.LastSuccess, st.Kind, st.TookMS = g.Time.UTC(), g.Kind, milliseconds(g.Took)
	}
	s.mu.Unlock()
	if changed && s.options.Report != nil {
		s.options.Report(err)
	}
}

// forget drops readings that are too old; s.mu is held.
func (s *Sampler) forget(now time.Time) {
	i := 0
	for i < len(s.readings) && now.Sub(s.readings[i].Time) > kept {
		i++
	}
	s.readings = slices.Delete(s.readings, 0, i)
}

// Latest returns the newest reading, whatever its age; false before the first,
// while reading fails and when Run has returned. It takes no lock.
func (s *Sampler) Latest() (Gauges, bool) {
	g := s.now.Load()
	if g == nil {
		return Gauges{}, false
	}
	return *g, true
}

// At returns the newest reading and its age at now, which is about the present
// and never the past; see Around. It is false where Latest is, and when the
// reading is older than three times Every. It takes no lock.
func (s *Sampler) At(now time.Time) (Gauges, time.Duration, bool) {
	g := s.now.Load()
	if g == nil {
		return Gauges{}, 0, false
	}
	age := now.Sub(g.Time)
	if age > s.stale {
		return Gauges{}, 0, false
	}
	return *g, max(0, age), true
}
