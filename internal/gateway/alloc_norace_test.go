//go:build !race

package gateway

import "testing"

// The race detector makes pools forget at random, so that their allocations
// cannot be counted under it.

// maxAllocations is how many times a call with a JSON answer may allocate more
// than without the gateway. The whole allowance is 15: Caddy takes the rest.
const maxAllocations = 8

func TestCallAllocations(t *testing.T) {
	through, without := jsonCall()
	through()
	if n := testing.AllocsPerRun(1000, through) - testing.AllocsPerRun(1000, without); n > maxAllocations {
		t.Errorf("%v allocations a call, %d are granted", n, maxAllocations)
	}
}
