package report

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirgate/weir/internal/bench"
	"github.com/weirgate/weir/internal/endpoint"
	"github.com/weirgate/weir/internal/saturation"
	"github.com/weirgate/weir/internal/workload"
)

func ptr[T any](v T) *T { return &v }

// around makes quantiles of a figure whose median is mid.
func around(n int, mid float64) *bench.Quantiles {
	return &bench.Quantiles{N: n, Mean: mid * 1.04, P50: mid, P90: mid * 1.21, P95: mid * 1.3, P99: mid * 1.62, Max: mid * 2.05}
}

// measuredFigures are what a repeat with so many calls a second came to.
func measuredFigures(calls int, rate, concurrency, ttft, tpot float64) bench.Figures {
	return bench.Figures{
		Calls: calls, Good: calls, Seconds: float64(calls) / rate,
		CallsPerSecond: rate, Sent: rate, InputPerSecond: ptr(rate * 512), OutputPerSecond: ptr(rate * 128), TotalPerSecond: ptr(rate * 640),
		TotalPerMinute: ptr(rate * 640 * 60), Concurrency: concurrency, Peak: int(math.Ceil(concurrency)),
		TTFT: around(calls, ttft), TPOT: around(calls, tpot), ITL: around(calls, tpot), Gaps: around(calls*127, tpot), GapsOf: bench.Tokens, E2E: around(calls, ttft+127*tpot),
		Input: around(calls, 512), Output: around(calls, 128),
		Identity: bench.Identity{Checked: calls, Within: calls},
		Client:   bench.Client{Delay: &bench.Quantiles{N: 4000, Mean: 0.08, P50: 0.07, P90: 0.12, P95: 0.16, P99: 0.31, Max: 1.2}},
	}
}

func environmentOf(model string) bench.Environment {
	return bench.Environment{
		Time: time.Date(2026, 11, 30, 9, 15, 0, 0, time.UTC), Channel: "http://127.0.0.1:8000/v1", API: endpoint.Chat, Model: model,
		Profile: bench.Weir, Weir: "0.3.0", Gateway: "0.3.0",
		Engine: map[string]string{"name": "vllm", "version": "0.11.2", "max_model_len": "32768", "max_num_seqs": "256"},
		GPU:    []map[string]string{{"name": "NVIDIA H200", "driver": "580.82", "power_cap": "700 W"}},
		Given:  map[string]any{"cuda": "13.0", "pytorch": "2.9.1", "cpu": map[string]any{"cores": 16.0, "model": "EPYC 9654"}, "eager": false},
	}
}

// rawOf draws the calls of a repeat whose median TTFT is ttft.
func rawOf(seed uint64, calls int, seconds, ttft, tpot float64) bench.Raw {
	rng := rand.New(rand.NewPCG(seed, 1))
	r := bench.Raw{Of: calls, Seconds: seconds}
	for i := range calls {
		first := ttft * (0.8 + 0.4*rng.Float64())
		r.At = append(r.At, float32(float64(i)/float64(calls)*(seconds-1)*1000))
		r.TTFT = append(r.TTFT, float32(first))
		r.TPOT = append(r.TPOT, float32(tpot*(0.9+0.2*rng.Float64())))
		r.E2E = append(r.E2E, float32(first+15*tpot))
		r.Tokens, r.Output = append(r.Tokens, 640), append(r.Output, 128)
	}
	return r
}

// simple is a streamed run without trouble, three repeats.
func simple() bench.Result {
	repeats := []bench.Figures{measuredFigures(200, 7.31, 7.9, 92.4, 18.27), measuredFigures(200, 7.28, 7.9, 93.1, 18.3), measuredFigures(200, 7.35, 7.9, 91.7, 18.2)}
	run := bench.Run{
		Load: "concurrency 8", Arrivals: workload.Arrivals{Shape: workload.Closed, Concurrency: 8},
		Input: workload.Length{Kind: "fixed", Mean: 512}, Output: workload.Length{Kind: "fixed", Mean: 128},
		Repeats: repeats, Median: measuredFigures(200, 7.31, 7.9, 92.4, 18.27), Warmup: 30, Discard: 0.1,
		Spread: map[string]bench.Spread{},
	}
	for _, h := range bench.Headlines() {
		var all []float64
		for i := range repeats {
			if v, known := h.Of(&repeats[i]); known {
				all = append(all, v)
			}
		}
		if len(all) > 0 {
			run.Spread[h.Name] = bench.Spread{Min: slices.Min(all), Max: slices.Max(all)}
		}
	}
	run.Median.Identity = bench.Identity{Checked: 600, Within: 598, Outliers: []bench.Outlier{
		{ID: "demo-1-117", E2E: 2611.4, Sum: 2402.9, Left: 208.5}, {ID: "demo-2-9", E2E: 2449.02, Sum: 2401.7, Left: 47.32}}}
	run.Median.Goodput, run.Repeats[1].Undecided = ptr(0.985), 3
	run.Compared = &bench.Compared{Calls: 600, Found: 600, TTFT: around(600, 0.11), TPOT: around(600, 0.002), E2E: around(600, 0.15), TokensEqual: 600}
	run.Thermal = &bench.Thermal{Window: 5 * time.Minute, First: measuredFigures(400, 7.4, 8, 91, 18.1), Last: measuredFigures(380, 7.1, 8, 93, 18.9),
		Slower: true, Verdict: "throughput fell by 4.1 % and TPOT p50 rose by 4.4 %: look at clocks and temperatures"}
	for i := range repeats {
		run.Raw = append(run.Raw, rawOf(uint64(i), 200, repeats[i].Seconds, 92.4, 18.27))
	}
	return bench.Result{Version: 1, Environment: environmentOf("llama-3.1-8b-instruct"), Streamed: true, Seed: 42,
		Objectives: bench.Objectives{TTFT: 500 * time.Millisecond, TPOT: 25 * time.Millisecond},
		Runs:       []bench.Run{run}, Notes: []string{"the engine honours ignore_eos"}}
}

// ladder is the ladder of the issue: it saturates between 8 and 16, some calls
// fail, and at 32 the client itself is too slow.
func ladder() bench.Result {
	r := bench.Result{Version: 1, Environment: environmentOf("qwen3-32b"), Streamed: true, Seed: 7}
	steps := []struct{ concurrency, tpm, ttft, tpot float64 }{
		{1, 4210, 820, 18.3}, {4, 15200, 950, 21}, {8, 27800, 1300, 26.5}, {16, 30100, 3400, 41.2}, {32, 30500, 8900, 68.7}}
	l := &bench.Ladder{Knee: saturation.Knee{Unit: saturation.Concurrency, Saturated: true, After: 8, Before: 16, LastGood: 8, Recommended: 6,
		Reasons: []string{"from concurrency 8 to 16 throughput rose by 8 % for twice the load", "TTFT p95 rose from 1,300 ms to 3,400 ms"},
		Promise: "at concurrency 8, 95 % of calls have their first token within 1,300 ms and then a token every 26.5 ms"}}
	for i, s := range steps {
		calls := 20 * int(s.concurrency)
		f := measuredFigures(calls, s.tpm/640/60, s.concurrency*0.98, s.ttft/1.3, s.tpot/1.3)
		run := bench.Run{Load: "concurrency " + tidy(s.concurrency), Arrivals: workload.Arrivals{Shape: workload.Closed, Concurrency: int(s.concurrency)},
			Input: workload.Length{Kind: "lognormal", Mean: 512, Deviation: 200, Min: 16, Max: 4096}, Output: workload.Length{Kind: "uniform", Min: 64, Max: 192},
			Sharing: workload.Sharing{Tokens: 256, Groups: 4}, Warmup: max(5, int(s.concurrency))}
		step := saturation.Step{Load: s.concurrency, Calls: calls, Succeeded: 1, Achieved: f.CallsPerSecond, TPM: ptr(s.tpm), TTFTP95: ptr(s.ttft), TPOTP95: ptr(s.tpot)}
		if i >= 3 {
			f.Good = calls - 9*i
			f.Failures = map[endpoint.Kind]int{endpoint.FailedLimit: 8 * i, endpoint.FailedTimeout: i}
			step.Succeeded = float64(f.Good) / float64(calls)
			run.Failures = f.Failures
		}
		if i == 4 {
			f.Client = bench.Client{Delay: &bench.Quantiles{N: 9000, Mean: 0.9, P50: 0.4, P90: 1.9, P95: 3.2, P99: 4.1, Max: 31},
				Distorted: true, Reason: "all 2 cores were busy"}
			run.Interrupted, step.Distorted, step.Delay = true, true, ptr(4.1)
			f.WithoutUsage = 3
			f.InputPerSecond, f.OutputPerSecond, f.TotalPerSecond, f.TotalPerMinute = nil, nil, nil, nil
		}
		run.Repeats, run.Median = []bench.Figures{f}, f
		run.Raw = []bench.Raw{rawOf(uint64(i), f.Good, f.Seconds, s.ttft/1.3, s.tpot/1.3)}
		l.Steps = append(l.Steps, step)
		r.Runs = append(r.Runs, run)
	}
	r.Ladder, r.Interrupted = l, true
	r.Staircase = &bench.Staircase{
		Windows: []saturation.Window{{Rate: 0.5, Offered: ptr(0.52), Achieved: ptr(0.52), PerSecond: 0.46, Calls: 60, Succeeded: 1, TTFTP99: ptr(910.0)},
			{Rate: 0.7, Offered: ptr(0.69), Achieved: ptr(0.68), PerSecond: 0.6, Calls: 83, Succeeded: 1, TTFTP99: ptr(1750.0)},
			{Rate: 0.9, Offered: ptr(0.91), PerSecond: 0.7, Calls: 94, Succeeded: 0.97, TTFTP99: nil, Delay: ptr(310.0), Distorted: true}},
		Verdict: saturation.Verdict{Target: 1, Objective: 2000, Safe: 0.5, Reached: true, Say: "add", Reasons: []string{"TTFT p99 at 0.7 calls/s is 1,750 ms, over 1,600 ms"}}}
	return r
}

// plainly is a run that was not streamed, of an endpoint that reports no usage.
func plainly() bench.Result {
	f := bench.Figures{Calls: 50, Good: 48, Failures: map[endpoint.Kind]int{endpoint.FailedServer: 2}, Seconds: 25.4, CallsPerSecond: 1.89, Sent: 1.97, Offered: ptr(2.0), Achieved: ptr(1.93), Held: 4,
		WithoutUsage: 48, Concurrency: 3.2, Peak: 9, E2E: around(48, 1630), Late: &bench.Quantiles{N: 50, Mean: 0.06, P50: 0, P90: 0.2, P95: 0.21, P99: 0.4, Max: 0.41}}
	return bench.Result{Version: 1, Environment: bench.Environment{Time: time.Date(2026, 11, 30, 9, 15, 0, 0, time.UTC), Channel: "https://example.com/api",
		API: endpoint.Messages, Model: "claude-like", Profile: bench.GuideLLM, Weir: "0.3.0"},
		Runs: []bench.Run{{Load: "2 calls/s", Arrivals: workload.Arrivals{Shape: workload.Poisson, Rate: 2, Concurrency: 64}, Input: workload.Length{Kind: "trace"},
			Repeats: []bench.Figures{f}, Median: f}}}
}
