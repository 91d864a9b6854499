package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
)

// TGI is text-generation-inference, of which gauges are read but no counters: it
// has none of tokens.
const TGI Kind = "tgi"

// Auto stands for whatever engine the names on the page tell; so does "".
const Auto Kind = "auto"

// Kinds are the engines whose gauges are read.
var Kinds = []Kind{VLLM, SGLang, TGI, LlamaCPP}

// ParseKind reads the name of an engine as people write it; "auto" and "" are
// Auto.
func ParseKind(name string) (Kind, error) {
	kind := Kind(name)
	if kind == "" || kind == Auto {
		return Auto, nil
	}
	if !slices.Contains(Kinds, kind) {
		return "", fmt.Errorf("no engine is called %q: write vllm, sglang, tgi, llamacpp or auto", shorten(name, maxText))
	}
	return kind, nil
}

// gaugeNames are the metrics of one kind that Gauges are made of, and its labels.
// Of several spellings the first that is there counts.
type gaugeNames struct {
	running, waiting, swapped string
	kvUse                     []string
	preemptions               string
	prefixQueries, prefixHits string
	prompt, generated         string
	maxSeqs, kvTokens         string
	// rank is the label that tells data-parallel ranks apart, model the label,
	// by its spellings, that names the model.
	rank  string
	model []string
	// live says that the gauges show a request that arrived within a step of
	// the engine; see Sampler.NoQueueAt.
	live bool
}

var gauges = map[Kind]gaugeNames{
	// vLLM writes its gauges after every step. waiting holds those that wait for
	// room and, in newer versions, those that wait for a transfer or a grammar
	// too. gpu_cache_usage_perc is kv_cache_usage_perc before 0.9; the
	// gpu_prefix_cache counters of that time counted blocks and are left out.
	// swapped is of the V0 engine. Of max_num_seqs it says nothing.
	VLLM: {
		running: "vllm:num_requests_running", waiting: "vllm:num_requests_waiting", swapped: "vllm:num_requests_swapped",
		kvUse:         []string{"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"},
		preemptions:   "vllm:num_preemptions_total",
		prefixQueries: "vllm:prefix_cache_queries_total", prefixHits: "vllm:prefix_cache_hits_total",
		prompt: known[VLLM].prompt, generated: known[VLLM].generated,
		rank: "engine", model: []string{"model_name"}, live: true,
	},
	// SGLang writes its gauges with each batch of prompts, and else only once
	// every --decode-log-interval steps (40 by default) and not at all while
	// idle: they may be seconds old. token_usage is the fullest of its pools.
	// What it calls a retraction is a preemption. max_running_requests was shown
	// by its first versions with metrics only.
	SGLang: {
		running: "sglang:num_running_reqs", waiting: "sglang:num_queue_reqs",
		kvUse:       []string{"sglang:token_usage"},
		preemptions: "sglang:num_retracted_requests_total",
		prefixHits:  known[SGLang].cached[0],
		prompt:      known[SGLang].prompt, generated: known[SGLang].generated,
		maxSeqs: "sglang:max_running_requests", kvTokens: "sglang:max_total_num_tokens",
		rank: "dp_rank", model: []string{"model_name", "name"},
	},
	// TGI sets its queue as it changes and its batch once a step. Its token
	// counts exist as sums of histograms only, which count by other rules.
	TGI: {running: "tgi_batch_current_size", waiting: "tgi_queue_size", live: true},
	// llama.cpp takes its gauges when it is asked, between two batches, before it
	// looks at requests that came during the last one. Its *_tokens_seconds are
	// reset by each scrape, whoever makes it, and are never read. Versions until
	// 2025 showed how full the cache was.
	LlamaCPP: {
		running: known[LlamaCPP].running, waiting: known[LlamaCPP].waiting,
		kvUse:      []string{"llamacpp:kv_cache_usage_ratio"},
		prefixHits: known[LlamaCPP].cached[0],
		prompt:     known[LlamaCPP].prompt, generated: known[LlamaCPP].generated,
		live: true,
	},
}

// cacheConfig is vLLM's metric that holds the size of its KV cache in labels.
const cacheConfig = "vllm:cache_config_info"

// startTime is when the process of an engine started, of those that show it.
const startTime = "process_start_time_seconds"

// prefixes are how the names of a kind's metrics begin. Every wanted name begins
// with one of them.
var prefixes = [...]struct {
	text []byte
	kind Kind // "" for what is no engine's own
}{
	{[]byte("vllm:"), VLLM}, {[]byte("sglang:"), SGLang}, {[]byte("tgi_"), TGI}, {[]byte("llamacpp:"), LlamaCPP}, {[]byte(startTime), ""},
}

// wanted are the names of all metrics that Gauges are made of.
var wanted = func() map[string]bool {
	all := map[string]bool{
		cacheConfig: true, startTime: true,
		// These show whether llama.cpp writes more than six digits.
		"llamacpp:prompt_seconds_total": true, "llamacpp:tokens_predicted_seconds_total": true,
	}
	for _, n := range gauges {
		for _, name := range append([]string{n.running, n.waiting, n.swapped, n.preemptions, n.prefixQueries, n.prefixHits,
			n.prompt, n.generated, n.maxSeqs, n.kvTokens}, n.kvUse...) {
			all[name] = true
		}
		all[strings.TrimSuffix(n.prompt, "_total")+"_created"] = true
	}
	delete(all, "")
	delete(all, "_created") // of a kind without counters
	return all
}()

// gaugeHints say what makes an engine show its gauges.
const gaugeHints = hints + ", TGI from its first request on"

// detectGauges tells an engine by the names of its gauges. kinds are those with
// any metric on the page.
func detectGauges(families map[string]*dto.MetricFamily, kinds map[Kind]bool, want Kind) (Kind, error) {
	var found []Kind
	for _, kind := range Kinds {
		if families[gauges[kind].running] != nil || families[gauges[kind].waiting] != nil {
			found = append(found, kind)
		}
	}
	auto := want == "" || want == Auto
	switch {
	case auto && len(found) == 1:
		return found[0], nil
	case auto && len(found) > 1:
		return "", fmt.Errorf("gauges of both %s and %s: say which engine it is, or name the address of one", found[0], found[1])
	case slices.Contains(found, want):
		return want, nil
	case !auto && len(found) > 0:
		return "", fmt.Errorf("the page is %s's, not %s's: name the other engine's address, or say that this is %[1]s", found[0], want)
	}
	for _, kind := range Kinds {
		if kinds[kind] {
			return "", fmt.Errorf("metrics of %s without the requests that run and wait: %s", kind, gaugeHints)
		}
	}
	return "", errors.New("no gauges of vLLM, SGLang, TGI or llama.cpp: is this the engine's own address? " + gaugeHints)
}
