package endpoint

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/dialect"
	"github.com/weirgate/weir/internal/meter"
)

// lookCases are events and what they carry.
var lookCases = []struct {
	form   form
	name   string
	data   string
	mark   Mark
	output int32
}{
	{choicesForm, "", `[DONE]`, Done, 0},
	{choicesForm, "", ` [DONE] `, Done, 0},
	{choicesForm, "", `{"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`, Choices | First, 0},
	{choicesForm, "", `{"choices":[{"delta":{"content":"a"}}]}`, Choices | First | Text, 0},
	{choicesForm, "", `{"choices":[{"index":1,"delta":{"content":"a"}}]}`, Choices | Text, 0},
	{choicesForm, "", `{"choices":[{"index":1,"delta":{}},{"index":0,"delta":{}}]}`, Choices | First, 0},
	{choicesForm, "", `{"choices":[{"index":0,"delta":{"content":"\""}}]}`, Choices | First | Text, 0},
	{choicesForm, "", `{"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"a"}]}}]}`, Choices | First | Text, 0},
	{choicesForm, "", `{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]}]}}]}`, Choices | First | Reasoning, 0},
	{choicesForm, "", `{"choices":[{"index":0,"delta":{"content":null,"reasoning_content":"a"}}]}`, Choices | First | Reasoning, 0},
	{choicesForm, "", `{"choices":[{"index":0,"delta":{"reasoning":"a"}}]}`, Choices | First | Reasoning, 0},
	{choicesForm, "", `{"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"x","summary":"a"}]}}]}`, Choices | First | Reasoning, 0},
	{choicesForm, "", `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":""}}]}}]}`, Choices | First | Tool, 0},
	{choicesForm, "", `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}}]}`, Choices | First | Tool, 0},
	{choicesForm, "", `{"choices":[{"index":0,"delta":{"tool_calls":[{"function":{"arguments":{"a":1}}}]}}]}`, Choices | First | Tool, 0},
	{choicesForm, "", `{"choices":[{"index":0,"delta":{"tool_calls":[{"function":{"arguments":""}}]}}]}`, Choices | First, 0},
	{choicesForm, "", `{"choices":[{"index":0,"delta":{"tool_calls":[{"custom":{"input":"a"}}]}}]}`, Choices | First | Tool, 0},
	{choicesForm, "", `{"choices":[{"index":0,"delta":{"function_call":{"name":"f"}}}]}`, Choices | First | Tool, 0},
	{choicesForm, "", `{"choices":[{"index":0,"delta":{"refusal":"no"}}]}`, Choices | First, 0},
	{choicesForm, "", `{"choices":[{"index":0,"text":"a"}]}`, Choices | First | Text, 0},
	{choicesForm, "", `{"choices":[{"index":0,"text":"a"}],"usage":null}`, Choices | First | Text, 0},
	{choicesForm, "", `{"choices":[{"index":0,"text":"a"}],"usage":{"prompt_tokens":5,"completion_tokens":7}}`, Choices | First | Text | Usage, 7},
	{choicesForm, "", `{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":9,"total_tokens":14}}`, Usage, 9},
	{choicesForm, "", `{"choices":[],"usage":{"completion_tokens":0}}`, Usage, 0},
	{choicesForm, "", `{"choices":[],"x_groq":{"id":"r","usage":{"completion_tokens":3}}}`, Usage, 3},
	{choicesForm, "", `{"error":{"message":"no"}}`, 0, 0},
	{choicesForm, "", "{ \"choices\" : [ { \"index\" : 0 , \"delta\" : { \"content\" : \"a\" } } ] }\n", Choices | First | Text, 0},
	{choicesForm, "", `{"choices":[{"index":0,"delta":{"content":"a`, 0, 0},
	{choicesForm, "", `{"choices":[{"index":0,"delta":{"content":"a"}}]`, 0, 0},
	{choicesForm, "", `{"choices":[]} and more`, 0, 0},
	{choicesForm, "", `"choices"`, 0, 0},
	{choicesForm, "", `7`, 0, 0},
	{choicesForm, "", ``, 0, 0},

	{responsesForm, "response.created", `{"type":"response.created","response":{"usage":null}}`, 0, 0},
	{responsesForm, "", `{"type":"response.output_text.delta","output_index":1,"delta":"a"}`, Choices | First | Text, 0},
	{responsesForm, "response.output_text.delta", `{"delta":"a"}`, Choices | First | Text, 0},
	{responsesForm, "", `{"type":"response.output_text.delta","delta":""}`, Choices | First, 0},
	{responsesForm, "", `{"type":"response.reasoning_summary_text.delta","delta":"a"}`, Choices | First | Reasoning, 0},
	{responsesForm, "", `{"type":"response.function_call_arguments.delta","delta":"{"}`, Choices | First | Tool, 0},
	{responsesForm, "", `{"type":"response.custom_tool_call_input.delta","delta":"x"}`, Choices | First | Tool, 0},
	{responsesForm, "", `{"type":"response.refusal.delta","delta":"no"}`, Choices | First, 0},
	{responsesForm, "", `{"type":"response.output_item.added","item":{"type":"function_call","name":"f"}}`, First | Tool, 0},
	{responsesForm, "", `{"type":"response.output_item.added","item":{"type":"message","content":[]}}`, 0, 0},
	{responsesForm, "", `{"type":"response.output_text.done","text":"a"}`, 0, 0},
	{responsesForm, "", `{"type":"response.completed","response":{"usage":{"input_tokens":4,"output_tokens":6}}}`, Done | Usage, 6},
	{responsesForm, "", `{"type":"response.incomplete","response":{}}`, Done, 0},
	{responsesForm, "", `{"type":"response.failed","response":{"error":{"code":"x"}}}`, Done, 0},

	{messagesForm, "message_start", `{"type":"message_start","message":{"content":[],"usage":{"input_tokens":9,"output_tokens":1}}}`, Usage, 1},
	{messagesForm, "ping", `{"type":"ping"}`, 0, 0},
	{messagesForm, "", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, 0, 0},
	{messagesForm, "", `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}`, First | Tool, 0},
	{messagesForm, "", `{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"xx"}}`, First | Reasoning, 0},
	{messagesForm, "", `{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a"}}`, Choices | First | Text, 0},
	{messagesForm, "content_block_delta", `{"index":0,"delta":{"type":"thinking_delta","thinking":"a"}}`, Choices | First | Reasoning, 0},
	{messagesForm, "", `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{"}}`, Choices | First | Tool, 0},
	{messagesForm, "", `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}`, Choices | First, 0},
	{messagesForm, "", `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"xx"}}`, Choices | First, 0},
	{messagesForm, "", `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":12}}`, Usage, 12},
	{messagesForm, "message_stop", `{"type":"message_stop"}`, Done, 0},
	{messagesForm, "error", `{"type":"error","error":{"type":"overloaded_error"}}`, 0, 0},
}

func TestLook(t *testing.T) {
	for _, c := range lookCases {
		mark, output := c.form.look([]byte(c.name), []byte(c.data))
		if mark != c.mark || output != c.output {
			t.Errorf("%s: %09b and %d, want %09b and %d", c.data, mark, output, c.mark, c.output)
		}
	}
}

// TestLookDoesNotAllocate: a look costs time and nothing else.
func TestLookDoesNotAllocate(t *testing.T) {
	for _, c := range lookCases {
		name, data := []byte(c.name), []byte(c.data)
		if n := testing.AllocsPerRun(10, func() { c.form.look(name, data) }); n != 0 {
			t.Errorf("%s: %v allocations", c.data, n)
		}
	}
}

// slow reads a chat or completions event with encoding/json, in the form that
// most servers send.
func slow(data []byte) (mark Mark, output int32, ok bool) {
	var e struct {
		Choices []struct {
			Index *int32 `json:"index"`
			Text  string `json:"text"`
			Delta struct {
				Content   string `json:"content"`
				Reasoning string `json:"reasoning_content"`
			} `json:"delta"`
		} `json:"choices"`
		Usage *struct {
			Completion int32 `json:"completion_tokens"`
		} `json:"usage"`
	}
	if json.Unmarshal(data, &e) != nil {
		return 0, 0, false
	}
	for i, c := range e.Choices {
		mark |= Choices
		if n := int32(i); c.Index != nil && *c.Index == 0 || c.Index == nil && n == 0 {
			mark |= First
		}
		if c.Text != "" || c.Delta.Content != "" {
			mark |= Text
		}
		if c.Delta.Reasoning != "" {
			mark |= Reasoning
		}
	}
	if e.Usage != nil {
		mark |= Usage
		output = e.Usage.Completion
	}
	return mark, output, true
}

// FuzzLook: no bytes make a look fail, and of events in the usual form it sees what
// encoding/json does, in whatever white space and with whatever in the text.
func FuzzLook(f *testing.F) {
	for _, c := range lookCases {
		f.Add(uint8(c.form), c.name, c.data, "text", int32(3), c.output, true)
	}
	f.Add(uint8(0), "", `{"choices":[`, "\"}]\\", int32(0), int32(1), false)
	f.Fuzz(func(t *testing.T, kind uint8, name, data, text string, index, tokens int32, indent bool) {
		form(kind%3).look([]byte(name), []byte(data))

		index, tokens = max(index, 0), max(tokens, 0)
		event := map[string]any{
			"id": text, "choices": []any{
				map[string]any{"index": index, "delta": map[string]any{"content": text, "reasoning_content": name}},
				map[string]any{"index": 1, "text": data, "delta": map[string]any{"role": text}},
			},
			"usage": map[string]any{"completion_tokens": tokens, "prompt_tokens": 5},
		}
		marshal := json.Marshal
		if indent {
			marshal = func(v any) ([]byte, error) { return json.MarshalIndent(v, " ", "\t") }
		}
		encoded, err := marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		mark, output := choicesForm.look(nil, encoded)
		wantMark, wantOutput, ok := slow(encoded)
		if !ok || mark != wantMark || output != wantOutput {
			t.Errorf("%s: %09b and %d, want %09b and %d (%v)", encoded, mark, output, wantMark, wantOutput, ok)
		}
	})
}

// streamOf makes a stream of the look cases of a form.
func streamOf(f form, cr bool) string {
	var b strings.Builder
	end := "\n"
	if cr {
		end = "\r\n"
	}
	for _, c := range lookCases {
		if c.form != f || c.data == "" || c.mark&Done != 0 {
			continue
		}
		if c.name != "" {
			b.WriteString("event: " + c.name + end)
		}
		b.WriteString("data: " + strings.TrimSuffix(c.data, "\n") + end + end)
	}
	return b.String()
}

// eventsOf gives a stream to a pass in pieces and returns its events.
func eventsOf(f form, stream string, pieces func(i int) int) ([]Event, call.Record) {
	d := dialect.ByName(map[form]string{choicesForm: "openai.chat", responsesForm: "openai.responses", messagesForm: "anthropic.messages"}[f])
	request := call.Request{Stream: true}
	m := meter.New(d, &request)
	m.Header(200, map[string][]string{"Content-Type": {"text/event-stream"}})
	p := newPass(d.Name, m, nil)
	for i := 0; len(stream) > 0; i++ {
		n := min(max(pieces(i), 1), len(stream))
		p.write([]byte(stream[:n]), time.Second)
		stream = stream[n:]
	}
	content := m.ContentEvents()
	var rec call.Record
	m.Finish(&rec, meter.End{At: time.Second, Status: 200})
	events, _ := p.end(rec.Stream, m.ContentEvents() > content)
	m.Free()
	return events, rec
}

// FuzzPass: however a stream is cut, its events are the same, and as many of
// them carry content as the record counts.
func FuzzPass(f *testing.F) {
	for form := range messagesForm + 1 {
		f.Add(uint8(form), streamOf(form, false), []byte{1})
		f.Add(uint8(form), streamOf(form, true), []byte{7, 3, 200})
	}
	f.Add(uint8(0), "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}", []byte{4})
	f.Add(uint8(0), "{\"choices\":[]}\n\ndata: x\n\n", []byte{4})
	f.Fuzz(func(t *testing.T, kind uint8, stream string, cuts []byte) {
		form := form(kind % 3)
		whole, rec := eventsOf(form, stream, func(int) int { return len(stream) })
		cut, cutRec := eventsOf(form, stream, func(i int) int {
			if len(cuts) == 0 {
				return 1
			}
			return int(cuts[i%len(cuts)])
		})
		if len(whole) != len(cut) || rec.Stream != cutRec.Stream {
			t.Fatalf("%d events whole, %d in pieces", len(whole), len(cut))
		}
		for i := range whole {
			if whole[i] != cut[i] {
				t.Errorf("event %d: %+v whole, %+v in pieces", i, whole[i], cut[i])
			}
		}
		if rec.Stream && len(rec.Degraded) == 0 && rec.ContentEvents != call.Known(int64(marked(whole, Content))) {
			t.Errorf("%d content events, the record has %v", marked(whole, Content), rec.ContentEvents)
		}
		for _, e := range whole {
			if e.Mark&(Text|Reasoning|Tool) != 0 && e.Mark&Content == 0 {
				t.Errorf("text without content: %+v", e)
			}
		}
	})
}

// TestEventsAreBounded: beyond the bound events are counted and not kept.
func TestEventsAreBounded(t *testing.T) {
	m := meter.New(dialect.ByName("openai.chat"), &call.Request{Stream: true})
	p := newPass("openai.chat", m, make([]Event, 0, maxEvents))
	p.events = p.events[:maxEvents-1]
	p.write([]byte(streamOf(choicesForm, false)), 0)
	events, dropped := p.end(true, false)
	if len(events) != maxEvents || dropped < 10 {
		t.Errorf("%d events kept, %d dropped", len(events), dropped)
	}
}
