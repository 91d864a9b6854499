package capacity

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// TestLittleWorkedExample: 20 calls/s with 256 output tokens each. The objectives are TTFT
// 2 s and TPOT 40 ms; measured are TTFT 0.3 s and TPOT 25 ms, so that 134 calls are in
// flight. When the engine slows down to what the objectives still allow, it is 244.8: the same
// rate, the same objectives, another answer. With the objectives in place of what was
// measured one would always have got the second.
func TestLittleWorkedExample(t *testing.T) {
	const rate, output = 20, 256
	for _, c := range []struct {
		ttft, tpot float64 // s, as measured
		want       float64
	}{
		{0.3, 0.025, 134},
		{0.3, 0.018, 98.16},
		{0.085, 0.018, 93.86},
		{1.05, 0.035, 200.2},
		{2, 0.040, 244.8},
	} {
		if got := Little(rate, c.ttft, output, c.tpot); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("TTFT %v s, TPOT %v s: %v calls in flight, want %v", c.ttft, c.tpot, got, c.want)
		}
	}
	for _, bad := range [][4]float64{{-1, 1, 1, 1}, {1, math.NaN(), 1, 1}, {1, 1, math.Inf(1), 1}} {
		if got := Little(bad[0], bad[1], bad[2], bad[3]); !math.IsNaN(got) {
			t.Errorf("%v: %v", bad, got)
		}
	}
}

// TestFactor: rate × TTFT p95 × (1 + headroom).
func TestFactor(t *testing.T) {
	for _, c := range []struct{ rate, ttft, headroom, want float64 }{{20, 0.8, 0.5, 24}, {20, 0.8, 0, 20.8}, {20, 0.8, 0.3, 20.8}, {0, 1, 0.4, 0}} {
		if got, err := ConcurrencyFactor(c.rate, c.ttft, c.headroom); err != nil || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
	for want, c := range map[string][3]float64{"headroom": {1, 1, 0.6}, "headroom is 0.1": {1, 1, 0.1}, "finite": {math.NaN(), 1, 0.3}, "not negative": {1, -1, 0.3}} {
		if _, err := ConcurrencyFactor(c[0], c[1], c[2]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// TestBalance: the law agrees with the count where all is well, and an alarm is made where
// records are missing or calls took longer than their tokens explain.
func TestBalance(t *testing.T) {
	o := Options{TTFT: Objective{Limit: time.Second}}
	fine := estimate(t, made(2000, steady(10), nil), o).Balance
	if fine == nil || fine.Alarm || math.Abs(known(t, fine.Difference, "difference")) > 0.02 || fine.Why != "" {
		t.Errorf("%+v", fine)
	}
	slow := estimate(t, made(2000, steady(10), func(_ int, r *call.Record) {
		r.E2E = call.Lasting(r.E2E.Or(0) + 400*time.Millisecond) // a slow reader, after the last token
		r.Phases.Tail = call.Lasting(400 * time.Millisecond)
	}), o).Balance
	if slow == nil || !slow.Alarm || known(t, slow.Difference, "difference") > -LittleAlarm || !strings.Contains(slow.Why, "slow readers") {
		t.Errorf("%+v", slow)
	}
	blind := estimate(t, made(2000, steady(10), func(i int, r *call.Record) {
		if i%5 == 0 {
			r.Output, r.TPOT = call.Count{}, call.Duration{}
		}
	}), o).Balance
	if blind == nil || blind.Alarm || blind.Law.IsKnown() || !blind.Counted.IsKnown() || !strings.Contains(blind.Why, "too few") {
		t.Errorf("%+v", blind)
	}
	if none := estimate(t, made(2, steady(10), nil), o); none.Balance != nil {
		t.Errorf("of two calls: %+v", none.Balance)
	}
}
