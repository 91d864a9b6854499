package caddymodule

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// forgetful is a server that closes its connection after every second answer
// without saying so, as llama.cpp's does. What it reads on each connection it
// answers, so a request that is lost was never seen.
func forgetful(c net.Conn) {
	in := bufio.NewReader(c)
	for range 2 {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		body := chunk(1) + "data: [DONE]\n\n"
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	}
}

// TestStaleConnections: none of 400 calls fails although every second one meets
// a connection that is closed or about to be: plain, with TLS, with header_up,
// and behind handle blocks, whose state a second run must find as the first did.
func TestStaleConnections(t *testing.T) {
	_, upTLS := testCertificate(t)
	plain, secure := accept(t, nil, forgetful), accept(t, upTLS, forgetful)
	sites := map[string]string{
		"plain":     "weir\nreverse_proxy " + plain,
		"header_up": "weir\nreverse_proxy " + plain + " {\nheader_up X-Key secret\n}",
		"TLS":       "weir\nreverse_proxy https://" + secure + " {\ntransport http {\ntls_insecure_skip_verify\n}\n}",
		"handle": "weir\nhandle_path /api/* {\nrequest_header +X-Added once\nreverse_proxy " + plain + " {\nheader_up X-Key secret\n}\n}\n" +
			"handle {\nrespond 418\n}",
	}
	for name, directives := range sites {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			run := start(t, "", s.block(directives))
			c := client(t, "http/1.1")
			path := "/v1/chat/completions"
			if name == "handle" {
				path = "/api" + path
			}
			failed, held, replayed := 0, 0, 0
			for i := range 400 {
				res, err := c.Do(post(context.Background(), t, s.url("http/1.1", path), "stale", `{"model":"m","stream":true,"messages":[{"role":"user","content":"hello"}]}`))
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(res.Body)
				res.Body.Close()
				if err != nil || res.StatusCode != 200 || string(body) != chunk(1)+"data: [DONE]\n\n" {
					failed++
					t.Logf("call %d: status %d, %q, %v", i, res.StatusCode, body, err)
				}
			}
			for _, rec := range run.recordsOf("stale", 400) {
				// What took longer than a closed connection counts as stale is not sent
				// again, by design; a machine with too much to do brings that about.
				if took := rec.Phases.Sum(); rec.Outcome == call.UpstreamError && !rec.Replayed && took > 50*time.Millisecond {
					held++
					t.Logf("a call that failed was held up for %v", took)
				}
				if rec.Replayed {
					replayed++
					if rec.Attempts < 2 || rec.Outcome != call.Completed {
						t.Errorf("replayed with %d attempts, %s", rec.Attempts, rec.Outcome)
					}
				}
			}
			if failed > held || held > 8 {
				t.Errorf("%d of 400 calls failed, of which %d were held up", failed, held)
			}
			t.Logf("%d of 400 calls were sent again", replayed)
		})
	}
}

// TestNeverSentTwice: an upstream that has read the request and taken its time
// before it died may have done the work. It is called once.
func TestNeverSentTwice(t *testing.T) {
	var asked atomic.Int64
	up := accept(t, nil, func(c net.Conn) {
		in := bufio.NewReader(c)
		for n := 0; ; n++ {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			asked.Add(1)
			if n > 0 { // the second request on a connection: work, then die
				<-time.After(time.Second)
				return
			}
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
		}
	})
	s := newSite(t)
	run := start(t, "", s.block("weir\nreverse_proxy "+up))
	c := client(t, "http/1.1")
	for i, want := range []int{200, 502} {
		res, err := c.Do(post(context.Background(), t, s.url("http/1.1", "/v1/chat/completions"), fmt.Sprint("once-", i), `{"model":"m","messages":[]}`))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("call %d: status %d, want %d", i, res.StatusCode, want)
		}
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("the upstream was asked %d times for 2 calls", n)
	}
	if rec := run.record("once-1"); rec.Replayed || rec.Attempts != 1 || rec.Outcome != call.UpstreamError {
		t.Errorf("replayed %v, %d attempts, %s %s", rec.Replayed, rec.Attempts, rec.Outcome, rec.Error)
	}
}

// TestStaleRetryOff: the retry can be switched off, and then fails as it would
// without weir. The connection is closed before the second call is sent.
func TestStaleRetryOff(t *testing.T) {
	var a caddyfileHandler
	if err := a.parse("weir {\nstale_retry off\n}"); err != nil || !a.NoStaleRetry {
		t.Errorf("stale_retry off: %v, %v", a.NoStaleRetry, err)
	}
}
