package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Interval is a figure and where it lies with 95 % confidence. A figure or an
// end that cannot be computed is NaN.
type Interval struct{ Point, Low, High float64 }

// Known tells whether the interval has a point and two ends.
func (i Interval) Known() bool {
	return !math.IsNaN(i.Point) && !math.IsNaN(i.Low) && !math.IsNaN(i.High)
}

// Contains tells whether v lies within the interval, its ends included; an
// interval that is not known contains nothing.
func (i Interval) Contains(v float64) bool { return i.Known() && i.Low <= v && v <= i.High }

// Rounds is how many resamples Ratio draws unless told otherwise: enough for the
// ends of a 95 % interval to hold still to about a twentieth of its width.
const Rounds = 1000

// Ratio says how much greater a figure of now is than the same figure of base:
// figure(now)/figure(base), with an interval of 95 % by the percentile bootstrap
// (Efron 1979): both samples are drawn anew from themselves, with replacement
// and independently, so many rounds (0 is Rounds), and the interval reaches from
// the 2.5th to the 97.5th percentile of the ratios. The same seed gives the same
// interval.
//
// Values may come in any order; figure gets them sorted upwards, must not keep or
// change them, and is, for instance, func(v []float64) float64 { return Quantile(v, 0.99) }.
//
// The method assumes independent values. A sample cannot be drawn beyond its own
// ends, so of a high quantile it needs some values above: about 5/(1−q) of them, 500
// for a p99. With fewer the interval is too narrow. The repeats of a run are
// too few for it; see MeanRatio.
//
// All is NaN when a sample is empty or figure(base) is 0 or negative. Time goes with
// rounds and values, nothing is sorted in between: about a second for ten
// thousand values on each side.
func Ratio(base, now []float64, figure func(sorted []float64) float64, seed uint64, rounds int) Interval {
	unknown := Interval{math.NaN(), math.NaN(), math.NaN()}
	if len(base) == 0 || len(now) == 0 {
		return unknown
	}
	base, now = slices.Clone(base), slices.Clone(now)
	slices.Sort(base)
	slices.Sort(now)
	below := figure(base)
	if !(below > 0) {
		return unknown
	}
	if rounds <= 0 {
		rounds = Rounds
	}
	rng := rand.New(rand.NewPCG(seed, 0x626f6f74)) // a stream of its own for each use of a seed
	a, b := make([]float64, len(base)), make([]float64, len(now))
	ratios := make([]float64, 0, rounds)
	for range rounds {
		resample(a, base, rng)
		resample(b, now, rng)
		if r := figure(b) / figure(a); !math.IsNaN(r) {
			ratios = append(ratios, r)
		}
	}
	slices.Sort(ratios)
	return Interval{Point: figure(now) / below, Low: Quantile(ratios, 0.025), High: Quantile(ratios, 0.975)}
}

// resample fills to with as many values of from, drawn with replacement, in
// order. Rather than to draw and sort, it draws sorted uniform numbers: sums of
// exponential gaps, divided by their total.
func resample(to, from []float64, rng *rand.Rand) {
	var total float64
	for i := range to {
		total += rng.ExpFloat64()
		to[i] = total
	}
	total += rng.ExpFloat64()
	scale := float64(len(from)) / total
	for i, u := range to {
		to[i] = from[min(int(u*scale), len(from)-1)]
	}
}
