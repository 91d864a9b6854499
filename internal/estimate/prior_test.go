package estimate

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/estimate/testdata/corpus"
)

// given are weights that the corpus says nothing about, and the least spread of
// those that depend on more than the tokenizer.
var (
	given       = map[int]float64{greek: 0.5, hebrew: 0.6, indic: 0.8, thai: 0.6, others: 1.5, numbers: 1, media: 500}
	leastSpread = map[int]float64{one: 30, greek: 0.4, hebrew: 0.4, indic: 0.4, thai: 0.4, values: 2, keys: 2, numbers: 0.3, media: 500}
)

// fit returns the weights, none negative, of the least mean square of the relative error.
func fit(of []sample, tokenizer int) (w weights) {
	var gram [numFeatures][numFeatures]float64
	var right weights
	for _, s := range of {
		y := float64(s.tokens[tokenizer])
		for i, a := range s.features.x {
			for j, b := range s.features.x {
				gram[i][j] += a / y * b / y
			}
			right[i] += a / y
		}
	}
	for range 3000 { // coordinate descent
		for i := range w {
			if gram[i][i] == 0 {
				continue
			}
			rest := right[i]
			for j := range w {
				if j != i {
					rest -= gram[i][j] * w[j]
				}
			}
			w[i] = max(0, rest/(gram[i][i]*(1+1e-3)))
		}
	}
	return w
}

// newer are the tokenizers that count twice in a prior: models of today are more like them.
var newer = map[int]bool{0: true, 2: true}

// fitPrior fits a prior to some of the tokenizers.
func fitPrior(of []sample, to []int) priors {
	var p priors
	var all []weights
	for _, k := range to {
		w := fit(of, k)
		all = append(all, w)
		if newer[k] {
			all = append(all, w)
		}
	}
	for i := range p.weights {
		for _, w := range all {
			p.weights[i] += w[i] / float64(len(all))
		}
		var square float64
		for _, w := range all {
			square += (w[i] - p.weights[i]) * (w[i] - p.weights[i]) / float64(len(all))
		}
		if w, ok := given[i]; ok {
			p.weights[i], square = w, 0
		}
		p.spread[i] = max(math.Sqrt(square), 0.2*p.weights[i], 0.1, leastSpread[i])
		p.weights[i], p.spread[i] = math.Round(p.weights[i]*100)/100, math.Round(p.spread[i]*100)/100
	}
	return p
}

// TestPriorIsFitted holds the committed prior to the corpus it comes from.
func TestPriorIsFitted(t *testing.T) {
	p := fitPrior(samples(t, corpus.Fit), []int{0, 1, 2, 3})
	differs := false
	var b strings.Builder
	for i := range p.weights {
		fmt.Fprintf(&b, "%d: %g, %g\n", i, p.weights[i], p.spread[i])
		// A last digit may be rounded otherwise where a machine fuses operations.
		if math.Abs(p.weights[i]-prior.weights[i]) > 0.011 || math.Abs(p.spread[i]-prior.spread[i]) > 0.011 {
			differs = true
		}
	}
	if differs {
		t.Errorf("the prior is not the fitted one:\n%s", &b)
	}
}

// TestPriorAlone: before anything was learnt, predictions are sane.
func TestPriorAlone(t *testing.T) {
	for k, name := range tokenizers {
		var o, quarter offs
		for _, s := range samples(t, corpus.Test) {
			o.add(float64(New(0, 0).Predict(name, "k", &s.features)), float64(s.tokens[k]))
			quarter.add(float64(s.features.Bytes())/4, float64(s.tokens[k]))
		}
		t.Logf("%s: mean %.1f %%, bytes/4 %.1f", name, o.mean(), quarter.mean())
		if o.mean() > 22 || o.mean() > quarter.mean()+1 {
			t.Errorf("%s: the prior alone is off by %.1f %%, bytes/4 by %.1f", name, o.mean(), quarter.mean())
		}
	}
}
