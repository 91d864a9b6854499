package otlpin

import (
	"net"
	"sync"
)

// limitedListener lets a bounded number of connections be open at a time (further
// ones wait in the kernel's backlog), and can cut them all.
type limitedListener struct {
	net.Listener
	places chan struct{}
	closed chan struct{}
	once   sync.Once

	mu   sync.Mutex
	open map[*limitedConn]struct{}
	cut  bool // connections that are accepted from now on end at once
}

func limitConns(l net.Listener, n int) *limitedListener {
	return &limitedListener{
		Listener: l, places: make(chan struct{}, n), closed: make(chan struct{}), open: map[*limitedConn]struct{}{},
	}
}

func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	raw, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	c := &limitedConn{Conn: raw, of: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[c] = struct{}{}
	if l.cut {
		_ = raw.Close() // its reader will notice
	}
	return c, nil
}

func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// cutAll ends the connections that are open. Those in a handshake are known to no
// server yet, so that only the listener can.
func (l *limitedListener) cutAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for c := range l.open {
		_ = c.Conn.Close()
	}
}

type limitedConn struct {
	net.Conn
	of *limitedListener
}

// Close gives the place back, once.
func (c *limitedConn) Close() error {
	c.of.mu.Lock()
	_, open := c.of.open[c]
	delete(c.of.open, c)
	c.of.mu.Unlock()
	if open {
		<-c.of.places
	}
	return c.Conn.Close()
}
