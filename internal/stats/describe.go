package stats

import (
	"math"
	"slices"
)

// Summary describes a sample. All figures have the unit of its values.
type Summary struct {
	N                                  int
	Mean, P50, P90, P95, P99, Max, Min float64
	// StdDev is the standard deviation of these values themselves (divided by N,
	// as numpy does by default); that of one value is 0.
	StdDev float64
}

// Describe sums values up, which may come in any order and are left as they
// are. Percentiles are those of Step if step is set and of Quantile otherwise.
// It returns false when there are no values.
func Describe(values []float64, step bool) (Summary, bool) {
	if len(values) == 0 {
		return Summary{}, false
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	quantile := Quantile
	if step {
		quantile = Step
	}
	mean, deviation := moments(sorted)
	return Summary{
		N: len(sorted), Mean: mean, StdDev: deviation,
		P50: quantile(sorted, 0.5), P90: quantile(sorted, 0.9), P95: quantile(sorted, 0.95), P99: quantile(sorted, 0.99),
		Min: sorted[0], Max: sorted[len(sorted)-1],
	}, true
}

// Median returns the middle of values in any order, or the mean of the two in
// the middle. It returns false when there are none.
func Median(values []float64) (float64, bool) {
	if len(values) == 0 {
		return 0, false
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return Quantile(sorted, 0.5), true
}

// Range returns the least and the greatest of values in any order, and false
// when there are none.
func Range(values []float64) (low, high float64, ok bool) {
	if len(values) == 0 {
		return 0, 0, false
	}
	return slices.Min(values), slices.Max(values), true
}

// Mean returns the arithmetic mean, and false when there are no values.
func Mean(values []float64) (float64, bool) {
	if len(values) == 0 {
		return 0, false
	}
	mean, _ := moments(values)
	return mean, true
}

// moments returns mean and standard deviation, in two passes: the second works
// on differences, so that a large mean does not swallow a small deviation.
func moments(values []float64) (mean, deviation float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n // divided first, so that no sum overflows
	}
	var squares, left float64
	for _, v := range values {
		d := v - mean
		squares += d * d
		left += d
	}
	mean += left / n // what rounding left over in the first pass
	return mean, math.Sqrt(max(0, squares-left*left/n) / n)
}
