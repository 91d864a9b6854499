package slo

import (
	"slices"
	"testing"
	"time"
)

func everything() []Objective {
	return []Objective{
		{Number: TTFT, Target: 990_000, Threshold: 2 * time.Second},
		{Number: TTFT, Target: 950_000, Threshold: time.Second},
		{Number: TTFT, Target: 900_000, Threshold: time.Second},
		{Number: TTFTUpstream, Target: 950_000, Threshold: 400 * time.Millisecond},
		{Number: TTFTVisible, Target: 950_000, Threshold: 2 * time.Second},
		{Number: TPOT, Target: 950_000, Threshold: time.Second, When: []Condition{{InputTokens, 100}, {OutputTokens, 100}}},
		{Number: E2E, Target: 950_000, Threshold: 5 * time.Second},
		{Number: Queue, Target: 990_000, Threshold: time.Second},
		{Number: Prefill, Target: 990_000, Threshold: time.Second, Fallback: TTFTUpstream},
		{Number: Network, Target: 990_000, Threshold: time.Second},
		{Number: E2E, Target: 950_000, Threshold: 2 * time.Second, When: []Condition{{InputTokens, 100}}},
		{Number: Success, Target: 999_000},
		{Number: Success, Target: 999_000, When: []Condition{{OutputTokens, 50}}},
		{Number: Goodput, Target: 900_000},
		{Number: Goodput, Target: 900_000, When: []Condition{{OutputTokens, 150}}},
	}
}

func twoClasses() []Class {
	return []Class{
		{Name: "qualified", Objectives: everything(), Valid: Envelope{CallsPerMinute: 4, Terms: []Term{{InputTokens, 500_000, 120}, {OutputTokens, 300_000, 40}}}},
		{Name: "plain", Objectives: slices.Concat(everything()[:2], everything()[9:])},
	}
}

// TestRandomTraces plays random traces, with reloads and restarts, and compares all figures
// with a recomputation.
func TestRandomTraces(t *testing.T) {
	options := [][]Objective{everything(), everything()[:6], everything()[3:], slices.Concat(everything()[:1], everything()[11:])}
	for _, at := range []struct {
		name   string
		begin  time.Time
		period Period
		spread time.Duration
		calls  int
	}{
		{"an hour", start, Period{}, 20 * time.Second, 400},
		{"before 1970", time.Date(1969, 12, 31, 21, 0, 0, 0, time.UTC), Period{Rolling: 24 * time.Hour}, 5 * time.Minute, 300},
		{"three days", start, Period{Rolling: 48 * time.Hour}, 40 * time.Minute, 300},
		{"two months", start, Period{}, 12 * time.Hour, 300},
		{"Berlin, over the clock change and the month's end", time.Date(2026, 3, 27, 0, 0, 0, 0, time.UTC), Period{Zone: zone(t, "Europe/Berlin")}, time.Hour, 300},
		{"Kolkata, half past the hour", time.Date(2026, 4, 27, 0, 0, 0, 0, time.UTC), Period{Zone: zone(t, "Asia/Kolkata")}, time.Hour, 300},
		{"Kathmandu", time.Date(2026, 4, 25, 0, 0, 0, 0, time.UTC), Period{Zone: zone(t, "Asia/Kathmandu")}, 4 * time.Hour, 300},
		{"Lord Howe, half an hour of daylight saving", time.Date(2026, 3, 20, 0, 0, 0, 0, time.UTC), Period{Zone: zone(t, "Australia/Lord_Howe")}, 3 * time.Hour, 300},
	} {
		t.Run(at.name, func(t *testing.T) {
			t.Parallel()
			seeds := uint64(2)
			if testing.Short() || underRace {
				seeds = 1
			}
			calls := at.calls
			if underRace {
				calls /= 3
			}
			for seed := range seeds {
				x := newTrace(t, seed, at.begin, Config{Classes: twoClasses(), Period: at.period})
				x.spread = at.spread
				for i := range calls {
					for range 1 + x.rng.IntN(3) {
						x.call()
					}
					x.play(x.now.Add(time.Duration(x.rng.Int64N(int64(at.spread)))))
					switch x.rng.IntN(30) {
					case 0:
						x.reload(options)
					case 1:
						x.restart()
					case 2, 3, 4, 5, 6:
						x.persist()
					}
					if i%10 == 0 {
						x.check()
					}
				}
				x.play(x.now.Add(10 * time.Hour))
				x.check()
			}
		})
	}
}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}
