package capacity

import (
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/sim"
	"github.com/weirgate/weir/internal/stats"
)

// engineOf is the model's engine with the costs and limits that a simulated one has.
func engineOf(cfg sim.Config) liveEngine {
	return liveEngine{slots: cfg.Slots, tokens: float64(cfg.BatchTokens), kv: float64(cfg.KVBlocks * cfg.BlockTokens), kvScale: 1,
		cost: liveCost{gamma: 1, alpha: cfg.DecodeBase.Seconds(), beta: cfg.DecodePerSequence.Seconds(),
			base: cfg.PrefillBase.Seconds(), perToken: cfg.PrefillPerToken.Seconds()}}
}

// arrivalsOf reads the calls that an engine had as a mix, and when they came.
func arrivalsOf(list []sim.Truth) (items []liveItem, ttfts []float64) {
	last := list[0].Arrival
	for _, t := range list {
		items = append(items, liveItem{gap: t.Arrival.Sub(last).Seconds(), input: float64(t.Input), uncached: float64(t.Input - t.Cached), output: float64(t.Output), judged: true})
		ttfts = append(ttfts, t.FirstToken.Sub(t.Arrival).Seconds())
		last = t.Arrival
	}
	return items, ttfts
}

// simulated runs calls through an engine without effects that the model lacks.
func simulated(t *testing.T, cfg sim.Config, rate float64, n int, words int) []sim.Truth {
	s := shape{engine: cfg, words: [2]int{5, words}, tokens: [2]int{1, 60}, objective: time.Second}
	s.engine.NoPrefixCache = true
	var list []sim.Truth
	synctest.Test(t, func(t *testing.T) {
		s.engine.Truths = n
		e, err := sim.Start(s.engine)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		rng := rand.New(rand.NewPCG(7, 7))
		bodies := s.bodies(n, rng, func(int) bool { return false })
		s.drive(n, rng, func(int) float64 { return rate }, func(i int) {
			r := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(bodies[i]))
			r.Header.Set("X-Request-Id", strconv.Itoa(i))
			e.ServeHTTP(toNowhere(), r)
		})
		list = e.Truths()
	})
	return list
}

// TestReplayIsTheEngine: where an engine has no effect that the model lacks, the replay of
// its calls gives every call the very time to the first token that it had.
func TestReplayIsTheEngine(t *testing.T) {
	ms, us := time.Millisecond, time.Microsecond
	base := sim.Config{FrontendTime: sim.None, PrefillBase: 9 * ms, PrefillPerToken: 70 * us, DecodeBase: 11 * ms, DecodePerSequence: 300 * us, BlockTokens: 1, KVBlocks: 1 << 20}
	for name, change := range map[string]func(*sim.Config){
		"slots":  func(c *sim.Config) { c.Slots, c.BatchTokens = 6, 2048 },
		"chunks": func(c *sim.Config) { c.Slots, c.BatchTokens = 64, 128 },
		"idle":   func(c *sim.Config) { c.Slots, c.BatchTokens = 512, 4096 },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := base
			change(&cfg)
			list := simulated(t, cfg, 10, 600, 300)
			items, want := arrivalsOf(list)
			e := engineOf(cfg)
			var r liveReplay
			out := r.run(items, &e, &liveGoal{}, 1, true)
			got := out.ttfts
			if len(got) != len(items)-len(items)/10 {
				t.Fatalf("%d first tokens of %d calls", len(got), len(items))
			}
			// The replay reports them as they come, the engine by arrival.
			want = want[len(items)/10:]
			slices.Sort(got)
			slices.Sort(want)
			worst := 0.0
			for i := range got {
				worst = max(worst, math.Abs(got[i]-want[i]))
			}
			t.Logf("TTFT from %.3f to %.3f s, at most %.1f µs apart", want[0], want[len(want)-1], worst*1e6)
			if worst > 10e-6 { // the engine's steps stay open for 1 µs
				t.Errorf("times to the first token differ by up to %v s", worst)
			}
		})
	}
}

// TestReplayPreempts: with a cache that is too small the replay preempts as the engine
// does, though not at the very same instants.
func TestReplayPreempts(t *testing.T) {
	ms, us := time.Millisecond, time.Microsecond
	cfg := sim.Config{FrontendTime: sim.None, PrefillBase: 9 * ms, PrefillPerToken: 70 * us, DecodeBase: 11 * ms, DecodePerSequence: 300 * us,
		Slots: 64, BatchTokens: 2048, BlockTokens: 1, ModelLen: 1000, KVBlocks: 1200}
	list := simulated(t, cfg, 14, 900, 300)
	preempted := 0
	for _, truth := range list {
		preempted += truth.Preemptions
	}
	items, want := arrivalsOf(list)
	e := engineOf(cfg)
	var r liveReplay
	out := r.run(items, &e, &liveGoal{}, 1, true)
	want = want[len(items)/10:]
	got, _ := stats.Mean(out.ttfts)
	mean, _ := stats.Mean(want)
	t.Logf("%d preemptions; mean TTFT %.3f s in the engine, %.3f s in the replay", preempted, mean, got)
	if preempted < 20 || mean < 0.1 {
		t.Fatalf("%d preemptions and a mean TTFT of %v s do not put it to the test", preempted, mean)
	}
	if math.Abs(got/mean-1) > 0.1 {
		t.Errorf("mean TTFT is %v s, in the engine %v s", got, mean)
	}
}

// TestReplayEnds: whatever the limits, every call ends, nothing is left in the cache, a higher
// rate never shortens the mean wait by much, and a stop at the first certainty says the same
// as the whole replay.
func TestReplayEnds(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for trial := range 300 {
		e := liveEngine{slots: rng.IntN(20), tokens: float64(1 + rng.IntN(600)), kv: float64(20 + rng.IntN(2000)), kvScale: 0.5 + rng.Float64(),
			cost: liveCost{alpha: 0.001 + 0.02*rng.Float64(), beta: 0.001 * rng.Float64(), gamma: 2 * rng.Float64(), base: 0.02 * rng.Float64(), perToken: 1e-4 * rng.Float64(), front: 0.01 * rng.Float64()}}
		if rng.IntN(4) == 0 {
			e.kv = math.Inf(1)
		}
		items := make([]liveItem, 200)
		for i := range items {
			input := 1 + rng.IntN(700)
			items[i] = liveItem{gap: rng.ExpFloat64(), before: 0.01 * rng.Float64(), input: float64(input), uncached: float64(1 + rng.IntN(input)), output: float64(1 + rng.IntN(80)), judged: rng.IntN(8) > 0}
		}
		goal := liveGoal{ttft: 0.5, ttftShare: 0.05, tpot: 0.05, tpotShare: 0.05}
		var r liveReplay
		rate := math.Exp(4 * rng.Float64())
		out := r.run(items, &e, &goal, rate, true)
		if len(r.running) != 0 || r.head != len(r.waiting) || r.dec != 0 || math.Abs(r.kv) > 1e-6 {
			t.Fatalf("trial %d: %d run, %d wait, %d decode, %v tokens are held", trial, len(r.running), len(r.waiting)-r.head, r.dec, r.kv)
		}
		judged := 0
		for i := len(items) / 10; i < len(items); i++ {
			if items[i].judged {
				judged++
			}
		}
		if len(out.ttfts) != judged {
			t.Fatalf("trial %d: %d first tokens of %d calls", trial, len(out.ttfts), judged)
		}
		late := 0
		for _, d := range out.ttfts {
			if d > goal.ttft {
				late++
			}
			if !(d > 0) || math.IsInf(d, 1) {
				t.Fatalf("trial %d: TTFT %v", trial, d)
			}
		}
		if missed := late > int(goal.ttftShare*float64(judged)); missed != out.missedTTFT {
			t.Fatalf("trial %d: %d of %d are late, and missed is %v", trial, late, judged, out.missedTTFT)
		}
		short := r.run(items, &e, &goal, rate, false)
		if short.missed() != out.missed() {
			t.Fatalf("trial %d: cut short it says %v, whole %v", trial, short.missed(), out.missed())
		}
		slow := r.run(items, &e, &goal, rate/3, true)
		a, _ := stats.Mean(slow.ttfts)
		b, _ := stats.Mean(out.ttfts)
		if a > 1.3*b+0.02 {
			t.Errorf("trial %d: at a third of the rate the mean TTFT is %v s, not %v s", trial, a, b)
		}
	}
}

// TestReplayHandMade: two calls, one slot, by hand.
func TestReplayHandMade(t *testing.T) {
	e := liveEngine{slots: 1, tokens: 100, kv: math.Inf(1), kvScale: 1, cost: liveCost{alpha: 0.010, beta: 0.002, gamma: 1, base: 0.020, perToken: 0.001, front: 0.003}}
	items := []liveItem{
		{input: 150, uncached: 150, output: 3, judged: true},                      // comes at 0
		{gap: 1, before: 0.004, input: 60, uncached: 10, output: 1, judged: true}, // comes at 0.1 s, at 10 calls/s
	}
	var r liveReplay
	out := r.run(items, &e, &liveGoal{}, 10, true)
	// 100 tokens in a step of 0.12 s, 50 in one of 0.07 s: first token at 0.19 s, then two steps of
	// 0.012 s: the slot is free at 0.214 s. The second is there at 0.104 s and takes 0.03 s.
	want := []float64{0.190 + 0.003, 0.214 + 0.030 - 0.100 + 0.003}
	for i := range want {
		if math.Abs(out.ttfts[i]-want[i]) > 1e-12 {
			t.Errorf("TTFT of call %d is %v s, want %v s", i, out.ttfts[i], want[i])
		}
	}
	if len(out.tpots) != 1 || math.Abs(out.tpots[0]-0.012) > 1e-12 {
		t.Errorf("TPOT is %v, want 0.012 s", out.tpots)
	}
}

// TestReplayGivesUp: figures that would take hours are given up, count as missed, and are refused.
func TestReplayGivesUp(t *testing.T) {
	e := liveEngine{slots: 4, tokens: 1, kv: math.Inf(1), kvScale: 1, cost: liveCost{alpha: 0.01, gamma: 1, base: 1e-9}}
	items := make([]liveItem, 50)
	for i := range items {
		items[i] = liveItem{gap: 1, input: 2 * maxTurns, uncached: 2 * maxTurns, output: 2, judged: true}
	}
	goal := liveGoal{ttft: 1, ttftShare: 0.01}
	var r liveReplay
	if out := r.run(items, &e, &goal, 1, false); !out.missed() || !r.exhausted {
		t.Errorf("missed %v, given up %v", out.missed(), r.exhausted)
	}
	var u Upstream
	estimate := liveEstimate{mix: items, load: &liveLoad{share: 1}, arrivals: liveArrivals{highest: 1}}
	if u.search(&estimate, &liveSetting{o: &Options{}, model: liveModel{engine: e, goal: goal}}); u.Label != Refused || !says(u.Reasons, "cannot be replayed") || u.Knee.IsKnown() {
		t.Errorf("%s: %v", u.Label, u.Reasons)
	}
}

func BenchmarkReplay(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	items := make([]liveItem, roundCalls)
	for i := range items {
		items[i] = liveItem{gap: rng.ExpFloat64(), input: 1000, uncached: 600, output: float64(20 + rng.IntN(400)), judged: true}
	}
	e := liveEngine{slots: 64, tokens: 2048, kv: 200000, kvScale: 1, cost: liveCost{alpha: 0.014, beta: 0.0002, gamma: 1, base: 0.01, perToken: 5e-5}}
	var r liveReplay
	for b.Loop() {
		r.run(items, &e, &liveGoal{}, 8, true)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/roundCalls, "ns/call")
}
