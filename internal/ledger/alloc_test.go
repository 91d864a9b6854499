//go:build !race

package ledger

import (
	"math/rand/v2"
	"testing"
)

// TestAllocations: a call pays for its start and its end with no allocation.
// The committer, which has a goroutine of its own, is held up meanwhile.
func TestAllocations(t *testing.T) {
	d := &faultyDisk{reads: make(chan struct{})}
	defer close(d.reads)
	l := open(t, Options{disk: d})
	l.End(ended("first")) // the committer is reading now, and the segment is there
	s, rec := start("one"), wide(rand.New(rand.NewPCG(1, 2)), 1)
	if n := testing.AllocsPerRun(2000, func() { l.Start(s) }); n > 0 {
		t.Errorf("a start takes %v allocations", n)
	}
	if n := testing.AllocsPerRun(2000, func() { l.End(rec) }); n > 0 {
		t.Errorf("an end takes %v allocations", n)
	}
}
