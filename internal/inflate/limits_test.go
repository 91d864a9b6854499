package inflate

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// bomb returns a body of n zero bytes.
func bomb(t testing.TB, encoder func(io.Writer) flusher, n int) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := encoder(&buf)
	zeros := make([]byte, 1<<20)
	for ; n > 0; n -= len(zeros) {
		if _, err := w.Write(zeros[:min(n, len(zeros))]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestBombs(t *testing.T) {
	for _, tt := range []struct {
		name, encoding string
		encoder        func(io.Writer) flusher
	}{
		{"gzip", "gzip", encodings[0].encoder},
		{"br", "br", encodings[7].encoder},
		{"zstd", "zstd", encodings[8].encoder},
		{"gzip in gzip", "gzip, gzip", func(w io.Writer) flusher { return stack(gzip.NewWriter, gzip.NewWriter, w) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := bomb(t, tt.encoder, 16<<20)
			for _, size := range []int{1, len(body)} {
				out, in := 0, 0
				d, err := New(tt.encoding, func(b []byte) { out += len(b) })
				if err != nil {
					t.Fatal(err)
				}
				for _, piece := range cut(body, size) {
					in += len(piece)
					if d.Write(piece) != nil {
						break
					}
				}
				if err := d.Close(); !errors.Is(err, ErrLimit) {
					t.Fatalf("%d bytes out of %d: %v", out, in, err)
				}
				if out > max(freeOutput, (in+1)*MaxRatio) {
					t.Errorf("%d bytes out of %d came out", out, in)
				}
			}
		})
	}

	t.Run("a small one passes", func(t *testing.T) {
		got, err := decode(t, "zstd", bomb(t, encodings[8].encoder, freeOutput))
		if err != nil || len(got) != freeOutput {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})

	t.Run("total", func(t *testing.T) {
		out := 0
		d, err := New("gzip", func(b []byte) { out += len(b) })
		if err != nil {
			t.Fatal(err)
		}
		if d.most != MaxOutput {
			t.Errorf("the limit is %d", d.most)
		}
		d.most = 100_000
		d.Write(bomb(t, encodings[3].encoder, 200_000))
		if err := d.Close(); !errors.Is(err, ErrLimit) || out > 100_000 {
			t.Errorf("%d bytes, %v", out, err)
		}
	})
}

func TestLargeWindows(t *testing.T) {
	text := strings.Repeat("text ", 100)
	for _, tt := range []struct {
		name, encoding string
		encoder        func(io.Writer) flusher
		want           error
	}{
		{"zstd 8 MiB", "zstd", func(w io.Writer) flusher { z, _ := zstd.NewWriter(w, zstd.WithWindowSize(8<<20)); return z }, nil},
		{"zstd 16 MiB", "zstd", func(w io.Writer) flusher { z, _ := zstd.NewWriter(w, zstd.WithWindowSize(16<<20)); return z }, ErrLimit},
		{"br 8 MiB", "br", func(w io.Writer) flusher {
			return brotli.NewWriterOptions(w, brotli.WriterOptions{Quality: 5, LGWin: 23})
		}, nil},
		{"br 16 MiB", "br", func(w io.Writer) flusher {
			return brotli.NewWriterOptions(w, brotli.WriterOptions{Quality: 5, LGWin: 24})
		}, ErrLimit},
	} {
		body, _ := encode(t, tt.encoder, text)
		if got, err := decode(t, tt.encoding, body); !errors.Is(err, tt.want) || err == nil && got != text {
			t.Errorf("%s: %q, %v; want %v", tt.name, got, err, tt.want)
		}
	}
}
