//go:build !race

package slo

import (
	"testing"
	"time"
)

// TestHistogramAllocations: within the range in use nothing is allocated.
func TestHistogramAllocations(t *testing.T) {
	var h, other Histogram
	h.Add(100 * ms)
	h.Add(10 * time.Second)
	other.Add(time.Second)
	for name, f := range map[string]func(){
		"Add":      func() { h.Add(time.Second) },
		"Merge":    func() { h.Merge(&other) },
		"Quantile": func() { h.Quantile(0.99) },
		"Reset":    func() { h.Reset() },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
