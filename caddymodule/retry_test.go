package caddymodule

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weirgate/weir/internal/call"
)

// bodySum is what an upstream of these tests says of a body.
func bodySum(b []byte) string { return fmt.Sprintf("%d bytes %x", len(b), sha256.Sum256(b)) }

// failsFirst answers the first request of each run with 503, having read the
// body or not, and all later ones with what it got.
type failsFirst struct {
	mu   sync.Mutex
	runs map[string][]string // what came in, attempt by attempt
}

func (u *failsFirst) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	run := r.Header.Get("X-Weir-Run")
	u.mu.Lock()
	first := u.runs[run] == nil
	u.mu.Unlock()
	got := "not read"
	if !first || r.Header.Get("X-Read") == "all" {
		b, err := io.ReadAll(r.Body)
		if got = bodySum(b); err != nil {
			got = "broken off"
		}
	}
	u.mu.Lock()
	u.runs[run] = append(u.runs[run], got)
	u.mu.Unlock()
	if first {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, chunk(0)+done)
}

// bigBody is a chat request of a size, model and stream first.
func bigBody(size int) []byte {
	const begin, end = `{"model":"big","stream":true,"messages":[{"role":"user","content":"`, `"}]}`
	b := make([]byte, 0, size)
	b = append(b, begin...)
	for page := 0; len(b) < size-len(end); page++ { // no two pages alike
		b = strconv.AppendInt(append(b, ' '), int64(page), 10)
		b = append(b, strings.Repeat("x", min(4<<10, size-len(end)-min(len(b), size-len(end))))...)
	}
	return append(b, end...)
}

// send posts a body, with its length or chunked.
func sendBody(t *testing.T, c *http.Client, url, run string, body []byte, chunked bool, header ...string) answered {
	t.Helper()
	r := post(context.Background(), t, url, run, "")
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if chunked {
		r.ContentLength = -1
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return fetch(t, c, r)
}

// TestRetries: the proxy's own retries send the whole body again, not what the
// first attempt left of it.
func TestRetries(t *testing.T) {
	up := &failsFirst{runs: make(map[string][]string)}
	first, second := serve(t, up), serve(t, up)
	s, buffered := newSite(t), newSite(t)
	const retry = "lb_policy round_robin\nlb_retries 1\nlb_retry_match {\nexpression `{rp.status_code} == 503`\n}\n"
	run := start(t, "", s.http("weir\nreverse_proxy "+first+" "+second+" {\n"+retry+"}")+
		buffered.http("weir\nreverse_proxy "+first+" "+second+" {\n"+retry+"request_buffers 64KiB\n}"))
	for name, c := range map[string]struct {
		site site
		body []byte
	}{
		"small":                   {s, []byte(streaming)},
		"300 KB":                  {s, bigBody(300 << 10)},
		"3 MB":                    {s, bigBody(3 << 20)},
		"no JSON":                 {s, []byte("\x00\xff")},
		"buffered small":          {buffered, []byte(streaming)},
		"none":                    {s, nil},
		"as large as the read":    {s, bigBody(64 << 10)},
		"one less than the first": {s, bigBody(4<<10 - 1)},
	} {
		for _, chunked := range []bool{false, true} {
			for _, read := range []string{"all", "none"} {
				if read == "none" && len(c.body) < 1<<20 {
					// Within reverse_proxy itself a retry reads the trailer
					// that the attempt before may just be filling in, once
					// that one meets the end of the body.
					continue
				}
				what := fmt.Sprintf("%s chunked=%v read=%s", name, chunked, read)
				got := sendBody(t, client(t, "http/1.1"), c.site.url("http/1.1", "/v1/chat/completions"), what, c.body, chunked, "X-Read", read)
				up.mu.Lock()
				in := slices.Clone(up.runs[what])
				up.mu.Unlock()
				rec := run.record(what)
				if got.status != 200 || len(in) != 2 || in[1] != bodySum(c.body) || read == "all" && in[0] != in[1] {
					t.Errorf("%s: %d, the upstreams got %q, want %q", what, got.status, in, bodySum(c.body))
				}
				if rec.Attempts != 2 || rec.Replayed || rec.Outcome != call.Completed {
					t.Errorf("%s: %d attempts, replayed %v, %s (%s)", what, rec.Attempts, rec.Replayed, rec.Outcome, rec.Error)
				}
			}
		}
	}
	if m := run.metrics(); m.sum("weir_upstream_attempts_total") != 2*m.sum("weir_calls_total") {
		t.Errorf("%v attempts of %v calls", m.sum("weir_upstream_attempts_total"), m.sum("weir_calls_total"))
	}
}

// TestLargeBodyIsNotRetried: what cannot be sent whole again is not sent in part.
func TestLargeBodyIsNotRetried(t *testing.T) {
	up := &failsFirst{runs: make(map[string][]string)}
	address := serve(t, up)
	s := newSite(t)
	run := start(t, "", s.http("weir\nreverse_proxy "+address+" {\nlb_retries 1\nlb_retry_match {\nexpression `{rp.status_code} == 503`\n}\n}"))
	body := bigBody(11 << 20)
	for _, chunked := range []bool{false, true} {
		name := fmt.Sprint("large ", chunked)
		got := sendBody(t, client(t, "http/1.1"), s.url("http/1.1", "/v1/chat/completions"), name, body, chunked, "X-Read", "all")
		rec := run.record(name)
		up.mu.Lock()
		in := slices.Clone(up.runs[name])
		up.mu.Unlock()
		if got.status < 500 || in[0] != bodySum(body) || len(in) > 1 && in[1] != "broken off" {
			t.Errorf("%s: %d, the upstream got %q", name, got.status, in)
		}
		if rec.Outcome != call.UpstreamError || !slices.Contains(rec.Degraded, call.BodyTooLarge) {
			t.Errorf("%s: %s, degraded %v", name, rec.Outcome, rec.Degraded)
		}
	}
}

// TestLargeBody: a body beyond what is looked at passes, whole and in order,
// over each protocol; the record says what is not known.
func TestLargeBody(t *testing.T) {
	up := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		w.Header().Set("X-Got", fmt.Sprint(bodySum(b), " ", r.ContentLength, " ", err))
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, chunk(0)+done)
	}))
	s, buffered := newSite(t), newSite(t)
	run := start(t, "", s.block("weir {\nusage_policy inject\n}\nreverse_proxy "+up)+buffered.http("weir\nreverse_proxy "+up+" {\nrequest_buffers 64KiB\n}"))
	run.awaitCertificate(s)
	body := bigBody(11 << 20)
	sum := bodySum(body)
	for _, protocol := range protocols {
		for name, s := range map[string]site{"plain": s, "buffered": buffered} {
			for _, chunked := range []bool{false, true} {
				if protocol != "http/1.1" && (name == "buffered" || chunked) {
					continue // one way each is enough there
				}
				what := fmt.Sprintf("%s %s chunked=%v", name, protocol, chunked)
				got := sendBody(t, client(t, protocol), s.url(protocol, "/v1/chat/completions"), what, body, chunked)
				want := fmt.Sprint(sum, " ", len(body), " <nil>")
				if chunked {
					want = fmt.Sprint(sum, " ", -1, " <nil>")
				}
				if got.status != 200 || got.header.Get("X-Got") != want || got.body != chunk(0)+done {
					t.Errorf("%s: %d, the upstream got %s, want %s", what, got.status, got.header.Get("X-Got"), want)
				}
				rec := run.record(what)
				if rec.Outcome != call.Completed || !slices.Contains(rec.Degraded, call.BodyTooLarge) || rec.BytesIn.IsKnown() ||
					rec.Model != "big" || !rec.TTFT.IsKnown() {
					t.Errorf("%s: %+v", what, rec)
				}
			}
		}
	}
}

// TestEarlyAnswer: an upstream that answers without reading the body: the
// client gets that answer as it does without weir.
func TestEarlyAnswer(t *testing.T) {
	const refusal = `{"error":{"message":"too large","type":"invalid_request_error"}}`
	up := accept(t, nil, func(c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
			return
		}
		fmt.Fprintf(c, "HTTP/1.1 413 X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(refusal), refusal)
		_, _ = io.Copy(io.Discard, c) // until the proxy has seen it and gone
	})
	metered, bare := newSite(t), newSite(t)
	proxy := "reverse_proxy " + up + " {\ntransport http {\nkeepalive off\n}\n}"
	run := start(t, "", metered.http("weir\n"+proxy)+bare.http(proxy))
	for name, size := range map[string]int{"small": 200, "1 MB": 1 << 20, "11 MB": 11 << 20} {
		body := bigBody(size)
		for what, s := range map[string]site{"bare": bare, "metered": metered} {
			got := sendBody(t, client(t, "http/1.1"), s.url("http/1.1", "/v1/chat/completions"), name, body, false)
			if got.status != 413 || got.body != refusal {
				t.Errorf("%s %s: %d %q", name, what, got.status, got.body)
			}
		}
		rec := run.kept(name)
		if rec.Outcome != call.UpstreamError || rec.Status != 413 || rec.Error != "invalid_request_error" {
			t.Errorf("%s: %s (%s) %d", name, rec.Outcome, rec.Error, rec.Status)
		}
		checkSum(t, rec)
	}
}

// TestExpectContinue: a client that waits for 100 Continue gets it, and the
// upstream gets the same request as without weir.
func TestExpectContinue(t *testing.T) {
	saw := make(chan http.Header, 1)
	up := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		saw <- r.Header.Clone()
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(b)
	}))
	metered, bare := newSite(t), newSite(t)
	run := start(t, "", metered.http("weir\nreverse_proxy "+up)+bare.http("reverse_proxy "+up))
	const body = `{"model":"m","messages":[]}`
	var headers [2]http.Header
	for i, s := range []site{bare, metered} {
		c, err := net.Dial("tcp", s.plain)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\nX-Weir-Run: expect\r\nAccept-Encoding: identity\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", s.plain, len(body))
		in := bufio.NewReader(c)
		// The server's own comes without a header; the upstream's, relayed, with one.
		if res, err := http.ReadResponse(in, nil); err != nil || res.StatusCode != http.StatusContinue {
			t.Fatalf("before the body: %v, %v", res, err)
		}
		_, _ = io.WriteString(c, body)
		res, err := http.ReadResponse(in, nil)
		for err == nil && res.StatusCode == http.StatusContinue { // the upstream's own is relayed
			res, err = http.ReadResponse(in, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(res.Body); err != nil || string(got) != body || res.StatusCode != 200 {
			t.Errorf("%d %q, %v", res.StatusCode, got, err)
		}
		headers[i] = await(t, saw, "request")
	}
	diffHeaders(t, "request", headers[0], headers[1], "X-Forwarded-Host")
	run.record("expect")
}

// TestTrailers: the trailers of a request, and those of an answer, are what they
// are without weir.
func TestTrailers(t *testing.T) {
	saw := make(chan string, 1)
	up := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		saw <- fmt.Sprint(r.ContentLength, " ", string(b), " ", r.Trailer)
		w.Header().Set("Trailer", "X-Answer-Sum")
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, chunk(0)+done)
		w.Header().Set("X-Answer-Sum", "abc")
		w.Header().Set(http.TrailerPrefix+"X-Unannounced", "def")
	}))
	metered, bare := newSite(t), newSite(t)
	run := start(t, "", metered.block("weir\nreverse_proxy "+up)+bare.block("reverse_proxy "+up))
	run.awaitCertificate(metered)
	run.awaitCertificate(bare)
	for _, protocol := range protocols {
		var requests, answers [2]string
		for i, s := range []site{bare, metered} {
			r := post(context.Background(), t, s.url(protocol, "/v1/chat/completions"), "trailers "+protocol, streaming)
			r.ContentLength = -1
			r.Body = io.NopCloser(struct{ io.Reader }{strings.NewReader(streaming)})
			r.Trailer = http.Header{"X-Request-Sum": {"123"}}
			res, err := client(t, protocol).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(res.Body)
			res.Body.Close()
			answers[i] = fmt.Sprint(string(b), err, res.Trailer)
			requests[i] = await(t, saw, "request")
		}
		if requests[0] != requests[1] || answers[0] != answers[1] {
			t.Errorf("%s: with weir\n%s\n%s\nwithout\n%s\n%s", protocol, requests[1], answers[1], requests[0], answers[0])
		}
		if protocol == "http/1.1" && !(strings.Contains(requests[0], "X-Request-Sum:[123]") && strings.Contains(answers[0], "X-Answer-Sum:[abc]")) {
			t.Errorf("this test has no trailers: %s %s", requests[0], answers[0])
		}
		if rec := run.record("trailers " + protocol); rec.Outcome != call.Completed {
			t.Errorf("%s: %s", protocol, rec.Outcome)
		}
	}
}
