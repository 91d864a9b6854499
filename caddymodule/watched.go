package caddymodule

import (
	"strconv"
	"time"

	"github.com/weirgate/weir/internal/alert"
	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/gateway"
	"github.com/weirgate/weir/internal/gpu"
	"github.com/weirgate/weir/internal/telemetry"
)

// besideNow is what looks on for the configuration that holds; never nil.
func (s *shared) besideNow() (*App, *gateway.Beside) {
	if a := s.rooms.theRunning(); a != nil {
		if b := a.beside.Load(); b != nil {
			return a, b
		}
	}
	return new(App), new(gateway.Beside)
}

// engines asks the engines' gauges for what their metrics show.
func (s *shared) engines() []telemetry.EngineState {
	_, b := s.besideNow()
	states := make([]telemetry.EngineState, 0, len(b.Engines))
	for _, e := range b.Engines {
		at := e.Gauges.State()
		state := telemetry.EngineState{Engine: at.Address, Kind: string(at.Kind), Up: at.Working}
		if g := at.Latest; g != nil {
			state.Running, state.Waiting, state.MaxSeqs, state.KVTokens = g.Running.Count(), g.Waiting.Count(), g.MaxSeqs.Count(), g.KVTokens.Count()
			state.Preemptions, state.PrefixQueries, state.PrefixHits = g.Preemptions.Count(), g.PrefixQueries.Count(), g.PrefixHits.Count()
			state.Prompt, state.Generated = g.Prompt.Count(), g.Generated.Count()
			state.KVUse = g.KVUse.Number()
		}
		states = append(states, state)
	}
	return states
}

// gpus asks the sampler of GPUs for what their metrics show.
func (s *shared) gpus() []telemetry.GPUState {
	_, b := s.besideNow()
	var states []telemetry.GPUState
	for _, r := range b.GPUs.Latest() {
		name := r.UUID
		if name == "" {
			name = strconv.Itoa(r.Index)
		}
		states = append(states, telemetry.GPUState{
			GPU: name, Host: r.Host, Utilization: scaled(r.Utilization, 1), MemoryBandwidth: scaled(r.MemoryBandwidth, 1),
			Clock: scaled(r.Clock, 1e6), MaxClock: scaled(r.MaxClock, 1e6), Reasons: r.Reasons.Names(), ReasonsKnown: r.ReasonsKnown,
			Power: scaled(r.Power, 1), PowerLimit: scaled(r.PowerLimit, 1), Energy: scaled(r.Energy, 1), Temperature: scaled(r.Temperature, 1),
			MemoryUsed: scaled(r.MemoryUsed, 1), MemorySize: scaled(r.MemoryTotal, 1), XID: scaled(r.XID, 1), Uncorrected: scaled(r.Uncorrected, 1),
		})
	}
	return states
}

// promises asks for what the metrics show of objectives and alerts.
func (s *shared) promises() telemetry.SLOState {
	a := s.rooms.theRunning()
	if a == nil || !a.promises() {
		return telemetry.SLOState{}
	}
	o := s.rooms.objectives
	status := o.tracker.Status(time.Now())
	state := telemetry.SLOState{Classes: a.promised.Classes, Totals: o.tracker.Totals, Status: &status, Alerts: make(map[string]int64)}
	at := o.alerts.State()
	for _, one := range at.Alerts {
		if one.Status == alert.Firing && one.InhibitedBy == "" {
			state.Alerts[string(one.Severity)]++
		}
	}
	for _, r := range at.Receivers {
		for result, n := range map[string]int64{"sent": r.Sent, "failed": r.Failed, "dropped": r.Dropped} {
			state.Notifications = append(state.Notifications, telemetry.NotificationState{Receiver: r.Name, Result: result, Count: uint64(n)})
		}
	}
	return state
}

// scaled brings a figure into the base unit of its metric.
func scaled(n gpu.Number, by float64) call.Number {
	if x, known := n.Get(); known {
		return call.Figure(x * by)
	}
	return call.Number{}
}

// spans asks the export of spans how it stands.
func (s *shared) spans() telemetry.TracerState {
	_, b := s.besideNow()
	return b.Tracer.State()
}

// joins asks the receiver what became of engines' spans.
func (s *shared) joins() telemetry.JoinState {
	a, b := s.besideNow()
	if b.Joiner == nil || a.reception == nil {
		return telemetry.JoinState{}
	}
	at := a.reception.receiver.State()
	state := telemetry.JoinState{
		Joined: at.Join.Joined, Unjoined: at.Join.Unjoined, Untracked: at.Join.Untracked,
		Late: at.Join.Late, Ambiguous: at.Join.Ambiguous, Overflow: at.Join.Overflow,
	}
	if f := at.Forward; f != nil {
		state.Forwarded, state.ForwardDropped = call.Known(f.ForwardedSpans), call.Known(f.DroppedSpans)
	}
	return state
}
