package gateway

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/call"
)

// TestBadAnswers: what the upstream sends reaches the client, and the record
// says what became of it.
func TestBadAnswers(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(z, stripToken+stripDone)
	_ = z.Close()
	good := stripToken + stripFinish + stripUsage + stripDone
	garbage := strings.Repeat("\x8f\x01garbage", 1000)
	for name, c := range map[string]struct {
		head     string // status line and header fields
		body     string
		want     string // what the client has, when that is not body
		broken   bool   // the client's answer breaks off
		outcome  call.Outcome
		code     string
		degraded call.Degradation
	}{
		"good":                        {"200 OK\r\nContent-Type: text/event-stream", good, "", false, call.Completed, "", ""},
		"empty":                       {"200 OK\r\nContent-Type: text/event-stream", "", "", false, call.Truncated, "truncated", ""},
		"empty, of length 0":          {"200 OK\r\nContent-Type: application/json\r\nContent-Length: 0", "", "", false, call.Truncated, "truncated", ""},
		"500 without a body":          {"500 x\r\nContent-Length: 0", "", "", false, call.UpstreamError, "status_500", ""},
		"plain under gzip":            {"200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip", good, "", false, call.Completed, "", call.InflateFailed},
		"gzip under plain":            {"200 OK\r\nContent-Type: text/event-stream", zipped.String(), "", false, call.Truncated, "truncated", ""},
		"gzip, cut":                   {"200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip", zipped.String()[:40], "", false, call.Truncated, "truncated", ""},
		"gzip, then garbage":          {"200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip", zipped.String() + garbage, "", false, call.Completed, "", call.UsageHidden},
		"garbage under br":            {"200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: br", garbage, "", false, call.Completed, "", call.InflateLimit},
		"garbage under zstd":          {"200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: zstd", garbage, "", false, call.Completed, "", call.InflateFailed},
		"garbage under deflate":       {"200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: deflate", garbage, "", false, call.Completed, "", call.InflateFailed},
		"unknown encoding":            {"200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: exi", garbage, "", false, call.Completed, "", call.EncodingUnknown},
		"too many encodings":          {"200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip, gzip, gzip", garbage, "", false, call.Completed, "", call.EncodingUnknown},
		"announces too much":          {"200 OK\r\nContent-Type: application/json\r\nContent-Length: 5000", `{"choices":[`, "", true, call.UpstreamError, "connection_lost", ""},
		"announces too much, whole":   {"200 OK\r\nContent-Type: application/json\r\nContent-Length: 5000", wholeJSON, "", true, call.UpstreamError, "connection_lost", ""},
		"announces too little":        {"200 OK\r\nContent-Type: application/json\r\nContent-Length: 70", wholeJSON, wholeJSON[:70], false, call.Truncated, "truncated", ""},
		"broken chunks":               {"200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked", "5\r\ndata:\r\nxyz\r\n", "data:", true, call.UpstreamError, "connection_lost", ""},
		"JSON bomb, arrays":           {"200 OK\r\nContent-Type: application/json", `{"choices":` + strings.Repeat("[", 1_000_000), "", false, call.Truncated, "truncated", call.ParseErrors},
		"JSON bomb, event":            {"200 OK\r\nContent-Type: text/event-stream", "data: " + strings.Repeat("[", 900_000) + "\n\n" + good, "", false, call.Completed, "", call.ParseErrors},
		"zero bytes":                  {"200 OK\r\nContent-Type: text/event-stream", strings.Repeat("\x00", 100_000), "", false, call.Truncated, "truncated", ""},
		"a million blank lines":       {"200 OK\r\nContent-Type: text/event-stream", strings.Repeat("\n", 1_000_000), "", false, call.Truncated, "truncated", ""},
		"a million comments":          {"200 OK\r\nContent-Type: text/event-stream", strings.Repeat(":\n", 1_000_000) + good, "", false, call.Completed, "", ""},
		"a content type out of range": {"200 OK\r\nContent-Type: " + strings.Repeat(";", 9000), good, "", false, call.Completed, "", ""},
	} {
		g := newRig(t, func(conn net.Conn, _ *http.Request, _ []byte) {
			_, _ = io.WriteString(conn, "HTTP/1.1 "+c.head+"\r\nConnection: close\r\n\r\n"+c.body)
		})
		_, answer, err := g.post(strings.NewReader(askStream), http.Header{"Accept-Encoding": {"gzip"}})
		want := c.want
		if want == "" {
			want = c.body
		}
		if sha256.Sum256(answer) != sha256.Sum256([]byte(want)) || (err != nil) != c.broken {
			t.Errorf("%s: the client has %d bytes of %d, %v", name, len(answer), len(want), err)
		}
		rec := g.record()
		degraded := call.Degradation("")
		if len(rec.Degraded) > 0 {
			degraded = rec.Degraded[0]
		}
		if rec.Outcome != c.outcome || rec.Error != c.code || degraded != c.degraded || len(rec.Degraded) > 1 {
			t.Errorf("%s: %s %q, degraded %v", name, rec.Outcome, rec.Error, rec.Degraded)
		}
		if rec.BytesOut != int64(len(want)) {
			t.Errorf("%s: %d bytes out, the client has %d", name, rec.BytesOut, len(want))
		}
	}
}

// TestNoAnswer: upstreams that never come to a body.
func TestNoAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		write func(net.Conn)
	}{
		"closes at once":     {func(net.Conn) {}},
		"closes in the line": {func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 20") }},
		"closes in the head": {func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/ev") }},
		"another protocol":   {func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.7\r\n") }},
		"two lengths": {func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab")
		}},
		"a negative length": {func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nab") }},
		"a header of 20 MB": {func(c net.Conn) {
			endless(c, "HTTP/1.1 200 OK\r\n", "X-Field: "+strings.Repeat("x", 1000)+"\r\n", 20<<20)
		}},
		"a field of 20 MB":    {func(c net.Conn) { endless(c, "HTTP/1.1 200 OK\r\nX-Field: ", strings.Repeat("x", 1000), 20<<20) }},
		"informational, then": {func(c net.Conn) { endless(c, "", "HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n", 5000) }},
	} {
		g := newRig(t, func(conn net.Conn, _ *http.Request, _ []byte) { c.write(conn) })
		status, _, err := g.post(strings.NewReader(askStream), nil)
		rec := g.record()
		if err != nil || status != 502 || rec.Status != 502 || rec.Outcome != call.UpstreamError || rec.Attempts != 1 {
			t.Errorf("%s: the client has %d, %v; the record says %s %q, %d", name, status, err, rec.Outcome, rec.Error, rec.Status)
		}
		if rec.TTFT.IsKnown() || rec.ContentEvents.IsKnown() {
			t.Errorf("%s: claims TTFT %v and %v events", name, rec.TTFT, rec.ContentEvents)
		}
	}
}

// endless writes begin and then piece again and again, until n bytes are
// through or nobody reads any more.
func endless(w io.Writer, begin, piece string, n int) {
	_, err := io.WriteString(w, begin)
	for ; n > 0 && err == nil; n -= len(piece) {
		_, err = io.WriteString(w, piece)
	}
}

// TestEndlessInformational: interim answers pass for as long as the client
// likes; its leaving ends the call.
func TestEndlessInformational(t *testing.T) {
	g := newRig(t, func(conn net.Conn, _ *http.Request, _ []byte) {
		endless(conn, "", "HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n", 1<<40)
	})
	c := g.dial()
	fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(askStream), askStream)
	lines := bufio.NewScanner(c)
	for n := 0; n < 500 && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "HTTP/1.1 103") {
			n++
		}
	}
	c.Close()
	if rec := g.record(); rec.Outcome != call.ClientGone || rec.TTFB.IsKnown() {
		t.Errorf("%s %q, status %d", rec.Outcome, rec.Error, rec.Status)
	}
}

// TestLongLines: lines of 100 MB stream through unharmed in bounded memory.
func TestLongLines(t *testing.T) {
	const size = 100 << 20
	block := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	for name, c := range map[string]struct {
		mediaType, path, begin, end string
		degraded                    []call.Degradation
	}{
		"SSE":    {"text/event-stream", "/v1/chat/completions", `data: {"choices":[{"index":0,"delta":{"content":"`, "\"}}]}\n\n" + stripToken + stripDone, []call.Degradation{call.EventTooLong, call.UsageHidden}},
		"NDJSON": {"application/x-ndjson", "/api/chat", `{"message":{"content":"`, "\"},\"done\":false}\n{\"message\":{\"content\":\"x\"},\"done\":true,\"eval_count\":2}\n", []call.Degradation{call.EventTooLong}},
		"JSON":   {"application/json", "/v1/chat/completions", `{"choices":[{"index":0,"finish_reason":"stop","message":{"content":"`, `"}}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`, nil},
	} {
		sent, done := sha256.New(), make(chan struct{})
		g := newRig(t, func(conn net.Conn, _ *http.Request, _ []byte) {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: "+c.mediaType+"\r\nConnection: close\r\n\r\n")
			w := io.MultiWriter(conn, sent)
			_, err := io.WriteString(w, c.begin)
			for n := 0; n < size && err == nil; n += len(block) {
				_, err = w.Write(block)
			}
			_, _ = io.WriteString(w, c.end)
			close(done)
		})
		h := newHeap()
		r, _ := http.NewRequest("POST", "http://"+g.address+c.path, strings.NewReader(askStream))
		res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		got := sha256.New()
		for err == nil {
			_, err = io.CopyN(got, res.Body, 4<<20)
			h.grown()
		}
		res.Body.Close()
		<-done
		rec := g.record()
		if err != io.EOF || !bytes.Equal(got.Sum(nil), sent.Sum(nil)) || rec.BytesOut != int64(size+len(c.begin)+len(c.end)) {
			t.Errorf("%s: %v; %d bytes went out, same %v", name, err, rec.BytesOut, bytes.Equal(got.Sum(nil), sent.Sum(nil)))
		}
		if grown := h.grown(); grown > 32<<20 {
			t.Errorf("%s: the heap grew by %d MB", name, grown>>20)
		}
		if rec.Outcome != call.Completed || !slices.Equal(rec.Degraded, c.degraded) || rec.ContentEvents != call.Known(1) {
			t.Errorf("%s: %s %q, degraded %v, %v content events", name, rec.Outcome, rec.Error, rec.Degraded, rec.ContentEvents)
		}
	}
}

// TestGzipBomb: an answer that inflates to a gigabyte passes as the megabyte
// that it is, and is given up by the meter early.
func TestGzipBomb(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	zeros := make([]byte, 1<<20)
	for range 16 {
		_, _ = z.Write(zeros)
	}
	_ = z.Close()
	part := bytes.Clone(bomb.Bytes())
	for range 63 { // each member is 16 MB of zeros
		bomb.Write(part)
	}
	g := newRig(t, func(conn net.Conn, _ *http.Request, _ []byte) {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n")
		_, _ = conn.Write(bomb.Bytes())
	})
	h := newHeap()
	_, answer, err := g.post(strings.NewReader(askStream), http.Header{"Accept-Encoding": {"gzip"}})
	rec := g.record()
	if err != nil || sha256.Sum256(answer) != sha256.Sum256(bomb.Bytes()) {
		t.Errorf("the client has %d bytes of %d, %v", len(answer), bomb.Len(), err)
	}
	if grown := h.grown(); grown > 32<<20 {
		t.Errorf("the heap grew by %d MB", grown>>20)
	}
	if rec.Outcome != call.Completed || !slices.Equal(rec.Degraded, []call.Degradation{call.InflateLimit}) || rec.ContentEvents.IsKnown() {
		t.Errorf("%s, degraded %v, %v content events", rec.Outcome, rec.Degraded, rec.ContentEvents)
	}
}

// TestLeavesWithTheWhole: a client that has all that the header announced, and
// closes before the handler has returned, has not left early.
func TestLeavesWithTheWhole(t *testing.T) {
	for length, want := range map[string]call.Outcome{"4": call.Truncated, "5": call.ClientGone, "": call.ClientGone} {
		m := new(counted)
		g := New(m)
		ctx, leave := context.WithCancel(t.Context())
		r := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(askStream)).WithContext(ctx)
		rec := g.call(httptest.NewRecorder(), r, func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Type", "text/event-stream")
			if length != "" {
				w.Header().Set("Content-Length", length)
			}
			_, err := io.WriteString(w, ": x\n")
			leave()
			return err
		})
		if rec.Outcome != want || len(m.records) != 1 {
			t.Errorf("length %q: %s, want %s", length, rec.Outcome, want)
		}
	}
}
