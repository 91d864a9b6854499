package rules

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
)

// yaml writes the few forms of YAML that the files need: maps, lists, comments,
// scalars that are quoted unless they are plain words, and blocks of text.
type yaml struct {
	b strings.Builder
}

// line writes one line, indented by so many levels of two spaces.
func (y *yaml) line(level int, format string, args ...any) {
	y.b.WriteString(strings.Repeat("  ", level))
	fmt.Fprintf(&y.b, format, args...)
	y.b.WriteByte('\n')
}

// comment writes text as comments, broken into lines that people can read.
func (y *yaml) comment(level int, text string) {
	for _, line := range wrap(text, 100-2*level) {
		y.line(level, "%s", strings.TrimRight("# "+line, " "))
	}
}

// text writes a key whose value is text: a block where there are several lines.
func (y *yaml) text(level int, key, value string) {
	if !strings.Contains(value, "\n") || !block(value) {
		y.line(level, "%s: %s", key, scalar(value))
		return
	}
	y.line(level, "%s: |-", key)
	for line := range strings.SplitSeq(value, "\n") {
		y.line(level+1, "%s", line)
	}
}

// block tells whether text can stand in a block as it is.
func block(text string) bool {
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || strings.HasSuffix(line, " ") {
			return false
		}
	}
	return text[0] != ' ' && !strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !printable(r) })
}

func (y *yaml) writeTo(w io.Writer) error {
	if _, err := io.WriteString(w, y.b.String()); err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	return nil
}

// reserved are the plain words that some readers of YAML take for something else.
var reserved = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}

// scalar writes text as a value: plain where it is a plain word, else in quotes.
func scalar(text string) string {
	plain := text != "" && !slices.Contains(reserved, strings.ToLower(text)) && unicode.IsLetter(rune(text[0])) &&
		!strings.ContainsFunc(text, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
		})
	if plain {
		return text
	}
	if strings.Contains(text, `"`) && !strings.ContainsFunc(text, func(r rune) bool { return r == '\'' || !printable(r) }) {
		return "'" + text + "'"
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case printable(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\U%08X`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// printable tells whether YAML and people can read r as it is.
func printable(r rune) bool { return r != unicode.ReplacementChar && unicode.IsPrint(r) }

// wrap breaks text into lines of at most width bytes where it can; newlines stay, and
// what nobody can read does not.
func wrap(text string, width int) []string {
	var lines []string
	for paragraph := range strings.SplitSeq(text, "\n") {
		line := ""
		for word := range strings.FieldsFuncSeq(paragraph, func(r rune) bool { return unicode.IsSpace(r) || !printable(r) }) {
			switch {
			case line == "":
				line = word
			case len(line)+1+len(word) <= width:
				line += " " + word
			default:
				lines, line = append(lines, line), word
			}
		}
		lines = append(lines, line)
	}
	return lines
}
