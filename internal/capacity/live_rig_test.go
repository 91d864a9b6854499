package capacity

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/engine"
	"github.com/weirgate/weir/internal/gateway"
	"github.com/weirgate/weir/internal/sim"
)

// shape is a simulated engine and the calls that it gets, lengths uniformly between two ends.
type shape struct {
	name      string
	engine    sim.Config
	words     [2]int // of a prompt
	tokens    [2]int // of an answer
	shared    int    // words at a prompt's beginning that an eighth of all calls have in common
	whole     bool   // every fourth call is not streamed
	crowd     int    // calls that come at once; 0 is 1
	objective time.Duration
	limits    Limits
	knee      float64 // calls/s, true; see TestTrueKnees
	elsewhere bool    // every second call reaches the engine by another way
	gauges    bool    // the engine's gauges are read
}

// shapes are engines that four different things bound. The model knows nothing of
// DecodePerKVToken, of blocks, of shared prefixes, and it learns of FrontendTime only
// where the engine reports prefill or prompts take several steps.
func shapes() []shape {
	ms, us := time.Millisecond, time.Microsecond
	cache := call.Known(4 * 32768)
	return []shape{
		{name: "slots", objective: 2 * time.Second, words: [2]int{20, 200}, tokens: [2]int{16, 64}, knee: 8.80,
			engine: sim.Config{Slots: 12, PrefillBase: 15 * ms, PrefillPerToken: 60 * us, DecodeBase: 18 * ms, DecodePerSequence: 400 * us,
				DecodePerKVToken: us / 2, FrontendTime: 8 * ms, NoPrefixCache: true},
			limits: Limits{MaxNumSeqs: call.Known(12), KVTokens: cache}},
		{name: "cache", objective: 2 * time.Second, words: [2]int{100, 500}, tokens: [2]int{16, 64}, knee: 9.83, // preempts, and computes prompts in chunks
			engine: sim.Config{Slots: 128, ModelLen: 4096, KVBlocks: 300, BatchTokens: 512, PrefillBase: 10 * ms, PrefillPerToken: 40 * us,
				DecodeBase: 18 * ms, DecodePerSequence: 300 * us, DecodePerKVToken: us / 5, FrontendTime: 5 * ms, PerRequestMetrics: true},
			limits: Limits{MaxNumSeqs: call.Known(128), KVTokens: call.Known(300 * 16), BatchTokens: call.Known(512)}},
		{name: "bandwidth", objective: time.Second, words: [2]int{20, 60}, tokens: [2]int{24, 72}, knee: 14.67,
			engine: sim.Config{Slots: 64, PrefillBase: 4 * ms, PrefillPerToken: 20 * us, DecodeBase: 12 * ms, DecodePerSequence: 900 * us,
				DecodePerKVToken: 2 * us, FrontendTime: 3 * ms},
			limits: Limits{MaxNumSeqs: call.Known(64), KVTokens: cache}},
		{name: "prompts", objective: 2 * time.Second, words: [2]int{200, 3000}, tokens: [2]int{8, 24}, shared: 400, knee: 3.49,
			engine: sim.Config{Slots: 64, BatchTokens: 1024, PrefillBase: 12 * ms, PrefillPerToken: 90 * us, DecodeBase: 15 * ms,
				DecodePerSequence: 300 * us, FrontendTime: 10 * ms},
			limits: Limits{MaxNumSeqs: call.Known(64), KVTokens: cache, BatchTokens: call.Known(1024)}},
	}
}

// options are those with which a shape is estimated.
func (s *shape) options(seed uint64) Options {
	return Options{TTFT: Objective{Limit: s.objective}, Engines: map[string]Limits{upstream: s.limits}, Seed: seed, Rounds: minRounds}
}

const upstream = "engine:1"

// bodies are requests of a shape.
func (s *shape) bodies(n int, rng *rand.Rand, stream func(i int) bool) []string {
	filler := strings.Repeat(" a", max(s.words[1], s.shared)) // each a token
	list := make([]string, n)
	for i := range list {
		words, tokens := s.words[0]+rng.IntN(s.words[1]-s.words[0]+1), s.tokens[0]+rng.IntN(s.tokens[1]-s.tokens[0]+1)
		text := fmt.Sprintf("%d%s %d%s", rng.IntN(8), filler[:2*s.shared], i, filler[:2*words])
		list[i] = fmt.Sprintf(`{"model":"m","stream":%v,"stream_options":{"include_usage":true},"max_tokens":%d,"ignore_eos":true,"messages":[{"role":"user","content":"%s"}]}`,
			stream(i), tokens, text)
	}
	return list
}

// drive sends n calls at random, as many a second as rate tells for each, and waits for them.
func (s *shape) drive(n int, rng *rand.Rand, rate func(i int) float64, send func(i int)) {
	var all sync.WaitGroup
	due := time.Now()
	crowd := max(s.crowd, 1)
	for i := range n {
		if i%crowd == 0 {
			due = due.Add(time.Duration(rng.ExpFloat64() * float64(crowd) / rate(i) * float64(time.Second)))
			time.Sleep(time.Until(due))
		}
		all.Go(func() { send(i) })
	}
	all.Wait()
}

// truths sends n calls at a steady rate straight to the engine, and returns what became of
// them, without the first tenth, which fill it.
func (s *shape) truths(t *testing.T, rate float64, n int, seed uint64) (list []sim.Truth) {
	synctest.Test(t, func(t *testing.T) {
		cfg := s.engine
		cfg.Truths = n
		e, err := sim.Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		rng := rand.New(rand.NewPCG(seed, 1))
		bodies := s.bodies(n, rng, func(int) bool { return false })
		s.drive(n, rng, func(int) float64 { return rate }, func(i int) {
			e.ServeHTTP(toNowhere(), httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(bodies[i])))
		})
		list = e.Truths()[n/10:]
	})
	return list
}

// late is the share of calls whose TTFT passes the watermark at a rate.
func (s *shape) late(t *testing.T, rate float64, n int, seeds ...uint64) float64 {
	late, of := 0, 0
	for _, seed := range seeds {
		for _, truth := range s.truths(t, rate, n, seed) {
			of++
			if truth.FirstToken.Sub(truth.Received) > s.objective*8/10 {
				late++
			}
		}
	}
	return float64(late) / float64(of)
}

// observe sends so many calls at each of the rates through a gateway and returns its records.
func (s *shape) observe(t *testing.T, rates []float64, each int, seed uint64) (records []*call.Record) {
	synctest.Test(t, func(t *testing.T) {
		cfg := s.engine
		cfg.StreamInterval = 1 << 15 // the first token alone, and the rest at the end
		e, err := sim.Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		g := gateway.New(deaf{})
		if s.gauges {
			defer watch(t, g, e)()
		}
		around := &gateway.Surroundings{Upstream: func(*http.Request) string { return upstream }}
		next := gateway.NextFunc(func(w http.ResponseWriter, r *http.Request) error {
			e.ServeHTTP(w, r)
			return nil
		})
		rng := rand.New(rand.NewPCG(seed, 2))
		n := each * len(rates)
		bodies := s.bodies(n, rng, func(i int) bool { return !s.whole || i%4 > 0 })
		var mu sync.Mutex // guards records
		s.drive(n, rng, func(i int) float64 { return rates[i/each] }, func(i int) {
			r := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(bodies[i]))
			if s.elsewhere && i%2 > 0 {
				e.ServeHTTP(toNowhere(), r)
				return
			}
			c := g.Begin(r, &gateway.Options{}, around)
			_ = c.Serve(toNowhere(), next)
			rec := c.Record()
			mu.Lock()
			defer mu.Unlock()
			records = append(records, rec)
		})
	})
	return records
}

// ladder is 40, 60 and 80 % of the true knee.
func (s *shape) ladder() []float64 { return []float64{0.4 * s.knee, 0.6 * s.knee, 0.8 * s.knee} }

// watch reads the engine's gauges until the returned function is called.
func watch(t *testing.T, g *gateway.Gateway, e *sim.Engine) (stop func()) {
	s, err := engine.NewSampler(engine.Options{Address: "http://" + upstream, Kind: engine.VLLM, Client: &http.Client{Transport: handled{e}}})
	if err != nil {
		t.Fatal(err)
	}
	g.SetBeside(&gateway.Beside{Engines: []gateway.WatchedEngine{{Gauges: s, Upstreams: []string{upstream}}}})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	return func() { cancel(); running.Wait() }
}

// handled answers requests by a handler, without a connection.
type handled struct{ http.Handler }

func (h handled) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

// nowhere is a client that reads nothing.
type nowhere struct{ header http.Header }

func toNowhere() *nowhere { return &nowhere{make(http.Header)} }

func (n *nowhere) Header() http.Header       { return n.header }
func (*nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (*nowhere) WriteHeader(int)             {}
func (*nowhere) Flush()                      {}

// deaf is a Metrics that counts nothing.
type deaf struct{}

func (deaf) Observe(*call.Record)     {}
func (deaf) Phases(*call.Record)      {}
func (deaf) Unmeasured(string)        {}
func (deaf) Barred(string)            {}
func (deaf) AddedDelay(time.Duration) {}

// estimate is the estimate of the only upstream.
func estimate(t *testing.T, records []*call.Record, o Options) Upstream {
	t.Helper()
	r, err := Estimate(records, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Upstreams) != 1 {
		t.Fatalf("%d upstreams: %+v", len(r.Upstreams), r.Upstreams)
	}
	return r.Upstreams[0]
}

// known returns a figure that has to be known.
func known(t *testing.T, n call.Number, name string) float64 {
	t.Helper()
	v, ok := n.Get()
	if !ok {
		t.Fatalf("%s is not known", name)
	}
	return v
}

// says tells whether any of the sentences holds the words.
func says(sentences []string, words string) bool {
	return slices.ContainsFunc(sentences, func(s string) bool { return strings.Contains(s, words) })
}
