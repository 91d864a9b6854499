package meter

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/dialect"
)

// The cases below are what other gateways got wrong in public, each as the
// bytes that trigger it. The name says where it was reported.

// piece is bytes of an answer that come at a time, in milliseconds.
type piece struct {
	at   int
	body string
}

// answered meters a streamed answer and returns its record.
func answered(name string, end End, pieces ...piece) *call.Record {
	return metered(dialect.ByName(name), stream("text/event-stream"), end, pieces...)
}

func metered(d *dialect.Dialect, h map[string][]string, end End, pieces ...piece) *call.Record {
	m := New(d, &call.Request{Stream: true})
	m.Header(200, h)
	for _, p := range pieces {
		m.Write([]byte(p.body), at(p.at), at(p.at))
		end.At = at(p.at)
	}
	end.Status = 200
	rec := new(call.Record)
	m.Finish(rec, end)
	return rec
}

func event(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }

func thought(text string) string {
	return strings.Replace(delta(text), `"content"`, `"reasoning_content"`, 1)
}

func TestPublicCases(t *testing.T) {
	for name, run := range map[string]func(t *testing.T){
		"1 three first times (aisix 869)": func(t *testing.T) {
			rec := answered("openai.chat", End{Instants: call.Instants{FirstByte: ms(1)}}, piece{1, role}, piece{400, thought("a")},
				piece{500, thought("b")}, piece{60_000, delta("c")}, piece{60_010, stop + usage + done})
			if rec.TTFB != ms(1) || rec.TTFT != ms(400) || rec.TTFTVisible != ms(60_000) {
				t.Errorf("first byte %v, token %v, visible %v", rec.TTFB, rec.TTFT, rec.TTFTVisible)
			}
		},
		"2 the created event is no token (aisix 929)": func(t *testing.T) {
			rec := answered("openai.responses", End{},
				piece{1, event("response.created", `{"type":"response.created","response":{"id":"r","status":"in_progress","output":[]}}`)},
				piece{9000, event("response.output_text.delta", `{"type":"response.output_text.delta","delta":"late"}`)},
				piece{9010, event("response.completed", `{"type":"response.completed","response":{"id":"r","status":"completed","usage":{"input_tokens":1,"output_tokens":2}}}`)})
			if rec.TTFT != ms(9000) || rec.Outcome != call.Completed {
				t.Errorf("TTFT %v, %s", rec.TTFT, rec.Outcome)
			}
		},
		"3 an empty item is no token, a function's name is (sub2api 5526)": func(t *testing.T) {
			created := event("response.created", `{"type":"response.created","response":{"id":"r"}}`)
			empty := event("response.output_item.added", `{"type":"response.output_item.added","output_index":0,"item":{"type":"message","role":"assistant","content":[]}}`)
			function := event("response.output_item.added", `{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","name":"f","arguments":""}}`)
			rec := answered("openai.responses", End{}, piece{1, created}, piece{2, empty}, piece{700, function})
			if rec.TTFT != ms(700) || rec.ContentEvents != call.Known(1) {
				t.Errorf("TTFT %v of %v events", rec.TTFT, rec.ContentEvents)
			}
		},
		"4 messages have a first token (litellm 25598)": func(t *testing.T) {
			rec := answered("anthropic.messages", End{},
				piece{50, event("message_start", `{"type":"message_start","message":{"id":"m","usage":{"input_tokens":3,"output_tokens":1}}}`)},
				piece{60, event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)},
				piece{100, event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`)},
				piece{900, event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"b"}}`)},
				piece{910, event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`)},
				piece{1000, event("message_stop", `{"type":"message_stop"}`)})
			if rec.TTFT != ms(100) || rec.E2E != ms(1000) || rec.TPOT != ms(100) {
				t.Errorf("TTFT %v, TPOT %v, E2E %v", rec.TTFT, rec.TPOT, rec.E2E)
			}
		},
		"6 TPOT is the whole span over n-1 (envoy-ai-gateway 1170)": func(t *testing.T) {
			rec := answered("openai.chat", End{}, piece{100, delta("a")}, piece{200, delta("b")}, piece{500, delta("c")}, piece{510, stop + usage + done})
			if rec.TPOT != ms(100) { // five tokens within 400 ms
				t.Errorf("TPOT %v", rec.TPOT)
			}
		},
		"8 several tokens in a chunk (vllm 50600)": func(t *testing.T) {
			rec := answered("openai.chat", End{}, piece{100, delta("one")}, piece{300, delta(" two three")}, piece{500, delta(" four five")}, piece{510, stop + usage + done})
			if rec.TPOT != ms(100) || rec.ICLMax != ms(200) || rec.ContentEvents != call.Known(3) || rec.Output != call.Known(5) {
				t.Errorf("TPOT %v, longest gap %v, %v events, %v tokens", rec.TPOT, rec.ICLMax, rec.ContentEvents, rec.Output)
			}
		},
		"9 a role alone is no token, and no fault (bifrost 6523)": func(t *testing.T) {
			rec := answered("openai.chat", End{}, piece{10, role}, piece{20, delta("a")}, piece{30, stop + usage + done})
			if rec.ContentEvents != call.Known(1) || rec.FirstContentEvent != call.Known(1) || rec.ParseErrors != 0 || rec.Outcome != call.Completed {
				t.Errorf("got %s", text(rec))
			}
		},
		"10 content and finish in one event (bifrost 5604)": func(t *testing.T) {
			last := strings.Replace(delta("b"), `"finish_reason":null`, `"finish_reason":"length"`, 1)
			rec := answered("openai.chat", End{}, piece{10, delta("a")}, piece{20, last}, piece{30, usage + done})
			if rec.ContentEvents != call.Known(2) || rec.FinishReason.First() != "length" || rec.Instants.LastToken != ms(20) {
				t.Errorf("got %s", text(rec))
			}
		},
		"12 comments are no data (llm-gateway 2053)": func(t *testing.T) {
			rec := answered("openai.chat", End{}, piece{10, ": PROCESSING\n\n"}, piece{15, ": PROCESSING\n"}, piece{20, delta("a")}, piece{30, stop + usage + done})
			if rec.TTFT != ms(20) || rec.ParseErrors != 0 || rec.FirstContentEvent != call.Known(0) || len(rec.Degraded) > 0 {
				t.Errorf("got %s", text(rec))
			}
		},
		"15 gzip flushed for each event, its header split (envoy-ai-gateway 1927, shenyu 6515)": func(t *testing.T) {
			var out bytes.Buffer
			z := gzip.NewWriter(&out)
			var pieces []piece
			for i, e := range []string{delta("a"), delta("b"), delta("c"), stop + usage + done} {
				_, _ = z.Write([]byte(e))
				_ = z.Flush()
				if i == 3 {
					_ = z.Close()
				}
				b := out.String()
				out.Reset()
				if i == 0 { // the ten bytes of the header come in three pieces
					pieces = append(pieces, piece{1, b[:1]}, piece{2, b[1:7]})
					b = b[7:]
				}
				pieces = append(pieces, piece{100 * (i + 1), b})
			}
			h := stream("text/event-stream")
			h.Set("Content-Encoding", "gzip")
			rec := metered(dialect.ByName("openai.chat"), h, End{}, pieces...)
			if rec.TTFT != ms(100) || rec.Instants.LastToken != ms(300) || rec.TPOT != ms(50) || rec.Output != call.Known(5) || rec.Outcome != call.Completed || len(rec.Degraded) > 0 {
				t.Errorf("got %s", text(rec))
			}
		},
		"16 a rune in two reads, CRLF, no space (praxis 739)": func(t *testing.T) {
			body := strings.ReplaceAll(strings.ReplaceAll(role+delta("日本語")+delta("é")+stop+usage+done, "\n", "\r\n"), "data: ", "data:")
			for i := range len(body) {
				rec := answered("openai.chat", End{}, piece{1, body[:i]}, piece{2, body[i:]})
				if rec.ContentEvents != call.Known(2) || rec.Output != call.Known(5) || rec.ParseErrors != 0 || rec.Outcome != call.Completed {
					t.Fatalf("cut at %d: %s", i, text(rec))
				}
			}
		},
		"18 a line over 64 KiB (ragflow 15381)": func(t *testing.T) {
			rec := answered("openai.chat", End{}, piece{10, delta("a")}, piece{20, delta(strings.Repeat("x", 70_000))}, piece{30, stop + usage + done})
			if rec.ContentEvents != call.Known(2) || rec.Output != call.Known(5) || len(rec.Degraded) > 0 {
				t.Errorf("70 KB: %s", text(rec))
			}
			rec = answered("openai.chat", End{}, piece{10, delta("a")}, piece{20, delta(strings.Repeat("x", 2<<20))}, piece{30, stop + usage + done})
			if rec.Output != call.Known(5) || len(rec.Degraded) != 1 || rec.Degraded[0] != call.EventTooLong || rec.Outcome != call.Completed {
				t.Errorf("2 MB: %s", text(rec))
			}
		},
		"21 the client leaves before the usage (litellm 14457, new-api 4463)": func(t *testing.T) {
			rec := answered("openai.chat", End{Cause: ClientLeft}, piece{10, delta("a")}, piece{20, delta("b")})
			if rec.Outcome != call.ClientGone || rec.Output.IsKnown() || rec.UsageSource != call.UsageNone || rec.ContentEvents != call.Known(2) {
				t.Errorf("no usage: %s", text(rec))
			}
			running := strings.Replace(delta("b"), "}\n\n", `,"usage":{"prompt_tokens":7,"completion_tokens":2}}`+"\n\n", 1)
			rec = answered("openai.chat", End{Cause: ClientLeft}, piece{10, delta("a")}, piece{20, running})
			if rec.Outcome != call.ClientGone || rec.Output != call.Known(2) || rec.UsageSource != call.UsagePartial || rec.TPOT.IsKnown() {
				t.Errorf("running usage: %s", text(rec))
			}
		},
		"23 usage beside a choice (litellm 36168)": func(t *testing.T) {
			last := strings.Replace(stop, "}\n\n", `,"usage":{"prompt_tokens":7,"completion_tokens":5}}`+"\n\n", 1)
			rec := answered("openai.chat", End{}, piece{10, delta("a")}, piece{20, last + done})
			if rec.Input != call.Known(7) || rec.Output != call.Known(5) || rec.UsageSource != call.UsageReported {
				t.Errorf("got %s", text(rec))
			}
		},
		"24 cumulative counts: the last value wins (tensorzero 5481, envoy-ai-gateway 2236)": func(t *testing.T) {
			rec := answered("anthropic.messages", End{},
				piece{50, event("message_start", `{"type":"message_start","message":{"id":"m","usage":{"input_tokens":3,"cache_read_input_tokens":100,"cache_creation_input_tokens":20,"output_tokens":1}}}`)},
				piece{100, event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`)},
				piece{110, event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":3,"cache_read_input_tokens":100,"cache_creation_input_tokens":20,"output_tokens":15}}`)},
				piece{120, event("message_stop", `{"type":"message_stop"}`)})
			want := call.Usage{Input: call.Known(123), Output: call.Known(15), Cached: call.Known(100), CacheWrite: call.Known(20)}
			if rec.Usage != want {
				t.Errorf("got %s", text(rec))
			}
		},
		"26 usage in every terminal event (new-api 7241, bifrost 4846)": func(t *testing.T) {
			for _, end := range []string{"completed", "incomplete"} {
				rec := answered("openai.responses", End{},
					piece{10, event("response.output_text.delta", `{"type":"response.output_text.delta","delta":"a"}`)},
					piece{20, event("response."+end, `{"type":"response.`+end+`","response":{"id":"r","status":"`+end+`","usage":{"input_tokens":4,"output_tokens":6}}}`)})
				if rec.Input != call.Known(4) || rec.Output != call.Known(6) || rec.Outcome != call.Completed || !rec.Terminated {
					t.Errorf("%s: %s", end, text(rec))
				}
			}
		},
		"27 an error as text is no output (new-api 5287)": func(t *testing.T) {
			for _, body := range []string{"upstream is out of quota\n", "data: upstream is out of quota\n\n", "<html>quota</html>"} {
				rec := answered("openai.chat", End{}, piece{10, body})
				if rec.Outcome == call.Completed || rec.Output.IsKnown() || rec.ContentEvents.Or(0) != 0 || rec.TTFT.IsKnown() {
					t.Errorf("%q: %s", body, text(rec))
				}
			}
		},
		"28 an error in a 200 stream (control-layer 1048)": func(t *testing.T) {
			rec := answered("openai.chat", End{}, piece{10, `data: {"error":{"message":"the prompt was: x","type":"server_error","code":503}}` + "\n\n"}, piece{20, done})
			if rec.Outcome != call.StreamError || rec.Error == "" || rec.Output.IsKnown() || rec.ContentEvents != call.Known(0) || strings.Contains(text(rec), "prompt was") {
				t.Errorf("got %s", text(rec))
			}
		},
		"30 a client that wants no usage is not blamed for a fault (headroom 2026)": func(t *testing.T) {
			rec := answered("openai.chat", End{UsageOnRequest: true}, piece{10, delta("a")}, piece{20, stop + done})
			if rec.Outcome != call.Completed || rec.UsageSource != call.UsageNone || len(rec.Degraded) != 1 || rec.Degraded[0] != call.UsageHidden {
				t.Errorf("got %s", text(rec))
			}
		},
	} {
		t.Run(name, run)
	}
}

// TestSumOfPhasesInEachCut: case 6's other half, a number once for each call:
// however often and wherever the answer pauses, the phases make up the call.
func TestSumOfPhasesInEachCut(t *testing.T) {
	body := role + delta("a") + delta("b") + stop + usage + done
	for i := range len(body) {
		m := New(dialect.ByName("openai.chat"), &call.Request{Stream: true})
		m.Header(200, stream("text/event-stream"))
		m.Write([]byte(body[:i]), at(10), at(13))
		m.Write([]byte(body[i:]), at(500), at(700))
		var rec call.Record
		m.Finish(&rec, End{At: time.Second, Status: 200, Instants: call.Instants{BodyRead: ms(1), Admitted: ms(2), Sent: ms(3), FirstByte: ms(9)}})
		if rec.Phases.Sum() != at(700) || rec.Phases.Delivery != ms(203) {
			t.Fatalf("cut at %d: %v in all, %v of delivery", i, rec.Phases.Sum(), rec.Phases.Delivery)
		}
	}
}
