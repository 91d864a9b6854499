package doctor

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/endpoint"
	"github.com/weirgate/weir/internal/sim"
)

// buffered holds a whole answer back, as nginx does with proxy_buffering on, or
// hands it on in pieces of so many bytes.
func buffered(size int) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, engine http.Handler) {
		held := &holding{ResponseWriter: w, buffer: bufio.NewWriterSize(w, size)}
		engine.ServeHTTP(held, r)
		_ = held.buffer.Flush()
	}
}

type holding struct {
	http.ResponseWriter
	buffer *bufio.Writer
}

func (h *holding) Write(b []byte) (int, error) {
	n, err := h.buffer.Write(b)
	if f, is := h.ResponseWriter.(http.Flusher); is && h.buffer.Buffered() < len(b) {
		f.Flush() // the buffer was full, and went out
	}
	return n, err
}

// WriteHeader says who holds the stream back.
func (h *holding) WriteHeader(status int) {
	h.Header().Set("Server", "nginx/1.27")
	h.ResponseWriter.WriteHeader(status)
}

// Flush does nothing: that is the fault.
func (h *holding) Flush() {}

func TestBuffering(t *testing.T) {
	slow := sim.Config{Quirks: sim.VLLM, PrefillBase: 20 * time.Millisecond, DecodeBase: 20 * time.Millisecond, ForceUsage: true}
	fast := sim.Config{Quirks: sim.VLLM, PrefillBase: 100 * time.Millisecond, DecodeBase: sim.None, DecodePerSequence: sim.None, ForceUsage: true}
	several := slow
	several.StreamInterval = 4
	for _, c := range []struct {
		name  string
		base  string
		level Level
		parts []string
	}{
		{"none", engineAt(t, slow), Green, []string{"as they are made"}},
		{"all at once", streaming(t, slow, buffered(1<<20)), Red, []string{"comes all at once", "nginx answers", "proxy_buffering off", "X-Accel-Buffering: no"}},
		{"in clumps", streaming(t, slow, buffered(1000)), Yellow, []string{"in clumps", "pieces", "proxy_buffering off"}},
		{"a quick engine", engineAt(t, fast), Green, nil},
		{"several tokens in an event", engineAt(t, several), Green, []string{"Each carries", "speculative decoding"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want(t, run(t, of(c.base)), "buffering", c.level, c.parts...)
		})
	}
}

// reply is a stream whose content events came at these instants, in milliseconds.
func reply(tokens int64, at ...int) *endpoint.Reply {
	r := &endpoint.Reply{}
	r.Record.Output = call.Known(tokens)
	for _, ms := range at {
		r.Events = append(r.Events, endpoint.Event{At: time.Duration(ms) * time.Millisecond, Mark: endpoint.Content})
	}
	return r
}

func TestFlow(t *testing.T) {
	for _, c := range []struct {
		at            []int
		lump, clumped bool
	}{
		{[]int{10, 20, 30, 40, 50}, false, false},
		{[]int{90, 90, 90, 90, 90}, true, false},
		{[]int{90, 90, 90, 90, 91}, true, false},
		{[]int{40, 40, 40, 80, 80, 80, 120, 120, 120}, false, true},
		{[]int{40, 40, 80, 80, 120, 120}, false, false},  // a hiccup of the reader
		{[]int{1, 1, 1, 2, 2, 2, 3, 3, 3}, false, false}, // an engine that is quicker than reading
		{[]int{5, 5, 5}, false, false},
		{nil, false, false},
	} {
		f := flowOf(reply(int64(len(c.at)), c.at...))
		if f.lump() != c.lump || f.clumped() != c.clumped {
			t.Errorf("%v: lump %v, clumped %v, want %v, %v (%+v)", c.at, f.lump(), f.clumped(), c.lump, c.clumped, f)
		}
	}
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	for _, c := range []struct {
		first, one, all int
		want            bool
	}{
		{500, 50, 500, true}, {400, 50, 500, true}, {100, 50, 500, false}, {50, 50, 500, false},
		{90, 80, 92, false}, // too quick to tell
	} {
		if got := held(ms(c.first), ms(c.one), ms(c.all)); got != c.want {
			t.Errorf("first after %d, one %d, all %d: %v", c.first, c.one, c.all, got)
		}
	}
}

func TestSuspects(t *testing.T) {
	v := newVisit(of("x"))
	for server, part := range map[string]string{"cloudflare": "Cloudflare", "openresty/1": "nginx", "uvicorn": "scanners"} {
		if got := v.suspects(&endpoint.Reply{Header: http.Header{"Server": {server}}}); !strings.Contains(got, part) {
			t.Errorf("behind %s: %s", server, got)
		}
	}
}
