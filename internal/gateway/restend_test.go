package gateway

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// TestRestIsWhole: an answer that begins the moment the upload has ended is not
// broken off. A server closes the client's body when the answer begins, while the
// transport looks once more whether the body is over (https://go.dev/issue/40747).
func TestRestIsWhole(t *testing.T) {
	const pieces = 20
	g := newRig(t, func(c net.Conn, _ *http.Request, _ []byte) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
		for range pieces {
			_, _ = io.WriteString(c, "data: {}\n\n")
			time.Sleep(50 * time.Microsecond)
		}
	})
	g.gateway.looks.limit = 0 // no body is read ahead
	broken := 0
	for range 300 {
		res, err := http.Post("http://"+g.address+"/v1/chat/completions", "application/json", strings.NewReader(askStream))
		if err != nil {
			broken++
			continue
		}
		got, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || strings.Count(string(got), "data") != pieces {
			broken++
		}
		if rec := <-g.records; rec.Degraded[0] != call.BodyBudget {
			t.Fatalf("the body was read ahead: %v", rec.Degraded)
		}
	}
	if broken > 0 {
		t.Errorf("%d answers of 300 were broken off", broken)
	}
}

// TestUploadBesideAnswer: an upstream that begins its answer while a large body is still
// coming gets all of it, and the client all of the answer.
func TestUploadBesideAnswer(t *testing.T) {
	type said struct {
		bytes int64
		err   error
	}
	got := make(chan said, 1)
	g := newRig(t, nil)
	g.next = proxied(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		flow := http.NewResponseController(w)
		_ = flow.EnableFullDuplex()
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {}\n\n")
		_ = flow.Flush()
		time.Sleep(5 * time.Millisecond) // so that the beginning is on its way to the client
		n, err := io.Copy(io.Discard, r.Body)
		got <- said{n, err}
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}))
	for _, length := range []int{MaxLook - 1, MaxLook, MaxLook + 1, MaxLook + 1<<20} {
		for _, announced := range []bool{true, false} {
			var body io.Reader = strings.NewReader(strings.Repeat(" ", length))
			if !announced {
				body = io.MultiReader(body)
			}
			res, err := http.Post("http://"+g.address+"/v1/chat/completions", "application/json", body)
			if err != nil {
				t.Fatalf("%d, announced %v: %v", length, announced, err)
			}
			answer, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || !strings.HasSuffix(string(answer), "[DONE]\n\n") {
				t.Errorf("%d, announced %v: the answer is %q, %v", length, announced, answer, err)
			}
			if upstream := <-got; upstream.bytes != int64(length) || upstream.err != nil {
				t.Errorf("%d, announced %v: the upstream got %d bytes, %v", length, announced, upstream.bytes, upstream.err)
			}
			<-g.records
		}
	}
}
