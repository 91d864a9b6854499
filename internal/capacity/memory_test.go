package capacity

import (
	"math/big"
	"testing"
)

func TestUnit(t *testing.T) {
	for unit, want := range map[Unit]int64{GB: 1_000_000_000, GiB: 1_073_741_824, "": 1_000_000_000} {
		if got := unit.Bytes(); got != want {
			t.Errorf("%q has %d bytes, want %d", unit, got, want)
		}
		if err := unit.Validate(); err != nil {
			t.Error(err)
		}
	}
	if err := Unit("gb").Validate(); err == nil {
		t.Error("gb is taken for a unit")
	}
	if got := GiB.show(planInt(140e9)); got != "130.39 GiB" {
		t.Errorf("140e9 bytes are shown as %s", got)
	}
}

// TestMemoryBound: the room on each GPU, taken together, is that of the group, and a model
// whose weights are as large as the memory leaves none.
func TestMemoryBound(t *testing.T) {
	in := planExample()
	for _, tp := range []int64{1, 2, 3, 8, 64} {
		b := in.boundAt(tp)
		together := new(big.Rat).Mul(b.room, planInt(tp))
		together.Add(together, b.weights)
		if want := new(big.Rat).Mul(planInt(72e9), planInt(tp)); together.Cmp(want) != 0 {
			t.Errorf("TP %d: weights and room are %s of %s", tp, together, want)
		}
	}
	in.Weights = 72e9
	if b := in.boundAt(1); b.room.Sign() != 0 || b.sequences().Sign() != 0 {
		t.Errorf("full of weights, and %s sequences fit in %s", b.sequences(), b.room)
	}
	in.Weights = 72e9 - in.KVPerCall
	if b := in.boundAt(1); b.sequences().Int64() != 1 {
		t.Errorf("room for one call holds %s", b.sequences())
	}
}
