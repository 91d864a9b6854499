package inflate

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// decoders maps a content coding to the function that pulls its data from the
// layer, writes what it decodes to the layer, and returns nil at its end.
var decoders = map[string]func(*layer) error{
	"gzip":    gunzip,
	"x-gzip":  gunzip,
	"deflate": inflateAny,
	"br":      unbrotli,
	"zstd":    unzstd,
}

// Only what ended in good order goes back to a pool. Nothing that holds a
// channel may: a synctest bubble would meet it in another one.
var (
	readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 4096) }}
	brotlis = sync.Pool{New: func() any { return brotli.NewReader(nil) }}
	pieces  = sync.Pool{New: func() any { return new([8 << 10]byte) }}
)

func getReader(l *layer) *bufio.Reader {
	r := readers.Get().(*bufio.Reader)
	r.Reset(l)
	return r
}

func putReader(r *bufio.Reader) {
	r.Reset(nil)
	readers.Put(r)
}

// unbrotli decodes a brotli stream (RFC 7932).
func unbrotli(l *layer) error {
	if err := l.fill(); err != nil {
		return err
	}
	// The four low bits of the first byte say, if all are set, that the
	// window has 16 MiB. All other windows have 8 MiB at most.
	if l.pending[0]&0x0f == 0x0f {
		return fmt.Errorf("inflate: br: %w: window of 16 MiB", ErrLimit)
	}
	r := brotlis.Get().(*brotli.Reader)
	if err := r.Reset(l); err != nil {
		return err
	}
	piece := pieces.Get().(*[8 << 10]byte)
	for {
		n, err := r.Read(piece[:])
		if n > 0 {
			if _, err := l.Write(piece[:n]); err != nil {
				return err
			}
		}
		if err == nil {
			continue
		}
		if err != io.EOF && err.Error() != "brotli: excessive input" {
			return err
		}
		pieces.Put(piece)
		r.Reset(nil)
		brotlis.Put(r)
		return nil
	}
}

// unzstd decodes zstd frames (RFC 8878) until what follows is not one; fewer
// than four bytes that follow count as a frame broken off. The library takes
// memory for the window that a frame announces at once, up to 9 MiB.
func unzstd(l *layer) error {
	r := getReader(l)
	if magic, err := r.Peek(4); err != nil {
		return err
	} else if !zstdMagic([4]byte(magic)) {
		return errors.New("no zstd frame")
	}
	d, err := zstd.NewReader(r,
		zstd.WithDecoderConcurrency(1), // decodes where it is called, without goroutines
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(MaxWindow))
	if err != nil {
		return err
	}
	defer d.Close()
	_, err = d.WriteTo(l)
	// The first frame was one: another that is none only trails.
	if err == nil || errors.Is(err, zstd.ErrMagicMismatch) {
		putReader(r)
		return nil
	}
	return err
}

// zstdMagic tells whether a frame, or a frame to skip, begins with m.
func zstdMagic(m [4]byte) bool {
	return m == [4]byte{0x28, 0xb5, 0x2f, 0xfd} || m[0]&0xf0 == 0x50 && m[1] == 0x2a && m[2] == 0x4d && m[3] == 0x18
}
