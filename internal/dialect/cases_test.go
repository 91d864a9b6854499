package dialect

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/weirgate/weir/internal/call"
)

// stream feeds events to a new response of a dialect.
func stream(t *testing.T, name string, req *call.Request, data ...string) (*Response, []Seen) {
	t.Helper()
	r := ByName(name).NewResponse(req)
	var seen []Seen
	for _, d := range data {
		seen = append(seen, r.Event(nil, []byte(d)))
	}
	return r, seen
}

const (
	nothing = `{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`
	hello   = `{"choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":null}]}`
	stop    = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
)

// An empty role chunk, then reasoning, then content: the first event, the first
// token and the first visible token are three.
func TestFirstEventFirstTokenFirstVisible(t *testing.T) {
	think := `{"choices":[{"index":0,"delta":{"reasoning_content":"hm"},"finish_reason":null}]}`
	r, seen := stream(t, "openai.chat", nil, nothing, think, think, think, hello, stop, "[DONE]")
	want := []Seen{{}, {Content: true}, {Content: true}, {Content: true}, {Content: true, Visible: true}, {Finished: true}, {Terminal: true}}
	for i := range want {
		if seen[i] != want[i] {
			t.Errorf("event %d: %+v, want %+v", i, seen[i], want[i])
		}
	}
	if a := r.Answer(); a.FirstContent != call.Known(1) || a.FirstVisible != call.Known(4) || a.ContentEvents != 4 {
		t.Errorf("got %+v", a)
	}
}

// Structural events of the Responses API are not tokens, however long the
// silence after them.
func TestStructureIsNoToken(t *testing.T) {
	_, seen := stream(t, "openai.responses", nil,
		`{"type":"response.created","response":{"id":"r","status":"in_progress"}}`,
		`{"type":"response.output_item.added","item":{"type":"message","content":[]}}`,
		`{"type":"response.output_item.added","item":{"type":"reasoning","summary":[]}}`,
		`{"type":"response.content_part.added","part":{"type":"output_text","text":""}}`,
		`{"type":"response.output_text.done","text":"hello"}`,
		`{"type":"response.output_item.done","item":{"type":"function_call","name":"f","arguments":"{}"}}`)
	for i, s := range seen {
		if s != (Seen{}) {
			t.Errorf("event %d counts: %+v", i, s)
		}
	}
}

// A name of a tool counts, the empty arguments beside it or not.
func TestToolNameIsOutput(t *testing.T) {
	for name, data := range map[string]string{
		"openai.chat":        `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":""}}]}}]}`,
		"openai.responses":   `{"type":"response.output_item.added","item":{"type":"function_call","name":"f","arguments":""}}`,
		"anthropic.messages": `{"type":"content_block_start","content_block":{"type":"tool_use","name":"f","input":{}}}`,
		"ollama.chat":        `{"message":{"content":"","tool_calls":[{"function":{"name":"f","arguments":{}}}]},"done":false}`,
		"gemini.native":      `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]}}]}`,
		"cohere.v2.chat":     `{"type":"tool-call-start","delta":{"message":{"tool_calls":{"function":{"name":"f","arguments":""}}}}}`,
	} {
		if _, seen := stream(t, name, nil, data); seen[0] != (Seen{Content: true, Visible: true}) {
			t.Errorf("%s: %+v", name, seen[0])
		}
	}
}

// Places of output beside the usual ones.
func TestOutputElsewhere(t *testing.T) {
	content, thinking := Seen{Content: true, Visible: true}, Seen{Content: true}
	tests := []struct {
		name, data string
		want       Seen
	}{
		{"openai.chat", `{"choices":[{"delta":{"refusal":"no"}}]}`, content},
		{"openai.chat", `{"choices":[{"delta":{"audio":{"transcript":"x"}}}]}`, content},
		{"openai.chat", `{"choices":[{"delta":{"audio":{"id":"a","expires_at":1}}}]}`, Seen{}},
		{"openai.chat", `{"choices":[{"delta":{"tool_calls":[{"custom":{"input":"x"}}]}}]}`, content},
		{"openai.chat", `{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":{"a":1}}}]}}]}`, content},
		{"openai.chat", `{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":{}}}]}}]}`, Seen{}},
		{"openai.chat", `{"choices":[{"delta":{"tool_calls":[{"id":"c"}]}}]}`, Seen{}},
		{"openai.chat", `{"choices":[{"delta":{"content":[{"type":"text","text":"x"}]}}]}`, content},
		{"openai.chat", `{"choices":[{"delta":{"content":[]}}]}`, Seen{}},
		{"openai.chat", `{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]}}]}`, thinking},
		{"openai.chat", `{"choices":[{"delta":{"Content":"x"}}]}`, Seen{}},
		{"openai.chat", `{"choices":[{"delta":{"\u0063ontent":"x"}}]}`, content},
		{"openai.chat", `{"choices":[{"delta":{"content":"x","content":""}}]}`, content},
		{"openai.chat", `{"choices":null}`, Seen{}},
		{"openai.responses", `{"type":"response.refusal.delta","delta":"x"}`, content},
		{"openai.responses", `{"type":"response.audio.delta","delta":"QQ=="}`, content},
		{"openai.responses", `{"type":"response.mcp_call_arguments.delta","delta":"{"}`, content},
		{"openai.responses", `{"type":"response.reasoning_summary_text.delta","delta":"x"}`, thinking},
		{"openai.responses", `{"type":"response.output_text.delta","delta":""}`, Seen{}},
		{"openai.responses", `{"type":"response.output_text.annotation.added","annotation":{"text":"x"}}`, Seen{}},
		{"anthropic.messages", `{"type":"content_block_delta","delta":{"type":"citations_delta","citation":{"cited_text":"x"}}}`, Seen{}},
		{"anthropic.messages", `{"type":"content_block_delta","delta":{"type":"signature_delta","signature":"x"}}`, Seen{}},
		{"anthropic.messages", `{"type":"ping"}`, Seen{}},
		{"gemini.native", `{"candidates":[{"content":{"parts":[{"thought":true,"text":"x"}]}}]}`, thinking},
		{"gemini.native", `{"candidates":[{"content":{"parts":[{"text":"x","thought":false},{"text":"y","thought":true}]}}]}`, content},
		{"gemini.native", `{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"x"}]}}]}`, Seen{}},
		{"tgi.generate_stream", `{"token":{"id":1,"special":true,"text":"</s>"},"generated_text":null}`, Seen{}},
		{"llamacpp.completion", `{"content":"","stop":false,"prompt_progress":{"total":5}}`, Seen{}},
	}
	for _, tt := range tests {
		if _, seen := stream(t, tt.name, nil, tt.data); seen[0] != tt.want {
			t.Errorf("%s: %s is %+v, want %+v", tt.name, tt.data, seen[0], tt.want)
		}
	}
}

// With echo the first text of every choice is the prompt.
func TestEcho(t *testing.T) {
	text := func(i, s string) string {
		return `{"choices":[{"index":` + i + `,"text":"` + s + `","finish_reason":null}]}`
	}
	r, seen := stream(t, "openai.completions", &call.Request{Echo: true}, text("0", "prompt"), text("1", "prompt"), text("1", "a"), text("0", "b"), text("0", "c"))
	for i, want := range []bool{false, false, true, true, true} {
		if seen[i].Content != want {
			t.Errorf("event %d: content is %t", i, seen[i].Content)
		}
	}
	if a := r.Answer(); !a.MultipleChoices || a.FirstContent != call.Known(2) {
		t.Errorf("got %+v", a)
	}
	if r, _ := stream(t, "openai.completions", nil, text("0", "a"), text("0", "b")); r.Answer().MultipleChoices {
		t.Error("one choice is several")
	}
}

// A usage chunk lost with the client: nothing is known, and nothing is 0.
func TestUnknownIsNotZero(t *testing.T) {
	r, _ := stream(t, "openai.chat", nil, nothing, hello)
	r.Close()
	if a := r.Answer(); !a.Usage.IsZero() || a.UsageSource != call.UsageNone {
		t.Errorf("got %+v from %s", a.Usage, a.UsageSource)
	}
}

// What an error event carries is not output, and [DONE] after it is no success.
func TestErrorIsNotOutput(t *testing.T) {
	for name, data := range map[string]string{
		"openai.chat":         `{"error":{"message":"the whole prompt, quoted","type":"server_error","code":null}}`,
		"openai.completions":  `{"object":"error","message":"x","type":"server_error","code":500}`,
		"openai.responses":    `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"x"}}}`,
		"anthropic.messages":  `{"type":"error","error":{"type":"server_error","message":"x"}}`,
		"gemini.native":       `{"error":{"code":"server_error","message":"x"}}`,
		"tgi.generate_stream": `{"error":"x","error_type":"server_error"}`,
		"llamacpp.completion": `{"error":{"code":500,"message":"x","type":"server_error"}}`,
		"openai.speech":       `{"type":"error","error":{"type":"server_error","message":"x"}}`,
	} {
		r, seen := stream(t, name, nil, data, "[DONE]")
		r.Close()
		if a := r.Answer(); a.Error != "server_error" || a.ContentEvents != 0 || seen[0].Content || !a.Recognised {
			t.Errorf("%s: %+v", name, a)
		}
	}
	for _, none := range []string{`{"error":null,"choices":[]}`, `{"error":{},"choices":[]}`, `{"error":"","choices":[]}`, `{"error":false}`} {
		if r, _ := stream(t, "openai.chat", nil, none); r.Answer().Error != "" {
			t.Errorf("%s is an error", none)
		}
	}
	r, _ := stream(t, "openai.chat", nil, `{"error":{"type":"first"}}`, `{"error":{"type":"second"}}`)
	if r.Answer().Error != "first" {
		t.Errorf("error is %q", r.Answer().Error)
	}
}

// Cumulative counts: the last one wins, cache counts once.
func TestCumulativeCounts(t *testing.T) {
	r, _ := stream(t, "anthropic.messages", nil,
		`{"type":"message_start","message":{"usage":{"input_tokens":4,"cache_read_input_tokens":10,"output_tokens":1}}}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":4,"cache_read_input_tokens":10,"output_tokens":15}}`,
		`{"type":"message_stop"}`)
	r.Close()
	want := call.Usage{Input: call.Known(14), Output: call.Known(15), Cached: call.Known(10)}
	if a := r.Answer(); a.Usage != want || a.UsageSource != call.UsageReported {
		t.Errorf("got %+v from %s", a.Usage, a.UsageSource)
	}
}

// Several tokens in one event change nothing of the count of events.
func TestCountsAreUsable(t *testing.T) {
	r, _ := stream(t, "openai.chat", nil, nothing,
		`{"choices":[{"index":0,"delta":{"content":"a b c"}}],"usage":{"prompt_tokens":2,"completion_tokens":3}}`)
	if got := r.Answer().Usage.Output; got != call.Known(3) {
		t.Errorf("running output is %s", show(got))
	}
	for _, bad := range []string{`-1`, `1e300`, `"x"`, `{}`, `[1]`, `true`, `NaN`} {
		r, _ := stream(t, "openai.chat", nil, `{"choices":[],"usage":{"prompt_tokens":`+bad+`}}`)
		if !r.Answer().Usage.IsZero() || r.Answer().ParseErrors != 0 {
			t.Errorf("%s became %s", bad, show(r.Answer().Usage.Input))
		}
	}
}

// Events that cannot be read, or are too long to be, keep their numbers and
// leave no trace.
func TestUnreadableEvents(t *testing.T) {
	r, seen := stream(t, "openai.chat", nil,
		`{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5`,
		`{"id":"x","model":"y","choices":[{"index":1,"delta":{"content":"x"},"finish_reason":"stop"}]}}`)
	r.SkipEvent()
	if a := r.Answer(); seen[0] != (Seen{}) || seen[1] != (Seen{}) || a.ParseErrors != 2 || a.Events != 3 || a.ContentEvents != 0 ||
		!a.Finish.IsZero() || !a.Usage.IsZero() || a.ResponseID != "" || a.Recognised || a.MultipleChoices {
		t.Errorf("got %+v", a)
	}
	r.Event(nil, []byte(hello))
	if a := r.Answer(); a.FirstContent != call.Known(3) {
		t.Errorf("first content is %s", show(a.FirstContent))
	}
}

// Nothing counts after the end.
func TestAfterTheEnd(t *testing.T) {
	r, _ := stream(t, "openai.chat", nil, hello, "[DONE]", hello, `{"error":{"type":"late"}}`)
	r.SkipEvent()
	r.Close()
	r.Close()
	r.Event(nil, []byte(hello))
	r.Body([]byte(hello))
	r.EndBody()
	if a := r.Answer(); a.Events != 2 || a.ContentEvents != 1 || a.Error != "" || !a.Terminated {
		t.Errorf("got %+v", a)
	}
	for _, done := range []string{" [DONE]", "[DONE] ", "[DONE]\n"} {
		if _, seen := stream(t, "openai.chat", nil, done); !seen[0].Terminal {
			t.Errorf("%q is not the end", done)
		}
	}
	for _, not := range []string{"[DONE", "DONE", "[done]", `"[DONE]"`, "[DONE]x"} {
		if _, seen := stream(t, "openai.chat", nil, not); seen[0].Terminal {
			t.Errorf("%q is the end", not)
		}
	}
}

// The header's figures stand for themselves, and give way to the body's.
func TestHeader(t *testing.T) {
	h := http.Header{"X-Inference-Time": {"30"}, "X-Queue-Time": {"1.5"}, "X-Total-Time": {"x"}, "X-Prompt-Tokens": {"-3"}, "X-Generated-Tokens": {"7"}}
	r := ByName("tgi.generate").NewResponse(nil)
	r.Header(h)
	r.Body([]byte(`{"generated_text":"a","details":{"generated_tokens":9}}`))
	r.EndBody()
	r.Close()
	a := r.Answer()
	if a.Engine != (call.Engine{Queue: call.Lasting(1500 * time.Microsecond)}) || a.Usage != (call.Usage{Output: call.Known(9)}) {
		t.Errorf("got %+v", a)
	}
	h.Del("X-Inference-Time")
	r = ByName("openai.chat").NewResponse(nil)
	if r.Header(h); r.Answer().Engine != (call.Engine{}) {
		t.Error("another server's header is read")
	}
}

func TestNames128(t *testing.T) {
	long := strings.Repeat("é", 200)
	r, _ := stream(t, "openai.chat", nil, `{"id":"a\/b\u0000c","model":"`+long+`","choices":[{"finish_reason":"`+long+`"}]}`)
	a := r.Answer()
	if a.ResponseID != "a/bc" || a.ResponseModel != long[:call.MaxName] || a.Finish.First() != long[:call.MaxName] {
		t.Errorf("id %q, model %q, finish %q", a.ResponseID, a.ResponseModel, a.Finish.First())
	}
}

func TestErrorBody(t *testing.T) {
	for _, name := range Names() {
		d := ByName(name)
		for _, status := range []int{400, 401, 403, 404, 413, 429, 500, 503, 504} {
			kind, body := d.ErrorBody(Refusal{Status: status, Code: "too_many", Message: "slow \"down\"\n"})
			var v map[string]any
			if kind != "application/json" || json.Unmarshal(body, &v) != nil || !strings.Contains(string(body), `slow \"down\"\n`) {
				t.Errorf("%s: %s %s", name, kind, body)
			}
			r := d.NewResponse(nil)
			r.Body(body)
			r.EndBody()
			if r.Close(); r.Answer().Error == "" {
				t.Errorf("%s does not know its own error: %s", name, body)
			}
		}
	}
	want := map[string]string{
		"openai.chat":        `{"error":{"message":"m","type":"rate_limit_error","param":null,"code":"c"}}`,
		"anthropic.messages": `{"type":"error","error":{"type":"rate_limit_error","message":"m"}}`,
		"ollama.chat":        `{"error":"m"}`,
		"gemini.native":      `{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}`,
		"cohere.v2.chat":     `{"message":"m"}`,
	}
	for name, w := range want {
		if _, got := ByName(name).ErrorBody(Refusal{Status: 429, Code: "c", Message: "m"}); string(got) != w {
			t.Errorf("%s: %s, want %s", name, got, w)
		}
	}
}

// Thousands of streams wait idle at a time, each with one of these.
func TestResponseIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(Response{}); n > 2048 {
		t.Errorf("a response takes %d bytes", n)
	}
	t.Logf("a response takes %d bytes", unsafe.Sizeof(Response{}))
}

// The timings of several choices are each one choice's own.
func TestTimingsOfSeveralChoices(t *testing.T) {
	r, _ := stream(t, "openai.chat", nil,
		`{"choices":[{"index":0,"delta":{"content":"a"}}],"timings":{"predicted_n":1,"prompt_n":4,"cache_n":0}}`,
		`{"choices":[{"index":1,"delta":{"content":"a"}}],"timings":{"predicted_n":1,"prompt_n":4,"cache_n":0}}`, "[DONE]")
	r.Close()
	if a := r.Answer(); !a.Usage.IsZero() || a.UsageSource != call.UsageNone || !a.MultipleChoices {
		t.Errorf("got %+v from %s", a.Usage, a.UsageSource)
	}
}

// TestKeyOrder reads every sample with the keys of all its objects reversed:
// nothing may depend on their order.
func TestKeyOrder(t *testing.T) {
	for _, dir := range []string{"testdata/wire", "testdata/own"} {
		for _, s := range samples(t, dir) {
			d := ByName(strings.TrimSuffix(s.Dialect, ".json"))
			if strings.HasSuffix(s.File, ".json") {
				if !json.Valid(s.body) {
					continue
				}
				want, _ := s.read([][]byte{s.body})
				got, _ := s.read([][]byte{reversed(t, s.body)})
				if !reflect.DeepEqual(want, got) {
					t.Errorf("%s: got\n%+v, want\n%+v", s.File, got, want)
				}
				continue
			}
			plain, turned := d.NewResponse(nil), d.NewResponse(nil)
			both := func(name, data []byte) Seen {
				a := plain.Event(name, data)
				if json.Valid(data) {
					data = reversed(t, data)
				}
				if b := turned.Event(name, data); a != b {
					t.Errorf("%s: %s is %+v, want %+v", s.File, data, b, a)
				}
				return a
			}
			if d.LineDelimited() {
				for line := range bytes.Lines(s.body) {
					both(nil, bytes.TrimSpace(line))
				}
			} else {
				events([][]byte{s.body}, both)
			}
			plain.Close()
			turned.Close()
			if !reflect.DeepEqual(plain.Answer(), turned.Answer()) {
				t.Errorf("%s: got\n%+v, want\n%+v", s.File, turned.Answer(), plain.Answer())
			}
		}
	}
}

// reversed writes a document anew with the keys of every object in reverse.
func reversed(t *testing.T, doc []byte) []byte {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var value func() []byte
	value = func() []byte {
		tok, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		switch tok {
		case json.Delim('{'):
			var members [][]byte
			for d.More() {
				key, err := d.Token()
				if err != nil {
					t.Fatal(err)
				}
				k, _ := json.Marshal(key)
				members = append(members, append(append(k, ':'), value()...))
			}
			d.Token()
			slices.Reverse(members)
			return append(append([]byte("{"), bytes.Join(members, []byte(","))...), '}')
		case json.Delim('['):
			var elements [][]byte
			for d.More() {
				elements = append(elements, value())
			}
			d.Token()
			return append(append([]byte("["), bytes.Join(elements, []byte(","))...), ']')
		}
		b, err := json.Marshal(tok)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	return value()
}

// TestEchoUnheeded: a server that does not know echo sends its first token
// first. What is not the prompt is output.
func TestEchoUnheeded(t *testing.T) {
	event := func(text string) []byte {
		return []byte(`{"choices":[{"index":0,"text":` + text + `,"finish_reason":null}]}`)
	}
	for name, c := range map[string]struct {
		body, first string
		content     bool
	}{
		"the prompt":              {`{"prompt":"Say \u0022hi\u0022","echo":true,"stream":true}`, `"Say \"hi\""`, false},
		"the prompt and a token":  {`{"prompt":"Say","echo":true,"stream":true}`, `"Say it"`, false},
		"something else":          {`{"prompt":"Say","echo":true,"stream":true}`, `"Yes"`, true},
		"shorter than the prompt": {`{"prompt":"Say","echo":true,"stream":true}`, `"S"`, true},
		"token ids":               {`{"prompt":[1,2],"echo":true,"stream":true}`, `"Say"`, false},
		"echo is off":             {`{"prompt":"Say","echo":false,"stream":true}`, `"Say"`, true},
	} {
		look := NewLook(ByPath("/v1/completions"), "/v1/completions", "", "application/json")
		look.Write([]byte(c.body))
		d, req, malformed := look.Done(true)
		if malformed {
			t.Fatalf("%s: malformed", name)
		}
		r := d.NewResponse(&req)
		if got := r.Event(nil, event(c.first)).Content; got != c.content {
			t.Errorf("%s: the first text is output: %v", name, got)
		}
		if !r.Event(nil, event(c.first)).Content {
			t.Errorf("%s: the second text is not output", name)
		}
	}
}

// TestOutputIsNotZero: a stream that begins with a count of 0 and breaks off
// after output has not written 0 tokens.
func TestOutputIsNotZero(t *testing.T) {
	const start = `{"type":"message_start","message":{"id":"m","usage":{"input_tokens":9,"output_tokens":0}}}`
	const text = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}`
	for name, c := range map[string]struct {
		events []string
		output call.Count
	}{
		"output came": {[]string{start, text}, call.Count{}},
		"none came":   {[]string{start}, call.Known(0)},
	} {
		r := ByName("anthropic.messages").NewResponse(nil)
		for _, e := range c.events {
			r.Event(nil, []byte(e))
		}
		r.Close()
		if a := r.Answer(); a.Usage.Output != c.output || a.Usage.Input != call.Known(9) || a.UsageSource != call.UsagePartial {
			t.Errorf("%s: %+v, %s", name, a.Usage, a.UsageSource)
		}
	}
}
