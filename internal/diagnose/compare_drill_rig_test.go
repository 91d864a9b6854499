package diagnose_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/diagnose"
	"github.com/weirgate/weir/internal/engine"
	"github.com/weirgate/weir/internal/gateway"
	"github.com/weirgate/weir/internal/gpu"
	"github.com/weirgate/weir/internal/sim"
)

// half is how long a drill runs in health, and how long with its fault.
const half = 2 * time.Minute

// change is a fault that comes while calls run: a healthy window, then the fault,
// on a simulated engine behind a real gateway, in virtual time.
type change struct {
	kind, name string
	engine     sim.Config
	rate       float64 // calls a second
	words      [2]int  // of a prompt, from and to
	tokens     [2]int  // of an answer
	prefix     int     // words with which all prompts of one conversation begin
	talks      int     // conversations; 0 is 1
	gauges     bool    // the engine's gauges are watched
	counters   bool    // the engine's cap and preemptions are
	gpu        bool    // a GPU is watched
	wire       bool    // a link with connections lies between gateway and engine
	slots      int     // calls that the gateway lets through at once; 0 is all
	whole      bool    // not streamed

	fault func(*stage)
	// want is the code that is to be named, "" that nothing is at fault.
	want diagnose.Code
}

// stage is what a fault may change.
type stage struct {
	t      *testing.T
	engine *sim.Engine
	lag    atomic.Int64 // of the link, each way, ns
	read   atomic.Int64 // that clients take for each write, ns
	gpu    *stubGPU

	mu      sync.Mutex // guards what follows
	rate    float64
	words   [2]int
	tokens  [2]int
	history []diagnose.EngineReading
}

func (s *stage) change(f func(*sim.Config)) {
	if err := s.engine.Change(f); err != nil {
		s.t.Error(err)
	}
}

func (s *stage) traffic(f func(*stage)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

// next draws one call: how long after the one before, how many words and tokens.
func (s *stage) next(rng *rand.Rand) (wait time.Duration, words, tokens int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	between := func(b [2]int) int { return b[0] + rng.IntN(b[1]-b[0]+1) }
	return time.Duration(rng.ExpFloat64() / s.rate * float64(time.Second)), between(s.words), between(s.tokens)
}

// run stages the drill and compares the two windows.
func (c *change) run(t *testing.T, seed uint64) (out diagnose.Comparison) {
	synctest.Test(t, func(t *testing.T) {
		cfg := c.engine
		cfg.Seed = seed
		e, err := sim.Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		s := &stage{t: t, engine: e, gpu: newStubGPU(), rate: c.rate, words: c.words, tokens: c.tokens}
		g := gateway.New(deaf{})
		beside := &gateway.Beside{}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		if c.gauges {
			kind := map[sim.Quirks]engine.Kind{sim.VLLM: engine.VLLM, sim.LlamaCPP: engine.LlamaCPP, sim.SGLang: engine.SGLang}[e.Config().Quirks]
			sampler, err := engine.NewSampler(engine.Options{Address: "http://" + upstream, Kind: kind, Client: &http.Client{Transport: handled{e}}})
			if err != nil {
				t.Fatal(err)
			}
			beside.Engines = []gateway.WatchedEngine{{Gauges: sampler, Upstreams: []string{upstream}}}
			running.Go(func() { sampler.Run(ctx) })
			if c.counters {
				running.Go(func() { s.keep(ctx, sampler) })
			}
		}
		if c.gpu {
			beside.GPUs = gpu.NewSampler(s.gpu, gpu.Options{})
			running.Go(func() { beside.GPUs.Run(ctx) })
		}
		g.SetBeside(beside)
		time.Sleep(1500 * time.Millisecond) // gauges have been read
		options := &gateway.Options{}
		if c.slots > 0 {
			options.Admission = admission(t, c.slots)
		}
		next := gateway.NextFunc(func(w http.ResponseWriter, r *http.Request) error {
			e.ServeHTTP(w, r)
			return nil
		})
		hangUp := func() {}
		if c.wire {
			next, hangUp = linked(e, &s.lag)
		}

		began := time.Now()
		var mu sync.Mutex // guards records
		var records []*call.Record
		arrivals, calls := rand.New(rand.NewPCG(seed, 1)), sync.WaitGroup{}
		for n := 0; ; n++ {
			wait, words, tokens := s.next(arrivals)
			time.Sleep(wait)
			if time.Since(began) >= 2*half {
				break
			}
			talk := arrivals.IntN(max(c.talks, 1))
			calls.Go(func() {
				rec := c.call(ctx, g, next, options, s, n, talk, words, tokens)
				mu.Lock()
				defer mu.Unlock()
				if rec != nil && ctx.Err() == nil {
					records = append(records, rec)
				}
			})
			if n == 0 {
				calls.Go(func() { time.Sleep(half - time.Since(began)); s.mark(c); c.fault0(s) })
			}
		}
		time.Sleep(time.Until(began.Add(2 * half)))
		o := c.options(s, began.Add(half))
		mu.Lock()
		seen := records[:len(records):len(records)]
		mu.Unlock()
		cancel()
		calls.Wait()
		hangUp()
		running.Wait()
		var before, after []*call.Record
		for _, rec := range seen {
			if ended := rec.Time.Add(rec.Phases.Sum()); ended.Sub(began) <= half {
				before = append(before, rec)
			} else {
				after = append(after, rec)
			}
		}
		out = diagnose.Compare(before, after, o)
	})
	return out
}

func (c *change) fault0(s *stage) {
	if c.fault != nil {
		c.fault(s)
	}
}

// call makes one call and returns its record.
func (c *change) call(ctx context.Context, g *gateway.Gateway, next gateway.NextFunc, o *gateway.Options, s *stage, n, talk, words, tokens int) *call.Record {
	prompt := fmt.Sprint(n, " ") + strings.Repeat("word ", words)
	if c.prefix > 0 {
		prompt = fmt.Sprint("talk ", talk, " ") + strings.Repeat("rule ", c.prefix) + prompt
	}
	body := fmt.Sprintf(`{"model":"m","stream":%v,"stream_options":{"include_usage":true},"max_tokens":%d,"ignore_eos":true,"messages":[{"role":"user","content":%q}]}`, !c.whole, tokens, prompt)
	around := &gateway.Surroundings{Upstream: func(*http.Request) string { return upstream }}
	defer func() {
		if v := recover(); v != nil && v != http.ErrAbortHandler { // the drill is over
			panic(v)
		}
	}()
	call := g.Begin(httptest.NewRequestWithContext(ctx, "POST", "/v1/chat/completions", strings.NewReader(body)), o, around)
	_ = call.Serve(&reader{ResponseRecorder: httptest.NewRecorder(), pause: time.Duration(s.read.Load())}, next)
	return call.Record()
}

// stubGPU is a GPU whose readings a drill decides, and what it showed in either
// window.
type stubGPU struct {
	mu      sync.Mutex
	now     gpu.Reading
	windows []gpu.Reading
	counts  []int64 // preemptions at the ends of the windows
	slots   []int   // the engine's cap in them
}

func newStubGPU() *stubGPU {
	f := gpu.Figure
	return &stubGPU{now: gpu.Reading{UUID: "GPU-0", Utilization: f(0.93), MemoryBandwidth: f(0.6), Clock: f(1980), MaxClock: f(1980),
		Power: f(480), PowerLimit: f(700), Temperature: f(62), ReasonsKnown: true, XID: f(0), Uncorrected: f(0)}}
}

func (s *stubGPU) Sample(context.Context, time.Time) ([]gpu.Reading, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.now
	r.Time = time.Now()
	return []gpu.Reading{r}, nil
}

func (s *stubGPU) Name() string { return "stub" }

func (s *stubGPU) Close() error { return nil }

func (s *stubGPU) set(f func(*gpu.Reading)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.now)
}

// mark keeps what the engine and the GPU show at the end of a window.
func (s *stage) mark(c *change) {
	g, err := engine.ReadGauges(s.t.Context(), &http.Client{Transport: handled{s.engine}}, "http://"+upstream, engine.Auto)
	if err != nil {
		s.t.Error(err)
	}
	s.gpu.mu.Lock()
	defer s.gpu.mu.Unlock()
	s.gpu.counts = append(s.gpu.counts, g.Preemptions.N)
	s.gpu.slots = append(s.gpu.slots, s.engine.Config().Slots)
	s.gpu.windows = append(s.gpu.windows, s.gpu.now)
}

// keep gathers the history of the engine's gauges.
func (s *stage) keep(ctx context.Context, sampler *engine.Sampler) {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			if g, ok := sampler.Latest(); ok {
				s.traffic(func(s *stage) {
					s.history = append(s.history, diagnose.EngineReading{Time: g.Time, Upstream: upstream, Running: g.Running.Count(), Waiting: g.Waiting.Count(), KVUse: g.KVUse.Number()})
				})
			}
		case <-ctx.Done():
			return
		}
	}
}

// options are the signals of both windows, as a gateway would gather them.
func (c *change) options(s *stage, fault time.Time) (o diagnose.CompareOptions) {
	s.mark(c)
	s.traffic(func(s *stage) {
		for _, r := range s.history {
			if r.Time.Before(fault) {
				o.Before.Engine = append(o.Before.Engine, r)
			} else {
				o.After.Engine = append(o.After.Engine, r)
			}
		}
	})
	for i, sig := range []*diagnose.Signals{&o.Before, &o.After} {
		if c.counters {
			sig.MaxSeqs = call.Known(int64(s.gpu.slots[i]))
			sig.Preemptions = call.Known(s.gpu.counts[i])
			if i == 1 {
				sig.Preemptions = call.Known(s.gpu.counts[1] - s.gpu.counts[0])
			}
		}
		if c.gpu && c.counters {
			r := s.gpu.windows[i]
			sig.GPUs = []diagnose.GPUFigures{{Name: r.UUID, Utilization: r.Utilization, MemoryBandwidth: r.MemoryBandwidth, Clock: r.Clock, Power: r.Power,
				PowerLimit: r.PowerLimit, Temperature: r.Temperature, Reasons: r.Reasons.Names(), XID: call.Known(0), Uncorrected: call.Known(0)}}
		}
	}
	return o
}

// linked is wired over a link that delays what it carries.
func linked(h http.Handler, lag *atomic.Int64) (next gateway.NextFunc, hangUp func()) {
	var carrying sync.WaitGroup
	over := make(chan struct{})
	end := func(c net.Conn) net.Conn {
		l := &line{Conn: c, lag: lag, out: make(chan parcel, 4096), gone: make(chan struct{}), over: over}
		carrying.Go(l.carry)
		return l
	}
	next, wireDown := wiredOver(h, func(ctx context.Context, l *pipes) (net.Conn, error) {
		select {
		case <-time.After(2 * time.Duration(lag.Load())): // one round trip to open it
		case <-over:
			return nil, net.ErrClosed
		}
		here, there := net.Pipe()
		far := end(there)
		select {
		case l.conns <- far:
			return end(here), nil
		case <-l.done:
			return nil, errors.Join(net.ErrClosed, far.Close())
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), far.Close())
		}
	})
	return next, func() {
		close(over)
		wireDown()
		carrying.Wait()
	}
}

// line is one end of a connection whose writes arrive late.
type line struct {
	net.Conn
	lag  *atomic.Int64
	out  chan parcel
	once sync.Once
	gone chan struct{} // closed with the connection
	over chan struct{} // closed with the link
}

type parcel struct {
	due  time.Time
	data []byte
}

// carry ends with the connection, once what was written before has arrived, or
// with the link.
func (l *line) carry() {
	defer l.Conn.Close()
	deliver := func(p parcel) bool {
		select {
		case <-time.After(time.Until(p.due)):
		case <-l.over:
			return false
		}
		_, err := l.Conn.Write(p.data)
		return err == nil
	}
	for {
		select {
		case p := <-l.out:
			if !deliver(p) {
				return
			}
		case <-l.over:
			return
		case <-l.gone:
			for {
				select {
				case p := <-l.out:
					if deliver(p) {
						continue
					}
				default:
				}
				return
			}
		}
	}
}

func (l *line) Write(b []byte) (int, error) {
	p := parcel{time.Now().Add(time.Duration(l.lag.Load())), append([]byte(nil), b...)}
	select {
	case <-l.gone:
		return 0, net.ErrClosed
	case <-l.over:
		return 0, net.ErrClosed
	case l.out <- p:
		return len(b), nil
	}
}

func (l *line) Close() error {
	l.once.Do(func() { close(l.gone) })
	return nil
}
