package diagnose_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/engine"
	"github.com/weirgate/weir/internal/gateway"
	"github.com/weirgate/weir/internal/limit"
	"github.com/weirgate/weir/internal/queue"
	"github.com/weirgate/weir/internal/sim"
)

// drill is a fault staged on a simulated engine behind a real gateway, in virtual
// time, so that its records are those that a fault like it makes.
type drill struct {
	name   string
	engine sim.Config
	// What the calls are: how many, how far apart, of how many words and tokens.
	calls         int
	every         time.Duration
	words, tokens int
	whole         bool          // not streamed
	gauges        bool          // the engine's gauges are watched
	slots         int           // calls that the gateway lets through at once; 0 is all
	read          time.Duration // that the client takes for each write
	send          time.Duration // that the client takes for its body
	patience      time.Duration // after which the client leaves; 0 is never
	wire          bool          // a transport with connections lies between gateway and engine
	dial          time.Duration // that one of its connections takes to open

	want    []string // codes that most calls show
	may     []string // codes that calls may show as well
	verdict string
	window  string // the first finding of the window, where it is not want[0]
}

// run stages the drill and returns its records.
func (d *drill) run(t *testing.T) (records []*call.Record) {
	synctest.Test(t, func(t *testing.T) {
		e, err := sim.Start(d.engine)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		g := gateway.New(deaf{})
		if d.gauges {
			defer watch(t, g, e)()
		}
		options := &gateway.Options{}
		if d.slots > 0 {
			options.Admission = admission(t, d.slots)
		}
		around := &gateway.Surroundings{Upstream: func(*http.Request) string { return upstream }}
		next := gateway.NextFunc(func(w http.ResponseWriter, r *http.Request) error {
			e.ServeHTTP(w, r)
			return nil
		})
		if d.wire {
			var hangUp func()
			next, hangUp = wired(e, d.dial)
			defer hangUp()
		}
		time.Sleep(1500 * time.Millisecond) // gauges have been read
		var (
			all sync.WaitGroup
			mu  sync.Mutex // guards records
		)
		for i := range d.calls {
			all.Go(func() {
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				if d.patience > 0 {
					defer time.AfterFunc(d.patience, leave).Stop()
				}
				body := fmt.Sprintf(`{"model":"m","stream":%v,"stream_options":{"include_usage":true},"max_tokens":%d,"ignore_eos":true,"messages":[{"role":"user","content":%q}]}`,
					!d.whole, d.tokens, fmt.Sprint(i, " ")+strings.Repeat("word ", d.words))
				c := g.Begin(httptest.NewRequestWithContext(ctx, "POST", "/v1/chat/completions", &slowly{Reader: strings.NewReader(body), pause: d.send}), options, around)
				_ = c.Serve(&reader{ResponseRecorder: httptest.NewRecorder(), pause: d.read}, next)
				mu.Lock()
				defer mu.Unlock()
				records = append(records, c.Record())
			})
			time.Sleep(d.every)
		}
		all.Wait()
	})
	return records
}

const upstream = "engine:1"

// watch reads the engine's gauges until the returned function is called.
func watch(t *testing.T, g *gateway.Gateway, e *sim.Engine) (stop func()) {
	kind := map[sim.Quirks]engine.Kind{sim.VLLM: engine.VLLM, sim.LlamaCPP: engine.LlamaCPP}[e.Config().Quirks]
	s, err := engine.NewSampler(engine.Options{Address: "http://" + upstream, Kind: kind, Client: &http.Client{Transport: handled{e}}})
	if err != nil {
		t.Fatal(err)
	}
	g.SetBeside(&gateway.Beside{Engines: []gateway.WatchedEngine{{Gauges: s, Upstreams: []string{upstream}}}})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	return func() { cancel(); running.Wait() }
}

// admission lets so many calls through at once.
func admission(t *testing.T, slots int) *gateway.Admission {
	limits := limit.New("default", nil)
	if err := limits.Apply(limit.Policy{Mode: limit.Enforce}); err != nil {
		t.Fatal(err)
	}
	q, err := queue.New("default", queue.Config{Calls: int64(slots), MaxWait: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return &gateway.Admission{Limits: limits, Queue: q}
}

// handled answers requests by a handler, without a connection.
type handled struct{ http.Handler }

func (h handled) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

// reader is a client that takes its time for each write.
type reader struct {
	*httptest.ResponseRecorder
	pause time.Duration
}

func (r *reader) Write(b []byte) (int, error) {
	time.Sleep(r.pause)
	return r.ResponseRecorder.Write(b)
}

// slowly is a body that comes late.
type slowly struct {
	*strings.Reader
	pause time.Duration
}

func (s *slowly) Read(b []byte) (int, error) {
	time.Sleep(s.pause)
	s.pause = 0
	return s.Reader.Read(b)
}

// deaf is a Metrics that counts nothing.
type deaf struct{}

func (deaf) Observe(*call.Record)     {}
func (deaf) Phases(*call.Record)      {}
func (deaf) Unmeasured(string)        {}
func (deaf) Barred(string)            {}
func (deaf) AddedDelay(time.Duration) {}
