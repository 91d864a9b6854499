package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirgate/weir/internal/bench"
	"github.com/weirgate/weir/internal/workload"
)

// environment says what was measured, with what, and what was sent.
func environment(r bench.Result) pairs {
	e := r.Environment
	var p pairs
	add := func(name, value string) {
		if value != "" {
			p = append(p, pair{name: name, value: value})
		}
	}
	if e.Channel != "" {
		p = append(p, pair{"channel", named(e.Channel), true})
	}
	answers := "not streamed"
	if r.Streamed {
		answers = "streamed"
	}
	add("api", named(string(e.API))+", "+answers)
	if !e.Time.IsZero() {
		add("time", e.Time.UTC().Format("2006-01-02 15:04:05 MST"))
	}
	versions := "weir " + named(e.Weir)
	if e.Gateway != "" {
		versions += ", gateway " + named(e.Gateway)
	}
	add("versions", versions)
	add("profile", named(string(e.Profile))+" (what the figures mean: at the end)")
	add("engine", facts(e.Engine))
	for i, gpu := range e.GPU {
		add("gpu "+strconv.Itoa(i), facts(gpu))
	}
	add("given", given(e.Given))
	if o := objectives(r.Objectives); o != "" {
		add("objectives", o)
	}
	addWork(add, r)
	return p
}

// addWork says what was sent: once where all loads share it.
func addWork(add func(name, value string), r bench.Result) {
	var work []string
	warm := ""
	for _, run := range r.Runs {
		work = append(work, workText(run))
	}
	// Where only the warm-up differs, as it does by concurrency, one line is enough.
	if len(slices.Compact(slices.Clone(work))) > 1 {
		if range_ := warmups(r.Runs); range_ != "" {
			alike := slices.Clone(r.Runs)
			for i := range alike {
				alike[i].Warmup = 0
			}
			work, warm = work[:0], "; warm-up: "+range_
			for _, run := range alike {
				work = append(work, workText(run))
			}
		}
	}
	same := len(slices.Compact(slices.Clone(work))) == 1
	for i, run := range r.Runs {
		if same && i > 0 {
			break
		}
		name := "calls"
		if !same {
			name = named(run.Load)
		}
		add(name, work[i]+warm)
	}
	if len(r.Runs) == 1 {
		add("arrivals", arrivals(r.Runs[0].Arrivals))
	}
	add("seed", strconv.FormatUint(r.Seed, 10))
}

// warmups says of loads with different warm-ups how many calls they had; "" when
// they do not differ.
func warmups(runs []bench.Run) string {
	low, high := runs[0].Warmup, runs[0].Warmup
	for _, run := range runs {
		low, high = min(low, run.Warmup), max(high, run.Warmup)
	}
	if low == high {
		return ""
	}
	return count(low) + "–" + count(high) + " calls, by load"
}

// workText is what calls of a load are like.
func workText(run bench.Run) string {
	s := "input " + length(run.Input) + ", output " + length(run.Output)
	if t := run.Sharing.Tokens; t > 0 {
		s += ", the first " + count(t) + " tok shared"
		if run.Sharing.Groups > 1 {
			s += " within " + count(run.Sharing.Groups) + " groups"
		}
	} else {
		s += ", prompts with no common beginning"
	}
	if n := len(run.Repeats); n > 1 {
		s += "; " + plural(n, "repeat")
	}
	if run.Warmup > 0 {
		s += ", each after " + plural(run.Warmup, "warm-up call")
	}
	if run.Discard > 0 {
		s += ", the first " + tidy(run.Discard*100) + " % left out"
	}
	return s
}

// plural writes a number of things, with an s where it must be.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return count(n) + " " + thing + "s"
}

// length writes a distribution of lengths.
func length(l workload.Length) string {
	bounds := ""
	if l.Min != 0 || l.Max != 0 {
		bounds = count(l.Min) + "–" + count(l.Max)
	}
	switch l.Kind {
	case "":
		return "as it comes"
	case "fixed":
		return tidy(l.Mean) + " tok"
	case "uniform":
		return "uniform " + bounds + " tok"
	case "lognormal":
		s := "lognormal, mean " + tidy(l.Mean) + ", deviation " + tidy(l.Deviation)
		if bounds != "" {
			s += ", within " + bounds
		}
		return s + " tok"
	case "trace":
		return "from a trace"
	}
	return named(l.Kind)
}

// arrivals writes when calls are sent.
func arrivals(a workload.Arrivals) string {
	var s string
	switch a.Shape {
	case workload.Closed:
		return "closed loop, " + plural(a.Concurrency, "call") + " at a time"
	case workload.Poisson, workload.Constant:
		s = string(a.Shape) + ", " + tidy(a.Rate) + " calls/s"
	case workload.Burst:
		s = "bursts of " + count(a.Group) + ", " + tidy(a.Rate) + " calls/s"
	case workload.Replay:
		rate := a.Rate
		if rate == 0 {
			rate = 1
		}
		s = "replay at " + tidy(rate) + " times its speed"
	default:
		s = named(string(a.Shape))
	}
	if a.Concurrency > 0 {
		s += ", at most " + count(a.Concurrency) + " in flight"
	}
	return s
}

// objectives writes what a good call keeps; "" is none.
func objectives(o bench.Objectives) string {
	var list []string
	for _, one := range []struct {
		name string
		d    time.Duration
	}{{"TTFT", o.TTFT}, {"TPOT", o.TPOT}, {"E2E", o.E2E}} {
		if one.d > 0 {
			list = append(list, one.name+" ≤ "+span(one.d))
		}
	}
	return strings.Join(list, ", ")
}

// facts writes names and values, by name; "" when there are none.
func facts(m map[string]string) string {
	list := make([]string, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, named(k)+" "+named(m[k]))
	}
	return strings.Join(list, ", ")
}

// given writes what came from a file, nested names joined by points.
func given(m map[string]any) string {
	var list []string
	var walk func(prefix string, m map[string]any)
	walk = func(prefix string, m map[string]any) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			name := prefix + named(k)
			switch v := m[k].(type) {
			case map[string]any:
				walk(name+".", v)
			case string:
				list = append(list, name+" "+named(v))
			case float64:
				list = append(list, name+" "+strconv.FormatFloat(v, 'f', -1, 64))
			default:
				b, err := json.Marshal(v)
				if err != nil {
					b = fmt.Append(nil, v)
				}
				list = append(list, name+" "+named(string(b)))
			}
		}
	}
	walk("", m)
	return strings.Join(list, ", ")
}
