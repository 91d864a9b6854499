package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http/httptest"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// scrape reads the engine's metrics with Prometheus' own parser.
func scrape(t *testing.T, e *Engine) map[string]*dto.MetricFamily {
	t.Helper()
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(w.Body.Bytes()))
	if err != nil {
		t.Fatalf("%v in\n%s", err, w.Body)
	}
	return families
}

// value returns a counter or gauge; label chooses among several.
func value(t *testing.T, families map[string]*dto.MetricFamily, name, label string) float64 {
	t.Helper()
	if families[name] == nil {
		t.Fatalf("no metric %s", name)
	}
	for _, m := range families[name].Metric {
		for _, l := range m.Label {
			if label == "" || l.GetValue() == label {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
		if label == "" {
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	t.Fatalf("no metric %s with label %s", name, label)
	return 0
}

func TestMetricsAddUp(t *testing.T) {
	inBubble(t, Config{Slots: 2}, func(t *testing.T, e *Engine) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		together(
			func() { send(t.Context(), e, chatPath, "a", "", chat("How wide is the river?", 20, "")) },
			func() { send(ctx, e, chatPath, "b", "", chat("How wide is the river?", 2000, "")) },
			func() {
				time.Sleep(time.Millisecond)
				send(t.Context(), e, chatPath, "c", "", `{"messages":[{"role":"user","content":"How wide is the river, and where does it end?"}]}`)
			},
			func() {
				time.Sleep(100 * time.Millisecond)
				m := scrape(t, e)
				for name, want := range map[string]float64{"vllm:num_requests_running": 2, "vllm:num_requests_waiting": 1} {
					if got := value(t, m, name, ""); got != want {
						t.Errorf("%s is %v, want %v", name, got, want)
					}
				}
				if got := value(t, m, "vllm:kv_cache_usage_perc", ""); got <= 0 || got > 1 {
					t.Errorf("KV usage is %v", got)
				}
			},
		)
		m := scrape(t, e)
		var input, output, cached float64
		var queue, prefill time.Duration
		for _, got := range e.Truths() {
			input += float64(got.Input)
			output += float64(got.Output)
			cached += float64(got.Cached)
			if !got.Aborted {
				q, _ := got.Queue()
				p, _ := got.Prefill()
				queue, prefill = queue+q, prefill+p
			}
		}
		for _, tc := range []struct {
			name, label string
			want        float64
		}{
			{"vllm:prompt_tokens_total", "", input},
			{"vllm:generation_tokens_total", "", output},
			{"vllm:prefix_cache_queries_total", "", input},
			{"vllm:prefix_cache_hits_total", "", cached},
			{"vllm:num_preemptions_total", "", 0},
			{"vllm:num_requests_running", "", 0},
			{"vllm:num_requests_waiting", "", 0},
			{"vllm:kv_cache_usage_perc", "", 0},
			{"vllm:request_success_total", "stop", 1},
			{"vllm:request_success_total", "length", 1},
			{"vllm:request_success_total", "abort", 1},
		} {
			if got := value(t, m, tc.name, tc.label); got != tc.want {
				t.Errorf("%s %s is %v, want %v", tc.name, tc.label, got, tc.want)
			}
		}
		for name, want := range map[string]time.Duration{
			"vllm:request_queue_time_seconds": queue, "vllm:request_prefill_time_seconds": prefill,
		} {
			h := m[name].Metric[0].GetHistogram()
			if h.GetSampleCount() != 2 || math.Abs(h.GetSampleSum()-want.Seconds()) > 1e-9 {
				t.Errorf("%s: %d samples, sum %v, want 2 and %v", name, h.GetSampleCount(), h.GetSampleSum(), want.Seconds())
			}
		}
	})
}

func TestMetricNamesByQuirks(t *testing.T) {
	for quirks, names := range map[Quirks][]string{
		SGLang: {"sglang:num_running_reqs", "sglang:num_queue_reqs", "sglang:token_usage", "sglang:gen_throughput",
			"sglang:prompt_tokens_total", "sglang:generation_tokens_total", "sglang:cached_tokens_total"},
		LlamaCPP: {"llamacpp:requests_processing", "llamacpp:requests_deferred",
			"llamacpp:prompt_tokens_total", "llamacpp:tokens_predicted_total"},
	} {
		inBubble(t, Config{Quirks: quirks}, func(t *testing.T, e *Engine) {
			send(t.Context(), e, chatPath, "a", "", chat("Hello", 3, ""))
			m := scrape(t, e)
			for _, name := range names {
				value(t, m, name, "")
			}
			got := truth(t, e, "a")
			if v := value(t, m, names[0][:len(quirks)]+":prompt_tokens_total", ""); v != float64(got.Input) {
				t.Errorf("%s: %v prompt tokens, want %d", quirks, v, got.Input)
			}
		})
	}
}

// exactly reads a JSON number of some unit as a duration.
func exactly(n float64, unit time.Duration) time.Duration {
	return time.Duration(math.Round(n * float64(unit)))
}

// TestOwnFiguresAreTheTruth reads what each engine says of a call that queued.
func TestOwnFiguresAreTheTruth(t *testing.T) {
	type figures struct {
		Metrics *struct {
			First float64 `json:"time_to_first_token_ms"`
			Queue float64 `json:"queue_time_ms"`
			Gen   float64 `json:"generation_time_ms"`
		} `json:"metrics"`
		Timings *struct {
			Prompt    float64 `json:"prompt_ms"`
			Predicted float64 `json:"predicted_ms"`
			N         int     `json:"predicted_n"`
		} `json:"timings"`
		Meta *struct {
			Queue float64 `json:"queue_time"`
			E2E   float64 `json:"e2e_latency"`
			N     int     `json:"completion_tokens"`
		} `json:"meta_info"`
		Response *struct {
			Metrics json.RawMessage `json:"metrics"`
		} `json:"response"`
	}
	for _, tc := range []struct {
		quirks     Quirks
		path, body string
	}{
		{VLLM, chatPath, chat("Hello", 7, `,"stream_options":{"include_usage":true}`)},
		{VLLM, "/v1/completions", `{"prompt":"Hello","max_tokens":7}`},
		{VLLM, "/v1/responses", `{"input":"Hello","stream":true,"max_output_tokens":7}`},
		{LlamaCPP, chatPath, chat("Hello", 7, `,"stream_options":{"include_usage":true}`)},
		{LlamaCPP, chatPath, chat("Hello", 7, "")},
		{LlamaCPP, "/completion", `{"prompt":"Hello","stream":true,"n_predict":7}`},
		{LlamaCPP, "/v1/responses", `{"input":"Hello","stream":true,"max_output_tokens":7}`},
		{SGLang, "/generate", `{"text":"Hello","stream":true,"sampling_params":{"max_new_tokens":7}}`},
		{SGLang, "/generate", `{"text":"Hello","sampling_params":{"max_new_tokens":7}}`},
	} {
		t.Run(fmt.Sprint(tc.quirks, tc.path), func(t *testing.T) {
			inBubble(t, Config{Quirks: tc.quirks, Slots: 1, PerRequestMetrics: true}, func(t *testing.T, e *Engine) {
				var c *client
				together(
					func() { send(t.Context(), e, chatPath, "", "", chat("Go first", 5, "")) },
					func() {
						time.Sleep(time.Millisecond)
						c = send(t.Context(), e, tc.path, "a", "", tc.body)
					},
				)
				got := truth(t, e, "a")
				queue, _ := got.Queue()
				prefill, _ := got.Prefill()
				decode, _ := got.Decode()
				if queue == 0 || prefill == 0 || decode != 6*decodeCost(1) {
					t.Fatalf("queue %v, prefill %v, decode %v: the test is too tame", queue, prefill, decode)
				}
				data := append(events(c.body()), c.body())
				found := false
				for _, d := range data {
					var f figures
					if json.Unmarshal([]byte(d), &f) != nil {
						continue
					}
					if f.Response != nil && f.Response.Metrics != nil {
						if err := json.Unmarshal(f.Response.Metrics, &f.Metrics); err != nil {
							t.Fatal(err)
						}
					}
					switch {
					case f.Metrics != nil:
						found = true
						if exactly(f.Metrics.First, time.Millisecond) != prefill || exactly(f.Metrics.Queue, time.Millisecond) != queue || exactly(f.Metrics.Gen, time.Millisecond) != decode {
							t.Errorf("metrics %+v, truth queue %v, prefill %v, decode %v", *f.Metrics, queue, prefill, decode)
						}
					case f.Timings != nil:
						found = true
						if exactly(f.Timings.Prompt, time.Millisecond) != prefill || exactly(f.Timings.Predicted, time.Millisecond) != decode || f.Timings.N != 7 {
							t.Errorf("timings %+v, truth prefill %v, decode %v", *f.Timings, prefill, decode)
						}
					case f.Meta != nil && f.Meta.E2E > 0:
						found = true
						if exactly(f.Meta.Queue, time.Second) != queue || exactly(f.Meta.E2E, time.Second) != queue+prefill+decode || f.Meta.N != 7 {
							t.Errorf("meta_info %+v, truth queue %v, prefill %v, decode %v", *f.Meta, queue, prefill, decode)
						}
					}
				}
				if !found {
					t.Errorf("no figures in\n%s", c.body())
				}
			})
		})
	}
}

func TestNoFiguresForSeveralChoices(t *testing.T) {
	inBubble(t, Config{PerRequestMetrics: true}, func(t *testing.T, e *Engine) {
		c := send(t.Context(), e, chatPath, "a", "", chat("Hello", 3, `,"n":2,"stream_options":{"include_usage":true}`))
		c.first(t, `"metrics":null`)
		if got := truth(t, e, "a"); got.Choices != 2 || got.Output != 6 || len(got.Tokens) != 6 {
			t.Errorf("truth %+v", got)
		}
	})
}
