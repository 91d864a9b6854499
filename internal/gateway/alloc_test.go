package gateway

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/estimate"
	"github.com/weirgate/weir/internal/limit"
)

// nowhere is a writer that allocates nothing.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header         { return n.header }
func (n nowhere) WriteHeader(int)             {}
func (n nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (n nowhere) Flush()                      {}

func (n nowhere) SetReadDeadline(time.Time) error { return nil }

type ignored struct{}

func (ignored) Observe(*call.Record)     {}
func (ignored) Phases(*call.Record)      {}
func (ignored) Unmeasured(string)        {}
func (ignored) Barred(string)            {}
func (ignored) AddedDelay(time.Duration) {}

// replayable is a request body that can be read from its start again.
type replayable struct{ *strings.Reader }

func (replayable) Close() error { return nil }

// jsonCall returns two functions: one runs a call with a JSON answer through
// the gateway, the other runs the same handler without it.
func jsonCall() (through, without func()) {
	g := New(ignored{})
	header := http.Header{"Content-Type": {"application/json"}}
	body := replayable{strings.NewReader(askJSON)}
	r, _ := http.NewRequest("POST", "http://x/v1/chat/completions", body)
	r = r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, new(http.Server)))
	r.ContentLength = int64(len(askJSON))
	r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer sk-1"}, "Accept-Encoding": {"gzip"}}
	w := nowhere{header}
	buf := make([]byte, 4096)
	answer := []byte(wholeJSON)
	next := func(w http.ResponseWriter, r *http.Request) error {
		attempted(r)
		for {
			if _, err := r.Body.Read(buf); err != nil {
				break
			}
		}
		_ = r.Body.Close()
		_, err := w.Write(answer)
		return err
	}
	options, around := new(Options), new(Surroundings)
	through = func() {
		_, _ = body.Seek(0, io.SeekStart)
		_ = g.Begin(r, options, around).Serve(w, NextFunc(next))
	}
	without = func() {
		_, _ = body.Seek(0, io.SeekStart)
		_ = next(w, r)
	}
	return through, without
}

// attempted does what a transport does for one attempt that is answered.
func attempted(r *http.Request) {
	if hooks := httptrace.ContextClientTrace(r.Context()); hooks != nil {
		hooks.GetConn("")
		hooks.GotConn(httptrace.GotConnInfo{Reused: true})
		hooks.WroteRequest(httptrace.WroteRequestInfo{})
		hooks.GotFirstResponseByte()
	}
}

func BenchmarkCall(b *testing.B) {
	through, without := jsonCall()
	for name, run := range map[string]func(){"through the gateway": through, "without": without} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
		})
	}
}

// inStream runs do with the tap of a call in the middle of an event stream,
// behind everything that may stand before the upstream if admission is true.
func inStream(admission bool, do func(*tap)) {
	g := New(ignored{})
	options := new(Options)
	if admission {
		pool := limit.New("p", nil)
		if err := pool.Apply(limit.Policy{Mode: limit.Enforce, Rules: []limit.Rule{{Scope: limit.PerPool, Limits: call.Limits{
			TokensPerMinute: call.Known(1e9), Concurrency: call.Known(9)}}}}); err != nil {
			panic(err)
		}
		options.Admission = &Admission{Limits: pool, Estimates: estimate.New(0, 0), ReaderTimeout: time.Hour}
	}
	r, _ := http.NewRequest("POST", "http://x/v1/chat/completions", strings.NewReader(askStream))
	c := g.Begin(r, options, new(Surroundings))
	_ = c.Serve(nowhere{http.Header{"Content-Type": {"text/event-stream"}}}, NextFunc(func(w http.ResponseWriter, _ *http.Request) error {
		do(w.(*tap))
		return nil
	}))
	if c.Record().ContentEvents.Or(0) < 3 {
		panic("the meter has not seen the chunks")
	}
}

// TestChunkAllocations: a chunk of a stream costs no allocation, whole or in parts.
func TestChunkAllocations(t *testing.T) {
	for _, admission := range []bool{false, true} {
		inStream(admission, func(tap *tap) {
			chunk := []byte(stripToken)
			write := func() { _, _ = tap.Write(chunk) }
			write()
			write() // the second token makes the histogram of gaps
			if n := testing.AllocsPerRun(1000, write); n != 0 {
				t.Errorf("%v allocations a chunk", n)
			}
			parts := func() { _, _ = tap.Write(chunk[:20]); _, _ = tap.Write(chunk[20:]) }
			parts()
			if n := testing.AllocsPerRun(1000, parts); n != 0 {
				t.Errorf("%v allocations a chunk in two parts", n)
			}
		})
	}
}

// BenchmarkChunk measures what the gateway adds to one chunk of a stream: the
// difference to the last.
func BenchmarkChunk(b *testing.B) {
	chunk := []byte(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"m1","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}]}` + "\n\n")
	run := func(name string, w io.Writer) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(chunk)))
			for b.Loop() {
				_, _ = w.Write(chunk)
			}
		})
	}
	inStream(false, func(t *tap) { run("through the gateway", t) })
	inStream(true, func(t *tap) { run("with limits", t) })
	run("without", nowhere{})
}
