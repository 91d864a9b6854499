package inflate

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/klauspost/compress/zstd"
)

var (
	// errAborted ends a decoder whose output nobody wants any longer.
	errAborted = errors.New("inflate: aborted")
	// errSink answers whoever goes on writing after the sink has panicked.
	errSink = errors.New("inflate: the sink panicked")
)

// layer runs one decoder as a coroutine. It is the reader from which the
// decoder pulls (Read) and the writer to which it hands its output (Write).
type layer struct {
	owner  *Inflater
	name   string // of the encoding
	decode func(l *layer) error
	next   func([]byte) error // takes the output: the next layer, or the sink

	resume func() (struct{}, bool) // nil until the first byte
	stop   func()
	wait   func(struct{}) bool // hands control back to the caller of resume

	pending []byte // what was pushed and not yet pulled; empty between calls
	eof     bool   // nothing will be pushed any more
	aborted bool   // output is refused, input is over
	out     uint64 // bytes handed on
	outErr  error  // why output was refused
	calling bool   // next is running: a panic is not the decoder's
	ended   bool   // the coroutine has returned
	err     error  // what it returned
}

// write pushes b and runs the decoder until it has used it up.
func (l *layer) write(b []byte) error {
	if l.ended {
		return l.err
	}
	if l.resume == nil {
		l.resume, l.stop = iter.Pull(l.run)
	}
	l.pending = b
	l.resume()
	l.pending = nil
	if l.ended {
		return l.err
	}
	return nil
}

// close tells the decoder that nothing more comes and lets it end.
func (l *layer) close(abort bool) error {
	if l.resume == nil {
		return nil
	}
	if !l.ended {
		l.eof = true
		l.aborted = abort
		l.resume()
	}
	l.stop()
	return l.err
}

// run is the coroutine: an iterator that yields each time the decoder waits.
func (l *layer) run(yield func(struct{}) bool) {
	l.wait = yield
	defer func() {
		l.ended = true
		if l.calling {
			// The sink's own panic goes on to whoever called Write.
			l.err = errSink
			return
		}
		if p := recover(); p != nil {
			l.err = fmt.Errorf("inflate: %s: %w: decoder failed: %v", l.name, ErrCorrupt, p)
		}
	}()
	l.err = l.verdict(l.decode(l))
}

// verdict turns a decoder's error into one of this package's.
func (l *layer) verdict(err error) error {
	var kind error
	switch {
	case l.outErr != nil:
		return l.outErr
	case err == nil:
		return nil
	case errors.Is(err, ErrLimit):
		return err
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		kind = ErrLimit
	case l.eof && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
		return fmt.Errorf("inflate: %s: %w", l.name, ErrTruncated)
	default:
		kind = ErrCorrupt
	}
	return fmt.Errorf("inflate: %s: %w: %v", l.name, kind, err)
}

// Read gives the decoder what has been pushed. It waits, by handing control
// back, when there is nothing.
func (l *layer) Read(p []byte) (int, error) {
	if err := l.fill(); err != nil {
		return 0, err
	}
	n := copy(p, l.pending)
	l.pending = l.pending[n:]
	return n, nil
}

// fill returns when at least one byte is pending, or none will ever be.
func (l *layer) fill() error {
	for len(l.pending) == 0 {
		if l.aborted {
			return errAborted
		}
		if l.eof {
			return io.EOF
		}
		if !l.wait(struct{}{}) {
			l.aborted = true
		}
	}
	return nil
}

// Write takes the decoder's output and hands it on, within the limits.
func (l *layer) Write(b []byte) (int, error) {
	if l.aborted {
		return 0, errAborted
	}
	for rest := b; len(rest) > 0 && l.outErr == nil; {
		piece := rest[:min(MaxPiece, len(rest))]
		rest = rest[len(piece):]
		l.out += uint64(len(piece))
		if l.owner.excessive(l.out) {
			l.outErr = fmt.Errorf("inflate: %s: %w: %d bytes out of %d", l.name, ErrLimit, l.out, l.owner.in)
			break
		}
		l.calling = true
		l.outErr = l.next(piece)
		l.calling = false
	}
	if l.outErr != nil {
		return 0, l.outErr
	}
	return len(b), nil
}
