package inflate

import (
	"errors"
	"fmt"
	"strings"
)

// Errors, to be tested for with errors.Is; what is returned adds the encoding
// and the decoder's own words.
var (
	// ErrUnknown: the encoding is not one that New knows, or has too many layers.
	ErrUnknown = errors.New("unknown content encoding")
	// ErrCorrupt: the body is not what its encoding says.
	ErrCorrupt = errors.New("corrupt compressed body")
	// ErrLimit: the body unpacks to more, or needs a larger window, than is allowed.
	ErrLimit = errors.New("compressed body exceeds the limits")
	// ErrTruncated: the body ended before its encoding did.
	ErrTruncated = errors.New("compressed body ends early")
	// ErrClosed: Write was called after Close.
	ErrClosed = errors.New("inflater is closed")
)

const (
	// MaxOutput is the most bytes that a layer of one body may unpack to: 256 MiB.
	MaxOutput = 256 << 20
	// MaxRatio is the most bytes that may come out for each byte that went
	// in, once more than freeOutput bytes have come out.
	MaxRatio   = 1000
	freeOutput = 1 << 20

	// MaxWindow is the most bytes a decoder may keep of what it has unpacked: 8 MiB.
	MaxWindow = 8 << 20
	// MaxPiece is the most bytes that one call of the sink brings: 32 KiB.
	MaxPiece = 32 << 10

	maxLayers = 2
)

// Inflater unpacks one body. Make it with New, always end it with Close. It is
// not safe for concurrent use, but may pass from one goroutine to another.
type Inflater struct {
	layers []*layer // in the order of decoding: the encoding applied last comes first
	sink   func([]byte)
	in     uint64 // compressed bytes that were given to Write
	most   uint64 // MaxOutput
	err    error  // sticky
	closed bool
}

// New returns an Inflater for a body with the given Content-Encoding: gzip or
// x-gzip, deflate (with a zlib header or, as some servers send it, without),
// br, zstd, or two of them in the order in which they were applied, as in
// "gzip, br". Case and space do not matter. With "" and identity what is
// written goes to the sink as it is, unbounded. Anything else is ErrUnknown.
//
// The sink is called from within Write and Close, with at most MaxPiece bytes,
// which are valid during the call only. Decoders are made at the first byte.
func New(encoding string, sink func([]byte)) (*Inflater, error) {
	d := &Inflater{sink: sink, most: MaxOutput}
	for name := range strings.SplitSeq(encoding, ",") {
		name = strings.ToLower(strings.Trim(name, " \t"))
		if name == "" || name == "identity" {
			continue
		}
		decode := decoders[name]
		if decode == nil {
			return nil, fmt.Errorf("inflate: %w: %.32q", ErrUnknown, name)
		}
		if len(d.layers) == maxLayers {
			return nil, fmt.Errorf("inflate: %w: more than %d layers", ErrUnknown, maxLayers)
		}
		// What was applied last is decoded first and hands on to the others.
		next := d.deliver
		if len(d.layers) > 0 {
			next = d.layers[0].write
		}
		d.layers = append([]*layer{{owner: d, name: name, decode: decode, next: next}}, d.layers...)
	}
	return d, nil
}

// Write unpacks the next piece of the body, which is not kept, and returns
// when the sink has been given all that it yields. After an error, which stays,
// it does nothing but return it again. Bytes that follow the end of the
// compressed data are ignored.
func (d *Inflater) Write(b []byte) error {
	switch {
	case d.err != nil:
		return d.err
	case d.closed:
		return ErrClosed
	case len(b) == 0:
		return nil
	}
	d.in += uint64(len(b))
	if len(d.layers) == 0 {
		d.err = d.deliver(b)
	} else {
		d.err = d.layers[0].write(b)
	}
	return d.err
}

// Close ends the body and its decoders. It returns the error that Write
// returned last, or ErrTruncated if the encoding promises more than came. What a
// truncated body still yields goes to the sink first. A body without a single
// byte is complete. A second call returns the same.
func (d *Inflater) Close() error {
	if d.closed {
		return d.err
	}
	d.closed = true
	for _, l := range d.layers {
		// After an error there is nothing more to hand on; but each layer's
		// coroutine must end.
		if err := l.close(d.err != nil); d.err == nil {
			d.err = err
		}
	}
	return d.err
}

// deliver hands b to the sink in pieces.
func (d *Inflater) deliver(b []byte) error {
	for len(b) > MaxPiece {
		d.sink(b[:MaxPiece])
		b = b[MaxPiece:]
	}
	if len(b) > 0 {
		d.sink(b)
	}
	return nil
}

// excessive reports whether out bytes are more than what came in may unpack to.
func (d *Inflater) excessive(out uint64) bool {
	return out > d.most || out > freeOutput && out/MaxRatio > d.in
}
