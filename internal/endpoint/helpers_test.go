package endpoint

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/sim"
)

// memory is a transport that calls a handler, with nothing in between but the
// clock: what the handler writes is there to be read at the same instant.
type memory struct{ handler http.Handler }

func (m memory) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	body, pipe := io.Pipe()
	w := &memoryWriter{header: make(http.Header), pipe: pipe, headed: make(chan struct{})}
	aborted := false
	go func() {
		defer cancel()
		defer func() {
			if v := recover(); v == http.ErrAbortHandler {
				aborted = true
			} else if v != nil {
				panic(v)
			}
			if !aborted {
				w.WriteHeader(http.StatusOK)
				_ = pipe.CloseWithError(r.Context().Err()) // nil is the end of the body
				return
			}
			_ = pipe.CloseWithError(io.ErrUnexpectedEOF)
			w.once.Do(func() { close(w.headed) })
		}()
		m.handler.ServeHTTP(w, r.Clone(ctx))
	}()
	select {
	case <-w.headed:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if w.status == 0 {
		return nil, io.EOF
	}
	context.AfterFunc(r.Context(), func() { _ = pipe.CloseWithError(r.Context().Err()) })
	return &http.Response{StatusCode: w.status, Header: w.sent, Body: body, ContentLength: -1, Proto: "HTTP/1.1", Request: r}, nil
}

type memoryWriter struct {
	header, sent http.Header
	status       int
	once         sync.Once
	headed       chan struct{}
	pipe         *io.PipeWriter
}

func (w *memoryWriter) Header() http.Header { return w.header }

func (w *memoryWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.headed)
	})
}

func (w *memoryWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.pipe.Write(b)
}

func (w *memoryWriter) Flush() {}

// testKey is a key that must be seen nowhere.
const testKey = "sk-test-0123456789abcdef"

// withEngine runs a test with a simulated engine and a client of it in virtual time.
func withEngine(t *testing.T, engine sim.Config, cfg Config, f func(t *testing.T, e *sim.Engine, c *Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e, err := sim.Start(engine)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		cfg.Root, cfg.Key = "http://sim.test/v1", testKey
		cfg.HTTP = &http.Client{Transport: memory{e}}
		c, err := NewClient(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		f(t, e, c)
	})
}

// handled returns a client of a handler in memory.
func handled(t *testing.T, h http.HandlerFunc, cfg Config) *Client {
	t.Helper()
	if cfg.Root == "" {
		cfg.Root = "http://handler.test/v1"
	}
	cfg.Key = testKey
	cfg.HTTP = &http.Client{Transport: memory{h}}
	c, err := NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// bodyOf returns the body of an ask that must be right.
func bodyOf(t testing.TB, a Ask) []byte {
	t.Helper()
	b, err := a.Body()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// plainAsk asks for so many tokens of a stream with usage.
func plainAsk(api API, tokens int) Ask {
	a := Ask{API: api, Model: "m", Prompt: "Tell me of the sea, and of ships on it.", Stream: true, Usage: true, MaxTokens: tokens, IgnoreEOS: true}
	if api == Responses || api == Messages {
		a.IgnoreEOS = false // the simulated engine does not know it there
	}
	return a
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

// marked counts the events that carry all of mark.
func marked(events []Event, mark Mark) int {
	n := 0
	for _, e := range events {
		if e.Mark&mark == mark {
			n++
		}
	}
	return n
}

// firstWith returns the time of the first event that carries all of mark.
func firstWith(t *testing.T, events []Event, mark Mark) time.Duration {
	t.Helper()
	for _, e := range events {
		if e.Mark&mark == mark {
			return e.At
		}
	}
	t.Fatalf("no event carries %b in %v", mark, events)
	return 0
}

func lastWith(events []Event, mark Mark) time.Duration {
	at := time.Duration(-1)
	for _, e := range events {
		if e.Mark&mark == mark {
			at = e.At
		}
	}
	return at
}

// shows fails the test where text holds the key.
func shows(t *testing.T, what, text string) {
	t.Helper()
	if strings.Contains(text, testKey) {
		t.Errorf("%s shows the key: %s", what, text)
	}
}
