package caddymodule

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/weirgate/weir/internal/call"
)

// rawServer accepts connections and hands each, with its first request read,
// to serve; the connection is closed when that returns.
func rawServer(t *testing.T, serve func(net.Conn)) (address string) {
	t.Helper()
	return accept(t, nil, func(c net.Conn) {
		if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.Copy(io.Discard, r.Body)
			serve(c)
		}
	})
}

// TestUpstreamFails: each way in which an upstream fails has its outcome and
// code, the client gets the status that it gets without weir, and the record
// says what the client got.
func TestUpstreamFails(t *testing.T) {
	answers := func(text string) string {
		return rawServer(t, func(c net.Conn) { _, _ = io.WriteString(c, text) })
	}
	status := func(code int, body string) string {
		return answers(fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", code, len(body), body))
	}
	stopped := t.Context().Done()
	silent := rawServer(t, func(c net.Conn) {
		gone := make(chan struct{})
		go func() { defer close(gone); _, _ = io.Copy(io.Discard, c) }()
		select {
		case <-gone:
		case <-stopped:
			c.Close()
			<-gone
		}
	})
	_, secure := testCertificate(t)
	for name, c := range map[string]struct {
		proxy    string
		status   int
		outcome  call.Outcome
		code     string
		attempts int
	}{
		"refused":            {freeAddress(t), 502, call.UpstreamError, "connection_refused", 1},
		"no such host":       {"weir.invalid:80", 502, call.UpstreamError, "dns", 1},
		"dial time-out":      {silent + " {\ntransport http {\ndial_timeout 1ns\n}\n}", 502, call.Timeout, "dial_timeout", 1},
		"header time-out":    {silent + " {\ntransport http {\nresponse_header_timeout 30ms\n}\n}", 504, call.Timeout, "timeout", 1},
		"no certificate":     {"https://" + accept(t, secure, forgetful), 502, call.UpstreamError, "tls", 1},
		"closed unanswered":  {answers(""), 502, call.UpstreamError, "connection_closed", 1},
		"not HTTP":           {answers("SSH-2.0-x\r\n\r\n"), 502, call.UpstreamError, "status_502", 1},
		"no upstream":        {"", 503, call.UpstreamError, "no_upstream", 0},
		"400":                {status(400, `{"error":{"message":"no","type":"invalid_request_error","code":"context_length_exceeded"}}`), 400, call.UpstreamError, "invalid_request_error", 1},
		"401 without a word": {status(401, ""), 401, call.UpstreamError, "status_401", 1},
		"429 as text":        {status(429, "slow down"), 429, call.UpstreamError, "status_429", 1},
		"500":                {status(500, `{"error":"CUDA error"}`), 500, call.UpstreamError, "error", 1},
		"503":                {status(503, `{"error":{"message":"busy","type":"overloaded_error"}}`), 503, call.UpstreamError, "overloaded_error", 1},
		"short body": {answers("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"id\":"),
			200, call.UpstreamError, "connection_lost", 1},
		"short chunks": {answers("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ndata:\r\n"),
			200, call.UpstreamError, "connection_lost", 1},
		"end without the end": {answers("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + chunk(0)),
			200, call.Truncated, "truncated", 1},
	} {
		t.Run(name, func(t *testing.T) {
			metered, bare := newSite(t), newSite(t)
			proxy := "reverse_proxy " + c.proxy
			run := start(t, "", metered.http("weir\n"+proxy)+bare.http(proxy))
			client := client(t, "http/1.1")
			var got [2]string
			for i, s := range []site{bare, metered} {
				res, err := client.Do(post(context.Background(), t, s.url("http/1.1", "/v1/chat/completions"), "failing", streaming))
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(res.Body)
				res.Body.Close()
				got[i] = fmt.Sprintf("%d %q %v", res.StatusCode, body, err)
			}
			if got[0] != got[1] {
				t.Errorf("without weir %s\n   with weir %s", got[0], got[1])
			}
			rec := run.kept("failing")
			if rec.Outcome != c.outcome || rec.Error != c.code || rec.Status != c.status || rec.Attempts != c.attempts || rec.Replayed {
				t.Errorf("%s (%s), status %d, %d attempts, replayed %v", rec.Outcome, rec.Error, rec.Status, rec.Attempts, rec.Replayed)
			}
			if n := len(run.records("failed=true")); n != 1 {
				t.Errorf("%d failed calls are kept", n)
			}
			checkSum(t, rec)
		})
	}
}
