package rtt

import (
	"net"
	"reflect"
	"sync"
	"syscall"
	"time"
)

const (
	// every is how old a sample may be before the kernel is asked again: asking
	// is a system call, and the figure is smoothed anyway.
	every = time.Second
	// most is how many connections have their sample remembered. Beyond it those
	// that have not been asked for lately are forgotten.
	most = 8192
)

// Samples remembers the latest round trip of each connection. The zero value is
// ready, and is safe for concurrent use.
type Samples struct {
	mu sync.Mutex
	of map[net.Conn]sample // holds connections for a while after they closed
	// swept is when samples of connections that nobody asks for were last removed.
	swept time.Time
}

type sample struct {
	taken time.Time
	rtt   time.Duration
	known bool
}

// Of returns the kernel's smoothed round trip of a TCP connection (Linux:
// tcpi_rtt of TCP_INFO, in steps of 1 µs), at most a second old. It is not known
// of other connections, on other systems, and before the peer has acknowledged
// anything; a wrapped connection (TLS) is asked through NetConn. nil is allowed.
func (s *Samples) Of(conn net.Conn, now time.Time) (time.Duration, bool) {
	if conn == nil {
		return 0, false
	}
	if reflect.TypeOf(conn).Kind() != reflect.Pointer {
		return ask(conn) // a wrapper by value may be no key of a map
	}
	s.mu.Lock()
	got, there := s.of[conn]
	s.mu.Unlock()
	if age := now.Sub(got.taken); there && age >= 0 && age < every {
		return got.rtt, got.known
	}
	got = sample{taken: now}
	got.rtt, got.known = ask(conn)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = make(map[net.Conn]sample)
	}
	s.sweep(now)
	if len(s.of) < most || there {
		s.of[conn] = got
	}
	return got.rtt, got.known
}

// sweep forgets what is too old to be used again. The lock is held.
func (s *Samples) sweep(now time.Time) {
	if since := now.Sub(s.swept); since >= 0 && since < every {
		return
	}
	s.swept = now
	for conn, got := range s.of {
		if now.Sub(got.taken) >= every {
			delete(s.of, conn)
		}
	}
}

// ask unwraps the connection and asks the kernel. A wrapper is anybody's code, and
// this may run on a goroutine on which its panic would end the process.
func ask(conn net.Conn) (trip time.Duration, known bool) {
	defer func() {
		if recover() != nil {
			trip, known = 0, false
		}
	}()
	for range 8 { // layers; a wrapper that returns itself must not hang a call
		if c, ok := conn.(syscall.Conn); ok {
			raw, err := c.SyscallConn()
			if err != nil {
				return 0, false
			}
			return smoothed(raw)
		}
		inner, wraps := conn.(interface{ NetConn() net.Conn })
		if !wraps {
			return 0, false
		}
		if conn = inner.NetConn(); conn == nil {
			return 0, false
		}
	}
	return 0, false
}
