package gateway

import (
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// leastUpload is how many bytes of a body that is sent on while it comes must
// come within a reader's time-out.
const leastUpload = 64 << 10

// upload is the rest of a body that is too large to be read ahead, of a call that
// has been admitted. It must come along, or the call would hold its place for as
// long as its client likes. Only the time counts in which the client is waited for:
// an upstream that does not read is no fault of the client's.
type upload struct {
	io.ReadCloser
	call  *Call
	every time.Duration
	cut   atomic.Bool // it did not come along

	mu    sync.Mutex
	timer *time.Timer   // runs while a read waits; nil once the watch is over
	since time.Time     // when the read that waits began; zero while none does
	left  time.Duration // may be waited for the bytes that are still to come of leastUpload
	read  int           // of which so many have come
}

// watchUpload makes the rest of the body, if there is one, come along.
func (c *Call) watchUpload() {
	if c.body.rest == nil || c.stall.after <= 0 {
		return
	}
	u := &upload{ReadCloser: c.body.rest, call: c, every: c.stall.after, left: c.stall.after}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.timer = time.AfterFunc(u.every, u.look)
	u.timer.Stop()
	c.body.rest, c.upload = u, u
}

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	u.mu.Lock()
	if u.timer != nil {
		u.since = time.Now()
		u.timer.Reset(u.left)
	}
	u.mu.Unlock()
	n, err := u.ReadCloser.Read(p)
	u.mu.Lock()
	if u.timer != nil {
		u.timer.Stop()
		u.left -= time.Since(u.since)
		u.since = time.Time{}
		if u.read += n; u.read >= leastUpload {
			u.read, u.left = 0, u.every
		}
	}
	u.mu.Unlock()
	if err != nil {
		u.stop()
	}
	return n, err
}

// look cuts an upload for which the client was waited for too long.
func (u *upload) look() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.timer == nil || u.since.IsZero() || time.Since(u.since) < u.left {
		return // it is of a read that has ended
	}
	u.cut.Store(true)
	u.timer = nil
	_ = u.call.connection.SetReadDeadline(time.Now()) // the read that waits ends
}

// stop ends the watch, and waits for a look that is under way.
func (u *upload) stop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.timer != nil {
		u.timer.Stop()
		u.timer = nil
	}
}
