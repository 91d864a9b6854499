package caddymodule

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/gateway"
)

// patience is how long a test waits for what must come. It only turns a wait
// without end into a failure.
const patience = 20 * time.Second

// await returns what comes out of a channel.
func await[T any](t *testing.T, from <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		t.Fatalf("no %s", what)
	}
	return v
}

// until asks again and again until the answer is yes.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("never came true: %s", what)
		}
	}
}

// script is an upstream whose answers the test writes step by step.
type script struct {
	address string
	arrived chan *exchange
	ended   <-chan struct{}
}

// exchange is one request at a script. The handler runs what the test asks for
// until the test lets it return.
type exchange struct {
	t       *testing.T
	request *http.Request
	body    []byte
	steps   chan func(http.ResponseWriter)
	ended   <-chan struct{}
}

func newScript(t *testing.T) *script {
	s := &script{arrived: make(chan *exchange, 16), ended: t.Context().Done()}
	s.address = serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{t: t, request: r, steps: make(chan func(http.ResponseWriter)), ended: s.ended}
		x.body, _ = io.ReadAll(r.Body)
		s.arrived <- x
		for {
			select {
			case step, more := <-x.steps:
				if !more {
					return
				}
				step(w)
			case <-s.ended:
				return
			}
		}
	}))
	return s
}

// next returns the next request that reaches the upstream.
func (s *script) next(t *testing.T) *exchange {
	t.Helper()
	return await(t, s.arrived, "request at the upstream")
}

func (x *exchange) step(f func(http.ResponseWriter)) {
	x.t.Helper()
	select {
	case x.steps <- f:
	case <-time.After(patience):
		x.t.Fatal("the upstream's handler has gone")
	}
}

// send writes text and flushes it; the first send makes it an event stream.
func (x *exchange) send(text string) {
	x.t.Helper()
	x.step(func(w http.ResponseWriter) {
		if w.Header().Get("Content-Type") == "" {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		_, _ = io.WriteString(w, text)
		_ = http.NewResponseController(w).Flush()
	})
}

// finish lets the upstream's handler return.
func (x *exchange) finish() { close(x.steps) }

// abort breaks the upstream's connection off.
func (x *exchange) abort() {
	x.t.Helper()
	x.step(func(http.ResponseWriter) { panic(http.ErrAbortHandler) })
}

// left is closed when whoever sent the request has gone.
func (x *exchange) left() <-chan struct{} { return x.request.Context().Done() }

// open sends a request that reaches the script, which answers with the first
// chunk, and returns once the client has the answer's header. Around a reload
// Caddy, with weir or without, closes some new connections before it has read
// anything; then the request is sent again.
func open(t *testing.T, up *script, c *http.Client, r *http.Request) (*http.Response, *exchange) {
	t.Helper()
	type answer struct {
		res *http.Response
		err error
	}
	for range 10 {
		answers := make(chan answer, 1)
		if r.Body, _ = r.GetBody(); r.Body == nil {
			t.Fatal("a request that cannot be sent again")
		}
		go func() {
			res, err := c.Do(r)
			answers <- answer{res, err}
		}()
		select {
		case x := <-up.arrived:
			x.send(chunk(0))
			a := await(t, answers, "answer")
			if a.err != nil {
				t.Fatal(a.err)
			}
			return a.res, x
		case a := <-answers:
			if a.err == nil || !errors.Is(a.err, syscall.ECONNRESET) && !errors.Is(a.err, io.EOF) {
				t.Fatalf("%s answered before the upstream: %+v, %v", r.URL, a.res, a.err)
			}
		}
	}
	t.Fatalf("no connection to %s", r.URL)
	return nil, nil
}

// done ends a stream with the terminal event of the OpenAI dialects.
const done = "data: [DONE]\n\n"

// usageEvent is the event by which vLLM reports usage when it was asked to.
const usageEvent = `data: {"id":"c1","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}` + "\n\n"

// streaming is a chat request that asks for a stream.
const streaming = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hello"}]}`

// expect reads exactly want.
func expect(t *testing.T, from io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(from, got); err != nil || string(got) != want {
		t.Fatalf("got %q, %v; want %q", got[:n], err, want)
	}
}

// answered is a whole answer as a client sees it.
type answered struct {
	status int
	header http.Header
	body   string
}

// fetch sends a request and reads the whole answer.
func fetch(t *testing.T, c *http.Client, r *http.Request) answered {
	t.Helper()
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%v after %q", err, body)
	}
	return answered{res.StatusCode, res.Header, string(body)}
}

// kept waits for the one record of a run and returns it as it lies in memory,
// with the instants that its JSON form does not have.
func (r *run) kept(runID string) *call.Record {
	r.t.Helper()
	id := r.record(runID).ID
	return current().gateway.Calls(gateway.Filter{ID: id})[0]
}

// checkSum asserts that the phases of a record add up to all of its time.
func checkSum(t *testing.T, rec *call.Record) {
	t.Helper()
	ended, known := rec.Instants.Ended.Get()
	if sum := rec.Phases.Sum(); !known || sum != ended {
		t.Errorf("%s: phases add up to %v, the call took %v (known: %v)", rec.Outcome, sum, ended, known)
	}
}

// series are the samples of a scrape by name and labels, as the text format
// writes them.
type series map[string]float64

// metrics scrapes Caddy's admin endpoint.
func (r *run) metrics() series {
	r.t.Helper()
	status, body := r.get("/metrics")
	if status != http.StatusOK {
		r.t.Fatalf("GET /metrics: %d %s", status, body)
	}
	all := make(series)
	for lines := bufio.NewScanner(bytes.NewReader(body)); lines.Scan(); {
		line := lines.Text()
		at := strings.LastIndexByte(line, ' ')
		if line == "" || line[0] == '#' || at < 0 {
			continue
		}
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			r.t.Fatalf("sample %q: %v", line, err)
		}
		if _, twice := all[line[:at]]; twice {
			r.t.Errorf("sample twice: %q", line)
		}
		all[line[:at]] = v
	}
	return all
}

// sum adds the samples of a metric that have all the labels, given as name="value".
func (s series) sum(metric string, labels ...string) (sum float64) {
	for name, v := range s {
		own, rest, _ := strings.Cut(name, "{")
		matches := own == metric
		for _, l := range labels {
			matches = matches && (strings.HasPrefix(rest, l) || strings.Contains(rest, ","+l))
		}
		if matches {
			sum += v
		}
	}
	return sum
}

// query escapes a filter for run.records.
func query(name, value string) string { return name + "=" + url.QueryEscape(value) }
