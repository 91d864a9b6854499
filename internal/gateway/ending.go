package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/weirgate/weir/internal/meter"
)

// staleWithin is how soon after the request was written a connection that had
// served before must have closed to count as stale: closed by the upstream
// before it can have read and begun to work on the request.
const staleWithin = 50 * time.Millisecond

// stale tells whether the run of next that returned err met a keep-alive
// connection which the upstream had closed: nothing reached the client, the
// connection had served before, no byte of an answer came, and it closed at
// once. Only then may the request be sent again, since an upstream that has
// begun to work on it would do the work, and bill for it, twice.
func (c *Call) stale(err error) bool {
	if c.tap.status != 0 || c.ctx.Err() != nil || !c.body.complete() || !isClosed(c.why(err)) {
		return false
	}
	connected, wrote := offset(&c.trace.connected), offset(&c.trace.wrote)
	if !connected.IsKnown() || !c.trace.reused.Load() || offset(&c.trace.firstByte).IsKnown() {
		return false
	}
	// A request that never got out whole may have been worked on for as long as
	// it was being written.
	since := connected
	if c.trace.wroteAll.Load() && wrote.IsKnown() {
		since = wrote
	}
	return c.since()-since.Or(0) <= staleWithin
}

// isClosed tells whether err is of a connection that was closed. An HTTP/2
// stream that was reset is not: the connection lives, and the upstream had the
// request.
func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		strings.Contains(err.Error(), "server closed idle connection") // net/http does not export it
}

// why returns the error behind the one that next returned.
func (c *Call) why(err error) error {
	if err != nil && c.around.Cause != nil {
		return c.around.Cause(err)
	}
	return err
}

// stuckWrite is how long a write to the client must have been blocked when its
// deadline passed for the client to count as not reading.
const stuckWrite = time.Millisecond

// ending decides what ended the call, from what the handler returned and how.
func (c *Call) ending(err error, panicked any) meter.End {
	e := meter.End{Status: c.tap.status}
	if err != nil && e.Status == 0 {
		e.Status = http.StatusBadGateway
		if c.around.Status != nil {
			e.Status = c.around.Status(err)
		}
	}
	err = c.why(err)
	aborted := panicked != nil
	switch {
	case c.entry != nil && c.entry.refused != nil:
		e.Cause, e.Status, e.Error = meter.TurnedAway, c.entry.refused.Status, c.entry.refused.Code
	case c.entry != nil && c.entry.left && !c.isCut.Load():
		e.Cause, e.Status = meter.ClientLeft, meter.StatusClientClosed
	case c.upload != nil && c.upload.cut.Load():
		e.Cause, e.Error = meter.TimedOut, "upload_stalled"
	case c.stall.cut.Load():
		e.Cause = meter.ReaderCut
	case aborted && !isAbort(panicked):
		e.Cause = meter.Fault
	case c.isCut.Load():
		e.Cause = meter.ProcessEnds
	case errors.Is(c.tap.failed, os.ErrDeadlineExceeded):
		// The site's own time-out for the whole answer passes as well while the
		// client reads: only a write that was stuck tells of one that does not.
		e.Cause = meter.TimedOut
		if c.tap.stuck >= stuckWrite {
			e.Cause = meter.ReaderCut
		}
	case c.body != nil && c.body.clientFailed() && isTimeout(c.body.end):
		e.Cause = meter.TimedOut // of the site, for reading the request
	case errors.Is(c.ctx.Err(), context.DeadlineExceeded):
		e.Cause = meter.TimedOut
	case c.body != nil && c.body.clientFailed() && isTooLarge(c.body.end):
		// The site's own limit on bodies (request_body max_size): the client is
		// still there, and is told.
		e.Cause, e.Error = meter.TurnedAway, "request_too_large"
	case err == nil && !aborted && c.tap.failed == nil && c.tap.whole():
		e.Cause = meter.Answered
	case c.ctx.Err() != nil, c.tap.failed != nil, c.body != nil && c.body.clientFailed():
		e.Cause = meter.ClientLeft
	case err != nil && (isTimeout(err) || e.Status == http.StatusGatewayTimeout):
		e.Cause, e.Error = meter.TimedOut, errorCode(err)
	case err != nil:
		e.Cause, e.Error = meter.UpstreamLost, errorCode(err)
	case aborted:
		e.Cause = meter.UpstreamLost
		e.Short = c.tap.meter != nil && c.tap.length >= 0 && c.tap.meter.Bytes() < c.tap.length
	}
	return e
}

// clientFailed tells whether the client's own body broke off.
func (b *requestBody) clientFailed() bool {
	return b.rest == nil && !errors.Is(b.end, io.EOF)
}

func isTooLarge(err error) bool {
	var tooLarge *http.MaxBytesError
	return errors.As(err, &tooLarge)
}

func isAbort(panicked any) bool {
	err, ok := panicked.(error)
	return ok && errors.Is(err, http.ErrAbortHandler)
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// errorCode names a failure to reach the upstream in one word; "" when the
// error is of no known kind. It never carries the error's own text.
func errorCode(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &dns):
		return "dns"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection_refused"
	case errors.As(err, &op) && op.Op == "dial" && isTimeout(err):
		return "dial_timeout"
	case isTimeout(err):
		return "timeout"
	case errors.As(err, &op) && op.Op == "dial":
		return "dial"
	case strings.Contains(err.Error(), "tls: "), strings.Contains(err.Error(), "x509: "):
		return "tls"
	case strings.Contains(err.Error(), "no upstreams available"):
		return "no_upstream"
	case errors.Is(err, syscall.ECONNRESET):
		return "connection_reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.Is(err, syscall.EPIPE):
		return "connection_closed"
	}
	return ""
}
