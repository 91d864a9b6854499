package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Gauges are one reading of what an engine is doing. A figure that the engine
// does not show is unknown; so is one that cannot be true, and Odd says of it.
//
// A reading is never changed once it was made, and its slices may be shared.
type Gauges struct {
	Kind Kind `json:"engine"`
	// Time is when the answer had come, Took how long it took from the question
	// on. What is shown was true at an instant between, or before by what the
	// engine's gauges lag; see Sampler.NoQueueAt.
	Time time.Time     `json:"time"`
	Took time.Duration `json:"-"` // State shows it in milliseconds
	// Model is the model that the engine names, if all its ranks name the same.
	Model string `json:"model,omitempty"`

	// Running is the requests being worked on, Waiting those in the engine's
	// queue, Swapped those put aside to the CPU's memory (vLLM's V0 engine):
	// sums over all ranks.
	Running Figure `json:"running,omitzero"`
	Waiting Figure `json:"waiting,omitzero"`
	Swapped Figure `json:"swapped,omitzero"`
	// KVUse is the share of the KV cache in use, 0–1. Of several ranks it is the
	// largest, since requests queue for one full rank while others idle; KVMean
	// is then the mean of them, each rank counting the same, else unknown.
	KVUse  Share `json:"kv_use,omitzero"`
	KVMean Share `json:"kv_use_mean,omitzero"`
	// MaxSeqs is how many requests may run at once and KVTokens how many tokens
	// the KV cache holds: sums over all ranks. Most engines show one of them or
	// none; see Options.
	MaxSeqs  Figure `json:"max_num_seqs,omitzero"`
	KVTokens Figure `json:"kv_tokens,omitzero"`

	// The following count from the engine's start, over all models and ranks.
	//
	// Preemptions is how often a request lost its place and had to wait again.
	Preemptions Figure `json:"preemptions_total,omitzero"`
	// PrefixQueries is the prompt tokens that were looked up in the prefix
	// cache, PrefixHits those found, of which vLLM counts those of a waiting
	// request with every look. SGLang and llama.cpp count no look-ups: set
	// PrefixHits beside Prompt, with Kind.CachedApart.
	PrefixQueries Figure `json:"prefix_cache_queries_total,omitzero"`
	PrefixHits    Figure `json:"prefix_cache_hits_total,omitzero"`
	// Prompt and Generated are as in Counters.
	Prompt    Figure `json:"prompt_tokens_total,omitzero"`
	Generated Figure `json:"generated_tokens_total,omitzero"`

	// Start and Process tell one run of the engine from another, as in Counters.
	Start   time.Time `json:"start,omitzero"`
	Process string    `json:"process,omitempty"`

	// RankCount is the number of data-parallel ranks, those of several models
	// together, and 1 where none are named.
	// Ranks lists them where there are several, at most MaxRanks: of more, those
	// with the most waiting, then running. They are in the order of their names.
	RankCount int    `json:"rank_count"`
	Ranks     []Rank `json:"ranks,omitempty"`
	// Odd says of figures that the page has but that cannot be true, such as a
	// negative count; at most MaxOdd.
	Odd []string `json:"odd,omitempty"`
}

// Rank is what one data-parallel rank of an engine is doing.
type Rank struct {
	Name     string `json:"rank,omitempty"` // the value of vLLM's label engine, of SGLang's dp_rank
	Model    string `json:"model,omitempty"`
	Running  Figure `json:"running,omitzero"`
	Waiting  Figure `json:"waiting,omitzero"`
	KVUse    Share  `json:"kv_use,omitzero"` // 0–1
	MaxSeqs  Figure `json:"max_num_seqs,omitzero"`
	KVTokens Figure `json:"kv_tokens,omitzero"`
}

const (
	// MaxRanks is the most ranks that a reading lists.
	MaxRanks = 16
	// MaxOdd is the most figures of which a reading says that they cannot be true.
	MaxOdd = 8
)

// ReadGauges reads what the engine at address is doing: the engine's base URL or
// that of its metrics. client may be nil. want is the engine that it is, or Auto
// to tell by the names on the page; that the page is another engine's is an
// error. Errors name the address without what may be secret in it, and say what
// to do. It takes no longer than 10 s.
func ReadGauges(ctx context.Context, client *http.Client, address string, want Kind) (Gauges, error) {
	u, err := metricsURL(address)
	if err != nil {
		return Gauges{}, err
	}
	began := time.Now()
	page, header, err := fetch(ctx, client, u, gaugeHints)
	if err != nil {
		return Gauges{}, fmt.Errorf("read the gauges of the engine at %s: %w", shown(u), err)
	}
	ended := time.Now()
	g, err := parseGauges(page, want)
	if err != nil {
		return Gauges{}, fmt.Errorf("read the gauges of the engine at %s: %w", shown(u), err)
	}
	g.Time, g.Took = ended, ended.Sub(began)
	if g.Kind == LlamaCPP && g.Start.IsZero() {
		g.Process = cut(header.Get("Process-Start-Time-Unix"))
	}
	return g, nil
}

// parseGauges reads a page; what is not on it, such as the time, stays empty.
func parseGauges(page []byte, want Kind) (Gauges, error) {
	families, kinds, err := pick(page)
	if err != nil {
		return Gauges{}, err
	}
	kind, err := detectGauges(families, kinds, want)
	if err != nil {
		return Gauges{}, err
	}
	g := newBuilder(families, kind).build()
	if !g.Running.Known && !g.Waiting.Known {
		return Gauges{}, errors.New("neither the requests that run nor those that wait can be read: " + strings.Join(g.Odd, "; "))
	}
	return g, nil
}

// sameRun tells whether h, read after g, may be of the same run of the engine:
// false only when something says otherwise.
func (g *Gauges) sameRun(h *Gauges) bool {
	fell := func(a, b Figure) bool { return a.Known && b.Known && b.N+b.Within < a.N-a.Within }
	switch {
	case g.Kind != h.Kind,
		!g.Start.IsZero() && !h.Start.IsZero() && !g.Start.Equal(h.Start),
		g.Process != "" && h.Process != "" && g.Process != h.Process,
		fell(g.Prompt, h.Prompt), fell(g.Generated, h.Generated), fell(g.Preemptions, h.Preemptions):
		return false
	}
	return true
}

// began is when the question was sent.
func (g *Gauges) began() time.Time { return g.Time.Add(-g.Took) }
