package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/weirgate/weir/internal/bench"
	"github.com/weirgate/weir/internal/endpoint"
)

// medianNote says of what the figures are medians.
func medianNote(runs []bench.Run) paragraph {
	most := 0
	for _, run := range runs {
		most = max(most, len(run.Repeats))
	}
	if most < 2 {
		return ""
	}
	return "Each figure is the median of its repeats, of an even number the mean of the two in the middle."
}

// column of a summary, and what stands in it.
type figureColumn struct {
	column
	of func(bench.Run) cell
}

// summary is the table of one line per load.
func summary(runs []bench.Run) table {
	var columns []figureColumn
	add := func(figure, unit, head string, of func(bench.Figures) string) {
		columns = append(columns, figureColumn{column{figure: figure, unit: unit, head: head},
			func(r bench.Run) cell { return cell{text: of(r.Median)} }})
	}
	columns = append(columns, figureColumn{column{head: "load", left: true}, func(r bench.Run) cell { return cell{text: named(r.Load)} }})
	if slices.ContainsFunc(runs, func(r bench.Run) bool { return r.Median.Offered != nil }) {
		add("calls/s", "", "offered", func(f bench.Figures) string { return maybe(f.Offered) })
		add("calls/s", "", "sent", func(f bench.Figures) string { return measured(f, f.Sent) })
		if slices.ContainsFunc(runs, func(r bench.Run) bool { return r.Median.Achieved != nil }) {
			add("calls/s", "", "achieved", func(f bench.Figures) string { return maybe(f.Achieved) })
		}
		add("calls/s", "", "succeeded", func(f bench.Figures) string { return measured(f, f.CallsPerSecond) })
	} else {
		add("", "", "calls/s", func(f bench.Figures) string { return measured(f, f.CallsPerSecond) })
	}
	add("tokens/s", "", "in", func(f bench.Figures) string { return maybe(f.InputPerSecond) })
	add("tokens/s", "", "out", func(f bench.Figures) string { return maybe(f.OutputPerSecond) })
	add("tokens/s", "", "total", func(f bench.Figures) string { return maybe(f.TotalPerSecond) })
	add("TPM", "", "tok/min", func(f bench.Figures) string { return whole(f.TotalPerMinute) })
	add("in flight", "", "mean", func(f bench.Figures) string { return measured(f, f.Concurrency) })
	add("in flight", "", "peak", func(f bench.Figures) string { return count(f.Peak) })
	columns = append(columns, figureColumn{column{figure: "success", head: "%"}, success})
	if slices.ContainsFunc(runs, func(r bench.Run) bool { return r.Median.Goodput != nil }) {
		add("goodput", "", "%", func(f bench.Figures) string {
			if f.Goodput == nil {
				return unknown
			}
			return percent(*f.Goodput)
		})
	}
	for _, q := range []struct {
		name string
		of   func(bench.Figures) *bench.Quantiles
	}{{"TTFT", ttft}, {"TPOT", tpot}} {
		add(q.name, "ms", "p50", func(f bench.Figures) string { return quantile(q.of(f), p50) })
		add(q.name, "ms", "p95", func(f bench.Figures) string { return quantile(q.of(f), p95) })
		add(q.name, "ms", "p99", func(f bench.Figures) string { return quantile(q.of(f), p99) })
	}
	add("E2E p95", "", "ms", func(f bench.Figures) string { return quantile(f.E2E, p95) })

	t := table{}
	for _, c := range columns {
		t.columns = append(t.columns, c.column)
	}
	for _, run := range runs {
		row := make([]cell, len(columns))
		for i, c := range columns {
			row[i] = c.of(run)
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// measured is a figure of calls in time, unknown when no time was measured.
func measured(f bench.Figures, v float64) string {
	if f.Seconds <= 0 {
		return unknown
	}
	return number(v)
}

// success is the share of calls that succeeded, over all repeats.
func success(run bench.Run) cell {
	calls := overRepeats(run, func(f bench.Figures) int { return f.Calls })
	kept := overRepeats(run, func(f bench.Figures) int { return f.Good })
	c := cell{text: percentOf(kept, calls)}
	switch {
	case calls == 0:
	case kept == calls:
		c.tone = good
	case kept*100 >= calls*99:
		c.tone = warn
	default:
		c.tone = bad
	}
	return c
}

func ttft(f bench.Figures) *bench.Quantiles { return f.TTFT }
func tpot(f bench.Figures) *bench.Quantiles { return f.TPOT }
func e2e(f bench.Figures) *bench.Quantiles  { return f.E2E }

func p50(q bench.Quantiles) float64 { return q.P50 }
func p95(q bench.Quantiles) float64 { return q.P95 }
func p99(q bench.Quantiles) float64 { return q.P99 }

// quantile is one value of q, unknown where there is no q, or q is of nothing.
func quantile(q *bench.Quantiles, of func(bench.Quantiles) float64) string {
	if q == nil || q.N == 0 {
		return unknown
	}
	return number(of(*q))
}

// goodputNote says what a good call is, and of how many that cannot be said.
func goodputNote(r bench.Result) string {
	o := objectives(r.Objectives)
	if o == "" {
		return ""
	}
	undecided := 0
	for _, run := range r.Runs {
		undecided += overRepeats(run, func(f bench.Figures) int { return f.Undecided })
	}
	s := "Goodput is the share of calls that succeeded with " + o + "."
	if undecided > 0 {
		s += " It leaves out " + plural(undecided, "call") + " of which that cannot be said, since a figure is not known."
	}
	return s
}

// overRepeats adds up a count of all repeats.
func overRepeats(run bench.Run, of func(bench.Figures) int) int {
	if len(run.Repeats) == 0 {
		return of(run.Median)
	}
	n := 0
	for _, f := range run.Repeats {
		n += of(f)
	}
	return n
}

// spread says how far the repeats of a load lay apart: of one load a line for each
// headline figure, of several a line for each load.
func spread(runs []bench.Run) table {
	runs = slices.DeleteFunc(slices.Clone(runs), func(r bench.Run) bool { return len(r.Repeats) < 2 || len(r.Spread) == 0 })
	one := table{columns: []column{{head: "figure", left: true}, {head: "least"}, {head: "median"}, {head: "greatest"}, {figure: "range", head: "%"}}}
	many := table{columns: []column{{head: "load", left: true}}}
	for _, run := range runs {
		many.rows = append(many.rows, plainCells(named(run.Load)))
	}
	for _, h := range bench.Headlines() {
		if !slices.ContainsFunc(runs, func(r bench.Run) bool { _, known := r.Spread[h.Name]; return known }) {
			continue
		}
		name, unit := cutLast(h.Title)
		many.columns = append(many.columns, column{figure: name, head: unit})
		for i, run := range runs {
			s, known := run.Spread[h.Name]
			if !known {
				many.rows[i] = append(many.rows[i], cell{text: unknown})
				continue
			}
			many.rows[i] = append(many.rows[i], cell{text: number(s.Min) + "–" + number(s.Max)})
			median, _ := h.Of(&run.Median)
			one.rows = append(one.rows, plainCells(h.Title, number(s.Min), number(median), number(s.Max), rangeOf(s, median)))
		}
	}
	if len(runs) == 1 {
		return one
	}
	return many
}

// rangeOf is how far the repeats lay apart, in per cent of the median.
func rangeOf(s bench.Spread, median float64) string {
	if median <= 0 {
		return unknown
	}
	return number((s.Max - s.Min) / median * 100)
}

// cutLast cuts the last word off a title.
func cutLast(title string) (before, last string) {
	i := strings.LastIndexByte(title, ' ')
	if i < 0 {
		return "", title
	}
	return title[:i], title[i+1:]
}

// figure is one that is described by quantiles.
type figure struct {
	name, unit string
	always     bool // shown as unknown where it is
	of         func(bench.Figures) *bench.Quantiles
}

var figures = []figure{
	{"TTFT", "ms", true, ttft},
	{"TPOT", "ms", true, tpot},
	{"ITL", "ms", false, func(f bench.Figures) *bench.Quantiles { return f.ITL }},
	{"gaps", "ms", false, func(f bench.Figures) *bench.Quantiles { return f.Gaps }},
	{"E2E", "ms", true, e2e},
	{"sent late", "ms", false, func(f bench.Figures) *bench.Quantiles { return f.Late }},
	{"input", "tok", false, func(f bench.Figures) *bench.Quantiles { return f.Input }},
	{"output", "tok", false, func(f bench.Figures) *bench.Quantiles { return f.Output }},
	{"client delay", "ms", false, func(f bench.Figures) *bench.Quantiles { return f.Client.Delay }},
}

var quantileColumns = []column{{head: "n"}, {head: "mean"}, {head: "p50"}, {head: "p90"}, {head: "p95"}, {head: "p99"}, {head: "max"}}

// described are the cells of quantileColumns.
func described(q *bench.Quantiles) []cell {
	if q == nil || q.N == 0 {
		return plainCells(unknown, unknown, unknown, unknown, unknown, unknown, unknown)
	}
	return plainCells(count(q.N), number(q.Mean), number(q.P50), number(q.P90), number(q.P95), number(q.P99), number(q.Max))
}

// addQuantiles describes each figure in full: of one load in one table, of
// several in one for each figure, so that loads can be compared.
func addQuantiles(d *document, runs []bench.Run) {
	var tables []part
	if medianNote(runs) != "" {
		tables = append(tables, paragraph("These are medians of the repeats, value by value; n is that of a repeat."))
	}
	one := table{columns: append([]column{{head: "figure", left: true}}, quantileColumns...)}
	for _, f := range figures {
		name := f.name
		if name == "gaps" {
			name = gapsName(runs)
		}
		many := table{caption: name + ", " + f.unit, columns: append([]column{{head: "load", left: true}}, quantileColumns...)}
		if !f.always && !slices.ContainsFunc(runs, func(r bench.Run) bool { return f.of(r.Median) != nil }) {
			continue
		}
		for _, run := range runs {
			cells := described(f.of(run.Median))
			one.rows = append(one.rows, append(plainCells(name+", "+f.unit), cells...))
			many.rows = append(many.rows, append(plainCells(named(run.Load)), cells...))
		}
		if len(runs) > 1 {
			tables = append(tables, onceIfSame(many))
		}
	}
	if len(runs) == 1 {
		tables = append(tables, one)
	}
	d.section("Distributions", tables...)
}

// onceIfSame writes one row for all loads where but for n they do not differ, as
// lengths do not that were the same for all.
func onceIfSame(t table) table {
	first := t.rows[0]
	least, most := first[1].text, first[1].text
	for _, row := range t.rows[1:] {
		if !slices.Equal(first[2:], row[2:]) {
			return t
		}
		if len(row[1].text) < len(least) || len(row[1].text) == len(least) && row[1].text < least {
			least = row[1].text
		}
		if len(row[1].text) > len(most) || len(row[1].text) == len(most) && row[1].text > most {
			most = row[1].text
		}
	}
	if least != most {
		least += "–" + most
	}
	row := slices.Clone(first)
	row[0], row[1] = cell{text: "all loads"}, cell{text: least}
	t.rows = [][]cell{row}
	return t
}

// gapsName says between what gaps lie, where that is the same for all loads.
func gapsName(runs []bench.Run) string {
	of := bench.GapsOf("")
	for _, run := range runs {
		switch g := run.Median.GapsOf; {
		case run.Median.Gaps == nil:
		case of == "":
			of = g
		case g != of:
			return "gaps"
		}
	}
	switch of {
	case bench.Tokens:
		return "token gaps"
	case bench.Chunks:
		return "chunk gaps"
	}
	return "gaps"
}

// failures counts failed calls by load and kind, the most frequent first.
func failures(runs []bench.Run) table {
	t := table{columns: []column{{head: "load", left: true}, {head: "calls"}, {head: "kind", left: true}, {head: "what it is", left: true}}}
	for _, run := range runs {
		all := failed(run)
		kinds := slices.Collect(maps.Keys(all))
		slices.SortFunc(kinds, func(a, b endpoint.Kind) int { return cmp.Or(all[b]-all[a], cmp.Compare(a, b)) })
		for _, k := range kinds {
			t.rows = append(t.rows, []cell{{text: named(run.Load)}, {text: count(all[k]), tone: bad}, {text: named(string(k))}, {text: meaning(k)}})
		}
	}
	return t
}

// failed are the failures of a run by kind, of all its repeats together.
func failed(run bench.Run) map[endpoint.Kind]int {
	if len(run.Failures) > 0 {
		return run.Failures
	}
	all := map[endpoint.Kind]int{}
	for _, f := range run.Repeats {
		for k, n := range f.Failures {
			all[k] += n
		}
	}
	if len(run.Repeats) == 0 {
		return run.Median.Failures
	}
	return all
}
