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
