package capacity

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
)

// planRandom is an input that makes sense: a preset or a model of its own, on some GPU.
func planRandom(rng *rand.Rand) PlanInput {
	models, gpus := Models(), GPUs()
	in := PlanInput{
		Model: models[rng.IntN(len(models))], GPU: gpus[rng.IntN(len(gpus))], Unit: []Unit{GB, GiB}[rng.IntN(2)],
		TP: 1 << rng.IntN(7), Rate: float64(1+rng.IntN(10_000)) / 100,
		TTFT: time.Duration(1 + rng.Int64N(int64(5*time.Second))), TPOT: time.Duration(rng.Int64N(int64(100 * time.Millisecond))),
		Input: 1 + rng.Int64N(20_000), Output: 1 + rng.Int64N(4000),
		Safety: float64(50+rng.IntN(51)) / 100, MemoryShare: float64(50+rng.IntN(51)) / 100,
	}
	if rng.IntN(3) == 0 {
		in.Model = Model{Params: 1 + rng.Int64N(2e11), Layers: 1 + rng.Int64N(100), KVHeads: 1 + rng.Int64N(40), HeadDim: 1 + rng.Int64N(256)}
		in.Model.Wide = rng.Int64N(in.Model.Params)
		if rng.IntN(2) == 0 {
			in.Model.Window, in.Model.WindowLayers = 1+rng.Int64N(30_000), rng.Int64N(in.Model.Layers+1)
		}
		in.TP = 1 + rng.Int64N(16)
	}
	in.Model.Dtype, in.Model.KVDtype = Dtypes[rng.IntN(len(Dtypes))], KVDtypes[rng.IntN(len(KVDtypes))]
	if rng.IntN(4) == 0 {
		in.GPU.Bytes = 1 + rng.Int64N(300e9)
	}
	if rng.IntN(4) == 0 {
		in.KVPerCall = 1 + rng.Int64N(5e9)
	}
	if rng.IntN(6) == 0 {
		in.Weights = 1 + rng.Int64N(1e12)
	}
	if rng.IntN(4) == 0 {
		in.MaxSeqs = 1 + rng.Int64N(512)
	}
	if rng.IntN(3) == 0 {
		in.TTFTP95, in.Headroom = in.TTFT*time.Duration(1+rng.IntN(20)), 0.3+float64(rng.IntN(21))/100
	}
	return in
}

// TestRecomputed works every answer out anew, in another way: layer by layer and GPU by
// GPU, and with products that are compared in place of quotients that are rounded.
func TestRecomputed(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	fits, engines := 0, 0
	for range 1500 {
		in := planRandom(rng)
		p := planOf(t, in)
		room, call := planAgain(in)
		times := func(a *big.Rat, n int64) *big.Rat { return new(big.Rat).Mul(a, big.NewRat(n, 1)) }
		if !p.Fits() {
			if call.Cmp(room) <= 0 {
				t.Fatalf("%+v: a call of %s fits in %s, and the plan says no", in, call.FloatString(0), room.FloatString(0))
			}
			continue
		}
		fits++
		group, each := p.SequencesPerGroup.Or(-1), p.SequencesPerGPU.Or(-1)
		limited := in.MaxSeqs > 0 && group == in.MaxSeqs
		if times(call, group).Cmp(room) > 0 || !limited && times(call, group+1).Cmp(room) <= 0 {
			t.Fatalf("%+v: %d sequences of %s in %s", in, group, call.FloatString(0), room.FloatString(0))
		}
		if limited {
			engines++
			if each*in.TP > group || (each+1)*in.TP <= group {
				t.Fatalf("%+v: %d on a GPU, %d in a group", in, each, group)
			}
		} else if times(call, each*in.TP).Cmp(room) > 0 || times(call, (each+1)*in.TP).Cmp(room) <= 0 {
			t.Fatalf("%+v: %d on a GPU", in, each)
		}

		// Groups are enough, and one less is not: groups × sequences × safety ≥ rate × time.
		busy := new(big.Rat).SetFrac64(int64(in.TTFT)+in.Output*int64(in.TPOT), 1e9)
		mean := busy.Mul(busy, rat(in.Rate))
		first := new(big.Rat)
		if in.TTFTP95 > 0 {
			first.Add(big.NewRat(1, 1), rat(in.Headroom))
			first.Mul(first, rat(in.Rate)).Mul(first, big.NewRat(int64(in.TTFTP95), 1e9))
		}
		enough := func(sequences int64) bool {
			return times(rat(in.Safety), sequences).Cmp(mean) >= 0 && first.Cmp(big.NewRat(sequences, 1)) <= 0
		}
		groups := p.Groups.Or(-1)
		if !enough(groups*group) || groups > 1 && enough((groups-1)*group) || groups < 1 {
			t.Fatalf("%+v: %d groups of %d for %s", in, groups, group, mean.FloatString(3))
		}
		if p.GPUs.Or(-1) != groups*in.TP {
			t.Fatalf("%d groups of %d are %d GPUs", groups, in.TP, p.GPUs.Or(-1))
		}
		least := p.GPUsAtLeast.Or(-1)
		if least > p.GPUs.Or(-1) || least < p.GPUs.Or(-1) && (!enough(least*each) || enough((least-1)*each)) {
			t.Fatalf("%+v: at least %d GPUs of %d each", in, least, each)
		}
		if one := groups == 1; one != (p.Binds == BindsMemory) {
			t.Fatalf("%+v: %s binds with %d groups", in, p.Binds, groups)
		}
		if p.Binds == BindsEngine && !limited {
			t.Fatalf("%+v: the engine binds without a limit", in)
		}
	}
	if fits < 400 || engines < 40 {
		t.Fatalf("only %d of the inputs fit, %d with an engine's limit", fits, engines)
	}
}

// planAgain is the room for KV cache in a group and what a call takes of it, in bytes.
func planAgain(in PlanInput) (room, call *big.Rat) {
	memory := big.NewRat(in.GPU.Bytes, 1)
	if in.GPU.Bytes == 0 {
		memory = big.NewRat(in.GPU.Stated, 1)
		thousand := int64(1000)
		if in.Unit == GiB {
			thousand = 1024
		}
		for range 3 {
			memory.Mul(memory, big.NewRat(thousand, 1))
		}
	}
	room = memory.Mul(memory, rat(in.MemoryShare))
	room.Mul(room, big.NewRat(in.TP, 1))
	weights := big.NewRat(in.Weights, 1)
	if in.Weights == 0 {
		narrow := map[Dtype]*big.Rat{FP32: big.NewRat(4, 1), BF16: big.NewRat(2, 1), FP16: big.NewRat(2, 1), FP8: big.NewRat(1, 1), INT8: big.NewRat(1, 1),
			NVFP4: big.NewRat(9, 16), MXFP4: big.NewRat(17, 32), INT4: big.NewRat(133, 256)}[in.Model.Dtype]
		wide := in.Model.Wide
		if narrow.Cmp(big.NewRat(2, 1)) >= 0 {
			wide = 0
		}
		weights.Mul(narrow, big.NewRat(in.Model.Params-wide, 1))
		weights.Add(weights, big.NewRat(2*wide, 1))
	}
	room.Sub(room, weights)
	if in.KVPerCall > 0 {
		return room, big.NewRat(in.KVPerCall, 1)
	}
	m := in.Model
	bytes := map[Dtype]int64{FP32: 4, BF16: 2, FP16: 2, FP8: 1, INT8: 1}[m.KVDtype]
	var perGPU int64
	heads := int64(0) // of the fullest GPU: deal them out one by one
	for dealt := int64(0); dealt < m.KVHeads; dealt += in.TP {
		heads++
	}
	for layer := range m.Layers {
		tokens := in.Input + in.Output
		if layer < m.WindowLayers && tokens > m.Window {
			tokens = m.Window
		}
		if m.KVRank > 0 {
			perGPU += tokens * (m.KVRank + m.RopeDim) * bytes
		} else {
			perGPU += tokens * 2 * heads * m.HeadDim * bytes
		}
	}
	return room, new(big.Rat).Mul(big.NewRat(perGPU, 1), big.NewRat(in.TP, 1))
}

// rat is a number of at most two decimals.
func rat(f float64) *big.Rat { return big.NewRat(int64(f*100+0.5), 100) }

// TestMonotone: more of what helps never means fewer sequences or more GPUs, and more of
// what burdens never means the opposite.
func TestMonotone(t *testing.T) {
	changes := map[string]func(*PlanInput, *rand.Rand) bool{ // false when there is nothing to change
		"more memory": func(in *PlanInput, r *rand.Rand) bool {
			in.GPU.Bytes = in.GPU.memory(in.Unit) + 1 + r.Int64N(1e10)
			return true
		},
		"a larger share": func(in *PlanInput, _ *rand.Rand) bool { in.MemoryShare += (1 - in.MemoryShare) / 2; return true },
		"fewer weights": func(in *PlanInput, _ *rand.Rand) bool {
			in.Model.Params -= (in.Model.Params - in.Model.Wide) / 2
			return in.Model.Params > 0 && in.Weights == 0
		},
		"a shorter input": func(in *PlanInput, r *rand.Rand) bool { in.Input = max(1, in.Input-r.Int64N(1000)); return true },
		"a narrow cache":  func(in *PlanInput, _ *rand.Rand) bool { in.Model.KVDtype = FP8; return true },
		"a lower rate":    func(in *PlanInput, _ *rand.Rand) bool { in.Rate /= 2; return true },
		"a faster prompt": func(in *PlanInput, _ *rand.Rand) bool { in.TTFT /= 2; return in.TTFT > 0 },
		"faster tokens":   func(in *PlanInput, _ *rand.Rand) bool { in.TPOT /= 2; return true },
		"shorter answers": func(in *PlanInput, _ *rand.Rand) bool { in.Output = (in.Output + 1) / 2; return true },
		"less safety":     func(in *PlanInput, _ *rand.Rand) bool { in.Safety += (1 - in.Safety) / 2; return true },
		"no limit":        func(in *PlanInput, _ *rand.Rand) bool { in.MaxSeqs = 0; return true },
		"no factor":       func(in *PlanInput, _ *rand.Rand) bool { in.TTFTP95 = 0; return true },
	}
	for name, change := range changes {
		rng := rand.New(rand.NewPCG(7, 8))
		tried := 0
		for range 100 {
			in := planRandom(rng)
			before := planOf(t, in)
			if !change(&in, rng) {
				continue
			}
			after := planOf(t, in)
			if !before.Fits() {
				continue
			}
			tried++
			if !after.Fits() || after.SequencesPerGroup.Or(0) < before.SequencesPerGroup.Or(0) || after.GPUs.Or(0) > before.GPUs.Or(0) ||
				after.SequencesNeeded > before.SequencesNeeded {
				t.Fatalf("%s: %d sequences became %d, %d GPUs %d; %+v", name, before.SequencesPerGroup.Or(0), after.SequencesPerGroup.Or(0),
					before.GPUs.Or(0), after.GPUs.Or(0), in)
			}
		}
		if tried < 15 {
			t.Errorf("%s: tried only %d times", name, tried)
		}
	}
}
