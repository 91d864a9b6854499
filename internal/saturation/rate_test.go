package saturation

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var rates = []float64{0.5, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16}

// open is a step of an open loop.
func open(rate, achieved, ttft, tpot float64) Step {
	return Step{Load: rate, Calls: 300, Succeeded: 1, Achieved: achieved, TPM: ptr(achieved * 700 * 60), TTFTP95: ptr(ttft), TPOTP95: ptr(tpot)}
}

// TestRateKnee: calls that pile up beyond a capacity, with latencies that are
// level below it.
func TestRateKnee(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 4))
		capacity := 1.2 + 12*rng.Float64()
		var steps []Step
		for _, rate := range rates {
			ttft := 300 * (0.9 + 0.2*rng.Float64())
			if rate > capacity { // a queue that grows for 60 s
				ttft += 60000 * (rate/capacity - 1)
			}
			steps = append(steps, open(rate, noisy(rng, min(rate, capacity)), ttft, 30))
		}
		k := FindKnee(Rate, steps, Options{})
		if !within(rates, k, capacity) || k.After > capacity*1.06 || k.LastGood != k.After {
			t.Fatalf("seed %d, capacity %v: between %v and %v", seed, capacity, k.After, k.Before)
		}
		// Without latencies, only what is achieved can tell.
		for i := range steps {
			steps[i].TTFTP95, steps[i].TPOTP95 = nil, nil
		}
		if k = FindKnee(Rate, steps, Options{}); !within(rates, k, capacity) || k.After > capacity*1.09 {
			t.Fatalf("seed %d, capacity %v, no latencies: between %v and %v", seed, capacity, k.After, k.Before)
		}
	}
}

// TestRateKneeOfMM1: the latency of a single queue is 1/(µ − λ), so that power has its
// maximum at half the capacity.
func TestRateKneeOfMM1(t *testing.T) {
	loads := []float64{0.5, 1, 2, 4, 8, 16}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 5))
		capacity := 2.5 + 10*rng.Float64()
		var steps []Step
		for _, rate := range loads {
			wait := 1 / (capacity - rate)
			if rate >= capacity {
				wait = 60 * rate / capacity
			}
			steps = append(steps, open(rate, noisy(rng, min(rate, capacity)), noisy(rng, 3000*wait), 30))
		}
		if k := FindKnee(Rate, steps, Options{}); !within(loads, k, capacity/2) || k.After >= capacity {
			t.Fatalf("seed %d, capacity %v: between %v and %v", seed, capacity, k.After, k.Before)
		}
	}
}

func TestRateKneeReasons(t *testing.T) {
	steps := []Step{open(1, 1, 300, 20), open(2, 1.99, 320, 21), open(3, 2.97, 350, 23), open(4, 3.4, 9000, 31), open(6, 3.45, 30000, 32)}
	k := FindKnee(Rate, steps, Options{})
	if !k.Saturated || k.After != 3 || k.Before != 4 || k.LastGood != 3 || k.Recommended != 2.25 {
		t.Errorf("%+v", k)
	}
	want := []string{
		"The knee lies between 3/s and 4/s: from 3/s to 4/s the load rose by 33 %, TPM rose by 14 % (124,740 → 142,800), TTFT p95 350 ms → 9 s, TPOT p95 23 ms → 31 ms.",
		"Before it, from 2/s to 3/s the load rose by 50 %, TPM rose by 49 % (83,580 → 124,740), TTFT p95 320 ms → 350 ms, TPOT p95 21 ms → 23 ms.",
		"Of 4/s offered, 3.4/s were achieved (85 %), so calls pile up.",
		"2.25/s is recommended: 3/s less 25 % of headroom.",
	}
	if !slices.Equal(k.Reasons, want) {
		t.Errorf("reasons:\n%s\nwant:\n%s", strings.Join(k.Reasons, "\n"), strings.Join(want, "\n"))
	}
	if want := "95 % of calls get their first token within 350 ms, and 95 % then a token every 23 ms or faster, at up to 2.25 calls a second."; k.Promise != want {
		t.Errorf("promise: %s", k.Promise)
	}
	// Latency alone: everything is achieved, but it waits.
	steps = []Step{open(1, 1, 300, 20), open(2, 2, 320, 21), open(4, 4, 3000, 24), open(8, 7.9, 20000, 30)}
	if k := FindKnee(Rate, steps, Options{}); !k.Saturated || k.After != 2 || k.Before != 4 || !slices.Contains(k.Reasons, "From there on latency rises faster than the rate, which is how a queue grows.") {
		t.Errorf("%+v", k)
	}
}

// TestDrawnRate: a rate of which fewer calls fell due than asked for, and all were
// answered, was carried.
func TestDrawnRate(t *testing.T) {
	steps := []Step{open(1, 1, 300, 20), open(2, 1.5, 460, 21), open(3, 3.6, 470, 23)}
	steps[1].Offered, steps[2].Offered = ptr(1.5), ptr(3.6)
	if k := FindKnee(Rate, steps, Options{}); k.Saturated || k.LastGood != 3 {
		t.Errorf("%+v", k)
	}
	steps[2].Offered, steps[2].Achieved = ptr(4.0), 2.0
	if k := FindKnee(Rate, steps, Options{}); !k.Saturated || k.Before != 3 || !slices.Contains(k.Reasons, "Of 4/s offered, 2/s were achieved (50 %), so calls pile up.") {
		t.Errorf("%+v", k)
	}
}

// TestRateWithoutKnee: linear growth, and achieved rates that only lack what still
// ran at the end.
func TestRateWithoutKnee(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 6))
		var steps []Step
		for _, rate := range rates {
			drain := 1 / (1 + 5*rate/300) // 300 calls, the last of which takes 5 s
			steps = append(steps, open(rate, noisy(rng, rate*drain), 300*(0.9+0.2*rng.Float64()), 20*(1+rate/100)))
		}
		k := FindKnee(Rate, steps, Options{})
		if k.Saturated || k.After != 16 || k.LastGood != 16 || k.Recommended != 12 {
			t.Fatalf("seed %d: %+v", seed, k)
		}
	}
	k := FindKnee(Rate, []Step{open(4, 3, 300, 20)}, Options{})
	if !k.Saturated || k.After != 0 || k.Before != 4 || k.LastGood != 0 || !strings.Contains(k.Reasons[0], "of 4/s offered 3/s were achieved (75 %)") || !strings.Contains(k.Reasons[0], "single step") {
		t.Errorf("%+v", k)
	}
}

// FuzzFindKnee: whatever the steps, the answer is consistent and says why.
func FuzzFindKnee(f *testing.F) {
	f.Add(uint64(1), uint8(5), false, 0.25)
	f.Add(uint64(2), uint8(9), true, 0.0)
	f.Add(uint64(73), uint8(')'), false, -60.5) // one step that can be used: good, and no ground to recommend anything
	f.Fuzz(func(t *testing.T, seed uint64, n uint8, rate bool, headroom float64) {
		rng := rand.New(rand.NewPCG(seed, 7))
		odd := []float64{0, -1, math.NaN(), math.Inf(1), 1e-300, 1e300}
		value := func() float64 {
			if rng.IntN(12) == 0 {
				return odd[rng.IntN(len(odd))]
			}
			return math.Exp(4 * rng.NormFloat64())
		}
		figure := func() *float64 {
			if rng.IntN(5) == 0 {
				return nil
			}
			return ptr(value())
		}
		steps := make([]Step, n%40)
		for i := range steps {
			steps[i] = Step{Load: math.Ceil(value()), Succeeded: 1 - 0.02*rng.Float64(), Achieved: value(), TPM: figure(), TTFTP95: figure(), TPOTP95: figure(), Distorted: rng.IntN(9) == 0}
		}
		unit := Concurrency
		if rate {
			unit = Rate
		}
		k := FindKnee(unit, steps, Options{Headroom: headroom})
		has := func(load float64) bool {
			return load == 0 || slices.ContainsFunc(steps, func(s Step) bool { return s.Load == load && !s.Distorted })
		}
		switch {
		case len(k.Reasons) == 0, slices.Contains(k.Reasons, ""), strings.Contains(strings.Join(k.Reasons, " ")+k.Promise, "%!"):
			t.Errorf("reasons %q", k.Reasons)
		case !has(k.After), !has(k.Before), !has(k.LastGood):
			t.Errorf("loads that were not measured: %+v", k)
		case k.Saturated != (k.Before > 0), k.Saturated && k.After >= k.Before, k.LastGood > k.After:
			t.Errorf("loads in disorder: %+v", k)
		case (k.Recommended > 0) != (k.LastGood > 0 && !slices.ContainsFunc(k.Reasons, func(r string) bool { return strings.Contains(r, "too few to recommend") })),
			k.Recommended == 0 && k.Promise != "", k.Recommended > max(k.LastGood, 1), k.LastGood == 0 && k.Promise != "":
			t.Errorf("recommendation: %+v", k)
		}
	})
}
