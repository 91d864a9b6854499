package diagnose

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// named3 spreads calls over three upstreams and two keys.
func named3(i int, r *call.Record) {
	r.Upstream, r.Key = []string{"a:1", "b:1", "c:1"}[i%3], []string{"k", "l"}[i/3%2]
}

// TestScope: what happens at one of several upstreams is looked at there alone,
// and its siblings are evidence; what happens at all of them is not.
func TestScope(t *testing.T) {
	slow := slowly(2)
	one := staged{n: 180, before: named3, after: both(named3, func(i int, r *call.Record) {
		if i%3 == 1 {
			slow(i, r)
		}
	})}
	got := one.compare()
	if got.Scope == nil || got.Scope.Dimension != "upstream" || len(got.Scope.Names) != 1 || got.Scope.Names[0] != "b:1" {
		t.Fatalf("scope %+v, siblings %+v", got.Scope, got.Siblings)
	}
	if got.Code != CodeDecodeSlower || got.After.Calls != 60 || got.TPOT.After.Calls != 60 {
		t.Errorf("%s of %d calls: %q", got.Code, got.After.Calls, got.Reasons)
	}
	if reason := strings.Join(got.Reasons, " "); !strings.Contains(reason, "Only upstream b:1 has changed; a:1, among others, has not.") {
		t.Errorf("reasons %q", reason)
	}
	healthy := false
	for _, e := range got.Findings[0].For {
		healthy = healthy || e.Figure == "upstream" && strings.Contains(e.Text, "upstream a:1 stayed as it was")
	}
	if !healthy {
		t.Errorf("no sibling among %+v", got.Findings[0].For)
	}

	all := staged{n: 180, before: named3, after: both(named3, slow)}
	got = all.compare()
	if got.Scope != nil || got.Code != CodeDecodeSlower || got.After.Calls != 180 {
		t.Errorf("all of them: scope %+v, %s of %d calls", got.Scope, got.Code, got.After.Calls)
	}
	against := false
	for _, e := range got.Findings[0].Against {
		against = against || strings.Contains(e.Text, "all 3 upstreams changed alike")
	}
	if !against {
		t.Errorf("nothing against one GPU: %+v", got.Findings[0].Against)
	}

	// One key's calls are others: the others' are as they were.
	key := staged{n: 180, before: named3, after: both(named3, func(i int, r *call.Record) {
		if i/3%2 == 0 {
			r.Phases.Delivery = lasting(9 * time.Second)
		}
	})}
	if got = key.compare(); got.Scope == nil || got.Scope.Dimension != "key" || got.Code != CodeSlowReader {
		t.Errorf("one key: scope %+v, %s", got.Scope, got.Code)
	}
}

// TestRerouted: when more calls go to an upstream that has always been slower, no
// layer is blamed.
func TestRerouted(t *testing.T) {
	two := func(every int) func(int, *call.Record) {
		return func(i int, r *call.Record) {
			r.Upstream = "quick:1"
			if i%every == 0 {
				r.Upstream = "slow:1"
				times(&r.Phases.Decode, 3)
			}
		}
	}
	s := staged{n: 200, before: two(5), after: both(two(5), func(i int, r *call.Record) {
		if i%5 != 0 && i%2 == 0 {
			r.Upstream = "slow:1"
			times(&r.Phases.Decode, 3)
		}
	})}
	got := s.compare()
	if got.Verdict != Undetermined || !strings.Contains(strings.Join(got.Reasons, " "), "calls went to slower ones") {
		t.Errorf("%s %s %q", got.Verdict, got.Code, got.Reasons)
	}
}

// TestLead: a signal that was there before the first slow call speaks for the
// finding, one that came long after it against.
func TestLead(t *testing.T) {
	late := func(from int) func(int, *call.Record) {
		return func(i int, r *call.Record) {
			r.AtDispatch.Waiting, r.AtDispatch.Running = known(0), known(8)
			if i >= 60 {
				longQueue(i, r)
				r.AtDispatch.Waiting = known(0)
			}
			if i >= from {
				r.AtDispatch.Waiting = known(9)
			}
		}
	}
	lead := func(from int) (pro, con string) {
		s := staged{n: 200, after: late(from)}
		got := s.compare()
		for _, e := range got.Findings[0].For {
			if e.Figure == "lead_ms" {
				pro = e.Text
			}
		}
		for _, e := range got.Findings[0].Against {
			if e.Figure == "lead_ms" {
				con = e.Text
			}
		}
		return pro, con
	}
	if pro, con := lead(50); !strings.Contains(pro, "before the first slow TTFT was seen") || con != "" {
		t.Errorf("before: %q, %q", pro, con)
	}
	if pro, con := lead(180); pro != "" || !strings.Contains(con, "after the first slow TTFT") {
		t.Errorf("long after: %q, %q", pro, con)
	}
	if pro, con := lead(105); pro != "" || con != "" {
		t.Errorf("just after: %q, %q", pro, con)
	}
}

// TestOtherGPUs: siblings that keep their clocks are evidence.
func TestOtherGPUs(t *testing.T) {
	s := changeCases["heat"]
	got := s.compare()
	text := fmt.Sprint(got.Findings[0].For)
	for _, want := range []string{"SM clock of GPU GPU-0: 1,980 MHz → 1,830 MHz (8 % less)", "held down by sw_thermal", "SM clock of GPU GPU-1: 1,980 MHz → 1,980 MHz, as before"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
}

// TestGivenReadings: the history of gauges goes before what the records bear.
func TestGivenReadings(t *testing.T) {
	s := changeCases["capacity"]
	s.signals = func(o *CompareOptions) {
		for i := range 20 {
			o.After.Engine = append(o.After.Engine, EngineReading{Time: healthy().Time.Add(time.Minute + time.Duration(i)*time.Second), Upstream: healthy().Upstream,
				Running: known(8), Waiting: known(12), KVUse: figureOf(0.3)}, EngineReading{Upstream: "other:1", Running: known(99)})
		}
	}
	got := s.compare()
	if got.Code != CodeAdmissionCap || got.After.KVUse != figureOf(0.3) || got.After.Held != known(8) {
		t.Errorf("%s, KV %v, %v run while calls wait", got.Code, got.After.KVUse, got.After.Held)
	}
}
