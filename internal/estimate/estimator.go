package estimate

import (
	"math"
	"strings"
	"sync"

	"github.com/weirgate/weir/internal/call"
)

// Defaults of New.
const (
	DefaultModels = 256  // of 5 kB each
	DefaultPairs  = 4096 // of 1 kB each
)

// Estimator predicts the prompt tokens of calls, and how long answers get, and
// learns from what upstreams report. It steers admission; it is never what is
// billed.
//
// It may be used by many goroutines at once. Keys are aliases or ids, never
// secrets: they are part of a snapshot. Names are told apart by their first
// call.MaxName bytes.
type Estimator struct {
	mu     sync.Mutex // guards all below; held for about a microsecond
	models table[string, modelState]
	pairs  table[pair, pairState]
}

type modelState struct {
	model
	output histogram
}

type pair struct{ model, key string }

type pairState struct {
	bias   bias
	output histogram
}

// New returns an Estimator that remembers so many models, and pairs of a model
// and a key; of more the least recently used are forgotten. Zero or less
// stands for the default.
func New(models, pairs int) *Estimator {
	if models <= 0 {
		models = DefaultModels
	}
	if pairs <= 0 {
		pairs = DefaultPairs
	}
	e := new(Estimator)
	e.models.init(models)
	e.pairs.init(pairs)
	return e
}

// Predict returns how many tokens the model will count in the prompt that f was
// taken from, at least 1. For a model of which nothing was learnt yet it
// goes by what tokenizers have in common. Of features that are not known it
// returns 1, which says nothing: ask f.Known first.
//
// The prediction lies between one token for 16 bytes of text and one for each
// byte with 4,096 for what a template may add, and more for media. Predicting
// makes no entry for names that were never learnt.
func (e *Estimator) Predict(model, key string, f *Features) int64 {
	if !f.known {
		return 1
	}
	model, key = short(model), short(key)
	e.mu.Lock()
	w, factor := &prior.weights, 1.
	if m := e.models.get(model); m != nil {
		w = &m.weights
	}
	if p := e.pairs.get(pair{model, key}); p != nil {
		factor = p.bias.factor()
	}
	n := w.predict(f) * factor
	e.mu.Unlock()
	return int64(math.Round(clamp(n, f)))
}

func clamp(n float64, f *Features) float64 {
	low, high := f.bounds()
	return max(low, min(n, high))
}

// Learn takes the number of prompt tokens that the upstream reported, cached
// ones included, for the prompt that f was taken from. Reports below 1 and of
// features that are not known say nothing and are left out; absurd ones count as
// far as Predict may go. Only reports belong here, never estimates, and only
// of calls that a model answered, or made-up names would drive out real ones.
func (e *Estimator) Learn(model, key string, f *Features, reported int64) {
	if !f.known || reported < 1 {
		return
	}
	y := clamp(float64(reported), f)
	model, key = short(model), short(key)
	e.mu.Lock()
	defer e.mu.Unlock()
	m, p := e.model(model), e.pair(model, key)
	predicted := clamp(m.weights.predict(f), f)
	factor := p.bias.factor()
	m.learn(&prior, f, clamp(y/factor, f))
	p.bias.learn(y, predicted)
}

// Output returns the running 95th percentile of the output tokens of the key's
// calls to the model; of the model's calls as long as there were fewer than 20
// of the key's; unknown when there were fewer than 20 of those too. It weighs
// the last reports most, about 512 of them, and lies at most an eighth above
// the true percentile and never below.
func (e *Estimator) Output(model, key string) (p95 int64, known bool) {
	model, key = short(model), short(key)
	e.mu.Lock()
	defer e.mu.Unlock()
	if p := e.pairs.get(pair{model, key}); p != nil {
		if p95, known = p.output.p95(); known {
			return p95, true
		}
	}
	if m := e.models.get(model); m != nil {
		return m.output.p95()
	}
	return 0, false
}

// LearnOutput takes the number of output tokens that the upstream reported for
// one call. 0 is a report, less is none. Above 2,097,151 all count as that.
func (e *Estimator) LearnOutput(model, key string, reported int64) {
	if reported < 0 {
		return
	}
	model, key = short(model), short(key)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.model(model).output.learn(reported)
	e.pair(model, key).output.learn(reported)
}

// model returns the state of a model, new if need be. The lock is held.
func (e *Estimator) model(name string) *modelState {
	m := e.models.get(name)
	if m == nil {
		m = e.models.add(strings.Clone(name))
		m.begin(&prior)
		m.output = histogram{}
	}
	return m
}

// pair returns the state of a pair, new if need be. The lock is held.
func (e *Estimator) pair(model, key string) *pairState {
	p := e.pairs.get(pair{model, key})
	if p == nil {
		p = e.pairs.add(pair{strings.Clone(model), strings.Clone(key)})
		*p = pairState{}
	}
	return p
}

// short cuts a name, without allocating.
func short(name string) string { return name[:min(len(name), call.MaxName)] }
