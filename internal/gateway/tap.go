package gateway

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/weirgate/weir/internal/meter"
)

// tap stands between the answer and the client: the client first, then the
// meter. It deliberately does not embed the writer it wraps, so that no method
// of that writer (ReadFrom above all) can bypass Write.
type tap struct {
	w       http.ResponseWriter
	control *http.ResponseController
	call    *Call
	meter   *meter.Meter
	strip   *stripper // nil unless the usage event is to be kept from the client

	status  int           // of the final header, 0 before it
	length  int64         // of the body as the header announces it; -1 when it does not
	flush   bool          // each piece is flushed as it comes
	flushed bool          // nothing was written since the last flush
	pieces  uint          // writes so far
	failed  error         // the client could not be written to
	stuck   time.Duration // how long the write that failed was blocked
}

// sampleEvery is how many pieces pass between two measurements of the
// gateway's own time.
const sampleEvery = 16

// Header implements http.ResponseWriter.
func (t *tap) Header() http.Header { return t.w.Header() }

// Unwrap lets http.ResponseController reach hijacking, deadlines and full duplex.
func (t *tap) Unwrap() http.ResponseWriter { return t.w }

// WriteHeader implements http.ResponseWriter. Informational answers pass; they
// may come from another goroutine than the final one.
func (t *tap) WriteHeader(status int) {
	if status < 200 && status != http.StatusSwitchingProtocols {
		t.call.trace.gotInterim()
		t.w.WriteHeader(status)
		return
	}
	if t.status == 0 && t.meter != nil {
		t.status = status
		h := t.w.Header()
		// The header is read before it goes out: writers outside of this one
		// (encode) may change it on the way, and the bytes seen here are as
		// they were before.
		t.meter.Header(status, h)
		if t.strip != nil && !t.strip.begin(status, h) {
			t.strip = nil
		}
		t.length = announced(h) // as it goes out: the stripper takes it away
		// What reverse_proxy would flush at each piece. The answer of another
		// handler keeps its own way: flushed early it would lose its length.
		t.flush = isEventStream(h) || t.length < 0 && t.call.trace.firstByte.Load() > 0
		t.call.answered()
		if t.call.entry != nil && status < 400 {
			// Beside an upstream's refusal ours would mislead whoever waits by them.
			t.call.tellLimits(h)
		}
	}
	t.w.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (t *tap) Write(b []byte) (int, error) {
	if t.meter == nil {
		return t.w.Write(b) // the call has ended: the server says what becomes of it
	}
	if t.status == 0 {
		t.WriteHeader(http.StatusOK)
	}
	begin := t.call.since()
	t.call.stall.begin(t.call)
	n, err := t.forward(b)
	t.call.stall.end()
	end := t.call.since()
	if t.failed != nil && t.stuck == 0 {
		t.stuck = end - begin
	}
	t.meter.Write(b[:n], begin, end)
	if t.call.entry != nil {
		t.call.charge()
	}
	if t.call.beside.GPUs != nil {
		t.call.wrote(begin)
	}
	if !t.call.allHeard {
		t.call.heard()
	}
	if t.pieces%sampleEvery == 0 {
		t.call.gateway.metrics.AddedDelay(t.call.since() - end)
	}
	t.pieces++
	return n, err
}

// forward hands b to the client, flushed where the proxy would flush it anyway,
// so that nothing of ours lies between the bytes and the wire.
func (t *tap) forward(b []byte) (n int, err error) {
	t.flushed = false
	if t.strip != nil {
		n, err = t.strip.write(t.w, b)
	} else {
		n, err = t.w.Write(b)
	}
	if err != nil {
		if t.failed == nil {
			t.failed = err
		}
		return n, err
	}
	if t.flush && n > 0 {
		// The proxy ignores errors of its own flush too and learns from the
		// next write, or from the context, that the connection is gone. Why it
		// is gone only the flush tells; FlushError keeps that.
		_ = t.FlushError()
	}
	return n, nil
}

// FlushError implements what http.ResponseController looks for. A flush right
// after one of ours has nothing to do.
func (t *tap) FlushError() error {
	if t.flushed {
		return nil
	}
	err := t.control.Flush()
	t.flushed = err == nil && t.status != 0
	if err != nil && t.failed == nil && !errors.Is(err, errors.ErrUnsupported) {
		t.failed = err
	}
	return err
}

// finish lets go of bytes that the stripper still holds.
func (t *tap) finish() {
	if t.strip == nil || t.failed != nil {
		return
	}
	if _, err := t.strip.finish(t.w); err != nil {
		t.failed = err
	}
}

// announced returns the length of the body by its header, -1 when that does not
// tell.
func announced(h http.Header) int64 {
	v := first(h, "Content-Length")
	if v == "" {
		return -1
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// whole tells whether the client has all that the header announced: if it
// leaves now, it leaves after the end. A body without an announced length ends
// only after the handler has returned.
func (t *tap) whole() bool {
	return t.status != 0 && t.meter != nil && t.length >= 0 && t.meter.Bytes() >= t.length
}

func isEventStream(h http.Header) bool {
	const want = "text/event-stream"
	v := first(h, "Content-Type")
	return len(v) >= len(want) && v[:len(want)] == want
}

// since returns the time since the call was received.
func (c *Call) since() time.Duration { return time.Since(c.identity.Time) }
