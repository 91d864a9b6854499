package slo

import (
	"maps"
	"slices"
	"time"
)

// The classes that are there without being configured.
const (
	// Interactive is for people who read along: chats.
	Interactive = "interactive"
	// Completion is for what appears while somebody types.
	Completion = "completion"
	// Batch is for what nobody waits for at a screen.
	Batch = "batch"
)

// presetGoodput is the goodput that each preset promises. A call that misses any objective
// misses goodput, so its target cannot be above the lowest of the others, which is 95 %
// (TPOT and E2E). It is as high as that because one slow call tends to miss several at once.
// Were all misses of different calls, those that p99 allows three times, p95 twice and
// success once would leave 87 %, while every objective by itself were kept: goodput is what
// shows that. At 95 % all default burn rules fit too, since it burns at most 20.
const presetGoodput Target = 950_000

// presets are the built-in classes by what is different between them.
//
// The first token of a batch call is judged on prefill: its queue objective alone is longer
// than 10 s, so a TTFT of 10 s from arrival would contradict it.
var presets = map[string]Class{
	Interactive: preset(Interactive, 20*time.Millisecond, time.Second,
		timed(TTFT, 990_000, 2*time.Second), 40*time.Millisecond, 5*time.Second, 999_000),
	Completion: preset(Completion, 10*time.Millisecond, 200*time.Millisecond,
		timed(TTFT, 990_000, 500*time.Millisecond), 20*time.Millisecond, time.Second, 999_000),
	Batch: preset(Batch, 100*time.Millisecond, 30*time.Second,
		Objective{Number: Prefill, Target: 990_000, Threshold: 10 * time.Second, Fallback: TTFTUpstream},
		100*time.Millisecond, time.Minute, 995_000),
}

func preset(name string, network, queue time.Duration, first Objective, tpot, e2e time.Duration, success Target) Class {
	return Class{Name: name, Objectives: []Objective{
		timed(Network, 990_000, network),
		timed(Queue, 990_000, queue),
		first,
		timed(TPOT, 950_000, tpot),
		timed(E2E, 950_000, e2e),
		timed(Success, success, 0),
		timed(Goodput, presetGoodput, 0),
	}}
}

// timed is an objective without a fallback or conditions.
func timed(n Number, target Target, threshold time.Duration) Objective {
	return Objective{Number: n, Target: target, Threshold: threshold, Fallback: n}
}

// Presets returns the built-in classes by name: interactive, completion and batch. The
// caller may change what it gets.
func Presets() map[string]Class {
	all := maps.Clone(presets)
	for name, c := range all {
		all[name] = c.clone()
	}
	return all
}

// Preset returns one built-in class, and whether there is one of this name. The caller may
// change it.
func Preset(name string) (Class, bool) {
	c, ok := presets[name]
	return c.clone(), ok
}

// With returns a copy of the class in which each given objective replaces all those about
// the same number under the same conditions, whatever their targets; where there are none,
// it is added at the end. So "ttft p95 <= 1s" replaces "ttft p99 <= 2s", while "ttft p95 <=
// 1s when input_tokens <= 1000" stands beside it. Several given objectives may share a
// number: "ttft p50 <= 300ms" and "ttft p99 <= 1s" together replace what was there.
func (c Class) With(objectives ...Objective) Class {
	rest := slices.Clone(objectives)
	var all []Objective
	for _, old := range c.Objectives {
		same := func(o Objective) bool { return o.aboutTheSame(old) }
		if !slices.ContainsFunc(objectives, same) {
			all = append(all, old)
			continue
		}
		for _, o := range rest {
			if same(o) {
				all = append(all, o)
			}
		}
		rest = slices.DeleteFunc(rest, same)
	}
	c.Objectives = append(all, rest...)
	return c.clone()
}

// Without returns a copy of the class that has no objective about the number, under whatever
// conditions.
func (c Class) Without(number Number) Class {
	c = c.clone()
	c.Objectives = slices.DeleteFunc(c.Objectives, func(o Objective) bool { return o.Number == number })
	return c
}

// aboutTheSame tells whether two objectives are about one number of the same calls.
func (o Objective) aboutTheSame(other Objective) bool {
	return o.Number == other.Number && sameConditions(o.When, other.When)
}

// sameConditions compares without regard to order.
func sameConditions(a, b []Condition) bool {
	within := func(a, b []Condition) bool {
		return !slices.ContainsFunc(a, func(c Condition) bool { return !slices.Contains(b, c) })
	}
	return within(a, b) && within(b, a)
}

// clone returns a copy that shares nothing with the class.
func (c Class) clone() Class {
	c.Objectives = slices.Clone(c.Objectives)
	for i := range c.Objectives {
		c.Objectives[i].When = slices.Clone(c.Objectives[i].When)
	}
	c.Valid.Terms = slices.Clone(c.Valid.Terms)
	return c
}
