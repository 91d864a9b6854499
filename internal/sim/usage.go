package sim

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// quote writes a JSON string.
func quote(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil { // a string always marshals
		return []byte(`""`)
	}
	return b
}

// event frames one server-sent event; a name of "" is none.
func event(name string, data []byte) []byte {
	var b []byte
	if name != "" {
		b = append(append(append(b, "event: "...), name...), '\n')
	}
	b = append(b, "data: "...)
	b = append(b, data...)
	return append(b, '\n', '\n')
}

var doneEvent = []byte("data: [DONE]\n\n")

// ms writes a duration as milliseconds, exact to the nanosecond.
func ms(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', -1, 64)
}

// sec writes a duration as seconds.
func sec(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

// stamp writes an instant as Unix seconds to the microsecond.
func stamp(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMicro())/1e6, 'f', 6, 64) }

// rate writes n per second of d, 0 when no time passed.
func rate(n int, d time.Duration) string {
	return strconv.FormatFloat(perSecond(n, d), 'f', -1, 64)
}

// openAIUsage is the usage object of the OpenAI chat and completions APIs.
func openAIUsage(t Truth) []byte {
	b := fmt.Appendf(nil, `{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}`,
		t.Input, t.Input+t.Output, t.Output, t.Cached)
	if t.Reasoning > 0 {
		b = fmt.Appendf(b, `,"completion_tokens_details":{"reasoning_tokens":%d}`, t.Reasoning)
	}
	return append(b, '}')
}

// figures is what the engine says of this very call beside its usage, as
// members to append to a JSON object; nothing when it says nothing.
func (x *exchange) figures(t Truth) []byte {
	switch {
	case x.cfg.Quirks == LlamaCPP:
		return append([]byte(`,"timings":`), timings(t)...)
	case x.cfg.Quirks == VLLM && x.cfg.PerRequestMetrics:
		return append([]byte(`,"metrics":`), vllmMetrics(t)...)
	}
	return nil
}

// vllmMetrics is the metrics object of vLLM. Its time_to_first_token_ms counts
// from scheduling. With several choices there is none.
func vllmMetrics(t Truth) []byte {
	decode, ok := t.Decode()
	if t.Choices != 1 || !ok {
		return []byte("null")
	}
	queue, _ := t.Queue()
	prefill, _ := t.Prefill()
	itl := "null"
	if t.Output > 1 {
		itl = ms(decode / time.Duration(t.Output-1))
	}
	return fmt.Appendf(nil, `{"time_to_first_token_ms":%s,"generation_time_ms":%s,"queue_time_ms":%s,"mean_itl_ms":%s,"tokens_per_second":%s}`,
		ms(prefill), ms(decode), ms(queue), itl, rate(t.Output, prefill+decode))
}

// timings is the timings object of llama.cpp's server. It knows no queue.
func timings(t Truth) []byte {
	prefill, _ := t.Prefill()
	decode, _ := t.Decode()
	part := func(name string, n int, d time.Duration) string {
		return fmt.Sprintf(`"%s_n":%d,"%s_ms":%s,"%s_per_token_ms":%s,"%s_per_second":%s`,
			name, n, name, ms(d), name, ms(d/time.Duration(max(n, 1))), name, rate(n, d))
	}
	return fmt.Appendf(nil, `{"cache_n":%d,%s,%s}`,
		t.Cached, part("prompt", t.Input-t.Cached, prefill), part("predicted", t.Output, decode))
}
