package stats

import "math"

// Quantile returns the q-quantile, 0 ≤ q ≤ 1, of values sorted upwards, with
// linear interpolation between neighbours: position q·(n−1), which is type 7 of
// Hyndman and Fan and numpy's default. It is NaN when there are no values, or q
// lies outside 0–1.
func Quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 || !(q >= 0 && q <= 1) {
		return math.NaN()
	}
	at := q * float64(len(sorted)-1)
	low := int(at) // at is not negative, so this rounds down
	if low >= len(sorted)-1 {
		return sorted[len(sorted)-1]
	}
	a, b := sorted[low], sorted[low+1]
	part := at - float64(low)
	// Two forms, as in numpy, so that the result is exact at both ends and
	// never leaves them.
	if part < 0.5 {
		return a + (b-a)*part
	}
	return b - (b-a)*(1-part)
}

// Step returns the q-quantile, 0 ≤ q ≤ 1, of values sorted upwards without
// interpolation: the smallest value whose cumulative share of the sample is at
// least q. That is type 1 of Hyndman and Fan, and how guidellm reads its
// percentiles. It is NaN when there are no values, or q lies outside 0–1.
func Step(sorted []float64, q float64) float64 {
	n := len(sorted)
	if n == 0 || !(q >= 0 && q <= 1) {
		return math.NaN()
	}
	// The least k with k/n ≥ q. The product may round past a whole number, so
	// the quotient, rounded as the definition's would be, has the last word.
	k := max(int(math.Ceil(q*float64(n))), 1)
	if k > 1 && float64(k-1)/float64(n) >= q {
		k--
	}
	return sorted[min(k, n)-1]
}
