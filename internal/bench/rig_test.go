package bench

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/endpoint"
	"github.com/weirgate/weir/internal/sim"
	"github.com/weirgate/weir/internal/workload"
)

// inMemory is a transport that runs a handler: what it writes can be read at the
// same instant, so that times are the engine's own.
type inMemory struct{ http.Handler }

func (m inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	reader, writer := io.Pipe()
	w := &pipeWriter{header: http.Header{}, pipe: writer, answered: make(chan int, 1)}
	go func() {
		defer cancel()
		defer func() {
			err := error(io.EOF)
			if v := recover(); v != nil {
				if v != http.ErrAbortHandler {
					panic(v)
				}
				err = io.ErrUnexpectedEOF
			} else {
				w.WriteHeader(http.StatusOK)
			}
			writer.CloseWithError(err)
			w.once.Do(func() { w.answered <- 0 })
		}()
		m.ServeHTTP(w, r.Clone(ctx))
	}()
	select {
	case status := <-w.answered:
		if status == 0 {
			return nil, io.ErrUnexpectedEOF
		}
		context.AfterFunc(r.Context(), func() { reader.CloseWithError(r.Context().Err()) })
		return &http.Response{StatusCode: status, Header: w.sent, Body: reader, ContentLength: -1, Proto: "HTTP/1.1", Request: r}, nil
	case <-r.Context().Done():
		reader.CloseWithError(r.Context().Err())
		return nil, r.Context().Err()
	}
}

type pipeWriter struct {
	header, sent http.Header
	once         sync.Once
	answered     chan int
	pipe         *io.PipeWriter
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.sent = w.header.Clone()
		w.answered <- status
	})
}

func (w *pipeWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.pipe.Write(b)
}

func (w *pipeWriter) Flush() {}

// cost is what the simulated engine takes for its work, all of it round.
var cost = sim.Config{
	PrefillBase: 20 * time.Millisecond, PrefillPerToken: 100 * time.Microsecond,
	DecodeBase: 10 * time.Millisecond, DecodePerSequence: time.Millisecond,
	BatchTokens: 1 << 20, ModelLen: 8192, NoPrefixCache: true, Slots: 8,
}

// onEngine runs f with a simulated engine and a configuration that measures it,
// in virtual time. It fails when a goroutine is left.
func onEngine(t *testing.T, engine sim.Config, f func(t *testing.T, e *sim.Engine, cfg Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e, err := sim.Start(engine)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		client, err := endpoint.NewClient(endpoint.Config{
			Root: "http://engine.test/v1", HTTP: &http.Client{Transport: inMemory{e}}, Header: http.Header{"X-Weir-Run": {"run"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		f(t, e, config(client))
	})
}

func config(c endpoint.Caller) Config {
	zero := 0.0
	return Config{
		Caller: c, Run: "run", Seed: 1,
		Ask: endpoint.Ask{API: endpoint.Chat, Model: "m", Stream: true, Usage: true, IgnoreEOS: true, Temperature: &zero},
	}
}

func fixed(tokens int) workload.Length {
	return workload.Length{Kind: workload.KindFixed, Mean: float64(tokens)}
}

func atOnce(n int) workload.Arrivals {
	return workload.Arrivals{Shape: workload.Closed, Concurrency: n}
}

func atRate(shape workload.Shape, rate float64) workload.Arrivals {
	return workload.Arrivals{Shape: shape, Rate: rate}
}

// start returns a runner of a configuration that must be right.
func start(t *testing.T, cfg Config) *Runner {
	t.Helper()
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// measure runs one load, which must succeed.
func measure(t *testing.T, r *Runner, l Load) Run {
	t.Helper()
	run, err := r.Run(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// near fails unless got is within a share of want.
func near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if !(got >= want*(1-share) && got <= want*(1+share)) {
		t.Errorf("%s is %v, want %v within %v", what, got, want, share)
	}
}
