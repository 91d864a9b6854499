//go:build !race

package queue

import (
	"fmt"
	"testing"
)

// TestEnterDoesNotAllocate: with room, a call costs no memory, whichever of the
// keys seen lately it is of, and also when keys are forgotten and come back.
func TestEnterDoesNotAllocate(t *testing.T) {
	for _, keys := range []int{1, 10, 4 * keptIdle} {
		q := newQueue(t, Config{Calls: 8, Tokens: 1e6})
		ctx := t.Context()
		names := make([]string, keys)
		for i := range names {
			names[i] = fmt.Sprint(i)
		}
		var s Slot
		i := 0
		one := func() {
			i++
			ask := Ask{Key: names[i%keys], Class: Completion, Tokens: Tokens{Input: 100, Output: 50}}
			if err := q.Enter(ctx, &ask, &s); err != nil {
				t.Fatal(err)
			}
			s.Settle(Tokens{Input: 90, Output: 20})
			s.Release()
		}
		for range 10 * keys {
			one()
		}
		if n := testing.AllocsPerRun(1000, one); n != 0 {
			t.Errorf("%d keys: Enter, Settle and Release allocate %v times", keys, n)
		}
	}
}
