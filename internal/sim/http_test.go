package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files anew")

const weatherTool = `{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"city":{},"unit":{}}}}}`

// goldenCalls are the requests whose answers are kept in testdata, one file
// for each engine imitated.
var goldenCalls = []struct{ path, body string }{
	{chatPath, `{"stream":true,"max_tokens":2,"stream_options":{"include_usage":true},"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"Hello"},{"type":"image_url","image_url":{"url":"data:,"}}]}]}`},
	{chatPath, `{"stream":true,"max_tokens":1,"messages":[{"role":"user","content":"Hello"}]}`},
	{chatPath, `{"stream":true,"max_tokens":10,"reasoning_effort":"low","stream_options":{"include_usage":true,"continuous_usage_stats":true},"messages":[{"role":"user","content":"Think"}]}`},
	{chatPath, `{"stream":true,"tools":[` + weatherTool + `],"messages":[{"role":"user","content":"Rain?"}]}`},
	{chatPath, `{"max_tokens":2,"n":2,"messages":[{"role":"user","content":"Hello"}]}`},
	{chatPath, `{"tools":[` + weatherTool + `],"tool_choice":{"type":"function","function":{"name":"weather"}},"messages":[{"role":"user","content":"Rain?"}]}`},
	{"/v1/completions", `{"model":"other","stream":true,"max_tokens":2,"n":2,"echo":true,"prompt":"Once"}`},
	{"/v1/completions", `{"max_tokens":2,"prompt":["Once",  "Twice"]}`},
	{"/v1/responses", `{"stream":true,"max_output_tokens":2,"input":"Hello"}`},
	{"/v1/responses", `{"stream":true,"input":[{"type":"message","role":"user","content":"Rain?"}],"tools":[{"type":"function","name":"weather","parameters":{"properties":{"city":{}}}}]}`},
	{"/v1/responses", `{"max_output_tokens":2,"input":"Hello"}`},
	{"/v1/messages", `{"stream":true,"max_tokens":2,"messages":[{"role":"user","content":"Hello"}]}`},
	{"/v1/messages", `{"stream":true,"max_tokens":90,"thinking":{"type":"enabled"},"messages":[{"role":"user","content":"Rain?"}],"tools":[{"name":"weather","input_schema":{"properties":{"city":{}}}}]}`},
	{"/v1/messages", `{"max_tokens":2,"messages":[{"role":"user","content":"Hello"}]}`},
	{"/v1/embeddings", `{"input":["Hello",[7,8,9]]}`},
	{"/v1/embeddings", `{"input":["Hello","you"]}`},
	{"/generate", `{"stream":true,"text":"Hello","sampling_params":{"max_new_tokens":2}}`},
	{"/generate", `{"input_ids":[5,6,7],"sampling_params":{"max_new_tokens":2}}`},
	{"/completion", `{"stream":true,"prompt":"Hello","n_predict":2}`},
	{"/completion", `{"prompt":"Hello","n_predict":2}`},
	{chatPath, `{"messages":[]}`},
	{chatPath, `{"messages":`},
	{"/v1/messages", `{"max_tokens":-1,"messages":[{"role":"user","content":"Hello"}]}`},
}

func TestGoldenAnswers(t *testing.T) {
	for _, quirks := range []Quirks{VLLM, SGLang, LlamaCPP} {
		inBubble(t, Config{Quirks: quirks, PerRequestMetrics: true}, func(t *testing.T, e *Engine) {
			var got bytes.Buffer
			for _, call := range goldenCalls {
				c := send(t.Context(), e, call.path, "", "", call.body)
				fmt.Fprintf(&got, "### POST %s %s\n### %d %s\n", call.path, call.body, c.status, c.header.Get("Content-Type"))
				for _, w := range c.writes {
					fmt.Fprintf(&got, "--- at %v\n%s", w.at.Sub(e.started), w.data)
					if !strings.HasSuffix(w.data, "\n") {
						got.WriteByte('\n')
					}
				}
			}
			name := filepath.Join("testdata", string(quirks)+".golden")
			if *update {
				if err := os.WriteFile(name, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			g, w := lines(got.String()), lines(string(want))
			for i := range min(len(g), len(w)) {
				if !bytes.Equal(g[i], w[i]) {
					t.Fatalf("%s line %d:\ngot  %s\nwant %s", name, i+1, g[i], w[i])
				}
			}
			if len(g) != len(w) {
				t.Errorf("%s: got %d lines, want %d", name, len(g), len(w))
			}
		})
	}
}

// TestEveryEventIsJSON reads all events of all streams.
func TestEveryEventIsJSON(t *testing.T) {
	for _, quirks := range []Quirks{VLLM, SGLang, LlamaCPP} {
		inBubble(t, Config{Quirks: quirks, Reasoning: true, StreamInterval: 3}, func(t *testing.T, e *Engine) {
			for _, call := range goldenCalls {
				c := send(t.Context(), e, call.path, "", "", call.body)
				data := events(c.body())
				if len(data) == 0 {
					data = []string{c.body()}
				}
				for _, d := range data {
					if d != "[DONE]" && !json.Valid([]byte(d)) {
						t.Errorf("%s %s: not JSON: %s", quirks, call.path, d)
					}
				}
			}
		})
	}
}

// TestStreamAndWholeAgree asks for the same answer both ways, over each API.
func TestStreamAndWholeAgree(t *testing.T) {
	for _, tc := range []struct {
		path, body string
		text       func(event map[string]any) string
		whole      func(answer map[string]any) string
	}{
		{chatPath, `{"messages":[{"role":"user","content":"Hello"}]`,
			func(m map[string]any) string { return dig(m, "choices", 0, "delta", "content") },
			func(m map[string]any) string { return dig(m, "choices", 0, "message", "content") }},
		{"/v1/completions", `{"prompt":"Hello","max_tokens":50`,
			func(m map[string]any) string { return dig(m, "choices", 0, "text") },
			func(m map[string]any) string { return dig(m, "choices", 0, "text") }},
		{"/v1/responses", `{"input":"Hello"`,
			func(m map[string]any) string {
				if m["type"] != "response.output_text.delta" {
					return ""
				}
				return dig(m, "delta")
			},
			func(m map[string]any) string { return dig(m, "output", 0, "content", 0, "text") }},
		{"/v1/messages", `{"messages":[{"role":"user","content":"Hello"}]`,
			func(m map[string]any) string { return dig(m, "delta", "text") },
			func(m map[string]any) string { return dig(m, "content", 0, "text") }},
		{"/completion", `{"prompt":"Hello"`,
			func(m map[string]any) string { return dig(m, "content") },
			func(m map[string]any) string { return dig(m, "content") }},
	} {
		for _, cfg := range []Config{{}, {StreamInterval: 4}, {Quirks: SGLang}, {Quirks: LlamaCPP, PingInterval: 10 * time.Millisecond}} {
			inBubble(t, cfg, func(t *testing.T, e *Engine) {
				streamed := ""
				for _, d := range events(send(t.Context(), e, tc.path, "", "", tc.body+`,"stream":true}`).body()) {
					var m map[string]any
					if json.Unmarshal([]byte(d), &m) == nil {
						streamed += tc.text(m)
					}
				}
				var m map[string]any
				if err := json.Unmarshal([]byte(send(t.Context(), e, tc.path, "", "", tc.body+"}").body()), &m); err != nil {
					t.Fatal(err)
				}
				if whole := tc.whole(m); whole == "" || streamed != whole {
					t.Errorf("%s %s: streamed %q, whole %q", e.Config().Quirks, tc.path, streamed, whole)
				}
			})
		}
	}
}

// dig follows keys and indexes into decoded JSON to a string; "" when it is not there.
func dig(v any, path ...any) string {
	for _, key := range path {
		switch key := key.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[key]
		case int:
			l, _ := v.([]any)
			if key >= len(l) {
				return ""
			}
			v = l[key]
		}
	}
	s, _ := v.(string)
	return s
}

func TestHeadersAndPings(t *testing.T) {
	for _, tc := range []struct {
		cfg           Config
		opened, pings int // when the headers come, and how many pings
	}{
		{Config{Quirks: VLLM}, 1, 0},
		{Config{Quirks: VLLM, PingInterval: 20 * time.Millisecond}, 1, 8},
		{Config{Quirks: LlamaCPP, PingInterval: 20 * time.Millisecond}, 120, 3},
	} {
		tc.cfg.Slots, tc.cfg.PrefillPerToken, tc.cfg.DecodePerSequence = 1, None, None
		tc.cfg.DecodeBase = 14 * time.Millisecond
		inBubble(t, tc.cfg, func(t *testing.T, e *Engine) {
			begin := time.Now()
			var c *client
			together(
				func() { send(t.Context(), e, chatPath, "", "", chat("first", 6, "")) },
				func() {
					time.Sleep(time.Millisecond)
					c = send(t.Context(), e, chatPath, "a", "", chat("second", 3, ""))
				},
			)
			// The first call holds the only slot for 50 + 5 * 14 = 120 ms.
			want := begin.Add(time.Duration(tc.opened) * time.Millisecond)
			if tc.cfg.Quirks == LlamaCPP {
				wantAt(t, "scheduling", truth(t, e, "a").Scheduled, want)
				want = want.Add(settling)
			}
			wantAt(t, string(tc.cfg.Quirks)+": headers", c.opened, want)
			pings := 0
			for _, w := range c.writes {
				if strings.HasPrefix(w.data, ":") {
					pings++
				}
			}
			if pings != tc.pings {
				t.Errorf("%s: %d pings, want %d", tc.cfg.Quirks, pings, tc.pings)
			}
		})
	}
}

func TestEarlyRole(t *testing.T) {
	inBubble(t, Config{EarlyRole: true}, func(t *testing.T, e *Engine) {
		begin := time.Now()
		c := send(t.Context(), e, chatPath, "a", "", chat("Hello", 2, ""))
		wantAt(t, "role chunk", c.writes[0].at, begin)
		wantAt(t, "first text", c.writes[1].at, truth(t, e, "a").FirstToken)
	})
}

func TestStreamInterval(t *testing.T) {
	inBubble(t, Config{StreamInterval: 4}, func(t *testing.T, e *Engine) {
		send(t.Context(), e, chatPath, "a", "", chat("Hello", 10, ""))
		got := truth(t, e, "a")
		// The first token alone, then four by four, then the rest.
		for i, token := range []int{0, 4, 8, 9} {
			wantAt(t, fmt.Sprint("chunk ", i), got.Sent[i], got.Tokens[token])
		}
		if len(got.Sent) != 4 {
			t.Errorf("%d chunks, want 4", len(got.Sent))
		}
	})
}

func TestStopString(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, e *Engine) {
		body := `{"stream":true,"ignore_eos":true,"max_tokens":60,"prompt":"Hello"%s}`
		text := func(id, more string) (text string) {
			for _, d := range events(send(t.Context(), e, "/v1/completions", id, "", fmt.Sprintf(body, more)).body()) {
				var m map[string]any
				if json.Unmarshal([]byte(d), &m) == nil {
					text += dig(m, "choices", 0, "text")
				}
			}
			return text
		}
		whole := text("whole", "")
		at := strings.Index(whole, ". ")
		if at < 0 {
			t.Fatalf("no sentence ends in %q", whole)
		}
		stop := whole[at-3 : at+3] // over the edges of tokens
		got := text("cut", fmt.Sprintf(`,"stop":[%q,"never"]`, stop))
		if want := whole[:strings.Index(whole, stop)]; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if tr := truth(t, e, "cut"); tr.Finish != "stop" || tr.Output >= 60 {
			t.Errorf("truth %+v", tr)
		}
	})
}

func TestToolAnswerEndsTheRound(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, e *Engine) {
		c := send(t.Context(), e, chatPath, "", "", `{"tools":[`+weatherTool+`],"messages":[{"role":"user","content":"Rain?"},{"role":"assistant","tool_calls":[{"id":"x"}]},{"role":"tool","content":"Yes"}]}`)
		if strings.Contains(c.body(), "tool_calls") {
			t.Errorf("calls a tool again after its answer: %s", c.body())
		}
	})
}

func TestPlainEndpoints(t *testing.T) {
	inBubble(t, Config{Model: "m1"}, func(t *testing.T, e *Engine) {
		for path, want := range map[string]string{"/v1/models": `"id":"m1"`, "/health": "", "/version": `"version"`} {
			w := httptest.NewRecorder()
			e.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
			if w.Code != 200 || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		}
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequest("GET", "/nowhere", nil))
		if w.Code != 404 {
			t.Errorf("/nowhere: %d", w.Code)
		}
	})
}

func TestRequestsThatCannotBe(t *testing.T) {
	inBubble(t, Config{ModelLen: 100}, func(t *testing.T, e *Engine) {
		for body, hint := range map[string]string{
			chat(strings.Repeat("long ", 200), 1, ""): "context is 100",
			chat("x", 1, `,"n":1000`):                 "n is 1000",
			chat("x", 1, `,"n":-1`):                   "n is -1",
			chat("x", -5, ""):                         "max_tokens is -5",
			chat("x", 1, `,"min_tokens":-1`):          "min_tokens is -1",
			`{"messages":[{"content":5}]}`:            "neither a string nor a list",
			`{"messages":[{"content":[5]}]}`:          "not an object",
			chat("x", 1, `,"tool_choice":5`):          "tool_choice",
			`[]`:                                      "read the request",
		} {
			c := send(t.Context(), e, chatPath, "", "", body)
			if c.status != 400 || !strings.Contains(c.body(), hint) {
				t.Errorf("%.80s: %d %s, want 400 and %q", body, c.status, c.body(), hint)
			}
		}
		if c := send(t.Context(), e, "/v1/completions", "", "", `{"prompt":{}}`); c.status != 400 {
			t.Errorf("prompt of a wrong kind: %d", c.status)
		}
		huge := send(t.Context(), e, chatPath, "", "", strings.Repeat(" ", maxBody+1))
		if huge.status != 413 {
			t.Errorf("a body of %d bytes: %d, want 413", maxBody+1, huge.status)
		}
	})
}

func TestTruthsAreBounded(t *testing.T) {
	inBubble(t, Config{Truths: 3}, func(t *testing.T, e *Engine) {
		for i := range 20 {
			send(t.Context(), e, chatPath, fmt.Sprint("r", i), "", chat("Hello", 1, ""))
		}
		all := e.Truths()
		if len(all) != 3 || all[0].RequestID != "r17" || all[2].RequestID != "r19" {
			t.Errorf("kept %d, first %q", len(all), all[0].RequestID)
		}
		if _, ok := e.Truth("r16"); ok {
			t.Error("an old call is still known")
		}
		if len(e.history.byID) != 6 || len(e.repeats) > 12 {
			t.Errorf("%d ids and %d repeats are kept", len(e.history.byID), len(e.repeats))
		}
	})
}

func TestTruthOfACallUnderWay(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, e *Engine) {
		ctx, cancel := context.WithCancel(t.Context())
		together(
			func() { send(ctx, e, chatPath, "a", "", chat("Hello", 100, "")) },
			func() {
				time.Sleep(100 * time.Millisecond)
				got := truth(t, e, "a")
				if got.Output == 0 || !got.End.IsZero() || got.Aborted {
					t.Errorf("truth under way %+v", got)
				}
				cancel()
			},
		)
		if got := truth(t, e, "a"); !got.Aborted {
			t.Errorf("truth %+v", got)
		}
	})
}

func FuzzRequests(f *testing.F) {
	cfg := Config{ModelLen: 256}.withDefaults()
	apis := []*api{&chatAPI, &completionsAPI, &responsesAPI, &messagesAPI, &embeddingsAPI, &sglangAPI, &llamaAPI}
	for _, call := range goldenCalls {
		f.Add(call.body)
	}
	f.Add(`{"messages":[{"content":[{"type":"tool_result","content":[{"type":"text","text":"x"}]}]}],"stop":["a",""]}`)
	f.Fuzz(func(t *testing.T, body string) {
		for _, a := range apis {
			ask, err := a.parse(&cfg, []byte(body))
			if err != nil || ask.check(&cfg) != nil {
				continue
			}
			for _, p := range ask.prompts {
				if len(p) == 0 || len(p) > cfg.ModelLen {
					t.Fatalf("a prompt of %d tokens", len(p))
				}
				if ask.embed {
					continue
				}
				room := cfg.ModelLen - len(p)
				plan := planAnswer(&cfg, ask, 1, room)
				if plan.length < 1 || plan.length > room || plan.reasoning > plan.length {
					t.Fatalf("plans %d tokens, %d reasoning, with room for %d", plan.length, plan.reasoning, room)
				}
				for i := range plan.length {
					plan.at(i)
				}
			}
		}
	})
}
