package capacity

import (
	"fmt"
	"math"

	"github.com/weirgate/weir/internal/call"
)

// What a Fleet says.
const (
	SayAdd          = "add"
	SayEnough       = "enough"
	SayShrink       = "shrink"
	SayUndetermined = "undetermined"
)

// liveFleets sums upstreams up by model; they are in order.
func liveFleets(list []Upstream, o *Options) []Fleet {
	fleets := []Fleet{}
	at := make(map[string]int)
	members := make(map[string][]*Upstream)
	for i := range list {
		u := &list[i]
		if u.Calls == 0 {
			continue
		}
		if _, known := at[u.Model]; !known {
			at[u.Model] = len(fleets)
			fleets = append(fleets, Fleet{Model: u.Model})
		}
		members[u.Model] = append(members[u.Model], u)
	}
	for i := range fleets {
		f := &fleets[i]
		f.add(members[f.Model], o)
	}
	return fleets
}

func (f *Fleet) add(members []*Upstream, o *Options) {
	f.Replicas = len(members)
	var present, highest, sustained float64
	rates, roomy := 0, 0
	gpus, alike := members[0].Limits.GPUs, true
	for _, u := range members {
		if p, known := u.Present.Get(); known {
			rates++
			present += p
			highest += u.Highest.Or(0)
		}
		if s, known := u.Sustainable.Get(); known {
			f.Estimated++
			sustained += s
			if f.Bound != AtLeast {
				f.Bound = u.Bound
			}
		} else if u.roomy {
			roomy++
		}
		alike = alike && u.Limits.GPUs == gpus
	}
	if rates == f.Replicas {
		f.Present, f.Highest = call.Figure(present), call.Figure(highest)
	}
	if o.TargetCallsPerSecond > 0 {
		f.Target = call.Figure(o.TargetCallsPerSecond)
	}
	f.Say = SayUndetermined
	if f.Estimated == 0 {
		f.Why = "No replica has an estimate; its reasons are above."
		if roomy == f.Replicas {
			f.Say, f.Why = SayEnough, fmt.Sprintf("Each replica's knee lies beyond %s times the highest load that it has seen.", liveNumber(Reach))
		}
		return
	}
	each := sustained / float64(f.Estimated)
	f.PerReplica = call.Figure(each)
	if f.Estimated == f.Replicas {
		f.Sustainable = call.Figure(sustained)
	}
	count := func(rate float64) call.Count {
		n := math.Ceil(rate / each * (1 - 1e-12)) // so that rounding does not cost a replica
		if !(n < 1<<31) {
			return call.Count{}
		}
		return call.Known(max(int64(n), 1))
	}
	cards := func(replicas call.Count) call.Count {
		n, known := replicas.Get()
		per, told := gpus.Get()
		if !known || !told || !alike || per > 1<<31 {
			return call.Count{}
		}
		return call.Known(n * per)
	}
	if f.Target.IsKnown() {
		f.TargetReplicas = count(o.TargetCallsPerSecond)
		f.TargetGPUs = cards(f.TargetReplicas)
	}
	if !f.Present.IsKnown() {
		f.Why = "The present rate is not known."
		return
	}
	f.Needed = count(max(present*(1+o.Headroom), highest))
	f.NeededGPUs = cards(f.Needed)
	if f.Replicas > 1 {
		f.ShrinkBelow = call.Figure(float64(f.Replicas-1) * each / (1 + o.Headroom))
	}
	f.judge(o)
}

// judge compares what is needed with what is there.
func (f *Fleet) judge(o *Options) {
	needed, known := f.Needed.Get()
	if !known {
		f.Why = "The rate is beyond any number of replicas."
		return
	}
	load := fmt.Sprintf("%s calls/s with %.0f %% of headroom, and %s calls/s at the busiest,", liveFigure(f.Present, ""), 100*o.Headroom, liveFigure(f.Highest, ""))
	take := fmt.Sprintf("%s of %s calls/s each", liveReplicas(needed), liveFigure(f.PerReplica, ""))
	switch {
	case needed > int64(f.Replicas) && f.Bound == AtLeast:
		f.Why = fmt.Sprintf("%s would take %s, but a replica may carry more than the lower bound that is known.", load, take)
	case needed > int64(f.Replicas):
		f.Say, f.Why = SayAdd, fmt.Sprintf("%s take %s; there is %s.", load, take, liveReplicas(int64(f.Replicas)))
	case needed < int64(f.Replicas):
		f.Say, f.Why = SayShrink, fmt.Sprintf("%s take no more than %s; there are %d.", load, take, f.Replicas)
	default:
		f.Say, f.Why = SayEnough, fmt.Sprintf("%s take %s, which is what there is.", load, take)
	}
}

func liveReplicas(n int64) string {
	if n == 1 {
		return "1 replica"
	}
	return fmt.Sprintf("%d replicas", n)
}
