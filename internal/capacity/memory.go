package capacity

import (
	"fmt"
	"math/big"
)

// Unit is the unit that sizes are shown in, and that a vendor's "GB" is read in. A plan
// has one; GB and GiB are never mixed.
type Unit string

// The units. The zero value stands for GB.
const (
	GB  Unit = "GB"  // 10⁹ bytes
	GiB Unit = "GiB" // 2³⁰ bytes
)

// Bytes is how many bytes the unit has.
func (u Unit) Bytes() int64 {
	if u == GiB {
		return 1 << 30
	}
	return 1e9
}

// of is a number of bytes in the unit.
func (u Unit) of(bytes *big.Rat) *big.Rat { return planQuo(bytes, planInt(u.Bytes())) }

// show writes a number of bytes in the unit.
func (u Unit) show(bytes *big.Rat) string {
	return planNumber(u.of(bytes), planNearest) + " " + string(u)
}

// power says how many bytes the unit has.
func (u Unit) power() string {
	if u == GiB {
		return "2³⁰ bytes"
	}
	return "10⁹ bytes"
}

// memoryBound is how many sequences the memory of one group of GPUs holds, with all it
// follows from. Sizes are bytes, and exact.
type memoryBound struct {
	weights *big.Rat // all weights, once
	onGPU   *big.Rat // weights on each GPU: weights ÷ tp
	memory  *big.Rat // of each GPU
	usable  *big.Rat // memory × share
	room    *big.Rat // usable − onGPU; negative where the weights do not fit
	copies  *big.Rat // how often a group holds the KV cache of a call
	call    *big.Rat // KV cache of a call in its whole group
	ratio   *big.Rat // tp × room ÷ call: sequences, before they are whole
}

// sequences is how many whole sequences a group holds; 0 when the weights do not fit or
// no call does.
func (b memoryBound) sequences() *big.Int { return planFloor(b.ratio) }

// boundAt computes the bound for groups of tp GPUs.
func (in *PlanInput) boundAt(tp int64) memoryBound {
	b := memoryBound{copies: planInt(1)}
	if in.Weights > 0 {
		b.weights = planInt(in.Weights)
	} else {
		b.weights = in.Model.weights()
	}
	b.onGPU = planQuo(b.weights, planInt(tp))
	b.memory = planInt(in.GPU.memory(in.Unit))
	b.usable = new(big.Rat).Mul(b.memory, planDecimal(in.MemoryShare))
	b.room = new(big.Rat).Sub(b.usable, b.onGPU)
	if in.KVPerCall > 0 {
		b.call = planInt(in.KVPerCall)
	} else {
		b.copies = in.Model.kvCopies(tp)
		b.call = in.Model.kvOf(in.Input + in.Output)
		b.call.Mul(b.call, b.copies)
	}
	b.ratio = new(big.Rat)
	if b.room.Sign() > 0 {
		b.ratio.Mul(planInt(tp), b.room)
		b.ratio.Quo(b.ratio, b.call)
	}
	return b
}

// maxTP bounds the size of a group: 1,024 GPUs, more than any fabric joins so closely.
const maxTP = 1024

// leastTP is the smallest power of two at which the weights and at least one call fit,
// and by which the attention heads divide where they are known; 0 when there is none.
func (in *PlanInput) leastTP() int64 {
	for tp := int64(1); tp <= maxTP; tp *= 2 {
		if in.Model.Heads%tp == 0 && in.boundAt(tp).sequences().Sign() > 0 {
			return tp
		}
	}
	return 0
}

// Validate tells whether the unit is one of the two, or empty.
func (u Unit) Validate() error {
	if u != "" && u != GB && u != GiB {
		return fmt.Errorf("unit %s: want GB or GiB", planQuote(string(u)))
	}
	return nil
}
