package dialect

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/jsonscan"
)

// streams returns, for each dialect, the events of its samples joined by line
// feeds, as fuzzing seeds.
func streams(f testing.TB) map[string][][]byte {
	all := map[string][][]byte{}
	for _, dir := range []string{"testdata/wire", "testdata/own"} {
		for _, s := range samples(f, dir) {
			if len(s.body) > 4096 {
				continue
			}
			name := strings.TrimSuffix(s.Dialect, ".json")
			var lines [][]byte
			if strings.HasSuffix(s.File, ".json") {
				lines = [][]byte{s.body}
			} else if ByName(name).LineDelimited() {
				lines = bytes.Split(s.body, []byte("\n"))
			} else {
				events([][]byte{s.body}, func(_, data []byte) Seen {
					lines = append(lines, bytes.ReplaceAll(data, []byte("\n"), []byte(" ")))
					return Seen{}
				})
			}
			all[name] = append(all[name], bytes.Join(lines, []byte("\n")))
		}
	}
	return all
}

// FuzzEvent: no event panics, and the short ways for events like the one before
// tell the same as reading each in full.
func FuzzEvent(f *testing.F) {
	names := Names()
	seeds := streams(f)
	for i, n := range names {
		for _, b := range seeds[n] {
			f.Add(uint8(i), "", b, []byte(`x\"y`), uint16(len(b)/2), i%2 == 0)
		}
		if len(seeds[n]) == 0 {
			f.Errorf("%s has no sample", n)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, name string, stream, change []byte, at uint16, echo bool) {
		d := ByName(names[int(which)%len(names)])
		req := &call.Request{Echo: echo, N: call.Known(int64(which) / 64)}
		quick, full := d.NewResponse(req), d.NewResponse(req)
		lines := bytes.Split(stream, []byte("\n"))
		// Events that are like the one before but for one place.
		if n := len(stream); n > 0 {
			line := lines[int(at)%len(lines)]
			for cut := range 3 {
				i := (int(at) + cut*17) % (len(line) + 1)
				lines = append(lines, line, append(append(bytes.Clone(line[:i]), change...), line[i:]...), line)
			}
		}
		for _, data := range lines {
			if len(data) == 0 {
				continue
			}
			full.plain, full.trail = plain{}, jsonscan.Trail{}
			a, b := quick.Event([]byte(name), data), full.Event([]byte(name), data)
			if a != b {
				t.Fatalf("%s: %q is %+v, read in full %+v", d.Name, data, a, b)
			}
			if a.Visible && !a.Content {
				t.Fatalf("%s: %q is visible but no content", d.Name, data)
			}
		}
		quick.Close()
		full.Close()
		if !reflect.DeepEqual(quick.Answer(), full.Answer()) {
			t.Fatalf("%s: %q\n%+v, read in full\n%+v", d.Name, stream, quick.Answer(), full.Answer())
		}
		check(t, quick.Answer())
	})
}

// check holds what is true of any answer.
func check(t *testing.T, a *call.Answer) {
	for _, c := range []call.Count{a.Usage.Input, a.Usage.Output, a.Usage.Cached, a.Usage.CacheWrite, a.Usage.Reasoning} {
		if n, known := c.Get(); n < 0 || !known && n != 0 {
			t.Fatalf("usage %+v", a.Usage)
		}
	}
	if a.Usage.IsZero() != (a.UsageSource == call.UsageNone) {
		t.Fatalf("usage %+v from %q", a.Usage, a.UsageSource)
	}
	if a.ContentEvents > a.Events || a.FirstContent.IsKnown() != (a.ContentEvents > 0) || a.FirstVisible.IsKnown() && !a.FirstContent.IsKnown() {
		t.Fatalf("%d content events of %d, from %s, visible from %s", a.ContentEvents, a.Events, show(a.FirstContent), show(a.FirstVisible))
	}
	for _, s := range []string{a.ResponseID, a.ResponseModel, a.Error, a.Finish.First()} {
		if len(s) > call.MaxName {
			t.Fatalf("%d bytes of name: %q", len(s), s)
		}
	}
}

// FuzzBody: any split of a body tells the same.
func FuzzBody(f *testing.F) {
	names := Names()
	seeds := streams(f)
	for i, n := range names {
		for _, b := range seeds[n] {
			f.Add(uint8(i), b, 7)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte, size int) {
		d := ByName(names[int(which)%len(names)])
		read := func(n int) (*call.Answer, Seen) {
			r := d.NewResponse(nil)
			var all Seen
			for _, p := range cut(body, n) {
				s := r.Body(bytes.Clone(p))
				all = Seen{all.Content || s.Content, all.Visible || s.Visible, all.Finished || s.Finished, all.Terminal || s.Terminal}
			}
			s := r.EndBody()
			all = Seen{all.Content || s.Content, all.Visible || s.Visible, all.Finished || s.Finished, all.Terminal || s.Terminal}
			r.Close()
			return r.Answer(), all
		}
		whole, seen := read(max(1, len(body)))
		check(t, whole)
		for _, n := range []int{1, 1 + max(0, size)%(len(body)+1)} {
			if a, s := read(n); !reflect.DeepEqual(a, whole) || s != seen {
				t.Fatalf("%s: %q in pieces of %d\n%+v %+v\n%+v %+v", d.Name, body, n, a, s, whole, seen)
			}
		}
	})
}
