package meter

import (
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/dialect"
)

// measure runs one answer, cut into pieces by seed (0: whole), through a meter.
func measure(d *dialect.Dialect, request *call.Request, status int, h http.Header, body []byte, seed uint64) *call.Record {
	m := New(d, request)
	m.Header(status, h)
	rng := rand.New(rand.NewPCG(seed, 1))
	now := time.Duration(0)
	for len(body) > 0 {
		n := len(body)
		if seed > 0 {
			n = 1 + rng.IntN(min(n, 1+rng.IntN(200)))
		}
		now += time.Millisecond
		m.Write(body[:n], now, now+time.Duration(rng.IntN(300))*time.Microsecond)
		now += time.Millisecond
		body = body[n:]
	}
	rec := new(call.Record)
	m.Finish(rec, End{At: now, Status: status, Instants: call.Instants{BodyRead: call.Lasting(0), Admitted: call.Lasting(0)}})
	return rec
}

// FuzzMeter: no answer breaks the meter; however it is cut, everything but the
// times is the same; the phases make up the call.
func FuzzMeter(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(wireDir, "*.*"))
	if err != nil || len(files) < 50 {
		f.Fatalf("%d samples, %v", len(files), err)
	}
	names := dialect.Names()
	for i, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		if len(b) < 20_000 {
			f.Add(uint8(i), true, uint16(200), "text/event-stream", "", b, uint64(i+1))
			f.Add(uint8(i), false, uint16(200), "application/json", "", b, uint64(i+1))
		}
	}
	f.Add(uint8(1), true, uint16(200), "text/event-stream", "gzip", []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"), uint64(9))
	f.Add(uint8(2), true, uint16(500), "audio/mpeg", "br, zstd", []byte("garbage"), uint64(9))
	f.Add(uint8(3), true, uint16(200), "application/x-ndjson; x=\"", "deflate", []byte("\x78\x9c\x03\x00\x00\x00\x00\x01"), uint64(9))
	f.Fuzz(func(t *testing.T, which uint8, streamed bool, status uint16, mediaType, encoding string, body []byte, seed uint64) {
		d := dialect.ByName(names[int(which)%len(names)])
		request := &call.Request{Stream: streamed}
		h := http.Header{"Content-Type": {mediaType}, "Content-Encoding": {encoding}}
		code := 200 + int(status)%400
		whole := measure(d, request, code, h, body, 0)
		cut := measure(d, request, code, h, body, seed|1)
		for _, rec := range []*call.Record{whole, cut} {
			if slices.Contains(rec.Degraded, call.MeterFault) {
				t.Fatalf("the meter has failed: %s", text(rec))
			}
			if sum, ended := rec.Phases.Sum(), rec.Instants.Ended.Or(-1); sum != ended {
				t.Errorf("phases make %v of %v", sum, ended)
			}
			if ttft, known := rec.TTFT.Get(); known && (ttft <= 0 || !rec.Stream) {
				t.Errorf("TTFT is %v, streamed %v", ttft, rec.Stream)
			}
			if len(rec.Error) > call.MaxName || len(rec.ResponseID) > call.MaxName || len(rec.ResponseModel) > call.MaxName {
				t.Errorf("a name is too long: %s", text(rec))
			}
			for _, n := range []call.Count{rec.Input, rec.Output, rec.Cached, rec.CacheWrite, rec.Reasoning} {
				if n.Or(0) < 0 {
					t.Errorf("a count is below 0: %s", text(rec))
				}
			}
			if rec.BytesOut != int64(len(body)) {
				t.Errorf("%d bytes of %d", rec.BytesOut, len(body))
			}
			// What depends on the times of the pieces, and may differ. Raw audio
			// has as many events as pieces.
			rec.Gaps, rec.Instants, rec.Timing, rec.Phases, rec.PhaseSources = nil, call.Instants{}, call.Timing{}, call.Phases{}, call.PhaseSources{}
			rec.Degraded = slices.DeleteFunc(rec.Degraded, func(r call.Degradation) bool { return r == call.PhaseClamped })
			if len(rec.Degraded) == 0 {
				rec.Degraded = nil
			}
			if d.Audio() {
				rec.ContentEvents = call.Count{}
			}
		}
		if !reflect.DeepEqual(whole, cut) {
			t.Errorf("cut\n got %s\nwant %s", text(cut), text(whole))
		}
	})
}

// TestBoundedMemory: a meter that is fed without end keeps what it keeps.
func TestBoundedMemory(t *testing.T) {
	junk := make([]byte, 64<<10)
	for i := range junk {
		junk[i] = 'x'
	}
	for name, c := range map[string]struct{ dialect, mediaType, begin string }{
		"SSE":       {"openai.chat", "text/event-stream", "data: "},
		"SSE field": {"openai.chat", "text/event-stream", "event: "},
		"comment":   {"openai.chat", "text/event-stream", ": "},
		"NDJSON":    {"ollama.chat", "application/x-ndjson", `{"a":"`},
		"string":    {"openai.chat", "application/json", `{"model":"`},
		"key":       {"openai.chat", "application/json", `{"`},
		"number":    {"openai.chat", "application/json", `{"created":1`},
		"plain":     {"openai.chat", "text/plain", "x"},
		"tool":      {"anthropic.messages", "application/json", `{"content":[{"type":"tool_use","name":"`},
	} {
		m := New(dialect.ByName(c.dialect), &call.Request{Stream: true})
		m.Header(200, stream(c.mediaType))
		m.Write([]byte(c.begin), at(1), at(1))
		var held int64
		before := allocated()
		for range 160 { // 10 MB
			m.Write(junk, at(2), at(2))
			held = max(held, int64(allocated())-int64(before))
		}
		if held > 4<<20 {
			t.Errorf("%s: %d KB are held", name, held>>10)
		}
		var rec call.Record
		m.Finish(&rec, End{At: at(3), Status: 200})
		if slices.Contains(rec.Degraded, call.MeterFault) || rec.BytesOut != int64(len(c.begin))+160*int64(len(junk)) {
			t.Errorf("%s: %s", name, text(&rec))
		}
	}
}

// allocated returns the bytes of the heap that are in use, or were since the
// last collection.
func allocated() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}
