package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ioLimit bounds every wait for a byte, so that a gateway that hangs ends the
// run with an error.
const ioLimit = 30 * time.Second

// callerKey is the key that every call carries.
const callerKey = "sk-bench-q7Lw2Zr9Xk4Tn8Vb"

func requestBody(stream bool) string {
	return `{"model":"bench","messages":[{"role":"system","content":"` + strings.Repeat("You answer briefly. ", 20) +
		`"},{"role":"user","content":"` + strings.Repeat("How long is a piece of string? ", 16) + `"}],"max_tokens":256,"stream":` +
		strconv.FormatBool(stream) + `}`
}

func request(host, id string) []byte {
	body, extra := requestBody(id != ""), ""
	if id != "" {
		extra = streamHeader + ": " + id + "\r\n"
	}
	return []byte("POST /v1/chat/completions HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: weir-bench\r\nContent-Type: application/json\r\n" +
		"Authorization: Bearer " + callerKey + "\r\nAccept-Encoding: identity\r\n" + extra + "Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
}

// client is one HTTP/1.1 connection to a gateway.
type client struct {
	conn net.Conn
	in   *bufio.Reader
}

func dial(g *gateway, buffer int) (*client, error) {
	conn, err := net.DialTimeout("tcp", g.addr, ioLimit)
	if err != nil {
		return nil, fmt.Errorf("connect to gateway %s: %w", g.name, err)
	}
	return &client{conn: conn, in: bufio.NewReaderSize(conn, buffer)}, nil
}

// send writes a request and reads the head of its answer.
func (c *client) send(raw []byte) (*http.Response, error) {
	if err := c.conn.SetDeadline(time.Now().Add(ioLimit)); err != nil {
		return nil, err
	}
	if _, err := c.conn.Write(raw); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the gateway answered %s", resp.Status)
	}
	return resp, nil
}

// calls is the JSON load: so many connections, each with one call at a time.
type calls struct {
	clients []*client
	raw     []byte
}

func newCalls(_ *upstream, g *gateway) (load, error) {
	const connections = 16
	l := &calls{raw: request(g.addr, "")}
	for range connections {
		c, err := dial(g, 8<<10)
		if err != nil {
			l.close()
			return nil, err
		}
		l.clients = append(l.clients, c)
	}
	return l, nil
}

func (l *calls) run(d time.Duration) (traffic, error) {
	end := time.Now().Add(d)
	var units atomic.Int64
	err := all(l.clients, func(c *client) error {
		n := int64(0)
		for ; time.Now().Before(end); n++ {
			resp, err := c.send(l.raw)
			if err != nil {
				return err
			}
			got, err := io.Copy(io.Discard, resp.Body)
			if err != nil {
				return err
			}
			if got != resp.ContentLength || got < 1000 {
				return fmt.Errorf("an answer of %d bytes, want %d", got, resp.ContentLength)
			}
		}
		units.Add(n)
		return nil
	})
	return traffic{units: units.Load()}, err
}

func (l *calls) close() {
	for _, c := range l.clients {
		c.conn.Close()
	}
}

// stream is one open streamed call whose upstream writes when the client says so.
type stream struct {
	id      string
	writes  chan int // how many content events the upstream writes at once
	stopped chan struct{}
	once    sync.Once

	client *client
	body   io.ReadCloser
	buf    []byte
}

func (s *stream) stop() { s.once.Do(func() { close(s.stopped) }) }

var streamIDs atomic.Int64

// openStream starts a streamed call through g and reads its first event.
func openStream(u *upstream, g *gateway, buffer int) (*stream, error) {
	s := &stream{id: strconv.FormatInt(streamIDs.Add(1), 10), writes: make(chan int, 1), stopped: make(chan struct{})}
	u.announce(s)
	err := func() (err error) {
		if s.client, err = dial(g, buffer); err != nil {
			return err
		}
		resp, err := s.client.send(request(g.addr, s.id))
		if err != nil {
			s.client.conn.Close()
			return err
		}
		s.body = resp.Body
		s.buf = make([]byte, len(roleEvent))
		if _, err = io.ReadFull(s.body, s.buf); err == nil && string(s.buf) != roleEvent {
			err = errors.New("the first event came changed")
		}
		if err != nil {
			s.client.conn.Close()
		}
		return err
	}()
	if err != nil {
		u.drop(s)
		return nil, fmt.Errorf("open a stream through gateway %s: %w", g.name, err)
	}
	return s, nil
}

// abandon leaves the stream as a client does that goes away.
func (s *stream) abandon(u *upstream) {
	s.client.conn.Close()
	s.stop()
	u.drop(s)
}

// finish ends the stream and reads the rest of it.
func (s *stream) finish(u *upstream) error {
	s.stop()
	defer s.client.conn.Close()
	defer u.drop(s)
	if err := s.client.conn.SetDeadline(time.Now().Add(ioLimit)); err != nil {
		return err
	}
	rest, err := io.ReadAll(s.body)
	if err == nil && !bytes.HasSuffix(rest, []byte(lastEvents)) {
		err = errors.New("the end of a stream came changed")
	}
	return err
}

// lockstep is the load of streams that go as fast as they can: the upstream
// writes the next events once the client has read the last.
type lockstep struct {
	up      *upstream
	streams []*stream
	width   int // events a write
}

func newLockstep(width int) func(*upstream, *gateway) (load, error) {
	return func(u *upstream, g *gateway) (load, error) {
		streams, err := openStreams(u, g, 16, 16<<10)
		return &lockstep{up: u, streams: streams, width: width}, err
	}
}

// openStreams opens n streams through g, or none.
func openStreams(u *upstream, g *gateway, n, buffer int) ([]*stream, error) {
	streams := make([]*stream, n)
	const atOnce = 32
	var next atomic.Int64
	workers := make([]struct{}, min(atOnce, n))
	err := all(workers, func(struct{}) error {
		for {
			i := int(next.Add(1)) - 1
			if i >= n {
				return nil
			}
			s, err := openStream(u, g, buffer)
			if err != nil {
				return fmt.Errorf("stream %d of %d: %w", i+1, n, err)
			}
			streams[i] = s
		}
	})
	if err != nil {
		for _, s := range streams {
			if s != nil {
				s.abandon(u)
			}
		}
		return nil, err
	}
	return streams, nil
}

func (l *lockstep) run(d time.Duration) (traffic, error) {
	end := time.Now().Add(d)
	var units atomic.Int64
	err := all(l.streams, func(s *stream) error {
		want := l.width * len(contentChunk)
		if len(s.buf) != want {
			s.buf = make([]byte, want)
		}
		if err := s.client.conn.SetDeadline(end.Add(ioLimit)); err != nil {
			return err
		}
		n := int64(0)
		for ; time.Now().Before(end); n += int64(l.width) {
			s.writes <- l.width
			if _, err := io.ReadFull(s.body, s.buf); err != nil {
				return err
			}
			if !bytes.HasPrefix(s.buf, []byte(eventStart)) || !bytes.HasSuffix(s.buf, []byte(eventEnd)) {
				return errors.New("an event came changed")
			}
		}
		units.Add(n)
		return nil
	})
	return traffic{units: units.Load()}, err
}

func (l *lockstep) close() { finishAll(l.up, l.streams) }

func finishAll(u *upstream, streams []*stream) {
	_ = all(streams, func(s *stream) error { return s.finish(u) })
}

// all calls f for each at the same time, waits for all, and returns the errors.
// Of many it keeps three.
func all[T any](items []T, f func(T) error) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for _, item := range items {
		wg.Go(func() {
			if err := f(item); err != nil {
				mu.Lock()
				if len(errs) < 3 {
					errs = append(errs, err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
