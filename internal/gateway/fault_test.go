package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/dialect"
)

// broken is a dialect that nothing can be read with: it was never registered,
// so that its look and its responses panic at what they read.
var broken = &dialect.Dialect{Name: "broken"}

// TestMeterFault: a panic while a request or an answer is read costs the
// measurement and nothing else.
func TestMeterFault(t *testing.T) {
	asked := make(chan []byte, 1)
	for name, answer := range map[string]string{
		"stream": "Content-Type: text/event-stream\r\n\r\n" + stripToken + stripFinish + stripUsage + stripDone,
		"JSON":   "Content-Type: application/json\r\n\r\n" + wholeJSON,
		"error":  "Content-Type: application/json\r\n\r\n" + `{"error":{"message":"no"}}`,
	} {
		for _, policy := range []UsagePolicy{Passthrough, Inject, InjectAndStrip} {
			g := newRig(t, func(c net.Conn, _ *http.Request, body []byte) {
				asked <- body
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n"+answer)
			})
			g.options = Options{Dialect: broken, Usage: policy}
			status, got, err := g.post(strings.NewReader(askStream), nil)
			_, want, _ := strings.Cut(answer, "\r\n\r\n")
			if err != nil || status != 200 || string(got) != want {
				t.Errorf("%s: the client has %d %q, %v", name, status, got, err)
			}
			if body := <-asked; string(body) != askStream {
				t.Errorf("%s: the upstream has %q", name, body)
			}
			rec := g.record()
			if !slices.Equal(rec.Degraded, []call.Degradation{call.MeterFault}) || rec.Outcome != call.Completed || rec.Dialect != "broken" {
				t.Errorf("%s: %s, degraded %v", name, rec.Outcome, rec.Degraded)
			}
			if rec.ContentEvents.IsKnown() || rec.Output.IsKnown() || rec.BytesOut != int64(len(want)) {
				t.Errorf("%s: %v content events, %v tokens, %d bytes", name, rec.ContentEvents, rec.Output, rec.BytesOut)
			}
		}
	}
}

// panics is a Metrics that fails at the end of each call.
type panics struct{ counted }

func (*panics) Observe(*call.Record) { panic("boom") }
func (*panics) Phases(*call.Record)  { panic("boom") }

// TestMetricsFault: what counts records cannot break a call, and does not go unseen.
func TestMetricsFault(t *testing.T) {
	g := New(new(panics))
	w := httptest.NewRecorder()
	rec := g.call(w, chat("x", 1, ""), func(w http.ResponseWriter, _ *http.Request) error {
		_, err := io.WriteString(w, wholeJSON)
		return err
	})
	if w.Body.String() != wholeJSON || rec == nil || g.Faults() != 2 || g.Live() != (Live{}) {
		t.Errorf("body %q, record %v, %d faults, live %+v", w.Body, rec, g.Faults(), g.Live())
	}
}

// TestGivenUpRunReads: a run of next that was given up for a stale connection
// may still be reading the body while the second run sends it and is answered.
func TestGivenUpRunReads(t *testing.T) {
	g := New(new(counted))
	content := letters(4000)
	var runs int
	var first io.ReadCloser
	read := 10 // bytes that the first run has read
	stop, stopped := make(chan struct{}), make(chan struct{})
	next := func(w http.ResponseWriter, r *http.Request) error {
		runs++
		trace := httptrace.ContextClientTrace(r.Context())
		trace.GetConn("engine:1")
		trace.GotConn(httptrace.GotConnInfo{Reused: true})
		if runs == 1 {
			first = r.Body
			_, _ = first.Read(make([]byte, 10))
			go func() { // a write loop that nobody waits for
				defer close(stopped)
				defer first.Close()
				for {
					select {
					case <-stop:
						return
					default:
						n, _ := first.Read(make([]byte, 10))
						read += n
					}
				}
			}()
			return fmt.Errorf("connection was closed: %w", io.EOF)
		}
		got, err := io.ReadAll(r.Body)
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("the second run has %d bytes, %v", len(got), err)
		}
		_ = r.Body.Close()
		_, err = io.WriteString(w, wholeJSON)
		return err
	}
	r := httptest.NewRequest("POST", "/v1/chat/completions", bytes.NewReader(content))
	rec := g.call(httptest.NewRecorder(), r, next)
	n, err := first.Read(make([]byte, 10))
	close(stop)
	<-stopped
	// The end of the body is for those alone who have read it all.
	if n > 0 || err == nil || errors.Is(err, io.EOF) && read < len(content) {
		t.Errorf("after the call the given-up run, at byte %d, reads %d bytes, %v", read, n, err)
	}
	if runs != 2 || !rec.Replayed || rec.Attempts != 2 || g.looks.used.Load() != 0 {
		t.Errorf("%d runs, replayed %v, %d attempts, %d bytes held", runs, rec.Replayed, rec.Attempts, g.looks.used.Load())
	}
}

// FuzzCall: whatever the request, what goes upstream is what was sent, as often
// as it is asked for, and the answer is what was answered.
func FuzzCall(f *testing.F) {
	f.Add("/v1/chat/completions", "", "application/json", []byte(askStream), []byte(stripToken+stripUsage+stripDone))
	f.Add("/api/generate", "x=1&%zz", "multipart/form-data; boundary=b", []byte("--b\r\n\r\n--b--"), []byte(wholeJSON))
	f.Add("/models/a:streamGenerateContent", "key=1", "", []byte(`{"contents":[`), []byte("[{},"))
	f.Add("/v1/chat/completions", "", "", []byte{}, []byte("\x1f\x8b\x08"))
	f.Fuzz(func(t *testing.T, path, query, contentType string, body, answer []byte) {
		m := new(counted)
		g := New(m)
		r := httptest.NewRequest("POST", "/", bytes.NewReader(body))
		r.URL = &url.URL{Path: path, RawQuery: query}
		r.Header = http.Header{"Content-Type": {contentType}, "Authorization": {query}, "X-Weir-Run": {path}}
		c := g.Begin(r, &Options{}, &Surroundings{})
		if c == nil {
			return
		}
		w := httptest.NewRecorder()
		err := c.Serve(w, NextFunc(func(w http.ResponseWriter, r *http.Request) error {
			for range 2 {
				got, err := io.ReadAll(r.Body)
				if err != nil || !bytes.Equal(got, body) {
					t.Errorf("the upstream has %d bytes of %d, %v", len(got), len(body), err)
				}
				_ = r.Body.Close()
			}
			if r.URL.Path != path || r.URL.RawQuery != query || r.Header.Get("Content-Type") != contentType {
				t.Error("the request has changed")
			}
			w.Header().Set("Content-Type", contentType)
			_, err := w.Write(answer)
			return err
		}))
		if err != nil || !bytes.Equal(w.Body.Bytes(), answer) || len(m.records) != 1 {
			t.Fatalf("%v; the client has %d bytes of %d; %d records", err, w.Body.Len(), len(answer), len(m.records))
		}
		rec := m.records[0]
		if slices.Contains(rec.Degraded, call.MeterFault) {
			t.Errorf("the meter has failed")
		}
		if rec.Phases.Sum() != rec.Instants.Ended.Or(-1) || g.looks.used.Load() != 0 || g.Live().InFlight != 0 {
			t.Errorf("phases make %v of %v, %d bytes held, live %+v", rec.Phases.Sum(), rec.Instants.Ended, g.looks.used.Load(), g.Live())
		}
		if len(rec.Model) > call.MaxName || len(rec.Path) > call.MaxName || time.Duration(0) > rec.E2E.Or(0) {
			t.Errorf("model %q, path %q", rec.Model, rec.Path)
		}
	})
}
