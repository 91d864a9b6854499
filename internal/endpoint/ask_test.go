package endpoint

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestAskBody(t *testing.T) {
	zero := 0.0
	extra := func(pairs ...string) map[string]json.RawMessage {
		m := map[string]json.RawMessage{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = raw(pairs[i+1])
		}
		return m
	}
	cases := []struct {
		ask  Ask
		want string
	}{
		{Ask{API: Chat, Model: "m", Prompt: "p"}, `{"messages":[{"role":"user","content":"p"}],"model":"m","stream":false}`},
		{Ask{API: Chat, Prompt: "<p> & \"q\""}, `{"messages":[{"role":"user","content":"<p> & \"q\""}],"stream":false}`},
		{Ask{API: Chat, Model: "m", System: "s", Prompt: "p", Stream: true, Usage: true, MaxTokens: 5, IgnoreEOS: true, Temperature: &zero},
			`{"ignore_eos":true,"max_tokens":5,"messages":[{"role":"system","content":"s"},{"role":"user","content":"p"}],"model":"m","stream":true,"stream_options":{"include_usage":true},"temperature":0}`},
		{Ask{API: Chat, Model: "m", Prompt: "p", Usage: true}, `{"messages":[{"role":"user","content":"p"}],"model":"m","stream":false}`},
		{Ask{API: Chat, Model: "m", Prompt: "p", MaxTokens: 5, Extra: extra("max_tokens", "null", "max_completion_tokens", "5", "seed", "1", "model", `"n"`)},
			`{"max_completion_tokens":5,"messages":[{"role":"user","content":"p"}],"model":"n","seed":1,"stream":false}`},
		{Ask{API: Completions, Model: "m", Prompt: "p", MaxTokens: 5, Stream: true, Usage: true}, `{"max_tokens":5,"model":"m","prompt":"p","stream":true,"stream_options":{"include_usage":true}}`},
		{Ask{API: Completions, Model: "m", System: "s", Prompt: "p"}, `{"model":"m","prompt":"s\n\np","stream":false}`},
		{Ask{API: Responses, Model: "m", System: "s", Prompt: "p", MaxTokens: 5, Stream: true, Usage: true}, `{"input":"p","instructions":"s","max_output_tokens":5,"model":"m","stream":true}`},
		{Ask{API: Messages, Model: "m", System: "s", Prompt: "p", Stream: true, Usage: true}, `{"max_tokens":1024,"messages":[{"role":"user","content":"p"}],"model":"m","stream":true,"system":"s"}`},
		{Ask{API: Messages, Model: "m", Prompt: "p", MaxTokens: 7}, `{"max_tokens":7,"messages":[{"role":"user","content":"p"}],"model":"m","stream":false}`},
	}
	for _, c := range cases {
		for range 3 { // maps have no order of their own
			got, err := c.ask.Body()
			if err != nil || string(got) != c.want {
				t.Errorf("%+v:\n%s, %v, want\n%s", c.ask, got, err, c.want)
			}
		}
	}
}

func TestAskBodyRefuses(t *testing.T) {
	nan, cold := math.NaN(), -1.0
	cases := []struct {
		ask  Ask
		hint string
	}{
		{Ask{}, "choose from chat"},
		{Ask{API: "x"}, "choose from chat"},
		{Ask{API: Chat, MaxTokens: -1}, "1 or more"},
		{Ask{API: Chat, IgnoreEOS: true}, "needs max_tokens"},
		{Ask{API: Chat, Temperature: &nan}, "0 or more"},
		{Ask{API: Chat, Temperature: &cold}, "0 or more"},
		{Ask{API: Chat, Extra: map[string]json.RawMessage{"reasoning_effort": raw("high")}}, "quote a text"},
	}
	for _, c := range cases {
		if got, err := c.ask.Body(); err == nil || !strings.Contains(err.Error(), c.hint) {
			t.Errorf("%+v: %s, %v, want something of %q", c.ask, got, err, c.hint)
		}
	}
}

func TestNearest(t *testing.T) {
	list := []string{"meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.3-70B-Instruct", "gpt-4o", "gpt-4o-mini", "Qwen/Qwen2.5-7B-Instruct"}
	cases := []struct {
		name string
		n    int
		want string
	}{
		{"gpt-4", 2, "gpt-4o gpt-4o-mini"},
		{"GPT-4O", 1, "gpt-4o"},
		{"llama-3.1-8b-instruct", 1, "meta-llama/Llama-3.1-8B-Instruct"},
		{"meta-llama/Llama-3-8B-Instruct", 2, "meta-llama/Llama-3.1-8B-Instruct meta-llama/Llama-3.3-70B-Instruct"},
		{"qwen2.5-7b", 1, "Qwen/Qwen2.5-7B-Instruct"},
		{"llama", 5, "meta-llama/Llama-3.1-8B-Instruct meta-llama/Llama-3.3-70B-Instruct"},
		{"zzzzzzzzzzzz", 3, ""},
		{"", 3, ""},
		{"gpt-4", 0, ""},
		{"gpt-4", -1, ""},
	}
	for _, c := range cases {
		if got := strings.Join(Nearest(c.name, list, c.n), " "); got != c.want {
			t.Errorf("%q: %q, want %q", c.name, got, c.want)
		}
	}
	if got := Nearest("x", nil, 3); len(got) != 0 {
		t.Errorf("of nothing: %q", got)
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
