package sim

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// counters are the engine's running totals. The engine's lock guards them.
type counters struct {
	promptTokens, cachedTokens, generationTokens int
	prefixQueries, prefixHits, preemptions       int
	finished                                     map[string]int // by finish reason
	promptTime, generationTime                   time.Duration

	firstToken, interToken, queue, prefill, decode, e2e *histogram
}

func newCounters() counters {
	request := []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	first := []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	inter := []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	return counters{
		finished:   map[string]int{"stop": 0, "length": 0, "abort": 0},
		firstToken: newHistogram(first), interToken: newHistogram(inter),
		queue: newHistogram(request), prefill: newHistogram(request),
		decode: newHistogram(request), e2e: newHistogram(request),
	}
}

// finish counts a sequence that wrote its last token.
func (c *counters) finish(s *sequence, now time.Time) {
	reason := s.finish
	if reason == "tool_calls" {
		reason = "stop" // the engine core knows nothing of tools
	}
	c.finished[reason]++
	c.queue.observe(s.scheduled.Sub(s.arrival))
	c.prefill.observe(s.first.Sub(s.scheduled))
	c.decode.observe(s.last.Sub(s.first))
	c.e2e.observe(now.Sub(s.arrival))
	c.promptTime += s.first.Sub(s.scheduled)
	c.generationTime += s.last.Sub(s.first)
}

// histogram counts durations in buckets by their upper edges in seconds.
type histogram struct {
	edges  []float64
	counts []int // one more than edges
	sum    time.Duration
	n      int
}

func newHistogram(edges []float64) *histogram {
	return &histogram{edges: edges, counts: make([]int, len(edges)+1)}
}

func (h *histogram) observe(d time.Duration) {
	i := 0
	for i < len(h.edges) && d.Seconds() > h.edges[i] {
		i++
	}
	h.counts[i]++
	h.sum += d
	h.n++
}

// metricsText writes Prometheus text under the imitated engine's names.
func (e *Engine) metricsText() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := &e.gauges
	usage := float64(e.kv.used()) / float64(e.kv.total)
	model := strconv.Quote(e.config().Model)
	switch e.config().Quirks {
	case SGLang:
		p := exposition{prefix: "sglang:", labels: "model_name=" + model}
		p.gauge("num_running_reqs", "The number of running requests.", float64(len(e.running)))
		p.gauge("num_queue_reqs", "The number of requests in the waiting queue.", float64(len(e.waiting)))
		p.gauge("token_usage", "The share of the KV cache in use.", usage)
		p.gauge("gen_throughput", "Tokens generated per second of generation.", perSecond(g.generationTokens, g.generationTime))
		p.counter("prompt_tokens_total", "Number of prefill tokens processed.", g.promptTokens)
		p.counter("generation_tokens_total", "Number of generation tokens processed.", g.generationTokens)
		p.counter("cached_tokens_total", "Number of cached prompt tokens.", g.cachedTokens)
		p.histogram("time_to_first_token_seconds", "Time to first token in seconds.", g.firstToken)
		p.histogram("e2e_request_latency_seconds", "End to end latency in seconds.", g.e2e)
		return p.Bytes()
	case LlamaCPP:
		p := exposition{prefix: "llamacpp:"}
		p.gauge("requests_processing", "Number of requests being processed.", float64(len(e.running)))
		p.gauge("requests_deferred", "Number of requests waiting for a slot.", float64(len(e.waiting)))
		p.counter("prompt_tokens_total", "Number of prompt tokens processed, without cached ones.", g.promptTokens-g.cachedTokens)
		p.counter("prompt_tokens_cached_total", "Number of prompt tokens taken from the cache.", g.cachedTokens)
		p.seconds("prompt_seconds_total", "Time spent on prompts.", g.promptTime)
		p.counter("tokens_predicted_total", "Number of tokens generated.", g.generationTokens)
		p.seconds("tokens_predicted_seconds_total", "Time spent generating.", g.generationTime)
		return p.Bytes()
	}
	p := exposition{prefix: "vllm:", labels: `engine="0",model_name=` + model}
	p.gauge("num_requests_running", "Number of requests in model execution batches.", float64(len(e.running)))
	p.gauge("num_requests_waiting", "Number of requests waiting to be processed.", float64(len(e.waiting)))
	p.gauge("kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", usage)
	p.counter("num_preemptions_total", "Cumulative number of preemptions.", g.preemptions)
	p.counter("prefix_cache_queries_total", "Prefix cache queries, in tokens.", g.prefixQueries)
	p.counter("prefix_cache_hits_total", "Prefix cache hits, in tokens.", g.prefixHits)
	p.counter("prompt_tokens_total", "Number of prefill tokens processed.", g.promptTokens)
	p.counter("generation_tokens_total", "Number of generation tokens processed.", g.generationTokens)
	p.head("request_success_total", "Requests that ended, by reason.", "counter")
	for _, reason := range []string{"stop", "length", "abort"} {
		p.sample("request_success_total", `finished_reason="`+reason+`"`, float64(g.finished[reason]))
	}
	p.histogram("time_to_first_token_seconds", "Time to first token in seconds.", g.firstToken)
	p.histogram("inter_token_latency_seconds", "Inter-token latency in seconds.", g.interToken)
	p.histogram("request_queue_time_seconds", "Time spent waiting.", g.queue)
	p.histogram("request_prefill_time_seconds", "Time spent in prefill.", g.prefill)
	p.histogram("request_decode_time_seconds", "Time spent in decode.", g.decode)
	p.histogram("e2e_request_latency_seconds", "End to end latency in seconds.", g.e2e)
	return p.Bytes()
}

func perSecond(n int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// exposition writes the Prometheus text format.
type exposition struct {
	bytes.Buffer
	prefix, labels string
}

func (p *exposition) head(name, help, kind string) {
	fmt.Fprintf(p, "# HELP %s%s %s\n# TYPE %s%s %s\n", p.prefix, name, help, p.prefix, name, kind)
}

func (p *exposition) sample(name, more string, value float64) {
	p.WriteString(p.prefix + name)
	labels := p.labels
	if labels != "" && more != "" {
		labels += ","
	}
	if labels += more; labels != "" {
		p.WriteString("{" + labels + "}")
	}
	p.WriteString(" " + strconv.FormatFloat(value, 'g', -1, 64) + "\n")
}

func (p *exposition) gauge(name, help string, value float64) {
	p.head(name, help, "gauge")
	p.sample(name, "", value)
}

func (p *exposition) counter(name, help string, value int) {
	p.head(name, help, "counter")
	p.sample(name, "", float64(value))
}

func (p *exposition) seconds(name, help string, d time.Duration) {
	p.head(name, help, "counter")
	p.sample(name, "", d.Seconds())
}

func (p *exposition) histogram(name, help string, h *histogram) {
	p.head(name, help, "histogram")
	below := 0
	for i, edge := range h.edges {
		below += h.counts[i]
		p.sample(name+"_bucket", `le="`+strconv.FormatFloat(edge, 'g', -1, 64)+`"`, float64(below))
	}
	p.sample(name+"_bucket", `le="+Inf"`, float64(h.n))
	p.sample(name+"_sum", "", h.sum.Seconds())
	p.sample(name+"_count", "", float64(h.n))
}

func (e *Engine) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	// A client that leaves while it reads metrics concerns nobody.
	_, _ = w.Write(e.metricsText())
}
