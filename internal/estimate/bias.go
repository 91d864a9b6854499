package estimate

import "math"

// bias is by what factor one key's prompts cost more with a model than its
// features say: another language with the same letters, a template of its own.
// It is the running mean of the logarithm of reported over predicted, drawn to
// 0 as long as little is known.
type bias struct {
	sum    float64 // of the logarithms, older ones less
	weight float64 // how many they count as
}

const (
	biasWindow = 40 // calls that are remembered
	biasDraw   = 4  // calls that the prior, no bias, counts as
	biasMost   = 3  // largest factor, and its inverse
)

var logMost = math.Log(biasMost)

func (b *bias) factor() float64 {
	return math.Exp(b.sum / (b.weight + biasDraw))
}

// learn takes what was reported and what the model alone predicts.
func (b *bias) learn(reported, predicted float64) {
	r := max(-logMost, min(math.Log(reported/predicted), logMost))
	const keep = 1 - 1./biasWindow
	b.sum = b.sum*keep + r
	b.weight = b.weight*keep + 1
}
