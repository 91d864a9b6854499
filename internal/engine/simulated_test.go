package engine

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/sim"
)

// direct sends requests to a handler without a network.
type direct struct{ http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

// load sends calls at random to a simulated engine, in bursts with rests
// between, while a Sampler reads it; it returns when each was sent.
func load(t *testing.T, e *sim.Engine, rng *rand.Rand, calls int) map[string]time.Time {
	t.Helper()
	sent := make(map[string]time.Time, calls)
	client := &http.Client{Transport: direct{e}}
	var wg sync.WaitGroup
	burst := 0
	for i := range calls {
		pause := time.Duration(rng.Int64N(int64(40 * time.Millisecond)))
		if burst--; burst < 0 {
			burst = rng.IntN(16)
			pause = time.Duration(rng.Int64N(int64(6 * time.Second)))
		}
		time.Sleep(pause)
		id := fmt.Sprint("call-", i)
		body := fmt.Sprintf(`{"ignore_eos":true,"max_tokens":%d,"messages":[{"role":"user","content":%q}]}`, 1+rng.IntN(60), "Why is river "+id+" so wide?")
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://engine/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Request-Id", id)
		sent[id] = time.Now()
		wg.Go(func() {
			res, err := client.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		})
	}
	wg.Wait()
	time.Sleep(5 * time.Second)
	synctest.Wait()
	return sent
}

// TestGaugesAreTheTruth: at every reading, what is shown to run and wait is what
// runs and waits; and of no call it is said that it queued less than it did.
func TestGaugesAreTheTruth(t *testing.T) {
	for quirks, kind := range map[sim.Quirks]Kind{sim.VLLM: VLLM, sim.SGLang: SGLang, sim.LlamaCPP: LlamaCPP} {
		for seed := range uint64(4) {
			synctest.Test(t, func(t *testing.T) {
				e, err := sim.Start(sim.Config{Quirks: quirks, Slots: 4, Seed: seed})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				s, err := NewSampler(Options{Address: "http://engine/v1", Client: &http.Client{Transport: direct{e}},
					Every: 937 * time.Millisecond, MaxSeqs: 4 * int64(seed%2)}) // not in step with the engine's own
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				wg.Go(func() { s.Run(ctx) })
				rng := rand.New(rand.NewPCG(seed, 77))
				sent := load(t, e, rng, 240)
				truths := e.Truths()
				if len(truths) != len(sent) {
					t.Fatalf("%d calls of %d", len(truths), len(sent))
				}
				busy, queued := 0, 0
			readings:
				for _, r := range s.readings {
					var running, waiting int64
					for _, c := range truths {
						for _, at := range []time.Time{c.Arrival, c.Scheduled, c.End} {
							if at.Sub(r.Time).Abs() < 2*time.Microsecond {
								continue readings // which of the two came first is chance
							}
						}
						switch {
						case r.Time.Before(c.Arrival) || r.Time.After(c.End):
						case r.Time.Before(c.Scheduled):
							waiting++
						default:
							running++
						}
					}
					if r.Kind != kind || r.Running != exactly(running) || r.Waiting != exactly(waiting) || kind != LlamaCPP && (r.KVUse.X > 0) != (running > 0) {
						t.Fatalf("%s at %v: shown %+v, %d run and %d wait", quirks, r.Time, *r.Gauges, running, waiting)
					}
					if running > 0 {
						busy++
					}
					if waiting > 0 {
						queued++
					}
				}
				claims, honest, long := 0, 0, time.Duration(0)
				for _, c := range truths {
					queue, left := c.Queue()
					if !left || c.Preemptions > 0 {
						t.Fatalf("call %+v", c)
					}
					long = max(long, queue)
					bound, known := s.NoQueueAt(sent[c.RequestID])
					if !known {
						continue
					}
					claims++
					if queue <= bound && !c.Scheduled.After(sent[c.RequestID].Add(bound)) {
						honest++
					}
					if bound < settle || bound > settle+2*time.Second {
						t.Errorf("a bound of %v", bound)
					}
				}
				if honest != claims || kind == SGLang && claims > 0 {
					t.Errorf("%s, seed %d: %d claims, %d of them true", quirks, seed, claims, honest)
				}
				if busy < 10 || queued < 3 || long < 500*time.Millisecond || kind != SGLang && claims < 5 {
					t.Errorf("%s, seed %d: busy in %d readings, queues in %d, the longest queue %v, %d claims: too tame a test", quirks, seed, busy, queued, long, claims)
				}
				cancel()
				wg.Wait()
			})
		}
	}
}
