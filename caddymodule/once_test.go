package caddymodule

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

const (
	askWhole = `{"model":"m","messages":[]}`
	answerOK = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
)

// send makes one call of a run and returns the answer, its body read.
func send(t *testing.T, c *http.Client, url, runID, body string) *http.Response {
	t.Helper()
	res, err := c.Do(post(context.Background(), t, url, runID, body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	return res
}

// TestStreamResetIsNotStale: an HTTP/2 upstream that resets a stream has had the
// request, on a connection that lives on.
func TestStreamResetIsNotStale(t *testing.T) {
	var asked atomic.Int32
	up := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if asked.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, "{}")
	}))
	s := newSite(t)
	run := start(t, "", s.http("weir\nreverse_proxy h2c://"+up))
	c := client(t, "http/1.1")
	for i, want := range []int{200, 502} {
		if res := send(t, c, s.url("http/1.1", "/v1/chat/completions"), fmt.Sprint("reset-", i), askWhole); res.StatusCode != want {
			t.Errorf("call %d: status %d, want %d", i, res.StatusCode, want)
		}
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("the upstream was asked %d times for 2 calls", n)
	}
	if rec := run.record("reset-1"); rec.Replayed || rec.Attempts != 1 || rec.Outcome != call.UpstreamError {
		t.Errorf("replayed %v, %d attempts, %s", rec.Replayed, rec.Attempts, rec.Outcome)
	}
}

// TestLongWriteIsNotStale: a request that failed while it was still being
// written may have been worked on all that time.
func TestLongWriteIsNotStale(t *testing.T) {
	var begun atomic.Int32
	up := accept(t, nil, func(c net.Conn) {
		_ = c.(*net.TCPConn).SetReadBuffer(64 << 10)
		in := bufio.NewReader(c)
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if r.ContentLength < 1000 {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(c, answerOK)
			if r, err = http.ReadRequest(in); err != nil {
				return
			}
		}
		begun.Add(1)
		_, _ = io.CopyN(io.Discard, r.Body, 1<<20)
		<-time.After(200 * time.Millisecond) // the work
		_ = c.(*net.TCPConn).SetLinger(0)
	})
	s := newSite(t)
	run := start(t, "", s.http("weir\nreverse_proxy "+up))
	c := client(t, "http/1.1")
	for i, body := range []string{askWhole, `{"model":"m","messages":"` + strings.Repeat("a", 9<<20) + `"}`} {
		send(t, c, s.url("http/1.1", "/v1/chat/completions"), fmt.Sprint("long-", i), body)
	}
	if rec := run.record("long-1"); begun.Load() != 1 || rec.Replayed || rec.Attempts != 1 {
		t.Errorf("begun %d times; replayed %v, %d attempts", begun.Load(), rec.Replayed, rec.Attempts)
	}
}

// TestReplayHeaders: what the first run put into the answer's header is not
// there twice after the second.
func TestReplayHeaders(t *testing.T) {
	var asked atomic.Int32
	up := accept(t, nil, func(c net.Conn) {
		in := bufio.NewReader(c)
		for i := range 2 {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			if asked.Add(1); i == 1 {
				return
			}
			_, _ = io.WriteString(c, answerOK)
		}
	})
	s := newSite(t)
	run := start(t, "", s.http("header X-Before b\nweir\nhandle {\nheader +Set-Cookie a=b\nreverse_proxy "+up+"\n}"))
	c := client(t, "http/1.1")
	for i := range 2 {
		res := send(t, c, s.url("http/1.1", "/v1/chat/completions"), fmt.Sprint("header-", i), askWhole)
		if got := res.Header["Set-Cookie"]; !slices.Equal(got, []string{"a=b"}) || res.Header.Get("X-Before") != "b" {
			t.Errorf("call %d: Set-Cookie %q, X-Before %q", i, got, res.Header.Get("X-Before"))
		}
	}
	if rec := run.record("header-1"); !rec.Replayed || rec.Attempts != 2 || asked.Load() != 3 {
		t.Errorf("replayed %v, %d attempts, upstream asked %d times", rec.Replayed, rec.Attempts, asked.Load())
	}
}

// TestAttempts: an attempt counts once, on HTTP/2 and behind a handler that asks
// another server first.
func TestAttempts(t *testing.T) {
	up := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "{}")
	}))
	for name, directives := range map[string]string{
		"h2c":  "weir\nreverse_proxy h2c://" + up,
		"auth": "weir\nhandle {\nforward_auth " + up + " {\nuri /\n}\nreverse_proxy " + up + "\n}",
		"down": "weir\nreverse_proxy " + freeAddress(t) + " " + up + " {\nlb_policy first\nlb_retries 2\nlb_try_interval 1ms\nfail_duration 10s\n}",
	} {
		s := newSite(t)
		t.Run(name, func(t *testing.T) {
			run := start(t, "", s.http(directives))
			c := client(t, "http/1.1")
			for i := range 3 {
				id := fmt.Sprint("attempts-", name, i)
				send(t, c, s.url("http/1.1", "/v1/chat/completions"), id, askWhole)
				want := 1
				if name == "down" && i == 0 {
					want = 2
				}
				if rec := run.record(id); rec.Attempts != want || !rec.TTFB.IsKnown() {
					t.Errorf("call %d: %d attempts, want %d; TTFB %v", i, rec.Attempts, want, rec.TTFB)
				}
			}
		})
	}
}

// TestOtherHandlers: the answer of a handler that is no proxy keeps its length.
func TestOtherHandlers(t *testing.T) {
	with, without := newSite(t), newSite(t)
	const respond = "handle /v1/chat/completions {\nrespond `{\"error\":\"maintenance\"}` 200\n}"
	start(t, "", with.http("weir\n"+respond)+without.http(respond))
	for _, version := range []string{"1.0", "1.1"} {
		var answers []string
		for _, s := range []site{with, without} {
			answers = append(answers, exchangeRaw(t, s.plain, "POST /v1/chat/completions HTTP/"+version+"\r\nHost: "+s.plain+"\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"))
		}
		if !strings.Contains(answers[0], "Content-Length: 23") || anonymous(answers[0], with) != anonymous(answers[1], without) {
			t.Errorf("HTTP/%s\n with weir %q\nwithout %q", version, answers[0], answers[1])
		}
	}
}

// anonymous takes the date and the site's address out of a raw answer.
func anonymous(answer string, s site) string {
	answer = strings.ReplaceAll(answer, s.plain, "")
	before, after, found := strings.Cut(answer, "Date: ")
	if !found {
		return answer
	}
	_, after, _ = strings.Cut(after, "\r\n")
	return before + after
}

// exchangeRaw sends text on a connection of its own and returns all that comes.
func exchangeRaw(t *testing.T, address, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(c) // a reset after the answer is no matter
	return string(got)
}

// TestSiteTimeouts: time-outs of the site are time-outs, and neither a stalled
// reader nor a client that left.
func TestSiteTimeouts(t *testing.T) {
	up := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for i := 0; r.Context().Err() == nil; i++ {
			_, _ = io.WriteString(w, chunk(i))
			_ = http.NewResponseController(w).Flush()
			<-time.After(20 * time.Millisecond)
		}
	}))
	s := newSite(t)
	run := start(t, "servers {\ntimeouts {\nread_body 300ms\nwrite 600ms\n}\n}", s.http("weir\nreverse_proxy "+up))
	exchangeRaw(t, s.plain, fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\nX-Weir-Run: write\r\nContent-Length: %d\r\n\r\n%s", s.plain, len(streaming), streaming))
	exchangeRaw(t, s.plain, "POST /v1/chat/completions HTTP/1.1\r\nHost: "+s.plain+"\r\nX-Weir-Run: read\r\nContent-Length: 100\r\n\r\n{\"model\":")
	for _, id := range []string{"write", "read"} {
		if rec := run.record(id); rec.Outcome != call.Timeout {
			t.Errorf("%s: %s (%s)", id, rec.Outcome, rec.Error)
		}
	}
}
