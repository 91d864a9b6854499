package sim

import (
	"compress/gzip"
	"io"
	"net/http"
)

// output writes an answer to the client, each write flushed.
type output struct {
	w       http.ResponseWriter
	flush   *http.ResponseController
	x       *exchange
	zip     *gzip.Writer // nil unless the answer is compressed
	started bool
	broken  bool
}

func newOutput(w http.ResponseWriter, x *exchange) *output {
	return &output{w: w, flush: http.NewResponseController(w), x: x}
}

// start sends the headers: at once for a stream, else with the body.
func (o *output) start() {
	h := o.w.Header()
	switch {
	case !o.x.ask.stream:
		h.Set("Content-Type", "application/json")
	case o.x.cfg.Quirks == LlamaCPP:
		h.Set("Content-Type", "text/event-stream")
		h.Set("X-Accel-Buffering", "no")
	default:
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
	}
	if o.x.faults.gzip {
		h.Set("Content-Encoding", "gzip")
		o.zip = gzip.NewWriter(o.w)
	}
	o.started = true
	o.x.e.note(o.x.call, func(t *Truth) { t.Status = http.StatusOK })
	o.w.WriteHeader(http.StatusOK)
	if o.x.ask.stream {
		// A writer that cannot flush has nothing to send early.
		_ = o.flush.Flush()
	}
}

// write sends one piece of the answer at once; false when the client has left.
func (o *output) write(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	var to io.Writer = o.w
	if o.zip != nil {
		to = o.zip
	}
	if _, err := to.Write(b); err != nil {
		return false
	}
	if o.zip != nil && o.zip.Flush() != nil {
		return false
	}
	_ = o.flush.Flush()
	return true
}

func (o *output) writeAll(writes [][]byte) bool {
	for _, b := range writes {
		if !o.write(b) {
			return false
		}
	}
	return true
}

// close ends a compressed answer, unless it broke off.
func (o *output) close() {
	if o.zip != nil && !o.broken {
		// The client may have left; there is nobody to tell.
		_ = o.zip.Close()
	}
}

// abort breaks the connection.
func (o *output) abort() {
	o.broken = true
	panic(http.ErrAbortHandler)
}
