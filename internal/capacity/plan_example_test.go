package capacity

import (
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"
)

// planExample is the worked example: 70 B parameters of 2 bytes, TP 8, 80 GB, 2.6 GB of
// KV cache for each call, 20 calls/s, TTFT 0.3 s, TPOT 25 ms, 256 output tokens, safety 0.7.
func planExample() PlanInput {
	return PlanInput{
		Model: Model{Params: 70e9, Dtype: BF16}, GPU: GPU{Stated: 80}, Unit: GB, TP: 8, Rate: 20,
		TTFT: 300 * time.Millisecond, TPOT: 25 * time.Millisecond, Output: 256,
		Safety: 0.7, MemoryShare: 0.9, KVPerCall: 2_600_000_000,
	}
}

func planOf(t *testing.T, in PlanInput) Plan {
	t.Helper()
	p, err := in.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func planShown(t *testing.T, p Plan, name string) string {
	t.Helper()
	i := slices.IndexFunc(p.Figures, func(f PlanFigure) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("the plan lacks %s", name)
	}
	return p.Figures[i].Shown
}

// TestWorkedExample is the example of the field, in both readings of "GB".
func TestWorkedExample(t *testing.T) {
	decimal := planExample()
	binary := planExample()
	binary.Unit = GiB
	binary.KVPerCall = 26 << 30 / 10
	for name, c := range map[string]struct {
		in    PlanInput
		shown map[string]string
	}{
		"decimal": {decimal, map[string]string{
			"weights": "140 GB", "weights_per_gpu": "17.5 GB", "memory_per_gpu": "80 GB", "usable_per_gpu": "72 GB", "room_per_gpu": "54.5 GB",
			"kv_per_call": "2.6 GB", "memory_sequences_per_group": "167 sequences", "sequences_per_gpu": "20 sequences",
			"mean_concurrency": "134 calls", "sequences_needed": "191.43 sequences", "gpus_at_least": "10 GPUs", "groups": "2 groups", "gpus": "16 GPUs", "mean_batch": "67 sequences",
		}},
		"binary": {binary, map[string]string{
			"weights": "130.39 GiB", "weights_per_gpu": "16.298 GiB", "memory_per_gpu": "80 GiB", "usable_per_gpu": "72 GiB", "room_per_gpu": "55.702 GiB",
			"kv_per_call": "2.6 GiB", "memory_sequences_per_group": "171 sequences", "sequences_per_gpu": "21 sequences",
			"mean_concurrency": "134 calls", "sequences_needed": "191.43 sequences", "gpus_at_least": "10 GPUs", "groups": "2 groups", "gpus": "16 GPUs", "mean_batch": "67 sequences",
		}},
	} {
		p := planOf(t, c.in)
		for figure, want := range c.shown {
			if got := planShown(t, p, figure); got != want {
				t.Errorf("%s: %s is %s, want %s", name, figure, got, want)
			}
		}
		if p.MeanConcurrency != 134 || p.GPUs.Or(0) != 16 || p.Groups.Or(0) != 2 || p.GPUsAtLeast.Or(0) != 10 || p.Binds != BindsConcurrency || p.LeastTP.Or(0) != 2 || p.Warnings != nil {
			t.Errorf("%s: %+v", name, p)
		}
		text, other := p.Text(), " GiB"
		if name == "binary" {
			other = " GB"
		}
		for line := range strings.Lines(text) {
			if strings.Contains(line, other) {
				t.Errorf("%s: the unit is mixed: %s", name, line)
			}
		}
	}
	p := planOf(t, decimal)
	i := slices.IndexFunc(p.Figures, func(f PlanFigure) bool { return f.Name == "sequences_per_gpu" })
	if f := p.Figures[i].Formula; f != "floor of 20.961 = 167.69 ÷ TP 8" {
		t.Errorf("20 sequences come from: %s", f)
	}
	if got := GiB.of(planInt(140e9)).FloatString(1); got != "130.4" {
		t.Errorf("140 GB are %s GiB", got)
	}
}

// TestMeasuredExample: the same load, with TTFT and TPOT as they were measured at that
// batch and not as they were wished for, needs a group more.
func TestMeasuredExample(t *testing.T) {
	in := planExample()
	in.TTFT, in.TPOT = 600*time.Millisecond, 45*time.Millisecond
	p := planOf(t, in)
	// 20 × (0.6 + 256 × 0.045) = 242.4; ÷ 0.7 = 346.29; ÷ 20 = 17.3; ÷ 167 = 2.07.
	for figure, want := range map[string]string{
		"mean_concurrency": "242.4 calls", "sequences_needed": "346.29 sequences", "sequences_per_gpu": "20 sequences",
		"gpus_at_least": "18 GPUs", "groups": "3 groups", "gpus": "24 GPUs", "mean_batch": "80.8 sequences",
	} {
		if got := planShown(t, p, figure); got != want {
			t.Errorf("%s is %s, want %s", figure, got, want)
		}
	}
	if p.GPUs.Or(0) != 24 || p.Binds != BindsConcurrency {
		t.Errorf("%d GPUs, %s", p.GPUs.Or(0), p.Binds)
	}
	// Each of the two counts: with one of them as before the answer is between.
	in.TTFT = 300 * time.Millisecond
	if p := planOf(t, in); p.MeanConcurrency != 236.4 {
		t.Errorf("with the first TTFT: %v at once", p.MeanConcurrency)
	}
	in.TTFT, in.TPOT = 600*time.Millisecond, 25*time.Millisecond
	if p := planOf(t, in); p.MeanConcurrency != 140 || p.GPUs.Or(0) != 16 {
		t.Errorf("with the first TPOT: %v at once, %d GPUs", p.MeanConcurrency, p.GPUs.Or(0))
	}
}

// TestOneChange: each input, changed alone, moves the answer the way it should.
func TestOneChange(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*PlanInput)
		gpus   int64
		binds  Binding
	}{
		"as it is":                            {func(*PlanInput) {}, 16, BindsConcurrency},
		"half the rate":                       {func(in *PlanInput) { in.Rate = 10 }, 8, BindsMemory},
		"fp8 weights":                         {func(in *PlanInput) { in.Model.Dtype = FP8 }, 8, BindsMemory}, // 194 sequences a group
		"half the KV":                         {func(in *PlanInput) { in.KVPerCall /= 2 }, 8, BindsMemory},
		"TP 4":                                {func(in *PlanInput) { in.TP = 4 }, 16, BindsConcurrency},  // 56 a group
		"TP 2":                                {func(in *PlanInput) { in.TP = 2 }, 384, BindsConcurrency}, // 2 GB of room: 1 a group
		"more memory":                         {func(in *PlanInput) { in.GPU.Stated = 141 }, 8, BindsMemory},
		"no safety":                           {func(in *PlanInput) { in.Safety = 1 }, 8, BindsMemory},
		"a smaller share":                     {func(in *PlanInput) { in.MemoryShare = 0.5 }, 24, BindsConcurrency},
		"longer answers":                      {func(in *PlanInput) { in.Output = 512 }, 24, BindsConcurrency},
		"given weights":                       {func(in *PlanInput) { in.Weights = 39_800_000_000 }, 8, BindsMemory},
		"engine's limit":                      {func(in *PlanInput) { in.MaxSeqs = 64 }, 24, BindsEngine},
		"engine's limit that changes nothing": {func(in *PlanInput) { in.MaxSeqs = 100 }, 16, BindsConcurrency},
		"engine's limit beyond memory":        {func(in *PlanInput) { in.MaxSeqs = 256 }, 16, BindsConcurrency},
	} {
		in := planExample()
		c.change(&in)
		if p := planOf(t, in); p.GPUs.Or(0) != c.gpus || p.Binds != c.binds {
			t.Errorf("%s: %d GPUs, %s; want %d, %s", name, p.GPUs.Or(0), p.Binds, c.gpus, c.binds)
		}
	}
}

// TestConcurrencyFactor: rate × TTFT p95 × (1 + headroom) counts where it is more than
// Little's law asks for.
func TestConcurrencyFactor(t *testing.T) {
	in := planExample()
	in.TTFTP95, in.Headroom = 2*time.Second, 0.4
	p := planOf(t, in)
	if got := planShown(t, p, "concurrency_factor"); got != "56 calls" {
		t.Errorf("the factor is %s", got)
	}
	if p.SequencesNeeded < 191.42 || p.SequencesNeeded > 191.43 || p.GPUs.Or(0) != 16 {
		t.Errorf("a small factor changed the answer: %v, %d GPUs", p.SequencesNeeded, p.GPUs.Or(0))
	}
	in.TTFTP95 = 20 * time.Second
	if p = planOf(t, in); p.SequencesNeeded != 560 || p.GPUs.Or(0) != 32 || p.MeanConcurrency != 134 {
		t.Errorf("a large factor: %v, %d GPUs", p.SequencesNeeded, p.GPUs.Or(0))
	}
	in.Headroom = 0 // the default
	if p = planOf(t, in); planShown(t, p, "concurrency_factor") != "520 calls" {
		t.Errorf("at the default headroom: %s", planShown(t, p, "concurrency_factor"))
	}
}

// TestExactEdges: a whole number is not missed by the rounding of floating point.
func TestExactEdges(t *testing.T) {
	// 0.9 × 80 GB − 17.5 GB = 54.5 GB, and 8 × 54.5 ÷ 4.36 is 100 exactly.
	in := planExample()
	in.KVPerCall = 4_360_000_000
	if p := planOf(t, in); p.SequencesPerGroup.Or(0) != 100 {
		t.Errorf("%d sequences, want 100", p.SequencesPerGroup.Or(0))
	}
	in.KVPerCall++
	if p := planOf(t, in); p.SequencesPerGroup.Or(0) != 99 {
		t.Errorf("a byte more: %d sequences, want 99", p.SequencesPerGroup.Or(0))
	}
	// 134 ÷ 0.67 is 200 exactly: two groups of 100.
	in.KVPerCall, in.Safety = 4_360_000_000, 0.67
	if p := planOf(t, in); p.Groups.Or(0) != 2 || p.SequencesNeeded != 200 {
		t.Errorf("%d groups for %v", p.Groups.Or(0), p.SequencesNeeded)
	}
	in.TTFT++
	if p := planOf(t, in); p.Groups.Or(0) != 3 {
		t.Errorf("a nanosecond more: %d groups", p.Groups.Or(0))
	}
}

// TestAtLeast: whole sequences on each GPU never ask for more than whole groups do.
func TestAtLeast(t *testing.T) {
	in := planExample()
	in.KVPerCall = 40_000_000_000 // 8 × 54.5 ÷ 40: 10 a group, 1 a GPU
	in.Rate, in.Safety = 1, 1     // 6.7 at once
	p := planOf(t, in)
	if p.SequencesPerGroup.Or(0) != 10 || p.SequencesPerGPU.Or(-1) != 1 || p.GPUs.Or(0) != 8 || p.GPUsAtLeast.Or(0) != 7 {
		t.Errorf("%d a group, %d a GPU, %d GPUs, at least %d", p.SequencesPerGroup.Or(0), p.SequencesPerGPU.Or(-1), p.GPUs.Or(0), p.GPUsAtLeast.Or(0))
	}
	in.Rate = 1.4 // 9.38 at once, which the one group holds
	if p = planOf(t, in); p.GPUs.Or(0) != 8 || p.GPUsAtLeast.Or(0) != 8 {
		t.Errorf("%d GPUs, at least %d", p.GPUs.Or(0), p.GPUsAtLeast.Or(0))
	}
	in.KVPerCall = 100_000_000_000 // 4 a group, none on a GPU alone
	if p = planOf(t, in); p.SequencesPerGPU.Or(-1) != 0 || p.GPUsAtLeast != p.GPUs {
		t.Errorf("%d a GPU, at least %d of %d", p.SequencesPerGPU.Or(-1), p.GPUsAtLeast.Or(0), p.GPUs.Or(0))
	}
}

// TestLittle: the same law as the part that works from live calls has.
func TestPlanLittle(t *testing.T) {
	in := planExample()
	if law := Little(20, 0.3, 256, 0.025); in.load().mean.Cmp(new(big.Rat).SetInt64(int64(law+0.5))) != 0 {
		t.Errorf("Little's law is %v there, and %s here", law, in.load().mean)
	}
	in.TTFTP95, in.Headroom = 2*time.Second, 0.5
	if f, err := ConcurrencyFactor(20, 2, 0.5); err != nil || planFloat(in.load().factor) != f {
		t.Errorf("the factor is %v, %v there, and %s here", f, err, in.load().factor)
	}
}
