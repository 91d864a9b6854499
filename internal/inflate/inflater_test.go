package inflate

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// events is a small stream; the pieces are what a server flushes.
var events = func() []string {
	var out []string
	for i := range 12 {
		out = append(out, fmt.Sprintf("data: {\"id\":\"chatcmpl-%d\",\"choices\":[{\"delta\":{\"content\":\"word %x\"}}]}\n\n", i, i*7919))
	}
	return append(out, "data: "+strings.Repeat("long ", 9000)+"\n\n", "data: [DONE]\n\n")
}()

func TestEachFlushComesOutAtOnce(t *testing.T) {
	for _, e := range encodings {
		t.Run(e.name, func(t *testing.T) {
			body, ends := encode(t, e.encoder, events...)
			for _, size := range []int{1, 2, 3, 10, 1000, len(body)} {
				var out bytes.Buffer
				d := open(t, e.encoding, &out)
				from, want := 0, 0
				for i, end := range ends {
					for _, piece := range cut(body[from:end], size) {
						if err := d.Write(piece); err != nil {
							t.Fatal(err)
						}
					}
					from = end
					want += len(events[i])
					if out.Len() != want {
						t.Fatalf("in pieces of %d, after event %d: %d bytes came out, want %d", size, i, out.Len(), want)
					}
				}
				d.Write(body[from:])
				if err := d.Close(); err != nil {
					t.Fatal(err)
				}
				if out.String() != strings.Join(events, "") {
					t.Fatal("what came out is not what went in")
				}
			}
		})
	}
}

// Not every flush is a sync flush: a fixed block that ends, followed by an
// empty one, is what zlib calls a partial flush.
func TestPartialFlush(t *testing.T) {
	// "hello" in a fixed block, an empty fixed block, and 6 bits of padding
	// that the next block's header would fill.
	body := []byte{0xca, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x08, 0x00}
	var out bytes.Buffer
	d := open(t, "deflate", &out)
	if err := d.Write(body); err != nil {
		t.Fatal(err)
	}
	if out.String() != "hello" {
		t.Errorf("after a partial flush %q came out", &out)
	}
	if err := d.Close(); !errors.Is(err, ErrTruncated) {
		t.Errorf("got %v", err)
	}
}

func TestCutAnywhere(t *testing.T) {
	plain := strings.Join(events[:4], "")
	for _, e := range encodings {
		t.Run(e.name, func(t *testing.T) {
			body, _ := encode(t, e.encoder, events[:4]...)
			for i := range body {
				if got, err := decode(t, e.encoding, body[:i], nil, body[i:]); err != nil || got != plain {
					t.Fatalf("cut at %d: %q, %v", i, got, err)
				}
				// A body that breaks off gives what had been flushed, and says so.
				got, err := decode(t, e.encoding, body[:i])
				if i == 0 && err != nil || i > 0 && !errors.Is(err, ErrTruncated) {
					t.Fatalf("ends at %d: %v", i, err)
				}
				if !strings.HasPrefix(plain, got) {
					t.Fatalf("ends at %d: %q came out", i, got)
				}
			}
		})
	}
}

func TestIdentity(t *testing.T) {
	plain := strings.Repeat("0123456789", 10_000)
	for _, encoding := range []string{"", "identity", " Identity , "} {
		got, err := decode(t, encoding, []byte(plain[:70_000]), nil, []byte(plain[70_000:]))
		if err != nil || got != plain {
			t.Errorf("%q: %d bytes, %v", encoding, len(got), err)
		}
	}
}

func TestUnknown(t *testing.T) {
	for _, encoding := range []string{"compress", "gzip;q=1", "gzip br", "gzip, gzip, gzip", "zstd, foo", "*", strings.Repeat("x", 1<<16)} {
		d, err := New(encoding, func([]byte) {})
		if !errors.Is(err, ErrUnknown) || d != nil {
			t.Errorf("%.20q: got %v, %v", encoding, d, err)
		}
		if err != nil && len(err.Error()) > 200 {
			t.Errorf("the error repeats what was sent at length: %d bytes", len(err.Error()))
		}
	}
}

func TestWhatFollowsTheEnd(t *testing.T) {
	member := func(s string) []byte { b, _ := encode(t, encodings[0].encoder, s); return b }
	frame := func(s string) []byte { b, _ := encode(t, encodings[8].encoder, s); return b }
	if encodings[8].encoding != "zstd" {
		t.Fatal("the list of encodings has changed")
	}
	raw, _ := encode(t, encodings[5].encoder, "a")
	zl, _ := encode(t, encodings[4].encoder, "a")
	br, _ := encode(t, encodings[7].encoder, "a")
	skippable := []byte{0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3}
	for _, tt := range []struct {
		name, encoding string
		body           [][]byte
		want           string
	}{
		{"gzip members", "gzip", [][]byte{member("a"), member(""), member("b"), member("c")}, "abc"},
		{"gzip zeros", "gzip", [][]byte{member("a"), make([]byte, 600)}, "a"},
		{"gzip short garbage", "gzip", [][]byte{member("a"), {'\n'}}, "a"},
		{"gzip garbage", "gzip", [][]byte{member("a"), bytes.Repeat([]byte("garbage"), 1000)}, "a"},
		{"zstd frames", "zstd", [][]byte{frame("a"), skippable, frame("b")}, "ab"},
		{"zstd skippable first", "zstd", [][]byte{skippable, frame("b")}, "b"},
		{"zstd garbage", "zstd", [][]byte{frame("a"), bytes.Repeat([]byte("garbage"), 1000)}, "a"},
		{"br garbage", "br", [][]byte{br, bytes.Repeat([]byte("garbage"), 1000)}, "a"},
		{"zlib garbage", "deflate", [][]byte{zl, bytes.Repeat([]byte("garbage"), 1000)}, "a"},
		{"raw garbage", "deflate", [][]byte{raw, bytes.Repeat([]byte("garbage"), 1000)}, "a"},
	} {
		whole := bytes.Join(tt.body, nil)
		for _, pieces := range [][][]byte{{whole}, tt.body, cut(whole, 1), cut(whole, 7)} {
			if got, err := decode(t, tt.encoding, pieces...); err != nil || got != tt.want {
				t.Errorf("%s in %d pieces: %q, %v; want %q", tt.name, len(pieces), got, err, tt.want)
			}
		}
	}
}

func TestCorrupt(t *testing.T) {
	text := strings.Repeat("some text ", 100)
	for _, e := range encodings {
		body, _ := encode(t, e.encoder, text)
		if got, err := decode(t, e.encoding, []byte("<html>not compressed at all</html>")); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: plain text gave %q, %v", e.name, got, err)
		}
		if e.encoding == "br" || strings.HasPrefix(e.name, "deflate raw") {
			continue // no checksum: a changed byte may make another valid body
		}
		broken := bytes.Clone(body)
		broken[len(broken)-1] ^= 0x40
		if strings.Contains(e.encoding, ",") {
			continue
		}
		if _, err := decode(t, e.encoding, broken); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: a wrong checksum gave %v", e.name, err)
		}
	}
	for name, body := range map[string]string{
		"gzip":    "\x1f\x8b\x08\xe0\x00\x00\x00\x00\x00\x00", // reserved flags
		"deflate": "\x78\xbb\x00\x00\x00\x00",                 // preset dictionary
		"zstd":    "\x28\xb5\x2f\xfd\x08\x00\x00\x00",         // reserved bit
	} {
		if _, err := decode(t, name, []byte(body)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestErrorsStay(t *testing.T) {
	d, err := New("gzip", func(b []byte) { t.Errorf("%q came out", b) })
	if err != nil {
		t.Fatal(err)
	}
	first := d.Write([]byte("not a gzip header"))
	if !errors.Is(first, ErrCorrupt) {
		t.Fatalf("got %v", first)
	}
	more := []byte("more")
	if n := testing.AllocsPerRun(10, func() {
		if err := d.Write(more); err != first {
			t.Fatalf("got %v", err)
		}
	}); n != 0 {
		t.Errorf("%v allocations after an error", n)
	}
	for range 2 {
		if err := d.Close(); err != first {
			t.Errorf("Close: %v", err)
		}
	}

	d, _ = New("gzip", func([]byte) {})
	if err := d.Close(); err != nil {
		t.Errorf("a body without a byte: %v", err)
	}
	if err := d.Write([]byte("x")); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestWriteDoesNotAllocate(t *testing.T) {
	event := "data: {\"choices\":[{\"delta\":{\"content\":\"word\"}}]}\n\n"
	for _, e := range encodings {
		plain := make([]string, 200)
		for i := range plain {
			plain[i] = event
		}
		body, ends := encode(t, e.encoder, plain...)
		out := 0
		d, err := New(e.encoding, func(b []byte) { out += len(b) })
		if err != nil {
			t.Fatal(err)
		}
		i, from := 0, 0
		next := func() {
			if err := d.Write(body[from:ends[i]]); err != nil {
				t.Fatal(err)
			}
			from = ends[i]
			i++
		}
		for range 50 {
			next() // warm up
		}
		if n := testing.AllocsPerRun(100, next); n > allocsPerFlush[e.encoding] {
			t.Errorf("%s: %v allocations per flushed event, want at most %v", e.name, n, allocsPerFlush[e.encoding])
		}
		if out != i*len(event) {
			t.Errorf("%s: %d bytes came out, want %d", e.name, out, i*len(event))
		}
		d.Close()
	}
}

// allocsPerFlush holds what the brotli library itself allocates for a block: its
// context maps.
var allocsPerFlush = map[string]float64{"br": 3, "gzip, br": 3, "br,gzip": 3}

func TestNothingIsLeftRunning(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, e := range encodings {
		body, _ := encode(t, e.encoder, events...)
		for _, b := range [][]byte{body, body[:len(body)/2], body[:1], append([]byte("xx"), body...), nil} {
			d, err := New(e.encoding, func([]byte) {})
			if err != nil {
				t.Fatal(err)
			}
			d.Write(b)
			d.Close()
		}
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
}

// In a bubble a goroutine that is left over, or a channel taken along from
// another bubble, is fatal. Two bubbles show the latter.
func TestInBubbles(t *testing.T) {
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			for _, e := range encodings {
				body, _ := encode(t, e.encoder, events...)
				got, err := decode(t, e.encoding, cut(body, 100)...)
				if err != nil || got != strings.Join(events, "") {
					t.Errorf("%s: %v", e.name, err)
				}
			}
		})
	}
}

func TestPassesBetweenGoroutines(t *testing.T) {
	body, _ := encode(t, encodings[0].encoder, events...)
	var out bytes.Buffer
	d := open(t, "gzip", &out)
	for _, piece := range cut(body, 50) {
		done := make(chan error)
		go func() { done <- d.Write(piece) }()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil || out.String() != strings.Join(events, "") {
		t.Errorf("%v", err)
	}
}

// Bodies share pooled decoders, but never at the same time.
func TestManyAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 8 {
		text := strings.Repeat(fmt.Sprintf("body %d ", i), 3000)
		for _, e := range encodings {
			body, _ := encode(t, e.encoder, text)
			wg.Go(func() {
				for range 5 {
					got, err := decode(t, e.encoding, cut(body, 10+i)...)
					if err != nil || got != text {
						t.Errorf("%s: %v", e.name, err)
					}
				}
			})
		}
	}
	wg.Wait()
}

func TestPanics(t *testing.T) {
	decoders["panics"] = func(l *layer) error {
		if err := l.fill(); err != nil {
			return err
		}
		panic("index out of range")
	}
	defer delete(decoders, "panics")
	before := runtime.NumGoroutine()

	t.Run("of the decoder", func(t *testing.T) {
		d, err := New("panics", func([]byte) {})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Write([]byte("x")); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "index out of range") {
			t.Errorf("got %v", err)
		}
		if err := d.Close(); !errors.Is(err, ErrCorrupt) {
			t.Errorf("Close: %v", err)
		}
	})
	t.Run("of the sink", func(t *testing.T) {
		body, _ := encode(t, encodings[9].encoder, "text")
		d, err := New("gzip, br", func([]byte) { panic("mine") })
		if err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if p := recover(); p != "mine" {
					t.Errorf("the sink's panic must pass, got %v", p)
				}
			}()
			d.Write(body)
		}()
		if err := d.Write(body); err == nil {
			t.Error("Write goes on after the sink's panic")
		}
		d.Close()
	})
	// The goroutines of the subtests may be about to end.
	after := runtime.NumGoroutine()
	for deadline := time.Now().Add(10 * time.Second); after > before && time.Now().Before(deadline); after = runtime.NumGoroutine() {
		runtime.Gosched()
	}
	if after > before {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
}

// A pooled decoder must not remember what it decoded before, whatever end
// that came to.
func TestReuse(t *testing.T) {
	text := strings.Join(events, "")
	for range 20 {
		for _, e := range encodings {
			body, _ := encode(t, e.encoder, text)
			decode(t, e.encoding, body[:len(body)*2/3])
			decode(t, e.encoding, append(bytes.Clone(body), "garbage"...))
			if got, err := decode(t, e.encoding, body); err != nil || got != text {
				t.Fatalf("%s: %v", e.name, err)
			}
		}
	}
}
