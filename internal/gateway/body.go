package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// requestBody is the request's body as far as it was read ahead: the whole of
// it, or the first MaxLook bytes with the rest still at the client.
type requestBody struct {
	held   []byte
	buffer *buffer // of held; nil when there is none
	budget *budget
	taken  int64         // bytes reserved from budget
	rest   io.ReadCloser // what was not read ahead; nil when held is all
	end    error         // what follows held when rest is nil: io.EOF or the client's error
	sends  []byte        // what goes upstream in place of held, when the usage policy changed it
	length int64         // bytes read ahead
	over   call.Degradation
}

// firstRead is the buffer of a body whose length is not known.
const firstRead = 4 << 10

// readAhead reads r.Body to its end, or to the cap, giving each piece to look.
// A read error is kept and passed on in its place. Whatever happens, release
// gives back what was reserved.
func (b *requestBody) readAhead(r *http.Request, look func([]byte)) {
	b.end = io.EOF
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	b.end = errNotRead // stays if the reader panics
	size := int64(firstRead)
	if r.ContentLength > 0 {
		// One byte more than announced, so that the end is met without growing.
		// The announcement may be a lie: begin small and let the bytes come first.
		size = min(r.ContentLength+1, 64<<10)
	}
	if !b.grow(size) {
		b.rest, b.over = r.Body, call.BodyBudget
		return
	}
	for {
		if len(b.held) == cap(b.held) {
			if len(b.held) >= MaxLook {
				b.rest, b.over = r.Body, call.BodyTooLarge
				return
			}
			if !b.grow(min(2*int64(cap(b.held)), MaxLook)) {
				b.rest, b.over = r.Body, call.BodyBudget
				return
			}
		}
		n, err := r.Body.Read(b.held[len(b.held):cap(b.held)])
		piece := b.held[len(b.held) : len(b.held)+n]
		b.held = b.held[:len(b.held)+n]
		b.length += int64(n)
		if n > 0 {
			look(piece)
		}
		if err != nil {
			b.end = err
			return
		}
	}
}

// grow makes room for size bytes in all.
func (b *requestBody) grow(size int64) bool {
	size = bufferSize(size)
	more := size - b.taken
	if !b.budget.take(more) {
		return false
	}
	b.taken = size
	bigger := takeBuffer(size)
	b.held = append(bigger.bytes[:0], b.held...)
	b.buffer.free()
	b.buffer = bigger
	return true
}

// complete tells whether all of the body was read ahead without an error.
func (b *requestBody) complete() bool { return b.rest == nil && errors.Is(b.end, io.EOF) }

// out returns the bytes that go upstream before rest.
func (b *requestBody) out() []byte {
	if b.sends != nil {
		return b.sends
	}
	return b.held
}

// size returns the length of the body as it came; unknown when it was not read
// to its end.
func (b *requestBody) size() call.Count {
	if b.complete() {
		return call.Known(b.length)
	}
	return call.Count{}
}

// release gives the memory back. Readers of it must have ended, or be complete.
func (b *requestBody) release() {
	if b.taken > 0 {
		b.budget.give(b.taken)
		b.taken = 0
	}
	b.held, b.sends = nil, nil
	b.buffer.free()
	b.buffer = nil
}

// attemptBody is the request body as one run of the next handler sees it. That
// run may send it more than once: reverse_proxy retries read the same body
// again, so Close rewinds it (github.com/caddyserver/caddy/issues/6259). Each
// attempt begins with a connection; between two attempts nobody may read, and
// an attempt waits until the one before has let go, since a reader that comes
// late would steal the beginning of the next attempt's body.
type attemptBody struct {
	body *requestBody

	mu      sync.Mutex
	free    chan struct{} // closed when the attempt in progress closes the body
	off     int           // bytes of body.out() read by the attempt in progress
	began   bool          // an attempt has announced itself; handlers without a transport never do
	open    bool          // the attempt in progress may still read
	early   bool          // it was answered while open, so another may follow
	reading bool          // the attempt in progress has read, and not closed the body
	parked  bool          // the last attempt has closed the body, the next has not begun
	once    bool          // what was read cannot be given again: Close does not rewind
	over    error         // nothing can be read any more: what Read returns
}

var (
	errNotRead         = errors.New("request body was not read to its end")
	errBetweenAttempts = errors.New("request body read after its attempt had ended")
	errBodySpent       = errors.New("request body cannot be sent again: it is larger than what is kept of it")
)

// begin starts an attempt. It waits until the attempt before has closed the
// body, or until the call ends. What was read before the first attempt is
// part of it: a handler that buffers (request_buffers) has it, and hands it to
// the transport ahead of the rest. Such a body can be sent only once.
//
// An upstream may answer the header alone, and the proxy try again, before the
// attempt that it answered has read at all: that one is waited for as well.
// Since transports do not always tell of its end, this wait has a bound.
func (a *attemptBody) begin(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.began && a.reading {
		a.began, a.open, a.once = true, true, true
		return
	}
	for a.reading || a.open && a.early {
		if a.free == nil {
			a.free = make(chan struct{})
		}
		free := a.free
		var late <-chan time.Time
		if !a.reading {
			late = time.After(maxLateRead)
		}
		a.mu.Unlock()
		select {
		case <-free:
			a.mu.Lock()
		case <-late:
			a.mu.Lock()
			a.open = a.reading
		case <-ctx.Done():
			a.mu.Lock()
			return
		}
	}
	a.began, a.open, a.early, a.parked = true, true, false, false
}

// maxLateRead is how long after its answer an attempt may begin to read.
const maxLateRead = 50 * time.Millisecond

// answered tells that an answer to the attempt in progress comes in.
func (a *attemptBody) answered() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.early = a.open
}

// wroteAll tells that the attempt will not read any more. A proxy that closes
// only what was read from does not close the body then.
func (a *attemptBody) wroteAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open = false
	if !a.reading {
		a.wake()
	}
}

// wake lets the attempt that waits go on. The lock is held.
func (a *attemptBody) wake() {
	if a.free != nil {
		close(a.free)
		a.free = nil
	}
}

// Read implements io.Reader.
func (a *attemptBody) Read(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.over != nil:
		return 0, a.over
	case a.parked:
		return 0, errBetweenAttempts
	}
	a.reading = true
	if out := a.body.out(); a.off < len(out) {
		n := copy(p, out[a.off:])
		a.off += n
		return n, nil
	}
	if a.body.rest == nil {
		return 0, a.body.end
	}
	// The client's own body guards itself, and may block: not under our lock.
	// From here on it is spent, whenever this read returns.
	a.once = true
	a.mu.Unlock()
	n, err := a.body.rest.Read(p)
	a.mu.Lock()
	return n, err
}

// Close implements io.Closer: it ends an attempt and rewinds the body.
func (a *attemptBody) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.off, a.open, a.reading, a.parked = 0, false, false, a.began
	switch {
	case a.over == nil && a.once:
		a.over = errBodySpent
	case errors.Is(a.over, io.EOF): // that was the end of this attempt only
		a.over = errBetweenAttempts
	}
	a.wake()
	return nil
}

// letGo ends all reading and tells whether the body's memory can be released.
// An attempt that may still have to read keeps it, until the call has ended:
// then whoever still reads gets an error, as from a server's own body after its
// handler has returned.
func (a *attemptBody) letGo(ended bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.over != nil:
	case a.reading && a.off == len(a.body.out()) && a.body.rest == nil:
		a.over = a.body.end // the transport reads once more, to meet the end
	case ended || a.parked:
		a.over = errBetweenAttempts
	default:
		return false
	}
	return true
}
