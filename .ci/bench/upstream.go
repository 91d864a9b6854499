package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// epoch is the start of the one clock that stamps writes and reads.
var epoch = time.Now()

// upstream imitates an engine over HTTP/1.1 with as little work as possible:
// it shares its core with the load.
type upstream struct {
	listener net.Listener

	mu      sync.Mutex // guards the two maps and closed
	conns   map[net.Conn]struct{}
	streams map[string]*stream // by the value of streamHeader
	closed  bool
	wg      sync.WaitGroup
}

// streamHeader names the stream whose writes the client decides.
const streamHeader = "X-Bench-Stream"

func newUpstream() (*upstream, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the upstream: %w", err)
	}
	u := &upstream{listener: l, conns: make(map[net.Conn]struct{}), streams: make(map[string]*stream)}
	u.wg.Go(u.accept)
	return u, nil
}

func (u *upstream) accept() {
	for {
		conn, err := u.listener.Accept()
		if err != nil {
			return
		}
		u.mu.Lock()
		if u.closed {
			u.mu.Unlock()
			conn.Close()
			return
		}
		u.conns[conn] = struct{}{}
		u.wg.Go(func() {
			defer u.forget(conn)
			u.serve(conn)
		})
		u.mu.Unlock()
	}
}

func (u *upstream) forget(conn net.Conn) {
	conn.Close()
	u.mu.Lock()
	delete(u.conns, conn)
	u.mu.Unlock()
}

// close breaks every connection and waits for their goroutines.
func (u *upstream) close() {
	u.mu.Lock()
	u.closed = true
	u.listener.Close()
	for conn := range u.conns {
		conn.Close()
	}
	for _, s := range u.streams {
		s.stop()
	}
	u.mu.Unlock()
	u.wg.Wait()
}

func (u *upstream) announce(s *stream) {
	u.mu.Lock()
	u.streams[s.id] = s
	u.mu.Unlock()
}

func (u *upstream) take(id string) *stream {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.streams[id]
	return s
}

func (u *upstream) drop(s *stream) {
	u.mu.Lock()
	delete(u.streams, s.id)
	u.mu.Unlock()
}

// serve answers the requests of one connection, one after the other.
func (u *upstream) serve(conn net.Conn) {
	in := bufio.NewReaderSize(conn, 2<<10)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		if id := req.Header.Get(streamHeader); id != "" {
			s := u.take(id)
			if s == nil || s.answer(conn) != nil {
				return
			}
		} else if _, err := conn.Write(jsonAnswer); err != nil {
			return
		}
	}
}

// answer writes the head and the role event, then what the client asks for,
// until the stream is stopped.
func (s *stream) answer(conn net.Conn) error {
	if _, err := conn.Write(streamHead); err != nil {
		return err
	}
	out := make([]byte, 0, 16*len(contentChunk))
	for {
		select {
		case <-s.stopped:
			_, err := conn.Write(streamEnd)
			return err
		case n := <-s.writes:
			out = s.chunk(out[:0], n)
			if _, err := conn.Write(out); err != nil {
				return err
			}
		}
	}
}

// chunk appends one HTTP chunk of n content events, each stamped with the time.
func (s *stream) chunk(out []byte, n int) []byte {
	out = strconv.AppendInt(out, int64(n*len(contentChunk)), 16)
	out = append(out, '\r', '\n')
	for range n {
		at := len(out) + stampAt
		out = append(out, contentChunk...)
		stamp(out[at:at+stampLen], time.Since(epoch))
	}
	return append(out, '\r', '\n')
}

// stamp writes d in nanoseconds as exactly len(b) digits.
func stamp(b []byte, d time.Duration) {
	n := uint64(d)
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
}

// The samples on the wire. Content events are all of one length, and carry
// their stamp as the token's text.
const (
	stampLen   = 16
	eventStart = `data: {"id":"chatcmpl-6f1c2d0ab39e4d57","object":"chat.completion.chunk","created":1764460800,` +
		`"model":"bench","choices":[{"index":0,"delta":`
	eventEnd     = `,"logprobs":null,"finish_reason":null}]}` + "\n\n"
	stampAt      = len(eventStart) + len(`{"content":" `)
	contentChunk = eventStart + `{"content":" 0000000000000000"}` + eventEnd
	roleEvent    = eventStart + `{"role":"assistant","content":""}` + eventEnd
	lastEvents   = `data: {"id":"chatcmpl-6f1c2d0ab39e4d57","object":"chat.completion.chunk","created":1764460800,` +
		`"model":"bench","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}` + "\n\n" +
		"data: [DONE]\n\n"
)

var (
	streamHead = []byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n" +
		httpChunk(roleEvent))
	streamEnd  = []byte(httpChunk(lastEvents) + "0\r\n\r\n")
	jsonAnswer = func() []byte {
		body := `{"id":"chatcmpl-6f1c2d0ab39e4d57","object":"chat.completion","created":1764460800,"model":"bench",` +
			`"choices":[{"index":0,"message":{"role":"assistant","content":"` + strings.Repeat("measure twice, cut once. ", 40) +
			`"},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":212,"completion_tokens":240,` +
			`"total_tokens":452,"prompt_tokens_details":{"cached_tokens":128}}}`
		return []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
	}()
)

func httpChunk(s string) string { return strconv.FormatInt(int64(len(s)), 16) + "\r\n" + s + "\r\n" }
