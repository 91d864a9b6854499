package bench

import (
	"testing"
	"time"

	"github.com/weirgate/weir/internal/sim"
)

// exactly is the share by which a figure in virtual time may be off: calls that
// start together are ordered by chance, nothing else is.
const exactly = 0.001

// analytic is what a closed loop of equal calls comes to on an engine with enough
// slots: all of them read their prompts in one step, then write token by token
// side by side, and the next ones begin when they end.
func analytic(c sim.Config, calls int, input float64, output int) (ttft, tpot, e2e float64) {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	n := float64(calls)
	ttft = ms(c.PrefillBase) + n*input*ms(c.PrefillPerToken)
	tpot = ms(c.DecodeBase) + n*ms(c.DecodePerSequence)
	return ttft, tpot, ttft + float64(output-1)*tpot
}

// TestClosedLoop measures an engine of known physics.
func TestClosedLoop(t *testing.T) {
	for _, c := range []struct{ calls, input, output int }{{1, 64, 16}, {4, 128, 32}, {8, 256, 64}} {
		onEngine(t, cost, func(t *testing.T, _ *sim.Engine, cfg Config) {
			run := measure(t, start(t, cfg), Load{Arrivals: atOnce(c.calls), Input: fixed(c.input), Output: fixed(c.output), Calls: 10 * c.calls})
			m := run.Median
			if len(run.Repeats) != DefaultRepeats || m.Calls != 10*c.calls || m.Good != m.Calls || m.WithoutUsage != 0 || len(m.Failures) > 0 {
				t.Fatalf("%d repeats of %d calls, %d good: %v", len(run.Repeats), m.Calls, m.Good, m.Failures)
			}
			near(t, "input", m.Input.Mean, float64(c.input), 0.02) // prompts are aimed at a length
			near(t, "output", m.Output.Mean, float64(c.output), 0)
			ttft, tpot, e2e := analytic(cost, c.calls, m.Input.Mean, c.output)
			near(t, "TTFT p50", m.TTFT.P50, ttft, exactly)
			near(t, "TTFT p99", m.TTFT.P99, ttft, 0.01)
			near(t, "TPOT p50", m.TPOT.P50, tpot, exactly)
			near(t, "TPOT p99", m.TPOT.P99, tpot, exactly)
			near(t, "gaps", m.Gaps.P50, tpot, exactly)
			near(t, "E2E p50", m.E2E.P50, e2e, exactly)
			near(t, "calls/s", m.CallsPerSecond, float64(c.calls)/e2e*1e3, exactly)
			near(t, "output tokens/s", *m.OutputPerSecond, float64(c.calls*c.output)/e2e*1e3, exactly)
			near(t, "tokens/min", *m.TotalPerMinute, float64(c.calls)*(m.Input.Mean+float64(c.output))/e2e*60e3, exactly)
			near(t, "concurrency", m.Concurrency, float64(c.calls), exactly)
			if m.Peak != c.calls || m.GapsOf != Chunks || m.Offered != nil || m.Late != nil {
				t.Errorf("peak %d, gaps of %q, offered %v, late %v", m.Peak, m.GapsOf, m.Offered, m.Late)
			}
			if id := m.Identity; id.Checked != 30*c.calls || id.Within != id.Checked || len(id.Outliers) > 0 {
				t.Errorf("identity %+v", id)
			}
			if m.Client.Distorted || m.Client.Delay == nil || m.Client.Delay.Max != 0 {
				t.Errorf("the client was late in virtual time: %+v", m.Client)
			}
			if s := run.Spread["tpot_ms_p50"]; s.Min <= 0 || s.Max < s.Min || s.Max > s.Min*(1+exactly) {
				t.Errorf("spread %+v", run.Spread)
			}
		})
	}
}
