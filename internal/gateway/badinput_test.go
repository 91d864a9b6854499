package gateway

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/call"
)

const (
	askJSON   = `{"model":"m","messages":[{"role":"user","content":"x"}]}`
	askStream = `{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}`
	wholeJSON = `{"id":"r","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`
)

// answerJSON answers with a good JSON body and keeps what was asked.
func answerJSON(asked chan<- []byte) func(net.Conn, *http.Request, []byte) {
	return func(c net.Conn, _ *http.Request, body []byte) {
		asked <- body
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(wholeJSON), wholeJSON)
	}
}

// TestBadRequests: whatever a request body is, the upstream has it as it was
// sent, and the record says what is not known.
func TestBadRequests(t *testing.T) {
	var keys strings.Builder
	keys.WriteString("{")
	for i := range 700_000 {
		fmt.Fprintf(&keys, `"k%d":0,`, i)
	}
	keys.WriteString(`"model":"m"}`)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(z, askJSON)
	_ = z.Close()

	asked := make(chan []byte, 1)
	g := newRig(t, answerJSON(asked))
	for name, c := range map[string]struct {
		body     string
		header   http.Header
		model    string
		degraded call.Degradation
	}{
		"good":                   {askJSON, nil, "m", ""},
		"empty":                  {"", nil, "", call.BodyMalformed},
		"cut":                    {`{"model":"m","mess`, nil, "m", call.BodyMalformed},
		"not JSON":               {"hello", nil, "", call.BodyMalformed},
		"a bare array":           {`[1,2,3]`, nil, "", call.BodyMalformed},
		"a number":               {`1`, nil, "", call.BodyMalformed},
		"two documents":          {askJSON + askJSON, nil, "m", call.BodyMalformed},
		"zero bytes":             {strings.Repeat("\x00", 5000), nil, "", call.BodyMalformed},
		"not UTF-8":              {"{\"model\":\"m\",\"x\":\"\xff\xfe\"}", nil, "m", ""},
		"deep arrays":            {`{"model":"m","a":` + strings.Repeat("[", 1_000_000), nil, "m", call.BodyMalformed},
		"deep objects":           {`{"model":"m","a":` + strings.Repeat(`{"a":`, 500_000), nil, "m", call.BodyMalformed},
		"a million keys":         {keys.String(), nil, "m", ""},
		"a number of 1 MB":       {`{"model":"m","max_tokens":` + strings.Repeat("9", 1_000_000) + `}`, nil, "m", ""},
		"a model of 1 MB":        {`{"model":"` + strings.Repeat("m", 1_000_000) + `"}`, nil, "", ""},
		"larger than the look":   {`{"model":"m","a":"` + strings.Repeat("x", MaxLook) + `"}`, nil, "m", call.BodyTooLarge},
		"compressed":             {zipped.String(), http.Header{"Content-Encoding": {"gzip"}}, "", call.BodyEncoded},
		"a form":                 {"--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--b--\r\n", http.Header{"Content-Type": {"multipart/form-data; boundary=b"}}, "m", ""},
		"a form cut off":         {"--b\r\nContent-Disposition: form-data; name=\"mo", http.Header{"Content-Type": {"multipart/form-data; boundary=b"}}, "", call.BodyMalformed},
		"a form of another kind": {"hello", http.Header{"Content-Type": {"multipart/form-data; boundary=b"}}, "", call.BodyMalformed},
	} {
		for _, chunked := range []bool{false, true} {
			var body io.Reader = strings.NewReader(c.body)
			if chunked {
				body = struct{ io.Reader }{body} // hides its length
			}
			status, answer, err := g.post(body, c.header)
			if err != nil || status != 200 || string(answer) != wholeJSON {
				t.Fatalf("%s: %d %q, %v", name, status, answer, err)
			}
			if got := <-asked; sha256.Sum256(got) != sha256.Sum256([]byte(c.body)) {
				t.Errorf("%s: the upstream has %d bytes of %d, or others", name, len(got), len(c.body))
			}
			rec := g.record()
			want := []call.Degradation{c.degraded}
			if c.degraded == "" {
				want = nil
			}
			if !slices.Equal(rec.Degraded, want) || rec.Outcome != call.Completed || c.model != "" && rec.Model != c.model || len(rec.Model) > call.MaxName {
				t.Errorf("%s: %s %q, model %q, degraded %v", name, rec.Outcome, rec.Error, rec.Model, rec.Degraded)
			}
			if in, known := rec.BytesIn.Get(); known != (c.degraded != call.BodyTooLarge) || known && in != int64(len(c.body)) {
				t.Errorf("%s: %d bytes in (known %v) of %d", name, in, known, len(c.body))
			}
		}
	}
}

// TestOldAndOddRequests: HTTP/1.0, and methods that carry no call.
func TestOldAndOddRequests(t *testing.T) {
	asked := make(chan []byte, 1)
	g := newRig(t, answerJSON(asked))
	c := g.dial()
	defer c.Close()
	fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s", len(askJSON), askJSON)
	got, err := io.ReadAll(c)
	if err != nil || !strings.HasSuffix(string(got), wholeJSON) {
		t.Errorf("HTTP/1.0: %q, %v", got, err)
	}
	<-asked
	if rec := g.record(); rec.Outcome != call.Completed || rec.ClientProtocol != "HTTP/1.0" {
		t.Errorf("HTTP/1.0: %s over %q", rec.Outcome, rec.ClientProtocol)
	}
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE"} {
		r, _ := http.NewRequest(method, "http://"+g.address+"/v1/chat/completions", nil)
		res, err := new(http.Transport).RoundTrip(r)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%s: %v", method, err)
		}
		res.Body.Close()
		<-asked
	}
	if len(g.records) > 0 {
		t.Error("a request that is no call left a record")
	}
}

// TestBodyBudget: past the budget calls pass all the same, and on every path
// what was reserved is given back.
func TestBodyBudget(t *testing.T) {
	asked := make(chan []byte, 1)
	big := `{"model":"m","a":"` + strings.Repeat("x", 200_000) + `"}`
	for _, limit := range []int64{0, firstRead, 100_000} {
		g := newRig(t, answerJSON(asked))
		g.gateway.looks.limit = limit
		for _, body := range []io.Reader{strings.NewReader(big), struct{ io.Reader }{strings.NewReader(big)}} {
			status, answer, err := g.post(body, nil)
			if err != nil || status != 200 || string(answer) != wholeJSON {
				t.Fatalf("limit %d: %d %q, %v", limit, status, answer, err)
			}
			if got := <-asked; string(got) != big {
				t.Errorf("limit %d: the upstream has %d bytes of %d, or others", limit, len(got), len(big))
			}
			if rec := g.record(); rec.Outcome != call.Completed || !slices.Equal(rec.Degraded, []call.Degradation{call.BodyBudget}) {
				t.Errorf("limit %d: %s, degraded %v", limit, rec.Outcome, rec.Degraded)
			}
		}
	}
}

// TestBodyBudgetIsGivenBack, for each way in which a call can end.
func TestBodyBudgetIsGivenBack(t *testing.T) {
	for name, c := range map[string]struct {
		next    NextFunc
		outcome call.Outcome
	}{
		"nobody reads the body": {func(w http.ResponseWriter, _ *http.Request) error { w.WriteHeader(500); return nil }, call.UpstreamError},
		"an error":              {func(http.ResponseWriter, *http.Request) error { return io.ErrUnexpectedEOF }, call.UpstreamError},
		"a panic":               {func(http.ResponseWriter, *http.Request) error { panic("boom") }, call.InternalError},
		"an abort":              {func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) }, call.UpstreamError},
		"a panic in the middle": {func(w http.ResponseWriter, r *http.Request) error {
			_, _ = r.Body.Read(make([]byte, 1))
			_, _ = io.WriteString(w, stripToken)
			panic("boom")
		}, call.InternalError},
	} {
		g := newRig(t, nil)
		g.next = c.next
		status, _, err := g.post(strings.NewReader(askStream), nil)
		if rec := g.record(); rec.Outcome != c.outcome {
			t.Errorf("%s: %s %q; the client has %d, %v", name, rec.Outcome, rec.Error, status, err)
		}
	}
	g := newRig(t, nil)
	g.before = func(_ http.ResponseWriter, r *http.Request) { r.Body = faulty{r.Body} }
	_, _, _ = g.post(strings.NewReader(askStream), nil)
	if rec := g.record(); rec.Outcome != call.InternalError || rec.BytesIn.IsKnown() {
		t.Errorf("a body that panics: %s, %v bytes in", rec.Outcome, rec.BytesIn)
	}
}

type faulty struct{ io.ReadCloser }

func (faulty) Read([]byte) (int, error) { panic("boom") }

// TestHalfOpenClients: the client announces more than it sends, stalls, and
// leaves; or sends more than it announced.
func TestHalfOpenClients(t *testing.T) {
	asked := make(chan []byte, 1)
	g := newRig(t, answerJSON(asked))
	for name, head := range map[string]string{
		"length":  fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(askJSON)+100, askJSON),
		"chunked": fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(askJSON), askJSON),
		"garbage": fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\nnot a size\r\n", len(askJSON), askJSON),
	} {
		c := g.dial()
		_, _ = io.WriteString(c, head)
		if name != "garbage" {
			for g.gateway.Live().InFlight == 0 { // it stalls, in flight
				runtime.Gosched()
			}
		}
		c.Close()
		if rec := g.record(); rec.Outcome != call.ClientGone || rec.Model != "m" || rec.BytesIn.IsKnown() {
			t.Errorf("%s: %s %q, model %q, %v bytes in", name, rec.Outcome, rec.Error, rec.Model, rec.BytesIn)
		}
		if len(asked) > 0 {
			t.Errorf("%s: the upstream took %q for a whole body", name, <-asked)
		}
	}
	c := g.dial()
	defer c.Close()
	fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%sand more\r\n\r\n", len(askJSON), askJSON)
	all, _ := io.ReadAll(c)
	if got := <-asked; string(got) != askJSON || !strings.Contains(string(all), wholeJSON) {
		t.Errorf("too much: the upstream has %q, the client %q", got, all)
	}
	if rec := g.record(); rec.Outcome != call.Completed {
		t.Errorf("too much: %s", rec.Outcome)
	}
}

// TestSiteLimit: a limit of the site on bodies works as without the gateway,
// and is a refusal.
func TestSiteLimit(t *testing.T) {
	asked := make(chan []byte, 1)
	g := newRig(t, answerJSON(asked))
	g.before = func(w http.ResponseWriter, r *http.Request) { r.Body = http.MaxBytesReader(w, r.Body, 20) }
	for _, body := range []io.Reader{strings.NewReader(askJSON), struct{ io.Reader }{strings.NewReader(askJSON)}} {
		status, _, err := g.post(body, nil)
		rec := g.record()
		if err != nil || status != 413 || rec.Outcome != call.Refused || rec.Error != "request_too_large" || rec.Status != 413 {
			t.Errorf("the client has %d, %v; the record says %s %q, %d", status, err, rec.Outcome, rec.Error, rec.Status)
		}
		if len(asked) > 0 {
			t.Errorf("the upstream took %q for a whole body", <-asked)
		}
	}
}

// TestSlowReader: time in which the client does not read is delivery, not the
// model's; a deadline on writes that passes ends the call as a stalled reader,
// whether it shows in a write or only in the flush after it.
func TestSlowReader(t *testing.T) {
	for name, c := range map[string]struct {
		piece    string
		deadline time.Duration // of the whole answer; 0 is none
		stall    time.Duration // before the client reads on; 0 is for ever
		outcome  call.Outcome
	}{
		"small pieces, then reads on": {stripToken, 0, 20 * time.Second, call.Completed},
		"large pieces, then reads on": {strings.Repeat(stripToken, 1000), 0, 20 * time.Second, call.Completed},
		"small pieces, cut":           {stripToken, 10 * time.Second, 0, call.ReaderStalled},
		"large pieces, cut":           {strings.Repeat(stripToken, 1000), 10 * time.Second, 0, call.ReaderStalled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := new(counted)
				g := New(m)
				next := copied(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					for range 20 {
						select {
						case <-time.After(10 * time.Millisecond):
						case <-r.Context().Done():
							return
						}
						if _, err := io.WriteString(w, c.piece); err != nil {
							return
						}
						_ = http.NewResponseController(w).Flush()
					}
					_, _ = io.WriteString(w, stripFinish+stripUsage+stripDone)
				}))
				l := newPipes()
				ended := make(chan struct{})
				s := &http.Server{WriteTimeout: c.deadline, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					defer close(ended)
					_ = g.Begin(r, &Options{}, &Surroundings{}).Serve(w, NextFunc(next))
				})}
				served := make(chan struct{})
				go func() { defer close(served); _ = s.Serve(l) }()
				conn, err := l.dial(t.Context(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(askStream), askStream)
				if _, err := io.CopyN(io.Discard, conn, 400); err != nil {
					t.Fatal(err)
				}
				if c.stall > 0 {
					time.Sleep(c.stall)
					go func() { _, _ = io.Copy(io.Discard, conn) }()
				}
				<-ended
				_ = conn.Close()
				_ = s.Close()
				<-served
				rec := m.records[0]
				if rec.Outcome != c.outcome {
					t.Errorf("%s %q", rec.Outcome, rec.Error)
				}
				blocked := max(c.stall, c.deadline) - time.Second
				if rec.Phases.Delivery.Or(0) < blocked || rec.Phases.Decode.Or(0) > time.Second || rec.Phases.Sum() != rec.Instants.Ended.Or(-1) {
					t.Errorf("delivery %v, decode %v, in all %v", rec.Phases.Delivery, rec.Phases.Decode, rec.Instants.Ended)
				}
			})
		})
	}
}

// TestInformationalIsNoAnswer: the first byte is that of the answer, not of the
// early hints before it; what lies between is the engine's time.
func TestInformationalIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(counted)
		g := New(m)
		do := serving(t, g, proxied(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusEarlyHints)
			time.Sleep(3 * time.Second)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, wholeJSON)
		})))
		r, _ := http.NewRequest("POST", "http://gateway/v1/chat/completions", strings.NewReader(askJSON))
		res, err := do(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		if err != nil || string(got) != wholeJSON {
			t.Errorf("%q, %v", got, err)
		}
		synctest.Wait()
		rec := m.records[0]
		if rec.TTFB != call.Lasting(3*time.Second) || rec.Phases.Engine != call.Lasting(3*time.Second) || rec.Phases.Connect.Or(time.Hour) > 0 {
			t.Errorf("TTFB %v, phases %+v", rec.TTFB, rec.Phases)
		}
	})
}
