package report

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"llama-3.1", "llama-3.1"},
		{"", ""},
		{"a\nb\r\nc\td", "a b  c d"},
		{"\x1b[31mred\x1b[0m", "�[31mred�[0m"},
		{"\u009b31m", "�31m"},
		{"gnp\u202eexe.\u200b\ufeff", "gnp�exe.��"},
		{"\xff\x00", "��"},
		{"日本語 é", "日本語 é"},
		{"a\u00a0b\u2028c", "a b c"},
	} {
		if got := clean(c.in); got != c.want {
			t.Errorf("clean(%q) = %q, want %q", c.in, got, c.want)
		}
	}
	if got := clean(strings.Repeat("é", maxText+7)); utf8.RuneCountInString(got) != maxText+1 || !strings.HasSuffix(got, "é…") {
		t.Errorf("a long text becomes %d runes", utf8.RuneCountInString(got))
	}
	if got := named(" \n"); got != unknown {
		t.Errorf("no name is shown as %q", got)
	}
}

func TestCells(t *testing.T) {
	for s, want := range map[string]int{"": 0, "abc": 3, "日本": 4, "e\u0301": 1, "한글": 4, "＝": 2, "–█◀": 3, "🚀": 2} {
		if got := cells(s); got != want {
			t.Errorf("cells(%q) = %d, want %d", s, got, want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		in    string
		width int
		want  string
	}{
		{"", 5, ""},
		{"one two three", 7, "one two|three"},
		{"one two three", 3, "one|two|thr|ee"},
		{"  one   two ", 20, "one two"},
		{"日本語", 4, "日本|語"},
		{"日本", 1, "日|本"},
		{"ab abcdefgh", 4, "ab|abcd|efgh"},
	} {
		if got := strings.Join(wrap(c.in, c.width), "|"); got != c.want {
			t.Errorf("wrap(%q, %d) = %q, want %q", c.in, c.width, got, c.want)
		}
	}
}

// FuzzNeutral: whatever comes in, each kind of neutral text stays one harmless
// line, and wrapping loses nothing.
func FuzzNeutral(f *testing.F) {
	for _, s := range hostile {
		f.Add(s, 20)
	}
	f.Fuzz(func(t *testing.T, s string, width int) {
		c := clean(s)
		if !utf8.ValidString(c) || strings.ContainsFunc(c, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("clean(%q) = %q", s, c)
		}
		width = 2 + int(uint(width)%200)
		lines := wrap(c, width)
		for _, l := range lines {
			if cells(l) > width {
				t.Errorf("a line of %d columns for %d: %q", cells(l), width, l)
			}
		}
		if a, b := strings.Join(lines, ""), strings.ReplaceAll(c, " ", ""); strings.ReplaceAll(a, " ", "") != b {
			t.Errorf("wrap(%q) = %q", c, lines)
		}
		checkMarkdown(t, prose(s)+"\n")
		checkMarkdown(t, "| "+code(s, true)+" |\n")
		checkField(t, harmless(s))
	})
}
