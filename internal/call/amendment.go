package call

import "slices"

// Amendment is what is learnt of a call after its record was made: the engine
// told of it, in a span of its own, how long it queued and worked. It replaces
// these parts of the record.
type Amendment struct {
	ID           string
	Engine       Engine
	Phases       Phases
	PhaseSources PhaseSources
	Degraded     []Degradation
}

// Amended returns a copy of the record with the amendment in it. What the
// record points to is shared, and does not change.
func (r *Record) Amended(a *Amendment) *Record {
	amended := *r
	amended.Engine, amended.Phases, amended.PhaseSources, amended.Degraded = a.Engine, a.Phases, a.PhaseSources, a.Degraded
	if a.Engine.Queue.IsKnown() {
		amended.QueueBound = Duration{} // a bound on what is known says nothing
	}
	return &amended
}

// Learnt makes the amendment that follows from figures which the engine gave
// after the record was made. Those that it had given before stand where the
// later ones say nothing. It reports false when they change nothing.
//
// Only the time between sent and the first token (the whole answer, when it is
// not streamed) is divided anew, by the rules of Split; what was measured stays.
func (r *Record) Learnt(e Engine) (*Amendment, bool) {
	merged := r.Engine
	for _, f := range []struct {
		to   *Duration
		from Duration
	}{{&merged.Queue, e.Queue}, {&merged.Load, e.Load}, {&merged.Prefill, e.Prefill}, {&merged.Decode, e.Decode}, {&merged.Total, e.Total}, {&merged.E2E, e.E2E}} {
		if f.from.IsKnown() {
			*f.to = f.from
		}
	}
	if merged == r.Engine {
		return nil, false
	}
	a := &Amendment{ID: r.ID, Engine: merged, Phases: r.Phases, PhaseSources: r.PhaseSources, Degraded: r.Degraded}
	p, src := &a.Phases, &a.PhaseSources
	divided := []*Duration{&p.UpstreamRTT, &p.QueueEngine, &p.Frontend, &p.Prefill, &p.Engine}
	sources := []*Source{&src.UpstreamRTT, &src.QueueEngine, &src.Frontend, &src.Prefill, &src.Engine}
	if !r.Stream {
		divided, sources = append(divided, &p.Decode), append(sources, &src.Decode)
	}
	var wait Duration
	for i, d := range divided {
		wait = wait.Plus(*d)
		*d, *sources[i] = Duration{}, ""
	}
	if !wait.IsKnown() { // it broke off before it was sent
		return a, true
	}
	clamped := p.split(src, Timeline{Engine: merged, UpstreamRTT: r.UpstreamRTT, Streamed: r.Stream}, wait.Or(0))
	// What the gauges allowed to claim still holds where the engine did not split it.
	for _, s := range []struct{ was, is *Source }{{&r.PhaseSources.Prefill, &src.Prefill}, {&r.PhaseSources.Engine, &src.Engine}} {
		if *s.was == Inferred && *s.is == Unattributed {
			*s.is = Inferred
		}
	}
	if clamped && !slices.Contains(a.Degraded, PhaseClamped) {
		a.Degraded = append(slices.Clip(a.Degraded), PhaseClamped)
	}
	return a, true
}
