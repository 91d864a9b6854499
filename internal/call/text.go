package call

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// OneLine takes out of a foreign text whatever could move a terminal's cursor, and what
// is no text. Line ends and tabs become spaces.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, text)
}
