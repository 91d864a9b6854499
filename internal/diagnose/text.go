package diagnose

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weirgate/weir/internal/call"
)

// columns is how wide the text is at most, but for words longer than that.
const columns = 79

// Text writes a Report for people, in lines of less than 80 columns.
func Text(w io.Writer, r Report) error {
	out := page{bufio.NewWriter(w)}
	out.head(&r)
	out.table(&r)
	for i := range r.Findings {
		out.line("")
		out.finding(fmt.Sprintf("%d. ", i+1), &r.Findings[i])
	}
	if len(r.Rare) > 0 {
		out.line("")
		out.wrap("rare: ", "      ", counts(r.Rare))
	}
	return out.end()
}

// TextFindings writes the findings of one call for people, as Text does.
func TextFindings(w io.Writer, findings []Finding) error {
	out := page{bufio.NewWriter(w)}
	if len(findings) == 0 {
		out.line("Nothing stands out in this call.")
	}
	for i := range findings {
		if i > 0 {
			out.line("")
		}
		out.finding(fmt.Sprintf("%d. ", i+1), &findings[i])
	}
	return out.end()
}

// JSON writes a Report for programs.
func JSON(w io.Writer, r Report) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("write diagnosis: %w", err)
	}
	return nil
}

// page writes lines; the first error is kept by the writer until the end.
type page struct{ w *bufio.Writer }

func (p page) line(text string) { fmt.Fprintln(p.w, text) }

func (p page) end() error {
	if err := p.w.Flush(); err != nil {
		return fmt.Errorf("write diagnosis: %w", err)
	}
	return nil
}

// wrap writes text after a prefix, and what does not fit after an indent of the
// same width.
func (p page) wrap(prefix, indent, text string) {
	line, empty := prefix, true
	for word := range strings.FieldsSeq(joined.Replace(clean(text))) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns {
			p.line(strings.ReplaceAll(line, bond, " "))
			line, empty = indent, true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	p.line(strings.ReplaceAll(line, bond, " "))
}

// bond stands for a blank at which no line is broken: one between a number and
// its unit. clean has removed it from what comes from outside.
const bond = "\x00"

var joined = func() *strings.Replacer {
	var pairs []string
	for _, unit := range []string{"s", "ms", "µs", "%", "B", "kB", "MB", "GB", "calls", "call", "tokens"} {
		for digit := '0'; digit <= '9'; digit++ {
			pairs = append(pairs, string(digit)+" "+unit, string(digit)+bond+unit)
		}
	}
	return strings.NewReplacer(pairs...)
}()

func (p page) head(r *Report) {
	title := "Diagnosis of " + cardinal(r.Calls)
	if r.Calls > 0 {
		title += fmt.Sprintf(" from %s to %s", r.From.UTC().Format("2006-01-02 15:04:05"), r.To.UTC().Format("15:04:05 UTC"))
		if r.To.Sub(r.From) >= 24*time.Hour {
			title = fmt.Sprintf("Diagnosis of %s from %s to %s", cardinal(r.Calls), r.From.UTC().Format("2006-01-02 15:04"), r.To.UTC().Format("2006-01-02 15:04 UTC"))
		}
	}
	p.wrap("", "", title)
	if len(r.Outcomes) > 0 {
		p.wrap("  ", "  ", "ended: "+counts(r.Outcomes))
	}
	if len(r.Errors) > 0 {
		p.wrap("  ", "  ", "errors: "+counts(r.Errors))
	}
	if r.Odd > 0 {
		p.wrap("  ", "  ", "left out, for their figures cannot be true: "+cardinal(r.Odd))
	}
	p.line("")
	p.line(headlines[r.Verdict])
	for _, reason := range r.Reasons {
		p.wrap("  ", "  ", reason)
	}
}

// table shows what TTFT and E2E are made of, on average.
func (p page) table(r *Report) {
	if r.TTFT.Calls == 0 && r.E2E.Calls == 0 {
		return
	}
	type place struct {
		phase  string
		source call.Source
	}
	const form = "  %-14s%-14s%12s%8s%14s%8s"
	p.line("")
	row := func(columns ...any) { p.line(strings.TrimRight(fmt.Sprintf(form, columns...), " ")) }
	row("on average", "known by", "TTFT", "", "E2E", "")
	row("", "", cardinal(r.TTFT.Calls), "", cardinal(r.E2E.Calls), "")
	cells := make(map[place][4]string)
	for column, b := range [...]*Breakdown{&r.TTFT, &r.E2E} {
		for _, part := range b.Parts {
			if total := part.Total.Or(0); total > 0 {
				at := place{part.Phase, part.Source}
				c := cells[at]
				share, _ := part.Share.Get() // known, since the total is more than 0
				c[2*column], c[2*column+1] = span(total/time.Duration(b.Calls)), percent(share)
				cells[at] = c
			}
		}
	}
	for _, phase := range phaseNames {
		for _, source := range sourceOrder {
			if c, there := cells[place{phase, source}]; there {
				row(phase, source, c[0], c[1], c[2], c[3])
			}
		}
	}
	whole := [2]string{"-", "-"}
	for i, b := range [...]*Breakdown{&r.TTFT, &r.E2E} {
		if mean, known := b.Mean.Get(); known {
			whole[i] = span(mean)
		}
	}
	row("sum", "", whole[0], "", whole[1], "")
}

// knownHow are the sources in words.
var knownHow = map[call.Source]string{
	call.Measured: "measured", call.FromEngine: "reported by the engine", call.Inferred: "inferred", call.Unattributed: "a possibility only",
}

func (p page) finding(number string, f *Finding) {
	indent := strings.Repeat(" ", len(number))
	how := knownHow[f.Source]
	if f.Code == CodeUnattributed {
		how = "nothing splits it"
	}
	p.wrap(number, indent, fmt.Sprintf("%s, layer %s, %s", f.Code, f.Layer, how))
	p.wrap(indent, indent, f.Summary)
	for _, e := range f.For {
		p.wrap(indent+"+ ", indent+"  ", e.Text)
	}
	for _, e := range f.Against {
		p.wrap(indent+"- ", indent+"  ", e.Text)
	}
	p.wrap(indent, indent, "Next: "+f.Next)
	if len(f.Examples) > 0 {
		p.wrap(indent, indent, "Worst: "+examples(f.Examples))
	}
}

func examples(list []Example) string {
	words := make([]string, len(list))
	for i, e := range list {
		words[i] = e.ID + " (" + span(e.Whole.Or(0)) + ")"
		if d, known := e.Time.Get(); known {
			words[i] = e.ID + " (" + span(d) + " of " + span(e.Whole.Or(0)) + ")"
		}
	}
	return strings.Join(words, ", ")
}

func counts(list []Tally) string {
	words := make([]string, len(list))
	for i, t := range list {
		words[i] = t.Name + " " + plain(float64(t.Calls))
	}
	return strings.Join(words, ", ")
}
