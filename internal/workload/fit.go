package workload

import (
	"math"
	"slices"
)

// A point is a prompt's words and the tokens that it was counted as.
type point struct{ words, tokens float64 }

// A line says that a prompt costs overhead + slope·words tokens.
type line struct{ overhead, slope float64 }

// initial is the line before anything is known: a token a word, and 8 for the
// chat template, whose common forms take 3 to 30.
var initial = line{overhead: 8, slope: 1}

const (
	// Bounds of a slope, wider than any tokenizer's: outside them the counts are
	// of something else.
	leastSlope, mostSlope = 0.2, 10
	// How far the initial line may be off, as standard deviations; only their
	// ratio matters.
	overheadDeviation, slopeDeviation = 20.0, 0.1
)

// throughPoints draws a line through points, of which up to a quarter may be far
// off: the slope is the median of those between pairs of points (Theil and Sen),
// the overhead the median of what it leaves. Pairs of prompts about equally long say
// nothing of the slope. When there are no others, what the median prompt
// cost beyond the initial line is shared out between overhead and slope in
// proportion to what each may be off, so that the line goes through that prompt.
func throughPoints(points []point) line {
	slopes := make([]float64, 0, len(points)*(len(points)-1)/2)
	for i, a := range points {
		for _, b := range points[:i] {
			if apart := math.Abs(a.words - b.words); apart >= 8 && apart >= max(a.words, b.words)/5 {
				slopes = append(slopes, (a.tokens-b.tokens)/(a.words-b.words))
			}
		}
	}
	// A handful of pairs may be those of one outlier with all the others.
	if len(slopes) >= max(len(points), 1) || len(points) == 2 && len(slopes) == 1 {
		l := line{slope: min(max(median(slopes), leastSlope), mostSlope)}
		l.overhead = residue(points, l.slope)
		return l
	}
	words := make([]float64, len(points))
	for i, p := range points {
		words[i] = p.words
	}
	middle := median(words)
	beyond := residue(points, initial.slope) - initial.overhead
	a, b := overheadDeviation*overheadDeviation, slopeDeviation*slopeDeviation*middle*middle
	l := line{slope: min(max(initial.slope+beyond*b/(a+b)/middle, leastSlope), mostSlope)}
	l.overhead = residue(points, l.slope)
	return l
}

// residue is the median of what slope leaves of the points' tokens.
func residue(points []point, slope float64) float64 {
	left := make([]float64, len(points))
	for i, p := range points {
		left[i] = p.tokens - slope*p.words
	}
	return median(left)
}

// median sorts values and returns their middle; there is at least one.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
