package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// script answers the nth question, from 0, within a bubble.
type script func(n int, r *http.Request) (*http.Response, error)

// scripted is an engine that follows a script and notes when it was asked.
type scripted struct {
	t      *testing.T
	answer script
	busy   atomic.Int32
	mu     sync.Mutex
	times  []time.Time
}

// asked are the instants of the questions so far.
func (s *scripted) asked() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.times)
}

// reports is what a Sampler reported.
type reports struct {
	mu  sync.Mutex
	all []error
}

func (r *reports) add(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, err)
}

func (r *reports) get() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

func (s *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.busy.Add(1) != 1 {
		s.t.Error("asked again before the last answer was there")
	}
	defer s.busy.Add(-1)
	s.mu.Lock()
	n := len(s.times)
	s.times = append(s.times, time.Now())
	s.mu.Unlock()
	return s.answer(n, r)
}

// ok is an answer with this page.
func ok(text string) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Status: "200 OK", Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text))}, nil
}

// running is a page of vLLM's.
func running(running, waiting int) (*http.Response, error) {
	return ok(fmt.Sprintf("vllm:num_requests_running %d\nvllm:num_requests_waiting %d\n", running, waiting))
}

// sample runs a Sampler in a bubble beside f.
func sample(t *testing.T, o Options, answer script, f func(t *testing.T, s *Sampler, e *scripted)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := &scripted{t: t, answer: answer}
		o.Client = &http.Client{Transport: e}
		if o.Address == "" {
			o.Address = "http://engine"
		}
		s, err := NewSampler(o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { s.Run(ctx) })
		synctest.Wait()
		f(t, s, e)
		cancel()
		wg.Wait()
		if g, known := s.Latest(); known {
			t.Errorf("nobody reads, yet there is %+v", g)
		}
	})
}

func TestSamplerReads(t *testing.T) {
	sample(t, Options{MaxSeqs: 8, KVTokens: 4096}, func(n int, _ *http.Request) (*http.Response, error) { return running(n, 0) },
		func(t *testing.T, s *Sampler, e *scripted) {
			start := time.Now()
			for i := range 4 {
				g, age, known := s.At(time.Now())
				if !known || age != 0 || g.Running != exactly(int64(i)) || !g.Time.Equal(start.Add(time.Duration(i)*time.Second)) {
					t.Errorf("reading %d: %+v, %v old, %v", i, g, age, known)
				}
				if g.MaxSeqs != exactly(8) || g.KVTokens != exactly(4096) {
					t.Errorf("the engine's sizes are %+v and %+v, not those that were told", g.MaxSeqs, g.KVTokens)
				}
				if latest, known := s.Latest(); !known || latest.Time != g.Time {
					t.Errorf("the latest is %+v, %v", latest, known)
				}
				time.Sleep(500 * time.Millisecond)
				if _, age, known := s.At(time.Now()); !known || age != 500*time.Millisecond {
					t.Errorf("half a second later it is %v old, %v", age, known)
				}
				time.Sleep(500 * time.Millisecond)
				synctest.Wait()
			}
			if _, age, known := s.At(start.Add(-time.Hour)); !known || age != 0 {
				t.Errorf("a reading from the future is %v old, %v", age, known)
			}
		})
}

// TestSizesByRank: what is told is one rank's, and the engine's word goes first.
func TestSizesByRank(t *testing.T) {
	for name, tt := range map[string]struct{ maxSeqs, kvTokens, rankSeqs, rankTokens int64 }{
		"vllm.txt":         {8, 1103040, 4, 551520},
		"sglang_first.txt": {2231, 570979, 0, 0},
		"tgi.txt":          {4, 100, 0, 0},
	} {
		sample(t, Options{MaxSeqs: 4, KVTokens: 100}, func(int, *http.Request) (*http.Response, error) { return ok(page(t, name)) },
			func(t *testing.T, s *Sampler, _ *scripted) {
				g, _ := s.Latest()
				if g.MaxSeqs != exactly(tt.maxSeqs) || g.KVTokens != exactly(tt.kvTokens) {
					t.Errorf("%s: %+v and %+v, want %+v", name, g.MaxSeqs, g.KVTokens, tt)
				}
				for _, r := range g.Ranks {
					if r.MaxSeqs != exactly(tt.rankSeqs) || r.KVTokens != exactly(tt.rankTokens) {
						t.Errorf("%s: rank %+v, want %+v", name, r, tt)
					}
				}
			})
	}
}

// TestSlowEngine: one that needs long for its page is asked less often.
func TestSlowEngine(t *testing.T) {
	sample(t, Options{}, func(int, *http.Request) (*http.Response, error) {
		time.Sleep(1500 * time.Millisecond)
		return running(1, 0)
	}, func(t *testing.T, s *Sampler, e *scripted) {
		if _, _, known := s.At(time.Now()); known {
			t.Error("a reading before the first answer")
		}
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		asked := e.asked()
		for i, at := range asked {
			if want := time.Duration(i) * 2 * time.Second; at.Sub(asked[0]) != want {
				t.Errorf("question %d came after %v, want %v", i, at.Sub(asked[0]), want)
			}
		}
		if g, _, known := s.At(time.Now()); !known || g.Took != 1500*time.Millisecond || len(asked) != 6 {
			t.Errorf("got %+v, %v, of %d", g, known, len(asked))
		}
		time.Sleep(700 * time.Millisecond) // it ends in the middle of an answer
	})
}

// TestStale: a reading that is too old is not about now, even before anything
// failed.
func TestStale(t *testing.T) {
	sample(t, Options{Every: 200 * time.Millisecond}, func(n int, r *http.Request) (*http.Response, error) {
		if n == 0 {
			return running(1, 0)
		}
		<-r.Context().Done()
		return nil, r.Context().Err()
	}, func(t *testing.T, s *Sampler, _ *scripted) {
		time.Sleep(600 * time.Millisecond)
		if _, age, known := s.At(time.Now()); !known || age != 600*time.Millisecond {
			t.Errorf("%v old, %v", age, known)
		}
		time.Sleep(time.Nanosecond)
		if g, age, known := s.At(time.Now()); known {
			t.Errorf("got %+v, %v old", g, age)
		}
		if _, known := s.Latest(); !known {
			t.Error("the latest is gone, yet nothing failed")
		}
	})
}

// TestFailureAndReturn: pauses grow and are bounded, and each change is reported once.
func TestFailureAndReturn(t *testing.T) {
	var told reports
	const dead = 12
	sample(t, Options{Report: told.add}, func(n int, r *http.Request) (*http.Response, error) {
		switch {
		case n == 0 || n > dead:
			return running(1, 2)
		case n == 1:
			<-r.Context().Done() // a black hole
			return nil, r.Context().Err()
		}
		return nil, errors.New("connection refused")
	}, func(t *testing.T, s *Sampler, e *scripted) {
		time.Sleep(3 * time.Second) // asked again after 1 s, gave up 2 s later
		synctest.Wait()
		if _, _, known := s.At(time.Now()); known || len(told.get()) != 1 || !strings.Contains(told.get()[0].Error(), "is it running") {
			t.Errorf("still known: %v, reports %v", known, told.get())
		}
		st := s.State()
		if st.Working || st.Failures != 1 || st.LastError == "" || st.Latest == nil || st.Readings != 1 {
			t.Errorf("state %+v", st)
		}
		failed := time.Now()
		for len(e.asked()) <= dead+1 {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		asked := e.asked()
		for i := 2; i <= dead+1; i++ {
			pause := asked[i].Sub(failed)
			longest := min(maxBackoff, time.Second<<(i-1))
			if pause < longest/2 || pause > longest {
				t.Errorf("pause %d was %v, want %v to %v", i-1, pause, longest/2, longest)
			}
			failed = asked[i]
		}
		if all := told.get(); len(all) != 2 || all[1] != nil {
			t.Errorf("reports %v", all)
		}
		if _, _, known := s.At(time.Now()); !known || !s.State().Working || s.State().LastError == "" {
			t.Errorf("it works again, yet known is %v, state %+v", known, s.State())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		asked = e.asked()
		if last := len(asked) - 1; asked[last].Sub(asked[last-1]) != time.Second {
			t.Errorf("after it worked it paused %v", asked[last].Sub(asked[last-1]))
		}
	})
}

func TestBackoff(t *testing.T) {
	for _, every := range []time.Duration{minEvery, time.Second, maxEvery} {
		for failures := 1; failures < 1000; failures += 1 + failures/3 {
			longest := max(maxBackoff, every)
			if failures < 20 {
				longest = min(longest, every<<failures)
			}
			low, high := longest, time.Duration(0)
			for range 200 {
				pause := backoff(every, failures)
				low, high = min(low, pause), max(high, pause)
			}
			if low < longest/2 || high > longest || high-low < longest/4 {
				t.Errorf("after %d failures, reading every %v: %v to %v, want to fill %v to %v", failures, every, low, high, longest/2, longest)
			}
		}
	}
}

// TestFlapping: every change is reported, and nothing twice.
func TestFlapping(t *testing.T) {
	var told reports
	rng := rand.New(rand.NewPCG(1, 9))
	var changes atomic.Int32
	var failing atomic.Bool
	sample(t, Options{Report: told.add}, func(int, *http.Request) (*http.Response, error) {
		if fails := rng.IntN(2) == 0; failing.Swap(fails) != fails {
			changes.Add(1)
		}
		if failing.Load() {
			return nil, errors.New("reset by peer")
		}
		return running(1, 0)
	}, func(t *testing.T, s *Sampler, _ *scripted) {
		for range 600 {
			time.Sleep(time.Second)
			synctest.Wait()
			if _, _, known := s.At(time.Now()); known == failing.Load() {
				t.Fatalf("a reading: %v, while reading fails: %v", known, failing.Load())
			}
		}
		all := told.get()
		if len(all) < 20 || len(all) != int(changes.Load()) {
			t.Fatalf("%d reports of %d changes", len(all), changes.Load())
		}
		for i := 1; i < len(all); i++ {
			if (all[i] == nil) == (all[i-1] == nil) {
				t.Fatalf("report %d is %v, after %v", i, all[i], all[i-1])
			}
		}
	})
}

// TestReadingsAreBounded: after two hours there are those of 15 minutes.
func TestReadingsAreBounded(t *testing.T) {
	var fails atomic.Bool
	sample(t, Options{Every: 10 * time.Second}, func(int, *http.Request) (*http.Response, error) {
		if fails.Load() {
			return nil, errors.New("gone")
		}
		return running(1, 0)
	}, func(t *testing.T, s *Sampler, _ *scripted) {
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		st := s.State()
		if st.Readings != 91 || time.Since(st.Oldest) > kept {
			t.Errorf("%d readings since %v", st.Readings, time.Since(st.Oldest))
		}
		fails.Store(true)
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		if st = s.State(); st.Readings != 0 || st.Latest != nil || time.Since(st.LastSuccess) < 19*time.Minute {
			t.Errorf("after 20 minutes of failure: %+v", st)
		}
	})
}

func TestNewSamplerErrors(t *testing.T) {
	for name, o := range map[string]Options{
		"not a URL":              {Address: "localhost:8000"},
		"no engine is called":    {Address: "http://e", Kind: "ollama"},
		"between 100ms and 1m":   {Address: "http://e", Every: time.Millisecond},
		"read an engine every":   {Address: "http://e", Every: time.Hour},
		"not sizes of an engine": {Address: "http://e", MaxSeqs: -1},
		"whole numbers above 0":  {Address: "http://e", KVTokens: 1 << 60},
	} {
		if s, err := NewSampler(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%q: got %v, error %v", name, s, err)
		}
	}
}
