package bench

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// setup lists in what two results differ that makes them incomparable.
func setup(base, now *Result) []string {
	var apart []string
	a, b := &base.Environment, &now.Environment
	for _, one := range [...]struct{ name, base, now string }{
		{"channel", a.Channel, b.Channel},
		{"API", string(a.API), string(b.API)},
		{"model", a.Model, b.Model},
		{"metrics profile", string(a.Profile), string(b.Profile)},
		{"streamed", fmt.Sprint(base.Streamed), fmt.Sprint(now.Streamed)},
		{"GPUs", cards(a), cards(b)},
	} {
		// GPUs that could not be read may be the same.
		if one.base != one.now && !(one.name == "GPUs" && (one.base == "" || one.now == "")) {
			apart = append(apart, fmt.Sprintf("%s %s, now %s", one.name, quoted(one.base), quoted(one.now)))
		}
	}
	return apart
}

func quoted(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// cards names the GPUs.
func cards(e *Environment) string {
	var names []string
	for _, gpu := range e.GPU {
		names = append(names, gpu["name"])
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// pair finds the loads that both results have, and lists those that differ. Of
// several loads of one name the first belongs to the first.
func pair(base, now *Result) (pairs []loadPair, apart []string) {
	index := func(r *Result) (map[string]*Run, []string) {
		all, order := map[string]*Run{}, []string(nil)
		for i := range r.Runs {
			run := &r.Runs[i]
			name := run.Load
			for n := 2; all[name] != nil; n++ {
				name = fmt.Sprintf("%s (%d)", run.Load, n)
			}
			all[name] = run
			order = append(order, name)
		}
		return all, order
	}
	before, names := index(base)
	after, order := index(now)
	for _, name := range names {
		if after[name] == nil {
			apart = append(apart, fmt.Sprintf("load %q is only in the baseline", name))
		}
	}
	for _, name := range order {
		a, b := before[name], after[name]
		if a == nil {
			apart = append(apart, fmt.Sprintf("load %q is not in the baseline", name))
			continue
		}
		if a.Arrivals != b.Arrivals || a.Input != b.Input || a.Output != b.Output || a.Sharing != b.Sharing {
			apart = append(apart, fmt.Sprintf("load %q has other arrivals, lengths or common beginnings", name))
		}
		pairs = append(pairs, loadPair{a, b})
	}
	return pairs, apart
}

// remarks says what else differs, which is no hindrance: it may be the very change
// whose effect is to be seen.
func remarks(base, now *Result) []string {
	var notes []string
	a, b := base.Environment.Engine, now.Environment.Engine
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if was, ok := a[name]; ok && was != b[name] {
			notes = append(notes, fmt.Sprintf("engine %s was %s, now %s", name, was, b[name]))
		}
	}
	if was, is := base.Environment.Gateway, now.Environment.Gateway; was != is {
		notes = append(notes, fmt.Sprintf("gateway was %s, now %s", quoted(was), quoted(is)))
	}
	if was, is := base.Environment.Weir, now.Environment.Weir; was != is {
		notes = append(notes, fmt.Sprintf("measured by weir %s, now by %s", quoted(was), quoted(is)))
	}
	for _, one := range [...]struct {
		name string
		r    *Result
	}{{"the baseline", base}, {"this result", now}} {
		if one.r.Interrupted {
			notes = append(notes, one.name+" was interrupted")
		}
		calls, failed := 0, 0
		for i := range one.r.Runs {
			for _, f := range one.r.Runs[i].Repeats {
				calls, failed = calls+f.Calls, failed+f.Calls-f.Good
			}
		}
		if failed > 0 {
			notes = append(notes, fmt.Sprintf("in %s %d of %d calls failed; their latencies are in no figure", one.name, failed, calls))
		}
	}
	return notes
}
