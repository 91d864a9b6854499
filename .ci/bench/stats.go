package main

import (
	"math"
	"slices"
)

// quantile returns the q-quantile (0 … 1) of values with linear interpolation;
// NaN of none. It leaves values as they are.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[low] + (at-float64(low))*(sorted[low+1]-sorted[low])
}

// spread is a median with its quartiles.
type spread struct {
	Median float64 `json:"median"`
	Q1     float64 `json:"q1"`
	Q3     float64 `json:"q3"`
}

func spreadOf(values []float64) spread {
	return spread{quantile(values, 0.5), quantile(values, 0.25), quantile(values, 0.75)}
}

// orders are all ways in which three slices can follow each other, so that
// over six rounds every gateway stands in every place equally often.
var orders = [6][3]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {0, 2, 1}, {2, 0, 1}, {1, 0, 2}}
