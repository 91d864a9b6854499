package diagnose

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// Options steer Window. The zero value is the defaults.
type Options struct {
	// MinCalls is how many calls a window needs to be spoken of as a whole; 0 and
	// less is MinCalls, the constant.
	MinCalls int
	// Examples is how many calls are named for each finding, 10 at most; 0 is 3 and
	// less than 0 none.
	Examples int
}

const (
	defaultExamples = 3
	maxExamples     = 10
	// maxErrors is how many kinds of error are told apart.
	maxErrors = 5
)

// Report is what Window says of a span of time.
type Report struct {
	// From is when the first call was received, To when the last one ended.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
	// Calls is how many were looked at, Streamed how many of them streamed (or were
	// asked to). Odd is how many records were left out because their figures cannot
	// be true: times below 0, or of more than a day.
	Calls    int `json:"calls"`
	Streamed int `json:"streamed"`
	Odd      int `json:"odd,omitempty"`
	// Outcomes counts how they ended, in the order of call.Outcomes, and Errors by
	// error code: the five most frequent and, as "other", the rest.
	Outcomes []Tally `json:"outcomes"`
	Errors   []Tally `json:"errors,omitempty"`
	// TTFT is of streamed calls with a first token, E2E of completed calls.
	TTFT Breakdown `json:"ttft"`
	E2E  Breakdown `json:"e2e"`
	// Verdict and its Reasons, one sentence each.
	Verdict Verdict  `json:"verdict"`
	Reasons []string `json:"reasons"`
	// Findings are those that weigh: of at least 5 % of the calls or of the time, and
	// all failures. Rare counts the calls that show others.
	Findings []Finding `json:"findings"`
	Rare     []Tally   `json:"rare,omitempty"`
}

// Tally is how many calls bear a name.
type Tally struct {
	Name  string `json:"name"`
	Calls int    `json:"calls"`
}

// Window says what was at fault in the calls of a window, and of what their times
// were made up. Records that are nil count for nothing; the order of records does
// not matter. It takes time in proportion to their number, but for sorting the
// prefill times of calls of one size.
func Window(records []*call.Record, o Options) Report {
	w := window{keep: o.Examples, wholes: make(map[Whole]time.Duration), groups: make(map[groupKey]*group),
		outcomes: make(map[string]int), errors: make(map[string]int)}
	if w.keep == 0 {
		w.keep = defaultExamples
	}
	w.keep = min(max(w.keep, 0), maxExamples)
	for d := range w.names {
		w.names[d] = make(map[string]int)
	}
	alike, likely, sent := make(cells), make(firsts), make(arrivals)
	var l look // one for all, for the rules' sake it lies on the heap
	for _, rec := range records {
		if l.at(rec) {
			alike.add(&l)
			likely.add(&l)
			sent.add(&l)
		}
	}
	medians, idles := alike.medians(), likely.idles(sent.sort())
	for _, rec := range records {
		if !l.at(rec) {
			if rec != nil {
				w.report.Odd++
			}
			continue
		}
		if at, known := l.cell(); known {
			l.peers = medians[at]
		}
		l.gap = sent.gap(&l)
		if at, known := l.likeness(); known {
			l.idle = idles[at]
		}
		w.add(&l)
	}
	least := o.MinCalls
	if least <= 0 {
		least = MinCalls
	}
	return w.done(least)
}

// window gathers a Report.
type window struct {
	report   Report
	keep     int // examples
	sheet    sheet
	ttft     account
	e2e      account
	dark     darkness
	scene    scene
	wholes   map[Whole]time.Duration
	groups   map[groupKey]*group
	outcomes map[string]int
	errors   map[string]int
	names    [dimensions]map[string]int
}

type groupKey struct {
	code   Code
	of     Whole
	source call.Source
	wall   wall
}

func (w *window) add(l *look) {
	r, rec := &w.report, l.rec
	r.Calls++
	if rec.Stream {
		r.Streamed++
	}
	if r.From.IsZero() || rec.Time.Before(r.From) {
		r.From = rec.Time
	}
	if end := rec.Time.Add(l.elapsed); end.After(r.To) {
		r.To = end
	}
	note(w.outcomes, string(rec.Outcome))
	if rec.Error != "" {
		note(w.errors, rec.Error)
	}
	for d := range w.names {
		note(w.names[d], named[d].of(rec))
	}
	w.wholes[OfElapsed] += l.elapsed
	if l.split {
		w.ttft.first(l)
		w.wholes[OfTTFT] += l.ttft
		if trip, known := rec.ClientRTT.Get(); known && trip >= 0 && trip <= longest {
			w.wholes[OfTTFTAtClient] += l.ttft + trip
		}
	}
	if e2e, known := rec.E2E.Get(); known && e2e == l.elapsed && rec.Outcome == call.Completed {
		w.e2e.all(l)
	}
	w.dark.add(l)
	w.scene.add(rec)
	w.sheet.fill(l)
	for i := range w.sheet.hits {
		h := &w.sheet.hits[i]
		key := groupKey{h.code, h.of, h.source, h.wall}
		g := w.groups[key]
		if g == nil {
			g = newGroup(h)
			w.groups[key] = g
		}
		g.add(l, h, w.sheet.of(i), max(w.keep, 1))
	}
}

func (w *window) done(least int) Report {
	r := &w.report
	r.Outcomes = []Tally{}
	r.TTFT, r.E2E = w.ttft.breakdown(), w.e2e.breakdown()
	for _, o := range call.Outcomes {
		if n := w.outcomes[string(o)]; n > 0 {
			r.Outcomes = append(r.Outcomes, Tally{string(o), n})
			delete(w.outcomes, string(o))
		}
	}
	r.Outcomes = append(r.Outcomes, tallies(w.outcomes, maxErrors)...) // none that is known
	r.Errors = tallies(w.errors, maxErrors)

	groups := make([]*group, 0, len(w.groups))
	for _, g := range w.groups {
		groups = append(groups, g)
	}
	order(groups, r.Calls)
	f := frame{window: true, calls: r.Calls, wholes: w.wholes, examples: w.keep}
	rare := make(map[string]int)
	r.Findings = []Finding{}
	for _, g := range groups {
		if !g.weighs(&f) {
			rare[string(g.meaning.Code)] += g.calls
			continue
		}
		found := g.finding(&f)
		found.For = append(found.For, g.focus(&w.names, r.Calls)...)
		r.Findings = append(r.Findings, found)
	}
	r.Rare = tallies(rare, len(meanings))
	w.judge(least)
	return *r
}

// weighs tells whether a group is more than a rare case.
func (g *group) weighs(f *frame) bool {
	return g.meaning.failure || often(g.calls, f.calls) || g.of != "" && float64(g.time) >= Worth*float64(f.wholes[g.of])
}

// tallies sorts counts, the largest first, and sums up those beyond keep.
func tallies(counts map[string]int, keep int) []Tally {
	var list []Tally
	other := Tally{Name: others}
	for name, n := range counts {
		if name == others {
			other.Calls += n
			continue
		}
		list = append(list, Tally{name, n})
	}
	slices.SortFunc(list, func(a, b Tally) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Name, b.Name))
	})
	for len(list) > keep {
		other.Calls += list[len(list)-1].Calls
		list = list[:len(list)-1]
	}
	if other.Calls > 0 {
		list = append(list, other)
	}
	return list
}
