package dialect

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/sse"
)

// sample is one case of testdata/wire/corpus.json or testdata/own/corpus.json.
type sample struct {
	File    string `json:"file"`
	Dialect string `json:"dialect"`
	Special string `json:"special"`
	Expect  struct {
		ContentEvents     int64  `json:"content_events"`
		FirstContentEvent *int64 `json:"first_content_event"`
		FirstVisibleEvent *int64 `json:"first_visible_event"`
		Usage             struct {
			Prompt     *int64 `json:"prompt"`
			Completion *int64 `json:"completion"`
			Cached     *int64 `json:"cached"`
			CacheWrite *int64 `json:"cache_write"`
			Reasoning  *int64 `json:"reasoning"`
		} `json:"usage"`
		FinishReason json.RawMessage    `json:"finish_reason"`
		Terminated   bool               `json:"terminated"`
		Error        bool               `json:"error"`
		EngineTiming map[string]float64 `json:"engine_timing"`
		Outcome      string             `json:"outcome"`
		ParseErrors  *int64             `json:"parse_errors"`
		ErrorCode    string             `json:"error_code"`
	} `json:"expect"`
	UsageSource string            `json:"usage_source"`
	Splits      []int             `json:"splits"`
	Headers     map[string]string `json:"headers"`
	Request     struct {
		Echo bool   `json:"echo"`
		N    *int64 `json:"n"`
	} `json:"request"`

	body []byte
}

func samples(t testing.TB, dir string) []sample {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "corpus.json"))
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Cases []sample `json:"cases"`
	}
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	for i := range c.Cases {
		s := &c.Cases[i]
		if s.body, err = os.ReadFile(filepath.Join(dir, s.File)); err != nil {
			t.Fatal(err)
		}
		if s.Headers["Content-Encoding"] == "gzip" {
			z, err := gzip.NewReader(bytes.NewReader(s.body))
			if err != nil {
				t.Fatal(err)
			}
			if s.body, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
	}
	return c.Cases
}

// read runs a sample's body, cut in pieces, through its dialect.
func (s *sample) read(pieces [][]byte) (*call.Answer, []Seen) {
	d := ByName(strings.TrimSuffix(s.Dialect, ".json"))
	req := call.Request{Echo: s.Request.Echo}
	if s.Request.N != nil {
		req.N = call.Known(*s.Request.N)
	}
	r := d.NewResponse(&req)
	h := http.Header{}
	for k, v := range s.Headers {
		h.Set(k, v)
	}
	r.Header(h)
	var seen []Seen
	switch {
	case strings.HasSuffix(s.File, ".json"):
		for _, p := range pieces {
			if x := r.Body(bytes.Clone(p)); x != (Seen{}) {
				seen = append(seen, x)
			}
		}
		seen = append(seen, r.EndBody())
	case d.LineDelimited():
		for line := range bytes.SplitSeq(s.body, []byte("\n")) {
			if line = bytes.TrimSpace(line); len(line) > 0 {
				seen = append(seen, r.Event(nil, line))
			}
		}
	default:
		seen = events(pieces, r.Event)
	}
	r.Close()
	return r.Answer(), seen
}

// events feeds the events of a stream to f.
func events(pieces [][]byte, f func(name, data []byte) Seen) (seen []Seen) {
	var p sse.Parser
	for _, b := range pieces {
		b = bytes.Clone(b)
		for len(b) > 0 {
			ev, n, ok := p.Next(b)
			if ok && len(ev.Data) > 0 {
				seen = append(seen, f(ev.Type, ev.Data))
			}
			b = b[n:]
		}
	}
	if ev, ok := p.Flush(); ok && len(ev.Data) > 0 {
		seen = append(seen, f(ev.Type, ev.Data))
	}
	return seen
}

// cut cuts b at the given places, or into pieces of one size when there are none.
func cut(b []byte, size int, at ...int) (pieces [][]byte) {
	from := 0
	for _, to := range at {
		pieces = append(pieces, b[from:to])
		from = to
	}
	b = b[from:]
	for len(b) > 0 {
		n := min(size, len(b))
		pieces = append(pieces, b[:n])
		b = b[n:]
	}
	return pieces
}

// derived are engine figures that a sample holds without its expectation naming
// them.
var derived = map[string][]string{"sgl_generate_metrics.sse": {"prefill_ms"}}

func (s *sample) check(t *testing.T, a *call.Answer) {
	t.Helper()
	e := &s.Expect
	count := func(name string, got call.Count, want *int64) {
		t.Helper()
		w := call.Count{}
		if want != nil {
			w = call.Known(*want)
		}
		if got != w {
			t.Errorf("%s is %v, want %v", name, show(got), show(w))
		}
	}
	if a.ContentEvents != e.ContentEvents {
		t.Errorf("%d content events, want %d", a.ContentEvents, e.ContentEvents)
	}
	count("first content event", a.FirstContent, e.FirstContentEvent)
	count("first visible event", a.FirstVisible, e.FirstVisibleEvent)
	count("input", a.Usage.Input, e.Usage.Prompt)
	count("output", a.Usage.Output, e.Usage.Completion)
	count("cached", a.Usage.Cached, e.Usage.Cached)
	count("cache write", a.Usage.CacheWrite, e.Usage.CacheWrite)
	count("reasoning", a.Usage.Reasoning, e.Usage.Reasoning)
	if string(a.UsageSource) != s.UsageSource {
		t.Errorf("usage source is %q, want %q", a.UsageSource, s.UsageSource)
	}
	finish, _ := json.Marshal(a.Finish)
	if !sameJSON(finish, e.FinishReason) {
		t.Errorf("finish reason is %s, want %s", finish, e.FinishReason)
	}
	if a.Terminated != e.Terminated {
		t.Errorf("terminated is %t", a.Terminated)
	}
	if failed := a.Error != ""; failed != (e.Error && e.Outcome != "unrecognised") {
		t.Errorf("error is %q", a.Error)
	}
	if e.ErrorCode != "" && a.Error != e.ErrorCode {
		t.Errorf("error is %q, want %q", a.Error, e.ErrorCode)
	}
	if recognised := e.Outcome != "unrecognised" && e.Outcome != "truncated"; recognised && !a.Recognised {
		t.Error("not recognised")
	}
	if a.Recognised && e.Outcome == "unrecognised" {
		t.Error("recognised")
	}
	if e.ParseErrors != nil && a.ParseErrors != *e.ParseErrors {
		t.Errorf("%d parse errors, want %d", a.ParseErrors, *e.ParseErrors)
	}
	s.checkEngine(t, a.Engine)
}

func (s *sample) checkEngine(t *testing.T, got call.Engine) {
	t.Helper()
	all := map[string]call.Duration{"queue_ms": got.Queue, "load_ms": got.Load, "prefill_ms": got.Prefill,
		"decode_ms": got.Decode, "total_ms": got.Total, "e2e_ms": got.E2E}
	for _, name := range derived[s.File] {
		delete(all, name)
	}
	for name, d := range all {
		want, known := s.Expect.EngineTiming[name]
		if d.IsKnown() != known || (d.MillisecondsFloat()-want > 1e-6 || want-d.MillisecondsFloat() > 1e-6) {
			t.Errorf("engine %s is %v (known %t), want %v (known %t)", name, d.MillisecondsFloat(), d.IsKnown(), want, known)
		}
	}
}

func show(c call.Count) string {
	b, _ := c.MarshalJSON()
	return string(b)
}

func sameJSON(a, b []byte) bool {
	if len(b) == 0 {
		b = []byte("null")
	}
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return bytes.Equal(p, q)
}

func TestSamples(t *testing.T) {
	for _, dir := range []string{"testdata/wire", "testdata/own"} {
		for _, s := range samples(t, dir) {
			if strings.Contains(s.Special, "echo=true") { // the sample's note: then the first event is the prompt
				s.Request.Echo = true
			}
			if s.Request.Echo && dir == "testdata/wire" {
				one := int64(1)
				s.Expect.ContentEvents, s.Expect.FirstContentEvent, s.Expect.FirstVisibleEvent = 1, &one, &one
			}
			for name, pieces := range map[string][][]byte{
				"whole": cut(s.body, max(len(s.body), 1)), "bytes": cut(s.body, 1), "sevens": cut(s.body, 7),
				"splits": cut(s.body, max(len(s.body), 1), splits(&s)...),
			} {
				t.Run(s.File+"/"+name, func(t *testing.T) {
					a, _ := s.read(pieces)
					s.check(t, a)
				})
			}
		}
	}
}

// splits are the sample's own, where they lie in the body as it is read.
func splits(s *sample) []int {
	if s.Headers["Content-Encoding"] != "" {
		return nil
	}
	return s.Splits
}

func TestSGLangPrefill(t *testing.T) {
	for _, s := range samples(t, "testdata/wire") {
		if s.File == "sgl_generate_metrics.sse" {
			a, _ := s.read([][]byte{s.body})
			if got := a.Engine.Prefill; got != call.Lasting(50*time.Millisecond) {
				t.Errorf("prefill is %v ms, want 50", got.MillisecondsFloat())
			}
			return
		}
	}
	t.Error("the sample is gone")
}
