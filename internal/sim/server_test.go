package sim

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// serveReal starts an engine behind a real listener.
func serveReal(t *testing.T, cfg Config) (e *Engine, address string) {
	t.Helper()
	cfg.PrefillBase, cfg.PrefillPerToken, cfg.DecodeBase = 1, None, 1
	e, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := e.Server()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Serve(l); err != http.ErrServerClosed {
			t.Errorf("serve: %v", err)
		}
	}()
	t.Cleanup(func() {
		e.Close()
		s.Close()
		<-done
	})
	return e, l.Addr().String()
}

func TestOverARealConnection(t *testing.T) {
	e, address := serveReal(t, Config{})
	var id string
	for range 3 {
		r, err := http.Post("http://"+address+chatPath, "application/json", strings.NewReader(chat("Hello", 20, "")))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || contents(string(body)) != 20 || !strings.HasSuffix(string(body), "data: [DONE]\n\n") {
			t.Fatalf("%v in\n%s", err, body)
		}
		if next := r.Header.Get("X-Request-Id"); next == "" || next == id {
			t.Errorf("X-Request-Id %q after %q", next, id)
		} else {
			id = next
		}
		got := truth(t, e, id)
		for i := 1; i < len(got.Tokens); i++ {
			if got.Tokens[i].Before(got.Tokens[i-1]) {
				t.Errorf("token %d comes before the one before it", i)
			}
		}
		if got.Output != 20 || got.FirstToken.Before(got.Scheduled) || got.Scheduled.Before(got.Arrival) {
			t.Errorf("truth %+v", got)
		}
	}
	if _, err := http.Post("http://"+address+chatPath, "", strings.NewReader("{}")); err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest("POST", "http://"+address+chatPath, strings.NewReader(chat("Hello", 20, "")))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Sim-Fault", "abort:3")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.ReadAll(answer.Body); err != io.ErrUnexpectedEOF {
		t.Errorf("a broken connection reads as %v", err)
	}
}

// TestLlamaClosesAfterTwoStreams talks to the server over one connection.
func TestLlamaClosesAfterTwoStreams(t *testing.T) {
	for quirks, want := range map[Quirks]int{LlamaCPP: 2, VLLM: 5} {
		_, address := serveReal(t, Config{Quirks: quirks})
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		reader := bufio.NewReader(conn)
		answered := 0
		for range 5 {
			for _, body := range []string{`{"max_tokens":2,"messages":[{"role":"user","content":"Hello"}]}`, chat("Hello", 2, "")} {
				r, err := http.NewRequest("POST", "http://"+address+chatPath, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				if r.Write(conn) != nil {
					break
				}
				answer, err := http.ReadResponse(reader, r)
				if err != nil {
					break
				}
				if _, err := io.Copy(io.Discard, answer.Body); err != nil {
					t.Fatal(err)
				}
				if answer.Close {
					t.Errorf("%s: the answer announces the end of the connection", quirks)
				}
				if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
					answered++
				}
			}
		}
		if answered != want {
			t.Errorf("%s: %d streams over one connection, want %d", quirks, answered, want)
		}
	}
}
