package saturation

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func ptr(v float64) *float64 { return &v }

// step is a step of a closed loop, all of whose calls succeeded. A call is 700
// tokens, unless tpm says otherwise.
func step(load, achieved float64) Step {
	return Step{Load: load, Calls: 100, Succeeded: 1, Achieved: achieved, TPM: ptr(achieved * 700 * 60)}
}

// issue is a ladder measured on a real service.
func issue() []Step {
	var steps []Step
	tpm := []float64{4210, 15200, 27800, 30100, 30500}
	ttft := []float64{820, 950, 1300, 3400, 8900}
	tpot := []float64{18.3, 21, 26.5, 41.2, 68.7}
	for i, load := range []float64{1, 4, 8, 16, 32} {
		steps = append(steps, Step{Load: load, Calls: 200, Succeeded: 1, Achieved: tpm[i] / 60 / 700, TPM: &tpm[i], TTFTP95: &ttft[i], TPOTP95: &tpot[i]})
	}
	return steps
}

func TestKneeOfALadder(t *testing.T) {
	k := FindKnee(Concurrency, issue(), Options{})
	if !k.Saturated || k.After != 8 || k.Before != 16 || k.LastGood != 8 || k.Recommended != 6 || k.Unit != Concurrency {
		t.Errorf("%+v", k)
	}
	want := []string{
		"The knee lies between 8 and 16: from 8 to 16 the load doubled, TPM rose by 8 % (27,800 → 30,100), TTFT p95 1.3 s → 3.4 s, TPOT p95 26.5 ms → 41.2 ms.",
		"Before it, from 4 to 8 the load doubled, TPM rose by 83 % (15,200 → 27,800), TTFT p95 950 ms → 1.3 s, TPOT p95 21 ms → 26.5 ms.",
		"By Little's law the mean call took 12.1 s at 8 and takes 22.3 s at 16: what is added waits.",
		"6 is recommended: 8 less 25 % of headroom.",
	}
	if !slices.Equal(k.Reasons, want) {
		t.Errorf("reasons:\n%s\nwant:\n%s", strings.Join(k.Reasons, "\n"), strings.Join(want, "\n"))
	}
	if want := "95 % of calls get their first token within 1.3 s, and 95 % then a token every 26.5 ms or faster, at up to 6 concurrent calls."; k.Promise != want {
		t.Errorf("promise: %s\nwant: %s", k.Promise, want)
	}

	// Neither order nor what is known beside throughput decides.
	steps := issue()
	slices.Reverse(steps)
	if again := FindKnee(Concurrency, steps, Options{}); again.After != 8 || !slices.Equal(again.Reasons, want) {
		t.Errorf("in another order: %+v", again)
	}
	if steps[0].Load != 32 {
		t.Error("the steps of the caller were sorted")
	}
	for i := range steps {
		steps[i].TPM, steps[i].TTFTP95, steps[i].TPOTP95 = nil, nil, nil
	}
	bare := FindKnee(Concurrency, steps, Options{})
	if !bare.Saturated || bare.After != 8 || bare.Before != 16 || bare.Recommended != 6 || bare.Promise != "" || !strings.Contains(bare.Reasons[0], "throughput rose by 8 % (0.662/s → 0.717/s).") {
		t.Errorf("%+v", bare)
	}
}

// TestKneeNotReached: a run that does not saturate says so, and what to do.
func TestKneeNotReached(t *testing.T) {
	k := FindKnee(Concurrency, issue()[:3], Options{})
	if k.Saturated || k.After != 8 || k.Before != 0 || k.LastGood != 8 || k.Recommended != 6 || k.Promise == "" {
		t.Errorf("%+v", k)
	}
	if !strings.HasPrefix(k.Reasons[0], "The service did not saturate: from 4 to 8 the load doubled, TPM rose by 83 %") ||
		k.Reasons[1] != "The knee lies above 8: add higher loads, such as 16 and 32." {
		t.Errorf("%q", k.Reasons)
	}
	k = FindKnee(Concurrency, issue()[:1], Options{})
	if k.Saturated || k.LastGood != 1 || k.Recommended != 0 || k.Promise != "" || k.Reasons[0] != "One step, 1, shows no knee: measure at least three loads." ||
		k.Reasons[1] != "One usable step is too few to recommend a load." {
		t.Errorf("%+v", k)
	}
	k = FindKnee(Concurrency, issue()[:2], Options{TTFT: 900 * time.Millisecond})
	if k.LastGood != 1 || k.Recommended != 1 || !slices.Contains(k.Reasons, "1 is recommended: 1 less 25 % of headroom, and at least 1.") || !strings.HasSuffix(k.Promise, "at one call at a time.") {
		t.Errorf("%+v", k)
	}
}

// TestGoodSteps: failures and objectives bound what is good, and leave the knee
// where it is.
func TestGoodSteps(t *testing.T) {
	for name, c := range map[string]struct {
		change func([]Step)
		o      Options
		good   float64
		rec    float64
		says   string
	}{
		"all good":            {nil, Options{}, 8, 6, ""},
		"more headroom":       {nil, Options{Headroom: 0.5}, 8, 4, "4 is recommended: 8 less 50 % of headroom."},
		"headroom past range": {nil, Options{Headroom: 1.5}, 8, 6, "6 is recommended: 8 less 25 % of headroom."},
		"failures at 8":       {func(s []Step) { s[2].Succeeded = 0.985 }, Options{}, 4, 3, "From 8 on steps are not good: 1.5 % of calls failed there, and 1 % is the most."},
		"failures at 1":       {func(s []Step) { s[0].Succeeded = 0.5 }, Options{}, 0, 0, "From 1 on steps are not good: 50 % of calls failed there, and 1 % is the most."},
		"one in a hundred":    {func(s []Step) { s[2].Succeeded = 0.99 }, Options{}, 8, 6, ""},
		"success unknown":     {func(s []Step) { s[2].Succeeded = math.NaN() }, Options{}, 4, 3, "From 8 on"},
		"TTFT":                {nil, Options{TTFT: time.Second}, 4, 3, "From 8 on steps are not good: the TTFT p95 is 1.3 s there, and the objective 1 s."},
		"TPOT":                {nil, Options{TTFT: 10 * time.Second, TPOT: 20 * time.Millisecond}, 1, 1, "From 4 on steps are not good: the TPOT p95 is 21 ms there, and the objective 20 ms."},
		"kept":                {nil, Options{TTFT: 1300 * time.Millisecond, TPOT: 30 * time.Millisecond}, 8, 6, ""},
		"beyond the knee":     {nil, Options{TTFT: 20 * time.Second}, 8, 6, ""},
		"TTFT not known":      {func(s []Step) { s[1].TTFTP95 = nil }, Options{TTFT: time.Second}, 1, 1, "From 4 on steps are not good: the TTFT p95 is not known there, so the objective of 1 s cannot be shown to be kept."},
	} {
		steps := issue()
		if c.change != nil {
			c.change(steps)
		}
		k := FindKnee(Concurrency, steps, c.o)
		if !k.Saturated || k.After != 8 || k.Before != 16 || k.LastGood != c.good || k.Recommended != c.rec || (k.Promise == "") != (c.good == 0) {
			t.Errorf("%s: %+v", name, k)
		}
		if !slices.ContainsFunc(k.Reasons, func(r string) bool { return strings.HasPrefix(r, c.says) }) {
			t.Errorf("%s: %q lacks %q", name, k.Reasons, c.says)
		}
	}
	k := FindKnee(Concurrency, issue(), Options{TTFT: 2 * time.Second, TPOT: 30 * time.Millisecond})
	if want := "95 % of calls get their first token within 2 s (measured: 1.3 s), and 95 % then a token every 30 ms (measured: 26.5 ms) or faster, at up to 6 concurrent calls."; k.Promise != want {
		t.Errorf("promise: %s\nwant: %s", k.Promise, want)
	}
}

// TestOddLadders: what is missing, double, distorted or nonsense.
func TestOddLadders(t *testing.T) {
	for name, c := range map[string]struct {
		steps []Step
		says  string
	}{
		"none":      {nil, "No step of the ladder can be used."},
		"no calls":  {[]Step{{Load: 1}, {Load: 2}}, "No call succeeded on any step: run weir doctor against the endpoint first."},
		"nonsense":  {[]Step{{Load: math.NaN(), Achieved: 1}, {Load: -1, Achieved: 1}, {Load: 2, Achieved: math.Inf(1)}}, "No step of the ladder can be used."},
		"distorted": {[]Step{{Load: 1, Achieved: 1, Succeeded: 1, Distorted: true}}, "No step of the ladder can be used: run the ladder again on a quieter machine."},
	} {
		k := FindKnee(Concurrency, c.steps, Options{})
		if k.Saturated || k.After != 0 || k.LastGood != 0 || k.Recommended != 0 || k.Promise != "" || len(k.Reasons) == 0 || k.Reasons[0] != c.says {
			t.Errorf("%s: %+v", name, k)
		}
	}
	steps := append(issue(), Step{Load: 64, Achieved: 3, Succeeded: 1, TPM: ptr(90000), Distorted: true}, Step{Load: 2, Achieved: math.NaN()})
	steps = slices.Insert(steps, 0, Step{Load: 8, Achieved: 5, Succeeded: 1, TPM: ptr(1)})
	k := FindKnee(Concurrency, steps, Options{})
	if !k.Saturated || k.After != 8 || k.Before != 16 || k.Recommended != 6 {
		t.Errorf("%+v", k)
	}
	for _, says := range []string{
		"Left out: 64 (the load test itself was too slow there, so its times are not the service's).",
		"Left out: 2 (load or throughput is not a positive number there).",
		"Left out: 8 (an earlier measurement at the same load; the last one counts).",
	} {
		if !slices.Contains(k.Reasons, says) {
			t.Errorf("%q lacks %q", k.Reasons, says)
		}
	}
	// A step on which nothing succeeded is a step: the service broke down there.
	steps = append(issue()[:3], Step{Load: 16, Calls: 50})
	if k := FindKnee(Concurrency, steps, Options{}); !k.Saturated || k.After != 8 || k.Before != 16 || !strings.Contains(strings.Join(k.Reasons, " "), "At 16 100 % of calls failed") {
		t.Errorf("%+v", k)
	}
	// Throughput that stands still while nothing is slower is remarked upon.
	steps = issue()
	steps[3].TTFTP95, steps[4].TTFTP95, steps[3].TPOTP95, steps[4].TPOTP95 = ptr(1310), ptr(1320), ptr(26.5), ptr(27)
	if k := FindKnee(Concurrency, steps, Options{}); !strings.Contains(strings.Join(k.Reasons, " "), "Yet neither TTFT nor TPOT rose") {
		t.Errorf("%q", k.Reasons)
	}
}

// TestLateClient: a step that the client's delay hardly touches is used and that is
// said; of fewer than two usable ones nothing is recommended.
func TestLateClient(t *testing.T) {
	steps := issue()
	steps[2].Delay = ptr(13)
	k := FindKnee(Concurrency, steps, Options{})
	if k.Recommended != 6 || !slices.Contains(k.Reasons, "Used although the load test itself was late there, by p99: 8 by 13 ms, 1 % of the TTFT p95.") {
		t.Errorf("%+v", k)
	}
	for i := range steps[1:] {
		steps[i+1].Distorted, steps[i+1].Delay = true, ptr(2000)
	}
	k = FindKnee(Concurrency, steps, Options{})
	if k.Recommended != 0 || k.Promise != "" || !slices.Contains(k.Reasons, "One usable step is too few to recommend a load: run the ladder again on a quieter machine.") {
		t.Errorf("%+v", k)
	}
	steps[1].Distorted = false
	if k = FindKnee(Concurrency, steps, Options{}); k.Recommended != 3 || k.Promise == "" {
		t.Errorf("two steps: %+v", k)
	}
}

// ladders are ways to choose loads.
var ladders = map[string][]float64{
	"doubling":  {1, 2, 4, 8, 16, 32, 64, 128, 256},
	"issue":     {1, 4, 8, 16, 32, 64, 128},
	"even":      {4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64},
	"irregular": {1, 3, 5, 10, 15, 30, 50, 75, 100, 200},
}

// noisy scatters throughput by up to 3 % either way.
func noisy(rng *rand.Rand, v float64) float64 { return v * (1 + 0.03*(2*rng.Float64()-1)) }

// within tells whether a load lies within the reported gap of a ladder, or one step
// to either side of it.
func within(loads []float64, k Knee, true_ float64) bool {
	i := slices.Index(loads, k.After) // −1 when the first step is beyond the knee
	low, high := 0.0, math.Inf(1)
	if i > 0 {
		low = loads[i-1]
	}
	if i+2 < len(loads) {
		high = loads[i+2]
	}
	return k.Saturated && low <= true_ && true_ <= high
}

// curves are closed loops whose saturation point follows from their formula.
var curves = map[string]func(n, at float64) float64{
	// A server with a fixed number of slots, each call taking a second: full at at calls.
	"slots": func(n, at float64) float64 { return min(n, at) },
	// Steps of a batch take a + b·n; throughput n/(a + b·n) has its greatest power at a/b.
	"batch": func(n, at float64) float64 { return n / (1 + n/at) },
	// A batch up to at, and beyond it memory runs out and work is done twice.
	"thrashing": func(n, at float64) float64 { return min(n, at) * min(1, math.Pow(at/n, 0.4)) },
	// A roofline with a round shoulder: bounds of 4 in the norm of both asymptotes.
	"shoulder": func(n, at float64) float64 { return n / math.Pow(1+math.Pow(n/at, 4), 0.25) },
	// Machine repairmen: n users who think at−1 seconds, and one exponential server of a
	// second; the asymptotes meet at at users.
	"M/M/1": repair,
}

// repair is the throughput of n users that think for at−1 seconds and are served one
// after the other for a second, exponentially distributed, by mean value analysis.
func repair(n, at float64) float64 {
	queue, x := 0.0, 0.0
	for i := 1.0; i <= n; i++ {
		residence := 1 + queue
		x = i / (at - 1 + residence)
		queue = x * residence
	}
	return x
}

// TestKneeOfCurves: whatever the curve, the ladder and the noise, the knee is found
// within one step of where it is.
func TestKneeOfCurves(t *testing.T) {
	for name, curve := range curves {
		for ladder, loads := range ladders {
			for _, at := range []float64{6, 9, 12, 20, 28} {
				missed, trials := 0, 0
				for seed := range uint64(200) {
					rng := rand.New(rand.NewPCG(seed, 1))
					var steps []Step
					for _, n := range loads {
						steps = append(steps, step(n, noisy(rng, curve(n, at))))
					}
					trials++
					if k := FindKnee(Concurrency, steps, Options{}); !within(loads, k, at) {
						if missed++; missed == 1 {
							t.Logf("%s of %v on %s, seed %d: between %v and %v", name, at, ladder, seed, k.After, k.Before)
						}
					}
				}
				if missed > 0 {
					t.Errorf("%s of %v on %s: %d of %d missed", name, at, ladder, missed, trials)
				}
			}
		}
	}
}

// TestLinearGrowthHasNoKnee: neither noise nor a single step that stands out makes
// a knee of a service that grows with its load.
func TestLinearGrowthHasNoKnee(t *testing.T) {
	for ladder, loads := range ladders {
		for seed := range uint64(300) {
			rng := rand.New(rand.NewPCG(seed, 2))
			var steps []Step
			for _, n := range loads {
				steps = append(steps, step(n, noisy(rng, n)))
			}
			k := FindKnee(Concurrency, steps, Options{})
			if top := loads[len(loads)-1]; k.Saturated || k.After != top || k.LastGood != top {
				t.Fatalf("%s, seed %d: %+v", ladder, seed, k)
			}
			// One step in between with a third less, as a hiccup would have it.
			i := 1 + rng.IntN(len(steps)-3)
			steps[i].Achieved *= 0.67
			*steps[i].TPM *= 0.67
			if k := FindKnee(Concurrency, steps, Options{}); k.Saturated {
				t.Fatalf("%s, seed %d, less at %v: %+v", ladder, seed, loads[i], k)
			}
		}
	}
}

// TestFlatFromTheStart: when no load brings more than the least, the knee lies
// before it; a concurrency of 1 is as low as there is.
func TestFlatFromTheStart(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		for first := 1.0; first <= 8; first *= 2 {
			var steps []Step
			for n := first; n <= 16*first; n *= 2 {
				steps = append(steps, step(n, noisy(rng, 2)))
			}
			k := FindKnee(Concurrency, steps, Options{})
			if first == 1 {
				if !k.Saturated || k.After != 1 || k.Before != 2 || k.LastGood != 1 || k.Recommended != 1 {
					t.Fatalf("seed %d from 1: %+v", seed, k)
				}
				continue
			}
			if !k.Saturated || k.After != 0 || k.Before != first || k.LastGood != 0 || k.Recommended != 0 || k.Promise != "" ||
				!strings.HasPrefix(k.Reasons[0], fmt.Sprintf("The knee lies at or below %v, the lowest load measured", first)) {
				t.Fatalf("seed %d from %v: %+v", seed, first, k)
			}
		}
	}
}
