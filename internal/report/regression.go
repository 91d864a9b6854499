package report

import (
	"io"

	"github.com/weirgate/weir/internal/bench"
)

// Regression writes a comparison with a baseline for people who read it in a
// terminal; width and colour are as in Text. Errors are those of w.
func Regression(w io.Writer, r bench.Regression, width int, colour bool) error {
	return writeText(w, regressionDocument(r), width, colour)
}

// RegressionMarkdown writes the same in GitHub's flavour of Markdown.
func RegressionMarkdown(w io.Writer, r bench.Regression) error {
	return writeMarkdown(w, regressionDocument(r))
}

// RegressionJSON writes the same as one indented object, as JSON does.
func RegressionJSON(w io.Writer, r bench.Regression) error { return writeJSON(w, r) }

func regressionDocument(r bench.Regression) *document {
	threshold := tidy(r.Threshold*100) + " %"
	d := &document{title: "Against the baseline: " + outcome(r)}
	t := table{columns: []column{{head: "load", left: true}, {head: "figure", left: true}, {head: "baseline"}, {head: "now"},
		{figure: "change", head: "%"}, {figure: "95 % interval", head: "%"}, {head: "verdict", left: true}}}
	var notes bullets
	lost := loud{}
	for _, row := range r.Rows {
		verdict := cell{text: verdictText(row.Verdict), tone: verdictTone(row.Verdict)}
		if row.Verdict == bench.Regressed {
			lost = append(lost, "REGRESSED: "+named(row.Figure)+" of "+named(row.Load)+" went from "+number(row.Base)+" to "+number(row.Now)+" "+named(row.Unit)+
				" ("+changeOf(&row.Ratio)+" %).")
		}
		figure := named(row.Figure)
		if row.Unit != "" {
			figure += ", " + named(row.Unit)
		}
		t.rows = append(t.rows, []cell{{text: named(row.Load)}, {text: figure}, {text: number(row.Base)}, {text: number(row.Now)},
			{text: changeOf(&row.Ratio)}, {text: interval(row)}, verdict})
		if row.Note != "" {
			notes = append(notes, named(row.Load)+", "+named(row.Figure)+": "+sentence(row.Note))
		}
	}
	if len(lost) > 0 {
		d.add(lost)
	}
	if len(t.rows) > 0 {
		d.add(t)
	}
	d.add(paragraph("A figure has regressed when it is worse by more than " + threshold +
		" with 95 % confidence, that is over the whole interval, which comes from bootstrap over calls and from the repeats. What reaches across " + threshold +
		", and what the load test's own delay could explain, is uncertain and fails nothing; the notes say which it is."))
	for _, n := range r.Notes {
		notes = append(notes, sentence(n))
	}
	d.section("Notes", notes)
	return d
}

// outcome is the comparison in a few words.
func outcome(r bench.Regression) string {
	unsure := 0
	for _, row := range r.Rows {
		if row.Verdict == bench.Uncertain {
			unsure++
		}
	}
	switch {
	case r.Failed:
		return "REGRESSION"
	case len(r.Rows) == 0:
		return "no figure that both know"
	case unsure == len(r.Rows):
		return "nothing certain"
	case unsure > 0:
		return "no regression found, " + count(unsure) + " of " + plural(len(r.Rows), "figure") + " uncertain"
	}
	return "no regression"
}

func verdictText(c bench.Change) string {
	if c == bench.Regressed {
		return "REGRESSED"
	}
	return named(string(c))
}

func verdictTone(c bench.Change) tone {
	switch c {
	case bench.Regressed:
		return bad
	case bench.Improved:
		return good
	case bench.Uncertain:
		return warn
	}
	return plain
}

// interval writes between which changes the true one lies, as far as that is known.
func interval(row bench.RegressionRow) string {
	if row.Low == nil || row.High == nil {
		return unknown
	}
	return changeOf(row.Low) + " to " + changeOf(row.High)
}

// changeOf writes a ratio as a change in per cent.
func changeOf(ratio *float64) string {
	one := 1.0
	return change(&one, ratio)
}
