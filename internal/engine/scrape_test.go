package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/sim"
)

// serve answers every GET of /metrics with this text.
func serve(t *testing.T, text string, headers ...string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" || !strings.HasPrefix(r.Header.Get("Accept"), "text/plain") {
			t.Errorf("asked for %s as %q", r.URL, r.Header.Get("Accept"))
		}
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestScrape(t *testing.T) {
	n := exactly
	for _, tt := range []struct {
		name, text string
		headers    []string
		want       Counters
	}{
		{name: "vllm with two ranks", text: `
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.79611218e+09
# HELP vllm:prompt_tokens_total Number of prefill tokens processed.
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="a"} 1.234567e+06
vllm:prompt_tokens_total{engine="1",model_name="a"} 3.0
# TYPE vllm:prompt_tokens_created gauge
vllm:prompt_tokens_created{engine="0",model_name="a"} 1.79611219e+09
# TYPE vllm:prompt_tokens_cached_total counter
vllm:prompt_tokens_cached_total{engine="0",model_name="a"} 16.0
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="a"} 20.0
vllm:generation_tokens_total{engine="1",model_name="a"} 0.0
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finished_reason="stop"} 4.0
vllm:request_success_total{engine="0",finished_reason="length"} 2.0
vllm:request_success_total{engine="0",finished_reason="abort"} 1.0
vllm:request_success_total{engine="1",finished_reason="abort"} 2.0
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0"} 1.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0"} 2.0
`, want: Counters{Kind: VLLM, Prompt: n(1234570), Generated: n(20), Cached: n(16), Requests: n(9), Aborted: n(3), InFlight: n(3),
			Start: time.Unix(1796112180, 0).UTC()}},
		{name: "sglang, untyped, start by its counter", text: `
sglang:prompt_tokens_total{model_name="a"} 8128902.0
sglang:prompt_tokens_created{model_name="a"} 1.7961121805e+09
sglang:generation_tokens_total{model_name="a"} 7557572.0
sglang:cached_tokens_total{model_name="a",cache_source="device"} 10
sglang:cached_tokens_total{model_name="a",cache_source="host"} 5
sglang:num_requests_total{model_name="a"} 12
`, want: Counters{Kind: SGLang, Prompt: n(8128902), Generated: n(7557572), Cached: n(15), Requests: n(12),
			Start: time.UnixMilli(1796112180500).UTC()}},
		{name: "llama.cpp, small", headers: []string{"Process-Start-Time-Unix", "52260001443"}, text: `
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 999999
# TYPE llamacpp:tokens_predicted_total counter
llamacpp:tokens_predicted_total 0
# TYPE llamacpp:requests_processing gauge
llamacpp:requests_processing 0
# TYPE llamacpp:requests_deferred gauge
llamacpp:requests_deferred 0
`, want: Counters{Kind: LlamaCPP, Prompt: n(999999), Generated: n(0), InFlight: n(0), Process: "52260001443"}},
		{name: "llama.cpp, rounded to six digits", text: `
llamacpp:prompt_tokens_total 1.23457e+06
llamacpp:prompt_tokens_cached_total 2.5e+07
llamacpp:tokens_predicted_total 123456
`, want: Counters{Kind: LlamaCPP, Prompt: Figure{1234570, true, 5}, Cached: Figure{25000000, true, 50}, Generated: n(123456)}},
		{name: "llama.cpp that writes all digits", text: `
llamacpp:prompt_tokens_total 1234567
llamacpp:tokens_predicted_total 2000000
`, want: Counters{Kind: LlamaCPP, Prompt: n(1234567), Generated: n(2000000)}},
	} {
		got, err := Scrape(t.Context(), nil, serve(t, tt.text, tt.headers...))
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s:\n got %+v (%v)\nwant %+v", tt.name, got, err, tt.want)
		}
		// A snapshot keeps all of it.
		b, err := json.Marshal(got)
		var back Counters
		if err := errors.Join(err, json.Unmarshal(b, &back)); err != nil || !reflect.DeepEqual(back, got) {
			t.Errorf("%s: %s was read as %+v (%v)", tt.name, b, back, err)
		}
	}
}

func TestScrapeErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		text   string
		want   string
	}{
		"no engine":           {200, "# TYPE go_goroutines gauge\ngo_goroutines 7\n", "is this the engine's own address"},
		"empty":               {200, "", "is this the engine's own address"},
		"counters off":        {200, "vllm:num_requests_running 1\n", "metrics of vllm without its counters"},
		"no value":            {200, "# TYPE vllm:prompt_tokens_total counter\n# TYPE vllm:generation_tokens_total counter\nvllm:generation_tokens_total 1\n", "without its counters"},
		"two engines":         {200, "vllm:prompt_tokens_total 1\nvllm:generation_tokens_total 1\nsglang:prompt_tokens_total 1\nsglang:generation_tokens_total 1\n", "name the address of one engine"},
		"not switched on":     {501, `{"error":{}}`, "llama.cpp with --metrics"},
		"not found":           {404, "", "it answered 404 Not Found"},
		"a page":              {200, "<html>\n<body>", "not in Prometheus' text format"},
		"no name":             {200, "# TYPE vllm:prompt_tokens_total counter\n{} 1\n", "the parser failed on it"},
		"a fraction":          {200, "vllm:prompt_tokens_total 1.5\nvllm:generation_tokens_total 1\n", "vllm:prompt_tokens_total is 1.5, which is not a count"},
		"not a number":        {200, "vllm:prompt_tokens_total NaN\nvllm:generation_tokens_total 1\n", "not a count"},
		"negative":            {200, "vllm:prompt_tokens_total 1\nvllm:generation_tokens_total -1\n", "not a count"},
		"beyond exactness":    {200, "vllm:prompt_tokens_total 1e16\nvllm:generation_tokens_total 1\n", "not a count"},
		"a sum beyond it":     {200, "vllm:prompt_tokens_total{a=\"1\"} 9e15\nvllm:prompt_tokens_total{a=\"2\"} 9e15\nvllm:generation_tokens_total 1\n", "not a count"},
		"a histogram":         {200, "# TYPE vllm:prompt_tokens_total histogram\nvllm:prompt_tokens_total_sum 1\nvllm:generation_tokens_total 1\n", "not a count"},
		"longer than we read": {200, strings.Repeat("#", maxBody+1), "longer than 16 MiB"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tt.status)
			_, _ = io.WriteString(w, tt.text)
		}))
		_, err := Scrape(t.Context(), server.Client(), server.URL)
		server.Close()
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), server.URL+"/metrics") {
			t.Errorf("%s: error %v does not say %q", name, err, tt.want)
		}
	}
}

func TestAddresses(t *testing.T) {
	for in, want := range map[string]string{
		"http://127.0.0.1:8000":          "http://127.0.0.1:8000/metrics",
		"http://127.0.0.1:8000/":         "http://127.0.0.1:8000/metrics",
		"https://host/pool/v1":           "https://host/pool/metrics",
		"http://host:1/metrics":          "http://host:1/metrics",
		"http://host:1/a/metrics?x=1":    "http://host:1/a/metrics?x=1",
		"http://[::1]:8000":              "http://[::1]:8000/metrics",
		"127.0.0.1:8000":                 "",
		"localhost:8000":                 "",
		"ftp://host":                     "",
		"":                               "",
		"http://user:secret@host:port:1": "",
	} {
		u, err := metricsURL(in)
		if want == "" {
			if err == nil || strings.Contains(err.Error(), "secret") {
				t.Errorf("%q: %v, error %v", in, u, err)
			}
		} else if err != nil || u.String() != want {
			t.Errorf("%q: got %v (%v), want %s", in, u, err, want)
		}
	}
}

// TestErrorsHideSecrets: an address may hold a password or a key.
func TestErrorsHideSecrets(t *testing.T) {
	_, err := Scrape(t.Context(), nil, "http://user:hunter2@127.0.0.1:1?key=hunter3") // where nobody listens
	if err == nil || strings.Contains(err.Error(), "hunter") || !strings.Contains(err.Error(), "is it running") {
		t.Errorf("error %v", err)
	}
}

// stuck is an engine that does not answer.
type stuck struct{}

func (stuck) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestScrapeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := time.Now()
		_, err := Scrape(t.Context(), &http.Client{Transport: stuck{}}, "http://engine")
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(before) != timeout {
			t.Errorf("ended after %v with %v", time.Since(before), err)
		}
	})
}

func TestFigures(t *testing.T) {
	a, b := Figure{10, true, 2}, Figure{4, true, 1}
	if a.Plus(b) != (Figure{14, true, 3}) || a.Minus(b) != (Figure{6, true, 3}) {
		t.Errorf("%+v and %+v", a.Plus(b), a.Minus(b))
	}
	if a.Plus(Figure{}).Known || (Figure{}).Minus(a).Known || !(Figure{}).IsZero() || exactly(0).IsZero() {
		t.Error("unknown was taken for a figure")
	}
	for n, want := range map[int64]int64{0: 0, 999_999: 0, 1_000_000: 5, 9_999_990: 5, 10_000_000: 50, 1_234_560_000: 5_000} {
		if got := sixDigits(n); got != want {
			t.Errorf("%d is within %d, want %d", n, got, want)
		}
		// Whatever is printed with six digits is within that of what it was.
		for _, true_ := range []int64{n - want, n + want - 1} {
			var shown float64
			_, _ = fmt.Sscan(fmt.Sprintf("%.6g", float64(true_)), &shown)
			if off := int64(shown) - true_; off > sixDigits(int64(shown)) || -off > sixDigits(int64(shown)) {
				t.Errorf("%d is shown as %v", true_, shown)
			}
		}
	}
	for _, bad := range []string{`"1"`, `[1]`, `[1,-1]`, `{}`, `1.5`} {
		if err := new(Figure).UnmarshalJSON([]byte(bad)); err == nil {
			t.Errorf("%s was read as a figure", bad)
		}
	}
}

// TestSimulatedEngines: the counters of the three engines that are imitated
// are what really happened.
func TestSimulatedEngines(t *testing.T) {
	for quirks, kind := range map[sim.Quirks]Kind{sim.VLLM: VLLM, sim.SGLang: SGLang, sim.LlamaCPP: LlamaCPP} {
		e, err := sim.Start(sim.Config{Quirks: quirks, PrefillBase: sim.None, PrefillPerToken: sim.None, DecodeBase: sim.None, DecodePerSequence: sim.None})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(e)
		for range 3 {
			res, err := http.Post(server.URL+"/v1/chat/completions", "application/json",
				strings.NewReader(`{"max_tokens":7,"messages":[{"role":"user","content":"How wide is the river, and why does nobody swim in it, ever?"}]}`))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
		var input, cached, output int64
		for _, truth := range e.Truths() {
			input, cached, output = input+int64(truth.Input), cached+int64(truth.Cached), output+int64(truth.Output)
		}
		c, err := Scrape(t.Context(), server.Client(), server.URL)
		prompt := c.Prompt
		if c.Kind.CachedApart() {
			prompt = prompt.Plus(c.Cached)
		}
		if err != nil || c.Kind != kind || prompt != exactly(input) || c.Generated != exactly(output) || cached == 0 ||
			kind != VLLM && c.Cached != exactly(cached) || kind == VLLM && c.Requests != exactly(3) {
			t.Errorf("%s: %+v (%v), want %d prompt tokens, %d of them cached, %d generated", quirks, c, err, input, cached, output)
		}
		server.Close()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
