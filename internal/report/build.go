package report

import (
	"fmt"
	"strings"

	"github.com/weirgate/weir/internal/bench"
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
	d.section("What the figures mean", definitions(r.Environment.Profile, r.Streamed))
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
	for _, run := range r.Runs {
		load := named(run.Load)
		if s := distorted(run); s != "" {
			w = append(w, "DISTORTED, "+load+": "+s)
		}
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

// distorted says why the client stood in its own way; "" when it did not.
func distorted(run bench.Run) string {
	// The median's delay may be that of a repeat in which all was well.
	worst, times := bench.Client{}, 0
	for _, f := range run.Repeats {
		if !f.Client.Distorted {
			continue
		}
		if times++; times == 1 || delayOf(f.Client) > delayOf(worst) {
			worst = f.Client
		}
	}
	if times == 0 {
		worst = run.Median.Client
	}
	if !worst.Distorted {
		return ""
	}
	var s strings.Builder
	s.WriteString("the load test itself was late, so times are wrong by about as much")
	if worst.Delay != nil {
		fmt.Fprintf(&s, "; its own scheduling delay was %s ms at p99 (2 ms are tolerated)", number(worst.Delay.P99))
	}
	if n := len(run.Repeats); n > 1 && times > 0 {
		fmt.Fprintf(&s, "; %d of %d repeats", times, n)
	}
	s.WriteByte('.')
	if worst.Reason != "" {
		s.WriteString(" " + sentence(worst.Reason))
	}
	return s.String()
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
