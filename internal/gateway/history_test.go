package gateway

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

func recordAt(t time.Time, id string) *call.Record {
	rec := new(call.Record)
	rec.ID, rec.Time, rec.Outcome = id, t, call.Completed
	return rec
}

// TestHistoryIsASample: each minute keeps so many calls, any as likely as another,
// and a minute two hours later takes its place.
func TestHistoryIsASample(t *testing.T) {
	var h history
	begin := time.Unix(1_800_000_000, 0).Truncate(time.Minute)
	const calls, rounds = 300, 60
	late := 0
	for round := range rounds {
		at := begin.Add(time.Duration(round) * time.Minute)
		for i := range calls {
			h.add(recordAt(at, fmt.Sprint(i)), at)
		}
		kept := h.between(at, at.Add(time.Minute))
		if len(kept) != historyCalls {
			t.Fatalf("minute %d keeps %d calls", round, len(kept))
		}
		for _, rec := range kept {
			var i int
			_, _ = fmt.Sscan(rec.ID, &i)
			if i >= calls/2 {
				late++
			}
		}
	}
	// 1800 draws with a chance of a half: nine standard deviations are 191.
	if d := late - rounds*historyCalls/2; d < -191 || d > 191 {
		t.Errorf("of %d kept calls %d are of the later half", rounds*historyCalls, late)
	}
	if n := len(h.between(begin, begin.Add(2*time.Hour))); n != rounds*historyCalls {
		t.Errorf("%d calls in all", n)
	}
	h.add(recordAt(begin.Add(2*time.Hour), "new"), begin.Add(2*time.Hour))
	if n := len(h.between(begin, begin.Add(time.Minute))); n != 0 {
		t.Errorf("%d calls of a minute two hours ago are left", n)
	}
	// The clock was far ahead and is set right: what comes then is kept.
	h.add(recordAt(begin, "right"), begin)
	if n := len(h.between(begin, begin.Add(time.Minute))); n != 1 {
		t.Errorf("after the clock was set right %d calls are kept", n)
	}
	h.add(recordAt(time.Unix(-1, 0), "before 1970"), time.Unix(-1, 0))
}

// TestSampleLeavesOut load tests, probes and what the filter does not pick.
func TestSampleLeavesOut(t *testing.T) {
	g := New(new(counted))
	now := time.Now()
	keep := func(id string, change func(*call.Record)) {
		rec := recordAt(now.Add(-time.Second), id)
		change(rec)
		g.keep(rec)
	}
	keep("good", func(r *call.Record) { r.Model = "m" })
	keep("bench", func(r *call.Record) { r.Model, r.Bench = "m", true })
	keep("probe", func(r *call.Record) { r.Model, r.Probe = "m", true })
	keep("other", func(r *call.Record) { r.Model = "x" })
	keep("late", func(r *call.Record) { r.Model, r.Time = "m", now.Add(time.Second) })
	picked := g.Sample(Filter{Model: "m", Since: now.Add(-time.Minute)}, now)
	if len(picked) != 1 || picked[0].ID != "good" {
		t.Errorf("picked %v", picked)
	}
}
