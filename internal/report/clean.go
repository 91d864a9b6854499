package report

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// unknown stands for a figure or a name that is not known.
const unknown = "–"

// maxText bounds a single piece of text that is shown, in runes. What comes from
// outside may be long; a report is read by people.
const maxText = 2000

// clean makes one harmless line of s: white space becomes a blank, and control
// characters, escapes, marks of writing direction and broken UTF-8 become U+FFFD.
// What is longer than maxText is cut, with an ellipsis.
func clean(s string) string {
	n := 0
	for i := range s {
		if n++; n > maxText {
			s = s[:i] + "…"
			break
		}
	}
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return utf8.RuneError
		}
		return r
	}, s)
}

// named is clean for a name; a dash stands for none.
func named(s string) string {
	s = strings.TrimSpace(clean(s))
	if s == "" {
		return unknown
	}
	return s
}

// cells is how many columns of a terminal s takes. It knows marks that take none
// and the scripts that take two; the rest takes one.
func cells(s string) int {
	n := 0
	for _, r := range s {
		n += runeCells(r)
	}
	return n
}

func runeCells(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3,
		r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60,
		r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

// wrap breaks s into lines of at most width columns, between words where that is
// possible and within a word that is longer than a line. It returns at least one line.
func wrap(s string, width int) []string {
	width = max(width, 1)
	var lines []string
	var line strings.Builder
	used := 0
	end := func() {
		lines = append(lines, line.String())
		line.Reset()
		used = 0
	}
	for word := range strings.FieldsSeq(s) {
		n := cells(word)
		if used > 0 && used+1+n <= width {
			line.WriteByte(' ')
			line.WriteString(word)
			used += 1 + n
			continue
		}
		if used > 0 {
			end()
		}
		for _, r := range word {
			c := runeCells(r)
			if used+c > width && used > 0 {
				end()
			}
			line.WriteRune(r)
			used += c
		}
	}
	if used > 0 || len(lines) == 0 {
		end()
	}
	return lines
}
