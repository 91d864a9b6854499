package slo

import (
	"testing"
	"time"
)

// total returns how many calls are counted in all, wherever.
func total(tr *Tracker) (n int64) {
	for _, c := range *tr.classes.Load() {
		c.mu.Lock()
		for _, s := range c.series {
			for _, h := range s.hours {
				if h != nil {
					n += sumOf(h.total[:kinds])
				}
			}
			for _, d := range s.days {
				if d != nil {
					n += sumOf(d.total[:kinds]) + sumOf(d.total[s.layout.counts:s.layout.counts+kinds])
				}
			}
		}
		c.mu.Unlock()
	}
	return n
}

// TestClockJumps sets the clock in all ways, and checks that nothing is lost or counted
// twice, and that what is right again is shown again.
func TestClockJumps(t *testing.T) {
	for _, k := range []struct {
		name string
		jump time.Duration
		// lasts is how long the clock stays wrong.
		lasts time.Duration
	}{
		{"a second back", -time.Second, time.Hour},
		{"an hour ahead", time.Hour, time.Hour},
		{"an hour back", -time.Hour, time.Hour},
		{"a day back", -24 * time.Hour, time.Hour},
		{"ten years ahead for a minute", 10 * 365 * 24 * time.Hour, time.Minute},
		{"ten years ahead for an hour", 10 * 365 * 24 * time.Hour, time.Hour},
		{"to 1970 for a minute", -time.Duration(start.UnixNano()), time.Minute},
		{"to 1970 for an hour", -time.Duration(start.UnixNano()), time.Hour},
		{"to 1960 for an hour", -time.Duration(start.UnixNano()) - 10*365*24*time.Hour, time.Hour},
		{"two days ahead for an hour", 48 * time.Hour, time.Hour},
		{"twenty days back for an hour", -20 * 24 * time.Hour, time.Hour},
	} {
		t.Run(k.name, func(t *testing.T) {
			tr, _ := configured(t, successClass(990_000))
			now, n := start, int64(0)
			run := func(length time.Duration, wrong time.Duration) {
				for end := now.Add(length); now.Before(end); now = now.Add(5 * time.Second) {
					told := now.Add(wrong)
					tr.Tick(told)
					record(tr, "c", "m", told, simple(told, Answered))
					n++
					if now.Second() == 0 && now.Minute()%10 == 0 {
						tr.Status(told)
						if got := total(tr); got != n {
							t.Fatalf("at %s, told as %s, %d calls are counted, want %d", now, told, got, n)
						}
					}
				}
			}
			run(100*time.Hour, 0)
			run(k.lasts, k.jump)
			run(time.Hour, 0)
			if lost := tr.Status(now).Lost; lost != 0 || total(tr) != n {
				t.Fatalf("%d are lost, and %d counted, want %d", lost, total(tr), n)
			}
			o := find(t, tr.Status(now.Add(-time.Second)), "c", "m", "success")
			// What was counted while the clock was wrong may lie outside the period.
			if wrong := int64(k.lasts/time.Second)/5 + 12*6; o.Good < n-wrong || o.Good > n {
				t.Errorf("%d of %d calls are in the period, want all but at most %d", o.Good, n, wrong)
			}
			// After an hour ahead the last hour has been there twice.
			if want := int64(60); o.Burn[0].Good != want && (k.jump != time.Hour || o.Burn[0].Good != 2*want) {
				t.Errorf("%d calls in the last five minutes, want %d", o.Burn[0].Good, want)
			}
		})
	}
}

// TestFutureFacts checks that facts from the far future count now.
func TestFutureFacts(t *testing.T) {
	tr, _ := configured(t, successClass(990_000))
	many(tr, "c", start.AddDate(0, 0, -20), 100, 0)
	for _, at := range []time.Time{start.AddDate(0, 0, 2), start.AddDate(200, 0, 0), start.AddDate(-200, 0, 0), {}, time.Unix(1<<60, 0)} {
		record(tr, "c", "m", at, simple(at, Answered))
	}
	// What is a little ahead counts when it comes.
	soon := start.Add(23 * time.Hour)
	record(tr, "c", "m", soon, simple(soon, Answered))
	if o := find(t, tr.Status(start), "c", "m", "success"); o.Good != 105 || o.Burn[0].Good != 5 {
		t.Errorf("%+v, and %+v in five minutes", o.Counts, o.Burn[0].Counts)
	}
	tr.Tick(soon)
	if o := find(t, tr.Status(soon), "c", "m", "success"); o.Good != 106 || o.Burn[0].Good != 1 {
		t.Errorf("%+v, and %+v in five minutes a day later", o.Counts, o.Burn[0].Counts)
	}
}

// TestSuspended checks that a process that slept for days goes on after five minutes.
func TestSuspended(t *testing.T) {
	tr, _ := configured(t, successClass(990_000))
	many(tr, "c", start, 10, 0)
	now := start.AddDate(0, 0, 3)
	for end := now.Add(6 * time.Minute); now.Before(end); now = now.Add(time.Second) {
		tr.Tick(now)
	}
	record(tr, "c", "m", now, simple(now, Answered))
	if o := find(t, tr.Status(now), "c", "m", "success"); o.Good != 11 || o.Burn[0].Good != 1 {
		t.Errorf("%+v, and %+v in five minutes", o.Counts, o.Burn[0].Counts)
	}
}
