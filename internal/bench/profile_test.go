package bench

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/endpoint"
)

func at(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }

// stream is an answer with a role chunk, reasoning, text, a tool call and usage:
//
//	 50 ms  role
//	100 ms  reasoning    1 token
//	140 ms  text         3 tokens
//	200 ms  text         4 tokens
//	230 ms  tool         6 tokens
//	260 ms  finish reason
//	270 ms  usage: 6 output tokens
//	280 ms  [DONE]
//	300 ms  end
//
// Content of choice 1 comes at 80 ms if others is set.
func stream(counts, others bool) *endpoint.Reply {
	const content, text, reasoning, tool, choices, zero = endpoint.Content, endpoint.Text, endpoint.Reasoning, endpoint.Tool, endpoint.Choices, endpoint.First
	r := &endpoint.Reply{End: at(300), Events: []endpoint.Event{
		{At: at(50), Mark: choices | zero},
		{At: at(100), Mark: content | reasoning | choices | zero, Output: 1},
		{At: at(140), Mark: content | text | choices | zero, Output: 3},
		{At: at(200), Mark: content | text | choices | zero, Output: 4},
		{At: at(230), Mark: content | tool | choices | zero, Output: 6},
		{At: at(260), Mark: choices | zero, Output: 6},
		{At: at(270), Mark: endpoint.Usage, Output: 6},
		{At: at(280), Mark: endpoint.Done},
	}}
	if !counts {
		for i := range r.Events {
			r.Events[i].Output = 0
		}
	}
	if others {
		r.Events = slices.Insert(r.Events, 1, endpoint.Event{At: at(80), Mark: content | text | choices})
	}
	r.Record.Stream = true
	r.Record.Output = call.Known(6)
	r.Record.TTFT, r.Record.TPOT, r.Record.E2E = call.Lasting(at(100)), call.Lasting(at(26)), call.Lasting(at(300))
	return r
}

// none stands for a figure that is not known.
const none = -1

// TestProfiles: the figures of each profile, counted by hand.
func TestProfiles(t *testing.T) {
	silent := func(r *endpoint.Reply) *endpoint.Reply {
		r.Record.Output = call.Count{}
		r.Record.TPOT = call.Duration{}
		return r
	}
	single := func(r *endpoint.Reply) *endpoint.Reply {
		r.Record.Output = call.Known(1)
		r.Record.TPOT = call.Duration{}
		return r
	}
	body := &endpoint.Reply{End: at(300)}
	body.Record.Output, body.Record.E2E = call.Known(6), call.Lasting(at(300))
	empty := &endpoint.Reply{End: at(300)}
	empty.Record.Stream = true
	cut := stream(true, false)
	cut.Dropped = 1
	for _, c := range []struct {
		profile              Profile
		reply                *endpoint.Reply
		what                 string
		ttft, tpot, itl, e2e float64
		gaps                 []float32
		of                   GapsOf
	}{
		{Weir, stream(true, false), "counts", 100, 26, 26, 300, []float32{20, 20, 60, 15, 15}, Tokens},
		{Weir, stream(false, false), "no counts", 100, 26, none, 300, []float32{40, 60, 30}, Chunks},
		{Weir, silent(stream(false, false)), "no usage", 100, none, none, 300, []float32{40, 60, 30}, Chunks},
		{Weir, cut, "events missing", 100, 26, none, 300, nil, ""},
		{Weir, body, "not streamed", none, none, none, 300, nil, ""},
		{VLLMBench, stream(true, false), "counts", 50, 44, none, 270, []float32{50, 40, 60, 30, 30}, Chunks},
		{VLLMBench, silent(stream(true, false)), "no usage", 50, none, none, 270, []float32{50, 40, 60, 30, 30}, Chunks},
		{VLLMBench, single(stream(true, false)), "one token", 50, none, none, 270, []float32{50, 40, 60, 30, 30}, Chunks},
		{VLLMBench, body, "not streamed", none, none, none, 300, nil, ""},
		{VLLMBench, empty, "no event", none, none, none, 300, nil, ""},
		{VLLMBench, cut, "events missing", none, none, none, none, nil, ""},
		{SGLangBench, stream(true, false), "counts", 140, 28, none, 280, []float32{60}, Tokens},
		{SGLangBench, stream(false, false), "no counts", 140, 28, none, 280, []float32{60}, Chunks},
		{SGLangBench, silent(stream(true, false)), "no usage", 140, none, none, 280, []float32{60}, Tokens},
		{SGLangBench, body, "not streamed", none, none, none, 300, nil, ""},
		{GuideLLM, stream(true, false), "counts", 100, 230. / 6, 26, 300, nil, ""},
		{GuideLLM, silent(stream(true, false)), "no usage: four deltas", 100, 230. / 4, 130. / 3, 300, nil, ""},
		{GuideLLM, stream(false, true), "another choice first", 100, 230. / 6, 26, 300, nil, ""},
		{GuideLLM, single(stream(true, false)), "one token", 100, 230, none, 300, nil, ""},
		{GuideLLM, empty, "no event", none, none, none, 300, nil, ""},
		{AIPerf, stream(true, false), "counts", 100, none, 26, 230, nil, ""},
		{AIPerf, silent(stream(true, false)), "no usage", 100, none, none, 230, nil, ""},
		{AIPerf, empty, "no event", none, none, none, none, nil, ""},
		{AIPerf, body, "not streamed", none, none, none, 300, nil, ""},
		{GenAIBench, stream(true, false), "counts", 100, 36, none, 280, nil, ""},
		{GenAIBench, silent(stream(true, false)), "no usage", 100, none, none, 280, nil, ""},
		{GenAIBench, empty, "no event", none, none, none, 300, nil, ""},
	} {
		v := c.profile.Read(c.reply)
		for name, one := range map[string]struct {
			got  call.Duration
			want float64
		}{"TTFT": {v.TTFT, c.ttft}, "TPOT": {v.TPOT, c.tpot}, "ITL": {v.ITL, c.itl}, "E2E": {v.E2E, c.e2e}} {
			if one.got.IsKnown() != (one.want != none) || one.got.IsKnown() && math.Abs(one.got.MillisecondsFloat()-one.want) > 1e-5 {
				t.Errorf("%s, %s: %s is %v, want %v", c.profile, c.what, name, one.got, one.want)
			}
		}
		if !slices.Equal(v.Gaps, c.gaps) || v.GapsOf != c.of {
			t.Errorf("%s, %s: gaps %v of %q, want %v of %q", c.profile, c.what, v.Gaps, v.GapsOf, c.gaps, c.of)
		}
	}
}

// TestSGLangGaps: an event that brought no token is passed over, and its time
// falls to the next.
func TestSGLangGaps(t *testing.T) {
	text := func(ms int, n int32) endpoint.Event {
		return endpoint.Event{At: at(ms), Mark: endpoint.Content | endpoint.Text, Output: n}
	}
	for _, c := range []struct {
		events []endpoint.Event
		want   []float32
	}{
		{[]endpoint.Event{text(10, 1), text(20, 1), text(40, 4)}, []float32{10, 10, 10}},
		{[]endpoint.Event{text(10, 1), text(20, 0)}, nil},
		{[]endpoint.Event{text(10, 5), text(20, 3)}, nil},
		{[]endpoint.Event{text(10, 1), text(20, math.MaxInt32)}, nil},
		{[]endpoint.Event{text(10, 1)}, nil},
	} {
		if got := sglangGaps(c.events); !slices.Equal(got, c.want) {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}

// TestTokenGaps: counts that cannot be divided by make no gaps between tokens.
func TestTokenGaps(t *testing.T) {
	event := func(ms int, n int32) endpoint.Event {
		return endpoint.Event{At: at(ms), Mark: endpoint.Content, Output: n}
	}
	for _, c := range [][]endpoint.Event{
		{}, {event(1, 1)}, {event(1, 1), event(2, 1)}, {event(1, 2), event(2, 1)}, {event(1, 0), event(2, 1)}, {event(1, 1), event(2, 0)},
		{event(1, 1), event(2, math.MaxInt32)},
	} {
		if gaps, ok := tokenGaps(c); ok {
			t.Errorf("%v has gaps %v", c, gaps)
		}
	}
}

func TestParseProfile(t *testing.T) {
	for _, p := range Profiles() {
		got, err := ParseProfile(" " + strings.ToUpper(string(p)))
		if err != nil || got != p || len(p.Says()) < 3 {
			t.Errorf("%s: %v, %v, %q", p, got, err, p.Says())
		}
	}
	if p, err := ParseProfile(""); p != Weir || err != nil {
		t.Errorf("no name: %q, %v", p, err)
	}
	if _, err := ParseProfile("vllm"); err == nil || !strings.Contains(err.Error(), "vllm_bench") {
		t.Errorf("%v", err)
	}
	if v := Profile("else").Read(stream(true, false)); v.TTFT.IsKnown() || Profile("else").Says() != nil {
		t.Errorf("an unknown profile has figures: %+v", v)
	}
	if len(definitions) != len(Profiles()) {
		t.Error("a profile is not listed")
	}
}

// FuzzProfiles: no stream breaks a profile, and no figure is negative.
func FuzzProfiles(f *testing.F) {
	f.Add([]byte{1, 2, 3, 255, 0, 9, 7, 7, 7}, int64(5))
	f.Fuzz(func(t *testing.T, events []byte, n int64) {
		r := &endpoint.Reply{}
		r.Record.Stream = true
		if n >= 0 {
			r.Record.Output = call.Known(n)
		}
		for i := 0; i+3 <= len(events); i += 3 {
			r.End += time.Duration(events[i]) * time.Millisecond
			r.Events = append(r.Events, endpoint.Event{At: r.End, Mark: endpoint.Mark(events[i+1]), Output: int32(int8(events[i+2]))})
		}
		for _, p := range Profiles() {
			v := p.Read(r)
			for _, d := range []call.Duration{v.TTFT, v.TPOT, v.ITL, v.E2E} {
				if d.Or(0) < 0 || d.Or(0) > r.End {
					t.Errorf("%s: %+v", p, v)
				}
			}
			if (len(v.Gaps) == 0) != (v.GapsOf == "") {
				t.Errorf("%s: %d gaps of %q", p, len(v.Gaps), v.GapsOf)
			}
			for _, g := range v.Gaps {
				if !(g >= 0) {
					t.Errorf("%s: gap %v", p, g)
				}
			}
		}
	})
}
