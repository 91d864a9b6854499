package sim

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// streamsPerConnection is how many streamed answers a connection of
// llama.cpp's server carries before it is closed, without a word.
const streamsPerConnection = 2

type connectionKey struct{}

// streamed counts a stream that was sent to its end over the request's
// connection, if a server of ours owns it.
func streamed(r *http.Request) {
	if n, ok := r.Context().Value(connectionKey{}).(*atomic.Int32); ok {
		n.Add(1)
	}
}

// Server returns a server for the engine. Imitating llama.cpp it closes
// keep-alive connections as that does; nothing in the answers announces it.
// Its owner serves it and shuts it down, and closes the engine after it.
func (e *Engine) Server() *http.Server {
	s := &http.Server{Handler: e, ReadHeaderTimeout: 10 * time.Second}
	if e.config().Quirks != LlamaCPP {
		return s
	}
	var connections sync.Map // net.Conn to *atomic.Int32, while it is open
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		n := new(atomic.Int32)
		connections.Store(c, n)
		return context.WithValue(ctx, connectionKey{}, n)
	}
	s.ConnState = func(c net.Conn, state http.ConnState) {
		switch state {
		case http.StateIdle: // the answer has been sent
			if n, ok := connections.Load(c); ok && n.(*atomic.Int32).Load() >= streamsPerConnection {
				// Closing is the imitation; how it goes concerns nobody.
				_ = c.Close()
			}
		case http.StateClosed, http.StateHijacked:
			connections.Delete(c)
		}
	}
	return s
}
