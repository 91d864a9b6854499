package capacity

import "math"

// liveModel is all that the knee follows from.
type liveModel struct {
	engine liveEngine
	// free is the same engine without the limits that were only seen: with more room it may
	// have larger batches, and slower ones. Both have to keep the goal for a lower bound.
	free *liveEngine
	goal liveGoal
}

// with returns the model with other costs.
func (m liveModel) with(cost liveCost) liveModel {
	m.engine.cost = cost
	if m.free != nil {
		free := *m.free
		free.cost = cost
		m.free = &free
	}
	return m
}

// replay runs both engines at a rate and tells which objectives are missed.
func (m *liveModel) replay(r *liveReplay, items []liveItem, rate float64) liveOutcome {
	out := r.run(items, &m.engine, &m.goal, rate, false)
	if m.free == nil || out.missed() {
		return out
	}
	return r.run(items, m.free, &m.goal, rate, false)
}

// binds tells what is missed first at a rate above the knee; see Upstream.Binds.
func (m *liveModel) binds(r *liveReplay, items []liveItem, rate float64) string {
	out := r.run(items, &m.engine, &m.goal, rate, false)
	if m.free != nil {
		free := r.run(items, m.free, &m.goal, rate, false)
		if out.missed() && !free.missed() {
			return BindsAssumed
		}
		if free.missed() {
			out = free
		}
	}
	if out.missedTPOT && !out.missedTTFT {
		return BindsTPOT
	}
	return BindsTTFT
}

func (m *liveModel) misses(r *liveReplay, items []liveItem, rate float64) bool {
	out := m.replay(r, items, rate)
	return out.missed()
}

// How closely a rate is searched for, as a share: the estimate, and one round of its
// interval.
const (
	kneeError  = 0.004
	roundError = 0.01
)

// around searches for the highest rate at which the goal is kept, from a guess. It is
// false when there is none within a factor of 100 below the guess (the rate then is below
// the guess), when it lies beyond reach times the guess (the rate is above), and when a
// replay was given up.
func (m *liveModel) around(r *liveReplay, items []liveItem, guess, reach, within float64) (rate float64, ok bool) {
	low, high := guess, guess
	if step := 1.08; m.misses(r, items, guess) {
		for kept := false; !kept; step *= step {
			high = low
			if low /= step; low < guess/100 || r.exhausted {
				return low, false
			}
			kept = !m.misses(r, items, low)
		}
	} else {
		for kept := true; kept; step *= step {
			low = high
			if high *= step; low > guess*reach {
				return low, false
			}
			kept = !m.misses(r, items, high)
		}
	}
	for high > low*(1+within) {
		middle := math.Sqrt(low * high)
		if m.misses(r, items, middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return math.Sqrt(low * high), true
}
