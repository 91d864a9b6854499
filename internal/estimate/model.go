package estimate

import "math"

// How a model learns. All of these are relative: every report is scaled so that
// it is 1, for what matters is the error in per cent, of short prompts as of long ones.
const (
	// noise is the variance of what the features cannot explain: 5 % of a prompt.
	noise = 0.05 * 0.05
	// forgetting is the part of the prior's variance that each report gives
	// back to what it says something about, so that a model never stops learning.
	forgetting = 1. / 4000
	// surprise is the most of one report that is believed: with it one absurd
	// report moves a model no more than one that is off by half.
	surprise = 0.5
	// lost is the running error from which on a model is not followed but
	// begun anew, as when another tokenizer now answers to its name; patience
	// is how many reports that takes at least, and the window of that error.
	lost     = 0.4
	patience = 24
)

// model knows what one model's tokenizer charges for each feature, by recursive
// least squares. It is a Kalman filter whose state, the weights, walks at random: what
// is forgotten is certainty, never beyond the prior's, so that
// features that have not been seen for long keep their weights and stay stable.
type model struct {
	weights weights
	// covariance of the weights; symmetric.
	covariance [numFeatures][numFeatures]float64
	reports    int64   // learnt since the model began, or began anew
	error      float64 // running mean of the relative error, absolute
}

type weights [numFeatures]float64

// begin makes the model one of which nothing is known but the prior.
func (m *model) begin(p *priors) {
	*m = model{weights: p.weights}
	for i, s := range p.spread {
		m.covariance[i][i] = s * s
	}
}

// predict returns the tokens that the weights expect, whatever they are.
func (w *weights) predict(f *Features) float64 {
	var sum float64
	for i, x := range f.x[:] {
		sum += w[i] * x
	}
	return sum
}

// learn takes a report of y tokens for f: a finite number from 1 on.
func (m *model) learn(p *priors, f *Features, y float64) {
	// Features that are 0 cost nothing: most prompts have a dozen that are not.
	var seen [numFeatures]int
	n := 0
	var z weights
	expected := 0.
	for i, x := range f.x[:] {
		if x != 0 {
			z[i] = x / y
			expected += m.weights[i] * z[i]
			seen[n] = i
			n++
		}
	}
	off := 1 - expected
	m.reports++
	m.error += (min(math.Abs(off), 1) - m.error) / float64(min(m.reports, patience))
	if m.reports >= patience && m.error > lost {
		m.begin(p)
		return
	}

	var gain weights // covariance·z
	for _, j := range seen[:n] {
		// A column is as good as the row, and lies in a row in memory.
		zj, row := z[j], &m.covariance[j]
		for i := range gain {
			gain[i] += row[i] * zj
		}
	}
	variance := noise
	for _, i := range seen[:n] {
		variance += gain[i] * z[i]
	}
	if !(variance >= noise/2) { // rounding has spoilt the covariance
		m.begin(p)
		return
	}
	step := max(-surprise, min(off, surprise)) / variance
	root := 1 / math.Sqrt(variance)
	for i := range gain {
		m.weights[i] += gain[i] * step
		gain[i] *= root // both factors alike, so that the covariance stays symmetric to the last bit
	}
	var moved [numFeatures]int // all but those that have never come up together with one of seen
	k := 0
	for i, g := range gain {
		if g != 0 {
			moved[k] = i
			k++
		}
	}
	for a, i := range moved[:k] {
		g, row := gain[i], &m.covariance[i]
		for _, j := range moved[:a] {
			c := row[j] - g*gain[j]
			row[j], m.covariance[j][i] = c, c
		}
		row[i] -= g * g
	}
	for _, i := range seen[:n] {
		most := p.spread[i] * p.spread[i]
		if v := &m.covariance[i][i]; *v < most {
			*v += most * forgetting
		}
	}
	if !m.sound() {
		m.begin(p)
	}
}

// Limits of what a model may hold. No token costs this much, and beyond it
// rounding would decide.
const mostWeight = 1 << 20

// sound tells whether the weights are numbers of use and no variance is negative.
func (m *model) sound() bool {
	for i, w := range m.weights {
		// The comparisons are false for what is not a number.
		if !(math.Abs(w) <= mostWeight && m.covariance[i][i] >= 0 && m.covariance[i][i] <= mostWeight*mostWeight) {
			return false
		}
	}
	return true
}
