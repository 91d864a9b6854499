package inflate

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// FuzzWrite feeds arbitrary bytes: no panic, a known kind of error, and the
// same output however they are cut; of a corrupt body, as far as it can be read.
func FuzzWrite(f *testing.F) {
	for i, e := range encodings {
		body, _ := encode(f, e.encoder, events[:3]...)
		f.Add(uint8(i), body, uint8(7))
		f.Add(uint8(i), body[:len(body)/2], uint8(1))
		f.Add(uint8(i), append(bytes.Clone(body), body...), uint8(50))
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte, size uint8) {
		encoding := encodings[int(which)%len(encodings)].encoding
		whole, err := decode(t, encoding, body)
		switch {
		case err == nil, errors.Is(err, ErrCorrupt), errors.Is(err, ErrTruncated):
		case errors.Is(err, ErrLimit):
			return // how much of a bomb comes out depends on how it comes in
		default:
			t.Fatalf("an error of no kind: %v", err)
		}
		parts, err2 := decode(t, encoding, cut(body, int(size)+1)...)
		if errors.Is(err, ErrCorrupt) {
			// The decoders give nothing of the step in which they meet the fault,
			// and how far a step goes depends on what is there: the one output
			// is the beginning of the other.
			if !errors.Is(err2, ErrCorrupt) || !strings.HasPrefix(whole, parts) && !strings.HasPrefix(parts, whole) {
				t.Fatalf("%s: corrupt: whole %q, %v; in pieces of %d %q, %v", encoding, whole, err, int(size)+1, parts, err2)
			}
			return
		}
		if parts != whole || (err == nil) != (err2 == nil) {
			t.Fatalf("%s: whole %q, %v; in pieces of %d %q, %v", encoding, whole, err, int(size)+1, parts, err2)
		}
	})
}

// FuzzRoundTrip packs anything, flushing in between, and cuts it anywhere.
func FuzzRoundTrip(f *testing.F) {
	for i := range encodings {
		f.Add(uint8(i), events[0], events[1], uint16(5))
		f.Add(uint8(i), "", "", uint16(0))
	}
	f.Fuzz(func(t *testing.T, which uint8, a, b string, at uint16) {
		e := encodings[int(which)%len(encodings)]
		body, ends := encode(t, e.encoder, a, b)
		var out bytes.Buffer
		d := open(t, e.encoding, &out)
		defer d.Close()
		d.Write(body[:min(int(at), ends[0])])
		d.Write(body[min(int(at), ends[0]):ends[0]])
		if out.String() != a {
			t.Fatalf("%s: after the first flush %q, want %q", e.name, &out, a)
		}
		d.Write(body[ends[0]:])
		if err := d.Close(); err != nil || out.String() != a+b {
			t.Fatalf("%s: %q, %v; want %q", e.name, &out, err, a+b)
		}
	})
}
