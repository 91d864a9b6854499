package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/weirgate/weir/internal/bench"
)

// Markdown writes r as a document in GitHub's flavour. Text from outside is
// escaped, names of models and ids of calls stand as code. Errors are those of w.
func Markdown(w io.Writer, r bench.Result) error { return writeMarkdown(w, documentOf(r)) }

func writeMarkdown(w io.Writer, d *document) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "# %s\n", prose(d.title))
	for _, p := range d.parts {
		switch p := p.(type) {
		case heading:
			fmt.Fprintf(out, "\n## %s\n", prose(string(p)))
		case loud:
			out.WriteString("\n> [!WARNING]\n")
			for _, s := range p {
				fmt.Fprintf(out, "> - **%s**\n", prose(s))
			}
		case paragraph:
			fmt.Fprintf(out, "\n%s\n", prose(string(p)))
		case bullets:
			out.WriteByte('\n')
			for _, s := range p {
				fmt.Fprintf(out, "- %s\n", prose(s))
			}
		case pairs:
			out.WriteByte('\n')
			for _, one := range p {
				value := prose(one.value)
				if one.id {
					value = code(one.value, false)
				}
				fmt.Fprintf(out, "- **%s**: %s\n", prose(one.name), value)
			}
		case table:
			markdownTable(out, p)
		case plots: // Markdown has none
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func markdownTable(out *bufio.Writer, t table) {
	if t.caption != "" {
		fmt.Fprintf(out, "\n%s\n", prose(t.caption))
	}
	out.WriteString("\n|")
	for _, c := range t.columns {
		fmt.Fprintf(out, " %s |", prose(c.name()))
	}
	out.WriteString("\n|")
	for _, c := range t.columns {
		if c.left {
			out.WriteString(" :--- |")
		} else {
			out.WriteString(" ---: |")
		}
	}
	out.WriteByte('\n')
	for _, row := range t.rows {
		out.WriteByte('|')
		for _, c := range row {
			if c.id {
				fmt.Fprintf(out, " %s |", code(c.text, true))
			} else {
				fmt.Fprintf(out, " %s |", prose(c.text))
			}
		}
		out.WriteByte('\n')
	}
}

// special are the characters that mean something within a line.
const special = "\\`*_[]<>|~&"

// prose is s as text that no renderer of Markdown takes for more: no mark-up, no
// HTML, no end of a table's cell, no beginning of a list or heading, and no link.
func prose(s string) string {
	s = strings.TrimSpace(clean(s))
	var b strings.Builder
	for i, r := range s {
		if marksUp(s, i, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// marksUp tells whether r, at s[i:], would be more than itself.
func marksUp(s string, i int, r rune) bool {
	before, after := s[:i], ""
	if i+1 < len(s) {
		after = s[i+1:]
	}
	item := after == "" || after[0] == ' ' // what makes a number or a hyphen begin a list
	switch r {
	case '\\', '`', '*', '_', '[', ']', '<', '>', '|', '~', '&', '@':
		return true
	case '#', '=':
		return i == 0
	case '+', '-':
		return i == 0 && (item || after[0] == '-')
	case '.':
		return len(before) >= 3 && strings.EqualFold(before[len(before)-3:], "www") || item && digits(before)
	case ')':
		return item && digits(before)
	case '/':
		return strings.HasSuffix(before, ":") // the scheme of a link
	}
	return false
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// code is s as code, behind more backticks than it has in a row. A table must be told
// that a bar is not the end of a cell.
func code(s string, inTable bool) string {
	if s = named(s); s == unknown {
		return s
	}
	longest, run := 0, 0
	for _, r := range s {
		if r != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	pad := ""
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		pad = " "
	}
	if inTable {
		s = strings.ReplaceAll(s, "|", "\\|")
	}
	return fence + pad + s + pad + fence
}
