package doctor

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// marks can be told apart without colour, and are equally wide.
var marks = map[Level]struct{ text, colour string }{
	Green:  {"ok  ", "\x1b[32m"},
	Yellow: {"warn", "\x1b[33m"},
	Red:    {"FAIL", "\x1b[1;31m"},
	Grey:   {"--  ", "\x1b[2m"},
}

const (
	// checkWidth is the width of the column of names: that of the longest.
	checkWidth = 11
	// unknownWidth is the width of a page whose width is not known, and leastWidth
	// that of the narrowest: what is narrower is wrapped by the terminal.
	unknownWidth = 80
	leastWidth   = 40
)

// Page writes findings for people as they come: one line each, with the reason and
// the next step below it. Checks that the fault of another kept from being made
// are summed up at the end, one line for each such fault, before a line of counts.
type Page struct {
	w      *bufio.Writer
	width  int
	colour bool
	counts map[Level]int
	unmade []Finding
}

// NewPage returns a Page that is width columns wide; 0 and less is not known, and
// taken for 80. colour adds the escape sequences of a terminal.
func NewPage(w io.Writer, width int, colour bool) *Page {
	if width <= 0 {
		width = unknownWidth
	}
	return &Page{w: bufio.NewWriter(w), width: max(width, leastWidth), colour: colour, counts: map[Level]int{}}
}

// Add writes a finding, or keeps it for the end.
func (p *Page) Add(f Finding) error {
	p.counts[f.Level]++
	if f.Cause != "" {
		p.unmade = append(p.unmade, f)
		return nil
	}
	indent := len(marks[f.Level].text) + 2 + checkWidth + 2
	p.wrap(p.mark(f.Level)+fmt.Sprintf("  %-*s  ", checkWidth, f.Check), indent, f.Title)
	for _, text := range []string{f.Detail, next(f.Next)} {
		if text != "" {
			p.wrap(strings.Repeat(" ", indent), indent, text)
		}
	}
	return p.flush()
}

func next(text string) string {
	if text == "" {
		return ""
	}
	return "Next: " + text
}

// End writes which checks were not made, and how many findings of each level
// there are.
func (p *Page) End() error {
	var reasons []string
	names := map[string][]string{}
	for _, f := range p.unmade {
		if !slices.Contains(reasons, f.Title) {
			reasons = append(reasons, f.Title)
		}
		names[f.Title] = append(names[f.Title], f.Check)
	}
	for _, reason := range reasons {
		n, checks := len(names[reason]), "checks"
		if n == 1 {
			checks = "check"
		}
		indent := len(marks[Grey].text) + 2
		p.wrap(p.mark(Grey)+"  ", indent, fmt.Sprintf("%d %s not made %s: %s", n, checks, strings.TrimPrefix(reason, "not checked "), strings.Join(names[reason], ", ")))
	}
	fmt.Fprintf(p.w, "%d ok, %d warn, %d FAIL, %d not known\n", p.counts[Green], p.counts[Yellow], p.counts[Red], p.counts[Grey])
	return p.flush()
}

func (p *Page) flush() error {
	if err := p.w.Flush(); err != nil {
		return fmt.Errorf("write findings: %w", err)
	}
	return nil
}

func (p *Page) mark(l Level) string {
	if p.colour {
		return marks[l].colour + marks[l].text + "\x1b[0m"
	}
	return marks[l].text
}

// wrap writes text after a prefix that is indent columns wide on the terminal, and
// what does not fit below it. Words are not broken: they are addresses and flags.
func (p *Page) wrap(prefix string, indent int, text string) {
	line, at, empty := prefix, indent, true
	for word := range strings.FieldsSeq(text) {
		long := utf8.RuneCountInString(word)
		switch {
		case empty:
		case at+1+long > p.width:
			fmt.Fprintln(p.w, line)
			line, at = strings.Repeat(" ", indent), indent
		default:
			line, at = line+" ", at+1
		}
		line, at, empty = line+word, at+long, false
	}
	fmt.Fprintln(p.w, line)
}

// Text writes findings for people, as a Page does that takes them one by one.
func Text(w io.Writer, findings []Finding, width int, colour bool) error {
	p := NewPage(w, width, colour)
	for _, f := range findings {
		if err := p.Add(f); err != nil {
			return err
		}
	}
	return p.End()
}

// Report is the JSON form of all findings.
type Report struct {
	Worst    Level     `json:"worst"`
	Findings []Finding `json:"findings"`
}

// JSON writes findings as one Report.
func JSON(w io.Writer, findings []Finding) error {
	if findings == nil {
		findings = []Finding{}
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(Report{Worst: Worst(findings), Findings: findings}); err != nil {
		return fmt.Errorf("write findings: %w", err)
	}
	return nil
}
