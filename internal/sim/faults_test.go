package sim

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"
)

// events returns the data of each event in a stream.
func events(body string) (data []string) {
	for _, line := range strings.Split(body, "\n") {
		if d, ok := strings.CutPrefix(line, "data: "); ok {
			data = append(data, d)
		}
	}
	return data
}

// contents counts the events of a chat stream that carry text.
func contents(body string) (n int) {
	for _, d := range events(body) {
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if json.Unmarshal([]byte(d), &chunk) == nil && len(chunk.Choices) > 0 && chunk.Choices[0].Delta.Content != "" {
			n++
		}
	}
	return n
}

func TestFaultsInsteadOfAnAnswer(t *testing.T) {
	for _, tc := range []struct {
		fault, contentType string
		status             int
		retryAfter, body   string
	}{
		{"status:502", "application/json", 502, "", `"error"`},
		{"status:400", "application/json", 400, "", `"invalid_request_error"`},
		{"refuse:7", "application/json", 429, "7", `"rate_limit_error"`},
		{"html", "text/html; charset=utf-8", 200, "", "<p>"},
		{"empty", "text/event-stream; charset=utf-8", 200, "", ""},
		{"nonsense", "application/json", 400, "", "unknown kind"},
	} {
		t.Run(tc.fault, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, e *Engine) {
				begin := time.Now()
				c := send(t.Context(), e, chatPath, "a", tc.fault, chat("Hello", 5, ""))
				if c.status != tc.status || c.header.Get("Content-Type") != tc.contentType || c.header.Get("Retry-After") != tc.retryAfter {
					t.Errorf("got %d %v", c.status, c.header)
				}
				if !strings.Contains(c.body(), tc.body) || tc.body == "" && c.body() != "" {
					t.Errorf("got body %q", c.body())
				}
				wantAt(t, "answer", c.opened, begin)
				if got := truth(t, e, "a"); got.Status != tc.status || !got.Arrival.IsZero() {
					t.Errorf("truth %+v", got)
				}
			})
		})
	}
}

func TestFaultsInAStream(t *testing.T) {
	for _, tc := range []struct {
		fault    string
		contents int
		aborted  bool
		has, not string
	}{
		{"", 6, false, "[DONE]", `"error"`},
		{"error:3", 3, false, `{"error":`, "[DONE]"},
		{"error:0", 0, false, `{"error":`, "[DONE]"},
		{"error_done:3", 3, false, "[DONE]", `"usage"`},
		{"truncate:3", 3, false, `"content"`, "[DONE]"},
		{"truncate:0", 0, false, "", "[DONE]"},
		{"abort:3", 3, true, `"content"`, "[DONE]"},
		{"bad_json:3", 6, false, "\"delta\":{\"con\n", `"error"`},
		{"no_usage", 6, false, "[DONE]", `"usage"`},
		{"big_line:70000", 6, false, strings.Repeat("x", 70000), `"error"`},
	} {
		t.Run(tc.fault, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, e *Engine) {
				c := send(t.Context(), e, chatPath, "a", tc.fault, chat("Hello", 6, `,"stream_options":{"include_usage":true}`))
				body := c.body()
				if got := contents(body); got != tc.contents || c.aborted != tc.aborted || c.status != 200 {
					t.Errorf("%d events with text, aborted %v, status %d: want %d, %v, 200", got, c.aborted, c.status, tc.contents, tc.aborted)
				}
				if !strings.Contains(body, tc.has) || strings.Contains(body, tc.not) {
					t.Errorf("want %q and not %q in\n%.2000s", tc.has, tc.not, body)
				}
				got := truth(t, e, "a")
				if got.Faults != tc.fault || len(got.Sent) != tc.contents {
					t.Errorf("truth says fault %q, %d sent", got.Faults, len(got.Sent))
				}
				if broken := tc.contents < 6; got.Aborted != broken {
					t.Errorf("aborted %v, want %v: the slot of a stream that broke off is free", got.Aborted, broken)
				}
			})
		})
	}
}

func TestFaultsThatHang(t *testing.T) {
	for fault, want := range map[string]int{"hang": 0, "hang:2": 2} {
		for _, stream := range []string{"true", "false"} {
			inBubble(t, Config{}, func(t *testing.T, e *Engine) {
				begin := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				c := send(ctx, e, chatPath, "a", fault, strings.Replace(chat("Hello", 5, ""), "true", stream, 1))
				wantAt(t, fault+": end", time.Now(), begin.Add(time.Hour))
				if got := contents(c.body()); stream == "true" && got != want {
					t.Errorf("%s: %d events with text, want %d", fault, got, want)
				}
				if fault == "hang" && c.status != 0 {
					t.Errorf("hang sent headers: %d", c.status)
				}
			})
		}
	}
}

func TestFaultSlow(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, e *Engine) {
		send(t.Context(), e, chatPath, "a", "slow:100ms", chat("Hello", 4, ""))
		got := truth(t, e, "a")
		for i, at := range got.Sent {
			wantAt(t, "sending", at, got.FirstToken.Add(time.Duration(i+1)*100*time.Millisecond))
		}
		if decode, _ := got.Decode(); decode != 3*decodeCost(1) {
			t.Errorf("the engine itself took %v", decode)
		}
	})
}

func TestFaultGzip(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, e *Engine) {
		plain := send(t.Context(), e, chatPath, "a", "", chat("Hello", 4, ""))
		zipped := send(t.Context(), e, chatPath, "a", "gzip", chat("Hello", 4, ""))
		if zipped.header.Get("Content-Encoding") != "gzip" {
			t.Fatalf("headers %v", zipped.header)
		}
		if len(zipped.writes) < 2*len(plain.writes)-1 {
			t.Errorf("%d compressed writes for %d events: not flushed after each", len(zipped.writes), len(plain.writes))
		}
		r, err := gzip.NewReader(strings.NewReader(zipped.body()))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil || string(got) != plain.body() {
			t.Errorf("inflated (%v) to\n%s\nwant\n%s", err, got, plain.body())
		}
	})
}

func TestFaultsWithoutAStream(t *testing.T) {
	for _, tc := range []struct {
		fault   string
		aborted bool
		valid   bool
		has     string
	}{
		{"", false, true, `"usage"`},
		{"no_usage", false, true, `"choices"`},
		{"error:1", false, true, `"error"`},
		{"truncate:1", false, false, `"choices"`},
		{"bad_json:1", false, false, `"choices"`},
		{"abort:1", true, false, `"choices"`},
		{"big_line:70000", false, true, "xxx"},
	} {
		inBubble(t, Config{}, func(t *testing.T, e *Engine) {
			c := send(t.Context(), e, chatPath, "a", tc.fault, `{"max_tokens":5,"messages":[{"role":"user","content":"Hello"}]}`)
			if c.aborted != tc.aborted || json.Valid([]byte(c.body())) != tc.valid || !strings.Contains(c.body(), tc.has) {
				t.Errorf("%s: aborted %v, body %.300s", tc.fault, c.aborted, c.body())
			}
		})
	}
}

func TestFaultScript(t *testing.T) {
	inBubble(t, Config{Fault: "status:500", FaultScript: []string{"", "status:503"}}, func(t *testing.T, e *Engine) {
		for i, want := range []int{200, 503, 200, 503} {
			if c := send(t.Context(), e, chatPath, "", "", chat("Hello", 1, "")); c.status != want {
				t.Errorf("call %d: status %d, want %d", i, c.status, want)
			}
		}
	})
	inBubble(t, Config{Fault: "status:500"}, func(t *testing.T, e *Engine) {
		if c := send(t.Context(), e, chatPath, "", "", chat("Hello", 1, "")); c.status != 500 {
			t.Errorf("status %d, want 500", c.status)
		}
	})
}

func TestParseFaults(t *testing.T) {
	for _, k := range FaultKinds {
		f, err := ParseFaults(k.Kind)
		if err != nil || f.String() != k.Kind {
			t.Errorf("%q: %v, %v", k.Kind, f, err)
		}
	}
	if f, err := ParseFaults(" gzip , slow:50ms "); err != nil || !f.gzip || f.slow != 50*time.Millisecond {
		t.Errorf("list: %+v, %v", f, err)
	}
	for text, hint := range map[string]string{
		"boom":       "choose from",
		"status:200": "400 to 599",
		"abort:-1":   "no number",
		"slow:fast":  "slow:200ms",
		"html:3":     "takes no number",
		"error:x":    "no number",
		"hang:x":     "no number",
	} {
		if _, err := ParseFaults(text); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("%q: error %v, want one with %q", text, err, hint)
		}
	}
}

func FuzzParseFaults(f *testing.F) {
	for _, k := range FaultKinds {
		f.Add(k.Kind)
	}
	f.Add("gzip,slow:1ms,hang:3")
	f.Fuzz(func(t *testing.T, text string) {
		faults, err := ParseFaults(text)
		if err != nil {
			return
		}
		again, err := ParseFaults(faults.String())
		if err != nil || again != faults {
			t.Errorf("%q: %+v, then %+v (%v)", text, faults, again, err)
		}
	})
}

func TestErrorInEachAPIsOwnWords(t *testing.T) {
	for _, tc := range []struct {
		quirks           Quirks
		path, body, want string
	}{
		{VLLM, chatPath, `{"stream":true,"messages":[{"content":"Hello"}]}`, `data: {"error":{"message":"simulated fault","type":"internal_server_error","param":null,"code":500}}`},
		{LlamaCPP, chatPath, `{"stream":true,"messages":[{"content":"Hello"}]}`, `data: {"error":{"code":500,"message":"simulated fault","type":"internal_server_error"}}`},
		{VLLM, "/v1/completions", `{"stream":true,"prompt":"Hello"}`, `data: {"error":{"message":`},
		{VLLM, "/v1/responses", `{"stream":true,"input":"Hello"}`, "event: response.failed\n"},
		{VLLM, "/v1/messages", `{"stream":true,"messages":[{"content":"Hello"}]}`, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\""},
		{SGLang, "/generate", `{"stream":true,"text":"Hello"}`, `data: {"error":{"message":`},
		{LlamaCPP, "/completion", `{"stream":true,"prompt":"Hello"}`, `data: {"error":{"code":500,`},
	} {
		inBubble(t, Config{Quirks: tc.quirks}, func(t *testing.T, e *Engine) {
			for fault, done := range map[string]bool{"error:2": false, "error_done:2": true} {
				body := send(t.Context(), e, tc.path, "", fault, tc.body).body()
				at := strings.Index(body, tc.want)
				if at < 0 {
					t.Errorf("%s %s: no %q in\n%s", tc.quirks, tc.path, tc.want, body)
					continue
				}
				if strings.HasSuffix(body, "data: [DONE]\n\n") != done || strings.Contains(body[at:], `"usage":{`) {
					t.Errorf("%s %s: after the error comes\n%s", tc.path, fault, body[at:])
				}
			}
		})
	}
}
