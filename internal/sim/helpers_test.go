package sim

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// client is a response writer that keeps each write and its instant.
type client struct {
	header  http.Header
	status  int
	opened  time.Time // the headers came
	writes  []write
	aborted bool
}

type write struct {
	at   time.Time
	data string
}

func (c *client) Header() http.Header { return c.header }

func (c *client) WriteHeader(status int) {
	if c.status == 0 {
		c.status, c.opened = status, time.Now()
	}
}

func (c *client) Write(b []byte) (int, error) {
	c.WriteHeader(http.StatusOK)
	c.writes = append(c.writes, write{time.Now(), string(b)})
	return len(b), nil
}

func (c *client) Flush() {}

func (c *client) body() string {
	var b strings.Builder
	for _, w := range c.writes {
		b.WriteString(w.data)
	}
	return b.String()
}

// first returns the instant of the first write that contains text.
func (c *client) first(t *testing.T, text string) time.Time {
	t.Helper()
	for _, w := range c.writes {
		if strings.Contains(w.data, text) {
			return w.at
		}
	}
	t.Fatalf("no write contains %q:\n%s", text, c.body())
	return time.Time{}
}

// send makes one request and returns when it has been answered.
func send(ctx context.Context, e *Engine, path, id, fault, body string) (c *client) {
	c = &client{header: make(http.Header)}
	r := httptest.NewRequest("POST", path, strings.NewReader(body)).WithContext(ctx)
	if id != "" {
		r.Header.Set("X-Request-Id", id)
	}
	if fault != "" {
		r.Header.Set("X-Sim-Fault", fault)
	}
	defer func() {
		if v := recover(); v != nil {
			if v != http.ErrAbortHandler {
				panic(v)
			}
			c.aborted = true
		}
	}()
	e.ServeHTTP(c, r)
	return c
}

// chat is the body of a chat completion that writes exactly max tokens.
func chat(prompt string, max int, more string) string {
	return fmt.Sprintf(`{"stream":true,"ignore_eos":true,"max_tokens":%d,"messages":[{"role":"user","content":%q}]%s}`, max, prompt, more)
}

const chatPath = "/v1/chat/completions"

// inBubble runs a test with an engine in virtual time.
func inBubble(t *testing.T, cfg Config, f func(t *testing.T, e *Engine)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e, err := Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		f(t, e)
	})
}

// truth returns the truth of a request that must be known.
func truth(t *testing.T, e *Engine, id string) Truth {
	t.Helper()
	got, ok := e.Truth(id)
	if !ok {
		t.Fatalf("the engine knows no request %q", id)
	}
	return got
}

// prefillCost and decodeCost are what steps cost by the default Config.
func prefillCost(tokens int) time.Duration {
	return 50*time.Millisecond + time.Duration(tokens)*100*time.Microsecond
}

func decodeCost(sequences int) time.Duration {
	return 14*time.Millisecond + time.Duration(sequences)*200*time.Microsecond
}

func wantAt(t *testing.T, what string, got, want time.Time) {
	t.Helper()
	if !got.Equal(want) {
		t.Errorf("%s at %v, want %v (%v off)", what, got.Format(time.StampNano), want.Format(time.StampNano), got.Sub(want))
	}
}

// together runs functions at the same instant and waits for all.
func together(fs ...func()) {
	var wg sync.WaitGroup
	for _, f := range fs {
		wg.Go(f)
	}
	wg.Wait()
}

func lines(b string) [][]byte { return bytes.Split([]byte(b), []byte("\n")) }
