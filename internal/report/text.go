package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/weirgate/weir/internal/bench"
)

// The widths that Text can use. Below least it does not fit anything.
const (
	leastWidth   = 40
	defaultWidth = 80
)

// Text writes r for people who read it in a terminal of so many columns; a width
// of 0 or less stands for 80, and 40 are used at least. Tables that are too wide are
// broken into several. With colour, escape sequences for colours are written (SGR);
// nothing is said by colour alone. Errors are those of w.
func Text(w io.Writer, r bench.Result, width int, colour bool) error {
	return writeText(w, documentOf(r), width, colour)
}

// textWriter renders a document for a terminal.
type textWriter struct {
	out    *bufio.Writer
	width  int
	colour bool
}

// The styles of a terminal (SGR parameters).
const (
	styleHeading = "1"
	styleLoud    = "1;97;41"
	styleHead    = "2"
	styleName    = "2"
)

var toneStyles = map[tone]string{good: "32", warn: "33", bad: "1;31"}

func writeText(w io.Writer, d *document, width int, colour bool) error {
	if width <= 0 {
		width = defaultWidth
	}
	t := &textWriter{out: bufio.NewWriter(w), width: max(width, leastWidth), colour: colour}
	for _, l := range wrap(clean(d.title), t.width) {
		t.line(t.styled(l, styleHeading))
	}
	for _, p := range d.parts {
		t.part(p)
	}
	if err := t.out.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func (t *textWriter) part(p part) {
	switch p := p.(type) {
	case heading:
		t.line("")
		t.line(t.styled(strings.ToUpper(clean(string(p))), styleHeading))
	case loud:
		t.line("")
		for _, s := range p {
			t.hanging("!! ", clean(s), styleLoud)
		}
	case paragraph:
		t.line("")
		t.hanging("", clean(string(p)), "")
	case bullets:
		t.line("")
		for _, s := range p {
			t.hanging("- ", clean(s), "")
		}
	case pairs:
		t.line("")
		t.pairs(p)
	case table:
		t.line("")
		t.table(p)
	case plots: // a terminal has none
	}
}

// line writes a line without blanks at its end.
func (t *textWriter) line(s string) {
	t.out.WriteString(strings.TrimRight(s, " "))
	t.out.WriteByte('\n')
}

// styled puts s into a style, where there is colour.
func (t *textWriter) styled(s, style string) string {
	if !t.colour || style == "" || s == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

// hanging writes text behind a mark, its further lines indented as far. A loud
// text has its mark on each line.
func (t *textWriter) hanging(mark, text, style string) {
	for i, l := range wrap(text, t.width-cells(mark)) {
		if i > 0 && style != styleLoud {
			mark = strings.Repeat(" ", cells(mark))
		}
		t.line(t.styled(mark+l, style))
	}
}

// pairs writes names and values in two columns.
func (t *textWriter) pairs(list pairs) {
	widest := 0
	for _, p := range list {
		widest = max(widest, cells(clean(p.name)))
	}
	widest = min(widest, t.width/3)
	for _, p := range list {
		names := wrap(clean(p.name), widest)
		values := wrap(clean(p.value), t.width-widest-2)
		for i := range max(len(names), len(values)) {
			name, value := at(names, i), at(values, i)
			t.line(t.styled(name, styleName) + strings.Repeat(" ", widest-cells(name)+2) + value)
		}
	}
}

// at is the i-th line, empty when there are fewer.
func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}
