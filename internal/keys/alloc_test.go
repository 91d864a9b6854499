//go:build !race

package keys

import (
	"strings"
	"testing"
)

func TestLookupDoesNotAllocate(t *testing.T) {
	s, _ := opened(t, many(t, 10_000))
	for name, key := range map[string]string{"known": key(9_999), "unknown": key(10_000), "none": "", "long": strings.Repeat("k", maxKey)} {
		if n := testing.AllocsPerRun(1000, func() { s.Lookup(key, noon) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	k := s.All()[0]
	if n := testing.AllocsPerRun(1000, func() { k.Allows("llama-3.1-8b") }); n != 0 {
		t.Errorf("Allows: %v allocations", n)
	}
}
