package inflate

import (
	"bytes"
	"io"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// flusher is what all encoders have in common.
type flusher interface {
	io.WriteCloser
	Flush() error
}

// encodings lists each encoding with an encoder for it. "deflate raw" stands
// for deflate without a zlib header.
var encodings = []struct {
	name, encoding string
	encoder        func(w io.Writer) flusher
}{
	{"gzip", "gzip", func(w io.Writer) flusher { return gzip.NewWriter(w) }},
	{"gzip with a full header", "gzip", func(w io.Writer) flusher {
		z := gzip.NewWriter(w)
		z.Name, z.Comment, z.Extra = "events.txt", "a comment", []byte("extra")
		return z
	}},
	{"x-gzip", "X-Gzip", func(w io.Writer) flusher { return gzip.NewWriter(w) }},
	{"gzip stored", "gzip", func(w io.Writer) flusher { z, _ := gzip.NewWriterLevel(w, gzip.NoCompression); return z }},
	{"deflate", "deflate", func(w io.Writer) flusher { return zlib.NewWriter(w) }},
	{"deflate raw", " DEFLATE ", func(w io.Writer) flusher { z, _ := flate.NewWriter(w, 6); return z }},
	{"deflate raw stored", "deflate", func(w io.Writer) flusher { z, _ := flate.NewWriter(w, 0); return z }},
	{"br", "br", func(w io.Writer) flusher { return brotli.NewWriterLevel(w, 5) }},
	{"zstd", "zstd", func(w io.Writer) flusher {
		z, _ := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
		return z
	}},
	{"gzip, br", "gzip, br", func(w io.Writer) flusher { return stack(gzip.NewWriter, brotli.NewWriter, w) }},
	{"br, gzip", "br,gzip", func(w io.Writer) flusher { return stack(brotli.NewWriter, gzip.NewWriter, w) }},
	{"identity, gzip", "identity, gzip,", func(w io.Writer) flusher { return gzip.NewWriter(w) }},
}

// stacked applies two encodings, the inner one first.
type stacked struct{ inner, outer flusher }

func stack[A, B flusher](inner func(io.Writer) A, outer func(io.Writer) B, w io.Writer) flusher {
	o := outer(w)
	return &stacked{inner(o), o}
}

func (s *stacked) Write(b []byte) (int, error) { return s.inner.Write(b) }

func (s *stacked) Flush() error {
	if err := s.inner.Flush(); err != nil {
		return err
	}
	return s.outer.Flush()
}

func (s *stacked) Close() error {
	if err := s.inner.Close(); err != nil {
		return err
	}
	return s.outer.Close()
}

// encode compresses the pieces, flushes after each, and returns the body and
// the offsets in it at which the pieces end.
func encode(t testing.TB, encoder func(io.Writer) flusher, plain ...string) (body []byte, ends []int) {
	t.Helper()
	var buf bytes.Buffer
	w := encoder(&buf)
	for _, p := range plain {
		if _, err := io.WriteString(w, p); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, buf.Len())
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes(), ends
}

// decode unpacks a body given in pieces and returns what came out and the
// error of Close.
func decode(t testing.TB, encoding string, pieces ...[]byte) (string, error) {
	t.Helper()
	var out bytes.Buffer
	d := open(t, encoding, &out)
	for _, p := range pieces {
		p = bytes.Clone(p)
		d.Write(p) // Close returns its error again
		clear(p)   // whoever kept the piece now shows it
	}
	err := d.Close()
	return out.String(), err
}

// open makes an Inflater into out that checks the sizes of what it is given.
func open(t testing.TB, encoding string, out *bytes.Buffer) *Inflater {
	t.Helper()
	d, err := New(encoding, func(b []byte) {
		if len(b) == 0 || len(b) > MaxPiece {
			t.Errorf("the sink was given %d bytes", len(b))
		}
		out.Write(b)
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// cut returns b in pieces of n bytes.
func cut(b []byte, n int) (pieces [][]byte) {
	for len(b) > n {
		pieces, b = append(pieces, b[:n]), b[n:]
	}
	return append(pieces, b)
}
