package engine

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// Kind is an engine, or rather a family of metric names.
type Kind string

const (
	VLLM     Kind = "vllm"
	SGLang   Kind = "sglang"
	LlamaCPP Kind = "llamacpp"
)

// CachedApart tells whether the engine counts prompt tokens that it took from
// its cache apart from those that it computed. vLLM and SGLang count whole
// prompts; llama.cpp adds slot.n_prompt_tokens_processed, which leaves out what
// the cache gave.
func (k Kind) CachedApart() bool { return k == LlamaCPP }

// CountsAborted says what the engine's counter of generated tokens does with a
// call that ended early.
//
// vLLM adds tokens step by step, so that those of an aborted call count. SGLang
// and llama.cpp add them when a call finishes: of one that was aborted they may
// count all, some or none, by version.
func (k Kind) CountsAborted() bool { return k == VLLM }

// Counters are an engine's totals since its start, over all models and ranks
// that it shows. A figure that it does not show is unknown.
//
// The figures are exact with one exception: llama.cpp writes its numbers with the
// six significant digits of a C++ stream, so that a counter of a million or more
// is rounded. Figure.Within says by how much, unless another of its values shows
// more digits.
type Counters struct {
	Kind Kind `json:"engine"`
	// Prompt is the prompt tokens that were read, from the cache or not; see
	// Kind.CachedApart.
	Prompt Figure `json:"prompt_tokens"`
	// Cached is the prompt tokens that the cache gave. Those of llama.cpp come on
	// top of Prompt, those of the others are part of it.
	Cached Figure `json:"cached_tokens,omitzero"`
	// Generated is the tokens that were written.
	Generated Figure `json:"generated_tokens"`
	// Requests is the requests that ended, Aborted those that were broken off: a
	// part of Requests with vLLM, with SGLang by its version. A request that an
	// engine refused is none, and each choice of a call may be one.
	Requests Figure `json:"requests,omitzero"`
	Aborted  Figure `json:"aborted_requests,omitzero"`
	// InFlight is the requests that run or wait right now. vLLM has already
	// counted a part of their tokens.
	InFlight Figure `json:"requests_in_flight,omitzero"`
	// Start is when the counters began at 0; zero is unknown.
	Start time.Time `json:"start,omitzero"`
	// Process tells one run of the engine from another where Start is unknown;
	// "" is unknown. llama.cpp sends it as the header Process-Start-Time-Unix,
	// whose value is the monotonic clock's and no time of day.
	Process string `json:"process,omitempty"`
}

// names are the metrics of one kind.
type names struct {
	prompt, generated string
	cached            []string // the first that is there counts
	running, waiting  string
	// requests counts ended ones, aborted ones included.
	requests, aborted string
}

var known = map[Kind]names{
	VLLM: {
		prompt: "vllm:prompt_tokens_total", generated: "vllm:generation_tokens_total",
		cached:  []string{"vllm:prompt_tokens_cached_total"}, // prefix_cache_hits_total counts a waiting request many times
		running: "vllm:num_requests_running", waiting: "vllm:num_requests_waiting",
		requests: "vllm:request_success_total", // by finished_reason, abort among them
	},
	SGLang: {
		prompt: "sglang:prompt_tokens_total", generated: "sglang:generation_tokens_total",
		cached:  []string{"sglang:cached_tokens_total"},
		running: "sglang:num_running_reqs", waiting: "sglang:num_queue_reqs",
		requests: "sglang:num_requests_total", aborted: "sglang:num_aborted_requests_total",
	},
	LlamaCPP: {
		prompt: "llamacpp:prompt_tokens_total", generated: "llamacpp:tokens_predicted_total",
		cached:  []string{"llamacpp:prompt_tokens_cached_total"},
		running: "llamacpp:requests_processing", waiting: "llamacpp:requests_deferred",
	},
}

// hints say what makes an engine show its counters.
const hints = "vLLM shows them unless started with --disable-log-stats, SGLang with --enable-metrics, llama.cpp with --metrics"

// detect tells an engine by the names of its counters.
func detect(families map[string]*dto.MetricFamily) (Kind, error) {
	var found Kind
	for _, kind := range []Kind{VLLM, SGLang, LlamaCPP} {
		if families[known[kind].prompt] == nil || families[known[kind].generated] == nil {
			continue
		}
		if found != "" {
			return "", fmt.Errorf("counters of both %s and %s: name the address of one engine", found, kind)
		}
		found = kind
	}
	if found != "" {
		return found, nil
	}
	for name := range families {
		for kind := range known {
			if strings.HasPrefix(name, string(kind)+":") {
				return "", fmt.Errorf("metrics of %s without its counters of tokens: %s", kind, hints)
			}
		}
	}
	return "", errors.New("no counters of tokens of vLLM, SGLang or llama.cpp: is this the engine's own address? " + hints)
}

// read makes Counters of what was scraped.
func read(families map[string]*dto.MetricFamily) (Counters, error) {
	kind, err := detect(families)
	if err != nil {
		return Counters{}, err
	}
	c, n := Counters{Kind: kind}, known[kind]
	rounded := kind == LlamaCPP && printsSixDigits(families)
	sum := func(name string, keep func(*dto.Metric) bool) Figure {
		f, e := total(families, name, rounded, keep)
		err = errors.Join(err, e)
		return f
	}
	c.Prompt, c.Generated = sum(n.prompt, nil), sum(n.generated, nil)
	for _, name := range n.cached {
		if c.Cached = sum(name, nil); c.Cached.Known {
			break
		}
	}
	c.InFlight = sum(n.running, nil).Plus(sum(n.waiting, nil))
	switch kind {
	case VLLM:
		c.Requests = sum(n.requests, nil)
		c.Aborted = sum(n.requests, func(m *dto.Metric) bool { return label(m, "finished_reason") == "abort" })
	case SGLang:
		c.Requests, c.Aborted = sum(n.requests, nil), sum(n.aborted, nil)
	}
	if err != nil {
		return Counters{}, err
	}
	if !c.Prompt.Known || !c.Generated.Known {
		return Counters{}, fmt.Errorf("%s shows its counters of tokens without a value", kind)
	}
	// Beside the process' start, the Python client says when each counter was made.
	for _, name := range []string{"process_start_time_seconds", strings.TrimSuffix(n.prompt, "_total") + "_created"} {
		if c.Start = instant(families[name]); !c.Start.IsZero() {
			break
		}
	}
	return c, nil
}

// instant reads seconds since 1970, to the millisecond: a float64 holds no
// microseconds of today for certain. Several samples contradict each other
// unless they are alike; then it is unknown.
func instant(family *dto.MetricFamily) time.Time {
	if family == nil || len(family.Metric) == 0 {
		return time.Time{}
	}
	v := value(family.Metric[0])
	for _, m := range family.Metric {
		if value(m) != v {
			return time.Time{}
		}
	}
	if !(v > 0 && v < 1e11) { // until the year 5138
		return time.Time{}
	}
	return time.UnixMilli(int64(math.Round(v * 1000))).UTC()
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.Label {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}
