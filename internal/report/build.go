package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirgate/weir/internal/bench"
	"github.com/weirgate/weir/internal/saturation"
)

// documentOf says in words and tables what r holds. What people must know before
// they read a figure comes first, the definitions of the figures last.
func documentOf(r bench.Result) *document {
	d := &document{title: "weir bench: " + named(r.Environment.Model)}
	if w := warnings(r); len(w) > 0 {
		d.add(loud(w))
	}
	d.add(environment(r))
	d.section("Throughput and latency", medianNote(r.Runs), summary(r.Runs), paragraph(goodputNote(r)))
	d.add(plots{})
	d.section("Spread over repeats", spread(r.Runs))
	addLadder(d, r.Ladder)
	addStaircase(d, r.Staircase)
	addQuantiles(d, r.Runs)
	d.section("Failed calls, of all repeats together", failures(r.Runs))
	addIdentity(d, r)
	addCompared(d, r.Runs)
	addThermal(d, r.Runs)
	addNotes(d, r)
	d.section("What the figures mean", definitions(r.Environment.Profile, r.Streamed, open(r)))
	return d
}

// warnings are the reasons not to trust the figures, or not all of them.
func warnings(r bench.Result) []string {
	var w []string
	if len(r.Runs) == 0 {
		w = append(w, "NOTHING MEASURED: no load was run to its end, so there are no figures.")
	}
	if r.Interrupted {
		w = append(w, "INTERRUPTED: the figures are those of what was measured until then.")
	}
	if s := distorted(r.Runs); s != "" {
		w = append(w, s)
	}
	for _, run := range r.Runs {
		load := named(run.Load)
		if run.Interrupted {
			w = append(w, "INTERRUPTED, "+load+": its figures are of a part of its calls.")
		}
		if run.Median.Calls > 0 && run.Median.Good == 0 {
			w = append(w, "NO CALL SUCCEEDED, "+load+": see the failed calls.")
		}
		if held := overRepeats(run, func(f bench.Figures) int { return f.Held }); held > 0 {
			w = append(w, "HELD BACK, "+load+": "+plural(held, "call")+" waited for the bound on calls in flight, so less was sent than was offered.")
		}
		if without := overRepeats(run, func(f bench.Figures) int { return f.WithoutUsage }); without > 0 {
			succeeded := overRepeats(run, func(f bench.Figures) int { return f.Good })
			w = append(w, fmt.Sprintf("USAGE UNKNOWN, %s: %s of %s succeeded calls reported no usage, so figures of tokens are absent.",
				load, count(without), count(succeeded)))
		}
	}
	return w
}

// distorted says once of which loads the client stood in its own way, and how much
// at the worst; "" when it did of none.
func distorted(runs []bench.Run) string {
	var loads []string
	var worst bench.Client
	of := "" // the load and the repeat that were worst
	take := func(c bench.Client, name string) {
		if c.Distorted && (of == "" || delayOf(c) > delayOf(worst)) {
			worst, of = c, name
		}
	}
	for _, run := range runs {
		name, times := named(run.Load), 0
		for i, f := range run.Repeats {
			if f.Client.Distorted {
				times++
			}
			if len(run.Repeats) > 1 {
				take(f.Client, name+", repeat "+count(i+1))
			} else {
				take(f.Client, name)
			}
		}
		// The median's delay may be that of a repeat in which all was well.
		if times == 0 {
			take(run.Median.Client, name)
		}
		switch n := len(run.Repeats); {
		case times == 0 && !run.Median.Client.Distorted:
			continue
		case n > 1 && times > 0:
			name += " (" + count(times) + " of " + count(n) + " repeats)"
		}
		loads = append(loads, name)
	}
	if len(loads) == 0 {
		return ""
	}
	var s strings.Builder
	s.WriteString("DISTORTED, " + listed(loads, maxNamed) + ": the load test itself was late, so times are wrong by about as much. Worst, ")
	s.WriteString(of)
	if worst.Delay != nil {
		fmt.Fprintf(&s, ": its own scheduling delay was %s ms at p99 (%s ms are tolerated)", number(worst.Delay.P99), tidy(saturation.TolerableDelay))
	}
	s.WriteByte('.')
	if worst.Reason != "" {
		s.WriteString(" " + sentence(worst.Reason))
	}
	return s.String()
}

// maxNamed is how many loads a warning names.
const maxNamed = 12

// listed writes names one after the other, of more than most only how many more.
func listed(names []string, most int) string {
	if n := len(names) - most; n > 0 {
		return strings.Join(names[:most], ", ") + " and " + count(n) + " more"
	}
	return strings.Join(names, ", ")
}

// open tells whether a load had a rate of its own.
func open(r bench.Result) bool {
	return r.Staircase != nil || slices.ContainsFunc(r.Runs, func(r bench.Run) bool { return r.Arrivals.Open() && r.Arrivals.Shape != "" || r.Median.Offered != nil })
}

// delayOf is a client's scheduling delay at p99, 0 where it is not known.
func delayOf(c bench.Client) float64 {
	if c.Delay == nil {
		return 0
	}
	return c.Delay.P99
}

// sentence makes s begin with a capital letter and end with a full stop.
func sentence(s string) string {
	s = strings.TrimSpace(clean(s))
	if s == "" {
		return ""
	}
	if c := s[0]; c >= 'a' && c <= 'z' {
		s = string(c-'a'+'A') + s[1:]
	}
	if !strings.ContainsAny(s[len(s)-1:], ".!?") {
		s += "."
	}
	return s
}

// addNotes appends the notes of the result and of its runs.
func addNotes(d *document, r bench.Result) {
	var list bullets
	for _, n := range r.Notes {
		list = append(list, sentence(n))
	}
	for _, run := range r.Runs {
		for _, n := range run.Notes {
			list = append(list, named(run.Load)+": "+sentence(n))
		}
	}
	d.section("Notes", list)
}
