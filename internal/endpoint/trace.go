package endpoint

import (
	"net/http/httptrace"
	"net/textproto"
	"sync"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// connection notes what the transport tells of a call. Its hooks run on the
// transport's goroutines, some after the call has ended.
type connection struct {
	now   func() time.Time
	start time.Time

	mu        sync.Mutex
	attempts  int           // connections asked for, under mu, as all below
	asked     time.Duration // when the last was
	connected call.Duration // when it was there
	reused    bool          // it had served before
	wrote     call.Duration // when the request had been written
	wroteAll  bool          // without an error
	firstByte call.Duration
	interim   bool // which was of an informational answer (1xx)
}

// hooks returns the functions for httptrace.
func (c *connection) hooks() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) {
			c.note(func(at time.Duration) {
				// A transport that finds an idle connection closed begins anew.
				c.attempts++
				c.asked, c.connected, c.reused = at, call.Duration{}, false
				c.wrote, c.wroteAll, c.firstByte, c.interim = call.Duration{}, false, call.Duration{}, false
			})
		},
		GotConn: func(info httptrace.GotConnInfo) {
			c.note(func(at time.Duration) { c.connected, c.reused = call.Lasting(at), info.Reused })
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			c.note(func(at time.Duration) { c.wrote, c.wroteAll = call.Lasting(at), info.Err == nil })
		},
		GotFirstResponseByte: func() {
			c.note(func(at time.Duration) { c.firstByte = call.Lasting(at) })
		},
		Got1xxResponse: func(int, textproto.MIMEHeader) error {
			c.note(func(time.Duration) { c.interim = true })
			return nil
		},
	}
}

// begin starts the clock; it comes before the transport has the request.
func (c *connection) begin(now func() time.Time, start time.Time) { c.now, c.start = now, start }

func (c *connection) note(what func(at time.Duration)) {
	at := c.now().Sub(c.start)
	c.mu.Lock()
	defer c.mu.Unlock()
	what(at)
}

// facts is what is known of the connection at the end of a call.
type facts struct {
	attempts        int
	reused          bool
	connected       call.Duration // how long name, connection and TLS took
	sent, firstByte call.Duration
	stranded        bool // a connection was asked for and none came
}

// facts settles what is known, by the gateway's rules: a request is sent at the
// earlier of the end of writing and the first byte, and an informational answer
// is not the first byte. A transport without connections of its own has the request at
// once, and its header is the first byte. headed is when the header was there.
func (c *connection) facts(headed call.Duration) facts {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := facts{attempts: max(c.attempts, 1), reused: c.reused, stranded: c.attempts > 0 && !c.connected.IsKnown()}
	if c.attempts == 0 {
		f.firstByte = headed
		if headed.IsKnown() {
			f.sent = call.Lasting(0)
		}
		return f
	}
	if c.connected.IsKnown() && !c.reused {
		f.connected = c.connected.Minus(call.Lasting(c.asked))
	}
	f.firstByte = c.firstByte
	if c.interim {
		f.firstByte = headed
	}
	first := c.firstByte
	if c.interim {
		first = call.Duration{}
	}
	f.sent = c.wrote
	switch {
	case !c.wrote.IsKnown(), first.IsKnown() && first.Or(0) < c.wrote.Or(0):
		f.sent = first
	case !c.wroteAll && !first.IsKnown():
		f.sent = call.Duration{} // it never got out whole
	}
	return f
}
