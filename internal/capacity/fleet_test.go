package capacity

import (
	"math"
	"testing"

	"github.com/weirgate/weir/internal/call"
)

// replica is an upstream with an estimate.
func replica(model string, present, highest, sustainable float64) Upstream {
	u := Upstream{Upstream: "e", Model: model, Calls: 1000, Label: Interpolated, Bound: About,
		Present: call.Figure(present), Highest: call.Figure(highest), Sustainable: call.Figure(sustainable)}
	u.Limits.GPUs = call.Known(4)
	return u
}

// TestFleets: how many replicas the present rate and a target take, and when one fewer will do.
func TestFleets(t *testing.T) {
	o := &Options{Headroom: 0.3, TargetCallsPerSecond: 45}
	atLeast := func(u Upstream) Upstream { u.Bound = AtLeast; return u }
	refused := func(u Upstream, roomy bool) Upstream {
		u.Label, u.Bound, u.Sustainable, u.roomy = Refused, "", call.Number{}, roomy
		return u
	}
	for name, c := range map[string]struct {
		members                     []Upstream
		say                         string
		needed, target              int64 // 0 is unknown
		each, sustainable, shrinkAt float64
		bound                       Bound
	}{
		// 8 × 1.3 = 10.4 of 10 calls/s.
		"one too few":       {[]Upstream{replica("m", 8, 9, 10)}, SayAdd, 2, 5, 10, 10, 0, About},
		"one is enough":     {[]Upstream{replica("m", 7, 9, 10)}, SayEnough, 1, 5, 10, 10, 0, About},
		"the busiest rules": {[]Upstream{replica("m", 7, 11, 10)}, SayAdd, 2, 5, 10, 10, 0, About},
		// 6 × 1.3 = 7.8 of 10.
		"three, one needed":  {[]Upstream{replica("m", 2, 3, 10), replica("m", 2, 3, 10), replica("m", 2, 3, 10)}, SayShrink, 1, 5, 10, 30, 20 / 1.3, About},
		"exactly enough":     {[]Upstream{replica("m", 7, 7, 9.1), replica("m", 7, 7, 9.1)}, SayEnough, 2, 5, 9.1, 18.2, 9.1 / 1.3, About},
		"bound too low":      {[]Upstream{atLeast(replica("m", 8, 9, 10))}, SayUndetermined, 2, 5, 10, 10, 0, AtLeast},
		"bound high enough":  {[]Upstream{atLeast(replica("m", 2, 3, 10)), replica("m", 2, 3, 10)}, SayShrink, 1, 5, 10, 20, 10 / 1.3, AtLeast},
		"one without":        {[]Upstream{replica("m", 7, 8, 10), refused(replica("m", 7, 8, 0), false)}, SayEnough, 2, 5, 10, 0, 10 / 1.3, About},
		"none":               {[]Upstream{refused(replica("m", 7, 8, 0), false)}, SayUndetermined, 0, 0, 0, 0, 0, ""},
		"room, nobody knows": {[]Upstream{refused(replica("m", 7, 8, 0), true)}, SayEnough, 0, 0, 0, 0, 0, ""},
	} {
		list := liveFleets(c.members, o)
		if len(list) != 1 {
			t.Fatalf("%s: %d fleets", name, len(list))
		}
		f := list[0]
		if f.Say != c.say || f.Why == "" || f.Needed.Or(0) != c.needed || f.TargetReplicas.Or(0) != c.target || f.Bound != c.bound {
			t.Errorf("%s: %s, %d needed, %d for the target, %q: %s", name, f.Say, f.Needed.Or(0), f.TargetReplicas.Or(0), f.Bound, f.Why)
		}
		for what, pair := range map[string][2]float64{"each": {f.PerReplica.Or(0), c.each}, "all": {f.Sustainable.Or(0), c.sustainable}, "shrink": {f.ShrinkBelow.Or(0), c.shrinkAt}} {
			if math.Abs(pair[0]-pair[1]) > 1e-9 {
				t.Errorf("%s: %s is %v, want %v", name, what, pair[0], pair[1])
			}
		}
		if f.TargetGPUs.Or(0) != 4*c.target || f.NeededGPUs.Or(0) != 4*c.needed {
			t.Errorf("%s: %v and %v GPUs", name, f.TargetGPUs, f.NeededGPUs)
		}
	}
	two := replica("b", 1, 1, 2)
	two.Limits.GPUs = call.Count{}
	list := liveFleets([]Upstream{replica("a", 1, 1, 2), two, {Model: "c"}}, o)
	if len(list) != 2 || list[0].Model != "a" || list[1].Model != "b" || list[1].TargetGPUs.IsKnown() {
		t.Errorf("%+v", list)
	}
	unlike := replica("a", 1, 1, 2)
	unlike.Limits.GPUs = call.Known(8)
	if f := liveFleets([]Upstream{replica("a", 1, 1, 2), unlike}, o)[0]; f.TargetGPUs.IsKnown() || !f.TargetReplicas.IsKnown() {
		t.Errorf("replicas of different sizes: %+v", f)
	}
	unknown := replica("a", 1, 1, 2)
	unknown.Present, unknown.Highest = call.Number{}, call.Number{}
	if f := liveFleets([]Upstream{unknown}, o)[0]; f.Needed.IsKnown() || f.Say != SayUndetermined {
		t.Errorf("without a present rate: %+v", f)
	}
}
