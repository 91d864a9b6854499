package bench

import (
	"math/rand/v2"
	"testing"

	"github.com/weirgate/weir/internal/stats"
)

// TestPool: up to its limit a pool is exact, the same as a description of all.
func TestPool(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 200; n += 7 {
		p, all := newPool(1000, 1), []float64(nil)
		for range n {
			v := random.Float32() * 100
			p.add(v)
			all = append(all, float64(v))
		}
		s, _ := stats.Describe(all, false)
		q := p.quantiles()
		near(t, "mean", q.Mean, s.Mean, 1e-12)
		for _, one := range [...][2]float64{{q.P50, s.P50}, {q.P90, s.P90}, {q.P95, s.P95}, {q.P99, s.P99}, {q.Max, s.Max}} {
			near(t, "quantile", one[0], one[1], 1e-12)
		}
		if q.N != n || p.sampled() {
			t.Errorf("%d of %d values", q.N, n)
		}
	}
	if newPool(10, 1).quantiles() != nil {
		t.Error("an empty pool has quantiles")
	}
}

// TestPoolSamples: beyond its limit a pool keeps a uniform sample, whatever the
// order of the values, and knows mean and maximum of all.
func TestPoolSamples(t *testing.T) {
	const limit, n = 2000, 100_000
	p := newPool(limit, 7)
	for i := range n {
		p.add(float32(i))
	}
	q := p.quantiles()
	if len(p.values) != limit || q.N != n || q.Max != n-1 || !p.sampled() {
		t.Fatalf("%d kept of %d, max %v", len(p.values), q.N, q.Max)
	}
	near(t, "mean", q.Mean, (n-1)/2., 1e-9)
	near(t, "p50", q.P50, n*0.5, 0.1) // four standard errors are 0.09
	near(t, "p99", q.P99, n*0.99, 0.01)
}

func TestMedian(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	m, spread := median([]Figures{
		{Calls: 10, CallsPerSecond: 3, Seconds: 1, OutputPerSecond: v(30), TTFT: &Quantiles{N: 10, P50: 5, P99: 50, Max: 90}, GapsOf: Tokens, Gaps: &Quantiles{N: 1}},
		{Calls: 11, CallsPerSecond: 1, Seconds: 3, TTFT: &Quantiles{N: 11, P50: 7, P99: 40, Max: 70}, GapsOf: Tokens, Gaps: &Quantiles{N: 2}},
		{Calls: 12, CallsPerSecond: 2, Seconds: 2, OutputPerSecond: v(10), GapsOf: Tokens, Gaps: &Quantiles{N: 3}, Client: Client{Distorted: true, Reason: "slow"}},
	})
	if m.Calls != 11 || m.CallsPerSecond != 2 || m.Seconds != 2 || *m.OutputPerSecond != 20 || m.TTFT.P50 != 6 || m.TTFT.P99 != 45 || m.Gaps.N != 2 || m.InputPerSecond != nil {
		t.Errorf("%+v", m)
	}
	if s := spread["calls_per_second"]; s.Min != 1 || s.Max != 3 {
		t.Errorf("%+v", spread)
	}
	if _, ok := spread["tpot_ms_p50"]; ok || !m.Client.Distorted || m.Client.Reason != "repeat 3: slow" {
		t.Errorf("%+v, %+v", spread, m.Client)
	}
	// Of two, the mean: as numpy has it, and within the spread.
	m, spread = median([]Figures{
		{Calls: 10, Good: 9, Seconds: 1, CallsPerSecond: 3, Offered: v(4), TTFT: &Quantiles{N: 9, P50: 5, P99: 50}, Client: Client{Distorted: true, Delay: &Quantiles{P99: 3}, Reason: "slow"}},
		{Calls: 13, Good: 12, Seconds: 2, CallsPerSecond: 4, Offered: v(5), TTFT: &Quantiles{N: 12, P50: 6, P99: 40}, Client: Client{Distorted: true, Delay: &Quantiles{P99: 9}, Reason: "slower"}},
	})
	if m.Calls != 11 || m.Good != 10 || m.Seconds != 1.5 || m.CallsPerSecond != 3.5 || *m.Offered != 4.5 || m.TTFT.P50 != 5.5 || m.TTFT.P99 != 45 || m.TTFT.N != 10 {
		t.Errorf("of two: %+v, %+v", m, m.TTFT)
	}
	if s := spread["ttft_ms_p50"]; s.Min != 5 || s.Max != 6 || m.Client.Reason != "repeat 2: slower" || m.Client.Delay.P99 != 6 {
		t.Errorf("of two: %+v, %+v", spread, m.Client)
	}
	// A repeat of no time has no rate, in the median as in the spread.
	m, spread = median([]Figures{{Seconds: 1, CallsPerSecond: 3, Sent: 3}, {}})
	if s := spread["calls_per_second"]; m.CallsPerSecond != 3 || m.Sent != 3 || s.Min != 3 || s.Max != 3 {
		t.Errorf("%+v, %+v", m, spread)
	}
	m, spread = median([]Figures{{GapsOf: Tokens, Gaps: &Quantiles{N: 1}}, {GapsOf: Chunks, Gaps: &Quantiles{N: 1}}})
	if m.Gaps != nil || m.GapsOf != "" {
		t.Errorf("gaps of two kinds have a median: %+v", m.Gaps)
	}
	if m, spread = median(nil); m.Calls != 0 || spread != nil {
		t.Error("no repeats")
	}
}
