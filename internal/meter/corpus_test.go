package meter

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/dialect"
)

const wireDir = "../dialect/testdata/wire"

type wireCase struct {
	File    string            `json:"file"`
	Dialect string            `json:"dialect"`
	Headers map[string]string `json:"headers"`
	Request struct{ Echo bool }
	Splits  []int
	Source  string `json:"usage_source"`
	Expect  struct {
		ContentEvents int64  `json:"content_events"`
		FirstContent  *int64 `json:"first_content_event"`
		Usage         map[string]*int64
		Finish        json.RawMessage `json:"finish_reason"`
		Terminated    bool
		Engine        map[string]float64 `json:"engine_timing"`
		Outcome       string
	}
	Note string
}

// TestCorpus runs every wire sample through the meter: whole, at its splits, one
// byte at a time and in all two-part cuts of the shorter ones.
func TestCorpus(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(wireDir, "corpus.json"))
	if err != nil {
		t.Fatal(err)
	}
	var corpus struct{ Cases []wireCase }
	if err := json.Unmarshal(b, &corpus); err != nil {
		t.Fatal(err)
	}
	if len(corpus.Cases) < 80 {
		t.Fatalf("only %d cases", len(corpus.Cases))
	}
	for _, c := range corpus.Cases {
		body, err := os.ReadFile(filepath.Join(wireDir, c.File))
		if err != nil {
			t.Fatal(err)
		}
		whole := c.meter(t, body, nil)
		c.check(t, whole)
		cuts := [][]int{c.Splits, everyByte(len(body))}
		if len(body) < 1000 {
			for i := range body {
				cuts = append(cuts, []int{i})
			}
		}
		for _, at := range cuts {
			got := c.meter(t, body, at)
			got.Gaps, got.Instants, got.Timing, got.Phases = whole.Gaps, whole.Instants, whole.Timing, whole.Phases
			if !reflect.DeepEqual(got, whole) {
				t.Errorf("%s cut at %v:\n got %s\nwant %s", c.File, short(at), text(got), text(whole))
				break
			}
		}
	}
}

func (c *wireCase) meter(t *testing.T, body []byte, cuts []int) *call.Record {
	t.Helper()
	name := strings.TrimSuffix(c.Dialect, ".json")
	d := dialect.ByName(name)
	if d == nil {
		t.Fatalf("%s: no dialect %s", c.File, name)
	}
	request := &call.Request{Stream: !strings.HasSuffix(c.Dialect, ".json"), Echo: c.Request.Echo}
	m := New(d, request)
	h := http.Header{}
	switch {
	case strings.HasPrefix(name, "ollama"):
		h.Set("Content-Type", "application/x-ndjson")
	case strings.HasSuffix(c.File, ".json"):
		h.Set("Content-Type", "application/json")
	default:
		h.Set("Content-Type", "text/event-stream")
	}
	for k, v := range c.Headers {
		h.Set(k, v)
	}
	m.Header(200, h)
	from, now := 0, time.Duration(0)
	for _, to := range append(slices.Clone(cuts), len(body)) {
		if to > from {
			now += time.Millisecond
			m.Write(body[from:to], now, now)
			from = to
		}
	}
	rec := new(call.Record)
	m.Finish(rec, End{At: now, Status: 200})
	return rec
}

func (c *wireCase) check(t *testing.T, rec *call.Record) {
	t.Helper()
	e := c.Expect
	is := func(what string, got, want any) {
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %s is %v, want %v", c.File, what, got, want)
		}
	}
	count := func(what string, got call.Count, want *int64) {
		n, known := got.Get()
		if known != (want != nil) || known && n != *want {
			t.Errorf("%s: %s is %v", c.File, what, got)
		}
	}
	if c.Request.Echo { // the note beside the case says what holds then
		e.ContentEvents = 1
		one := int64(1)
		e.FirstContent = &one
	}
	is("content_events", rec.ContentEvents.Or(-1), e.ContentEvents)
	count("first_content_event", rec.FirstContentEvent, e.FirstContent)
	count("input", rec.Input, e.Usage["prompt"])
	count("output", rec.Output, e.Usage["completion"])
	count("cached", rec.Cached, e.Usage["cached"])
	count("cache write", rec.CacheWrite, e.Usage["cache_write"])
	count("reasoning", rec.Reasoning, e.Usage["reasoning"])
	finish, _ := json.Marshal(rec.FinishReason)
	is("finish_reason", string(finish), compact(e.Finish))
	is("terminated", rec.Terminated, e.Terminated)
	is("outcome", string(rec.Outcome), e.Outcome)
	is("usage_source", string(rec.UsageSource), c.Source)
	if ttft := rec.TTFT.IsKnown(); ttft != (e.ContentEvents > 0 && rec.Stream) {
		t.Errorf("%s: TTFT known: %v", c.File, ttft)
	}
	engine, _ := json.Marshal(rec.Engine)
	var figures map[string]float64
	_ = json.Unmarshal(engine, &figures)
	for name, want := range e.Engine {
		if got, there := figures[name]; !there || got-want > 0.001 || want-got > 0.001 {
			t.Errorf("%s: engine %s is %v, want %v", c.File, name, figures[name], want)
		}
	}
}

func compact(raw json.RawMessage) string {
	var v any
	_ = json.Unmarshal(raw, &v)
	b, _ := json.Marshal(v)
	return string(b)
}

func everyByte(n int) []int {
	cuts := make([]int, n)
	for i := range cuts {
		cuts[i] = i
	}
	return cuts
}

func short(cuts []int) any {
	if len(cuts) > 5 {
		return "every byte"
	}
	return cuts
}

func text(rec *call.Record) string { b, _ := json.Marshal(rec); return string(b) }
