package slo

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// TestWorkbook plays constant error ratios against each pair of windows of Google's SRE workbook
// ("Alerting on SLOs", tables 5-2 to 5-8): the time to alert is factor · (1 − target) · long / ratio, to the
// minute in which calls are counted, and the budget spent by then 2 %, 5 % and 10 %.
func TestWorkbook(t *testing.T) {
	const perMinute = 100_000
	for _, target := range []Target{999_000, 990_000} {
		for i, rule := range DefaultBurn() {
			for _, ratio := range []float64{1, 0.5, 0.1, 0.02} {
				want, fires := TimeToAlert(rule, target, ratio)
				if !fires {
					want = -1
				}
				t.Run(fmt.Sprintf("%s %s at %v", rule, target, ratio), func(t *testing.T) {
					t.Parallel()
					tr, _ := configured(t, successClass(target))
					now := start
					for ; now.Before(start.Add(rule.Long)); now = now.Add(time.Minute) {
						many(tr, "c", now, perMinute, 0)
						tr.Tick(now)
					}
					begin := now
					for minutes := 0; ; minutes++ {
						if at := time.Duration(minutes) * time.Minute; fires && at > want+time.Minute || !fires && at > 2*rule.Long {
							if fires {
								t.Fatalf("it has not fired after %s, want %s", at, want)
							}
							return
						}
						bad := int64(math.Round(perMinute * ratio))
						many(tr, "c", now, perMinute-bad, bad)
						tr.Tick(now)
						for _, f := range find(t, tr.Status(now), "c", "m", "success").Firing {
							if f.Outage || f.Rule != rule {
								continue
							}
							if !fires {
								t.Fatalf("it fired after %d minutes, and should never", minutes)
							}
							// The minute that fires has all its calls: the moment lies within it.
							if at := now.Sub(begin) + time.Minute; at < want || at > want+time.Minute {
								t.Fatalf("it fired after %s, want %s", at, want)
							}
							spent := float64(ratio) * float64(want) / (float64(target.BudgetShare()) * float64(30*24*time.Hour))
							if share := []float64{0.02, 0.05, 0.1}[i]; math.Abs(spent-share) > 1e-9 {
								t.Fatalf("%v of the budget is spent by then, want %v", spent, share)
							}
							return
						}
						now = now.Add(time.Minute)
					}
				})
			}
		}
	}
}

// TestShortWindowEnds checks that an alert ends when the short window is over.
func TestShortWindowEnds(t *testing.T) {
	tr, _ := configured(t, successClass(999_000))
	now := start
	fires := func() bool {
		tr.Tick(now)
		for _, f := range find(t, tr.Status(now), "c", AllModels, "success").Firing {
			if f.Rule.Long == time.Hour {
				return true
			}
		}
		return false
	}
	for range 60 {
		many(tr, "c", now, 1000, 500)
		now = now.Add(time.Minute)
	}
	if now = now.Add(-time.Minute); !fires() {
		t.Fatal("half of all calls are bad for an hour, and nothing fires")
	}
	for i := range 5 {
		now = now.Add(time.Minute)
		many(tr, "c", now, 1_000_000, 0)
		if fires() != (i < 4) && i == 4 {
			t.Fatalf("it fires %d minutes after the trouble", i+1)
		}
	}
}

// TestMinBad checks that a rule needs its minimum of bad calls.
func TestMinBad(t *testing.T) {
	tr, c := configured(t, successClass(999_000))
	for n := int64(1); n <= c.MinBad; n++ {
		record(tr, "c", "m", start, simple(start, Failed))
		fires := len(find(t, tr.Status(start), "c", AllModels, "success").Firing) > 0
		if fires != (n >= c.MinBad) {
			t.Fatalf("after %d bad calls, firing is %v", n, fires)
		}
	}
}

// TestOutage checks that an outage at one call a second fires within a minute, and that one good
// call in six keeps it from that.
func TestOutage(t *testing.T) {
	for _, k := range []struct {
		name    string
		good    int // one of so many calls is good
		seconds int // within which it fires; 0 is never
	}{{"total", 0, 60}, {"one of 20 is good", 20, 60}, {"one of 6 is good", 6, 0}} {
		t.Run(k.name, func(t *testing.T) {
			tr, _ := configured(t, successClass(950_000))
			now := start
			second := func(e Ending) bool {
				record(tr, "c", "m", now, simple(now, e))
				tr.Tick(now)
				f := find(t, tr.Status(now), "c", AllModels, "success").Firing
				now = now.Add(time.Second)
				return len(f) > 0 && f[0].Outage && f[0].Page
			}
			for range 3600 {
				record(tr, "c", "m", now, simple(now, Answered))
				now = now.Add(time.Second)
			}
			for s := 1; s <= 120; s++ {
				e := Failed
				if k.good > 0 && s%k.good == 0 {
					e = Answered
				}
				if second(e) {
					if k.seconds == 0 || s > k.seconds {
						t.Fatalf("it fired after %d s", s)
					}
					return
				}
			}
			if k.seconds != 0 {
				t.Fatal("it has not fired within two minutes")
			}
		})
	}
}

// TestHang checks that an engine that hangs pages before any call has ended: within the
// threshold and half a minute, at one call a second.
func TestHang(t *testing.T) {
	tr, _ := configured(t, Class{Name: "c", Objectives: []Objective{{Number: TTFT, Target: 990_000, Threshold: 2 * time.Second}, {Number: Success, Target: 999_000}}})
	now := start
	for range 600 {
		var p Pending
		tr.Watch(&p, "c", "m", now, true, nil)
		tr.FirstToken(&p, now.Add(300*time.Millisecond))
		f := simple(now, Answered)
		f.Ended = now.Add(800 * time.Millisecond)
		f.Values[TTFT] = Exactly(300 * time.Millisecond)
		tr.End(&p, &f)
		now = now.Add(time.Second)
		tr.Tick(now)
	}
	begin := now
	hung := make([]Pending, 40)
	for i := range hung {
		tr.Watch(&hung[i], "c", "m", now, true, nil)
		now = now.Add(time.Second)
		tr.Tick(now)
		o := find(t, tr.Status(now), "c", "m", "ttft_p99")
		if o.Awaiting != int64(i+1) || !o.OldestReceived.Equal(begin) {
			t.Fatalf("%d calls wait, since %s, want %d since %s", o.Awaiting, o.OldestReceived, i+1, begin)
		}
		if o.State == StatePage && len(o.Firing) > 0 && o.Firing[0].Outage {
			if after := now.Sub(begin); after > 32*time.Second {
				t.Fatalf("it paged after %s", after)
			}
			return
		}
	}
	t.Fatal("it has not paged")
}
