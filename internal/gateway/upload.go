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
// long as its client likes.
type upload struct {
	io.ReadCloser
	call  *Call
	every time.Duration
	read  atomic.Int64 // bytes since the last look
	left  atomic.Int64 // bytes that are still to come, as the client says; below 0 when it does not
	cut   atomic.Bool  // it did not come along

	mu    sync.Mutex // guards timer
	timer *time.Timer
}

// watchUpload makes the rest of the body, if there is one, come along.
func (c *Call) watchUpload() {
	if c.body.rest == nil || c.stall.after <= 0 {
		return
	}
	u := &upload{ReadCloser: c.body.rest, call: c, every: c.stall.after}
	u.left.Store(-1)
	if c.body.said >= 0 {
		u.left.Store(c.body.said - c.body.length)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.timer = time.AfterFunc(u.every, u.look)
	c.body.rest, c.upload = u, u
}

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	u.read.Add(int64(n))
	if err != nil || u.left.Load() >= 0 && u.left.Add(-int64(n)) == 0 { // nobody may ask for the end
		u.stop()
	}
	return n, err
}

// look cuts an upload that has not come along since the last look.
func (u *upload) look() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.timer == nil {
		return
	}
	if u.read.Swap(0) < leastUpload {
		u.cut.Store(true)
		_ = u.call.connection.SetReadDeadline(time.Now()) // the read that waits ends
		return
	}
	u.timer.Reset(u.every)
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
