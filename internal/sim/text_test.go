package sim

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTokenLength(t *testing.T) {
	for text, want := range map[string][]string{
		"Hello, wide world": {"Hello", ",", " wide", " world"},
		"incomprehensible":  {"incomp", "rehens", "ible"},
		"in 20261130":       {"in", " 202", "611", "30"},
		"a  b\n":            {"a", "  ", "b", "\n"},
		"né ñu":             {"né", " ñu"},
		" ":                 {" "},
		"":                  nil,
	} {
		var got []string
		for rest := text; rest != ""; {
			n := tokenLength(rest)
			got = append(got, rest[:n])
			rest = rest[n:]
		}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%q is cut to %q, want %q", text, got, want)
		}
	}
}

func FuzzTokens(f *testing.F) {
	f.Add("Hello, wide world", 100)
	f.Add("\xff\xfe né 123456", 3)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		for rest := text; rest != ""; {
			n := tokenLength(rest)
			if n < 1 || n > len(rest) {
				t.Fatalf("a token of %d bytes of %q", n, rest)
			}
			rest = rest[n:]
		}
		limit = max(0, min(limit, 1000))
		if got := appendTokens(nil, text, limit); len(got) > limit+1 {
			t.Errorf("%d tokens within a limit of %d", len(got), limit)
		}
	})
}

func TestWordsReadAsText(t *testing.T) {
	var b strings.Builder
	for i := range 2000 {
		w := word(7, i)
		if w == "" || !utf8.ValidString(w) {
			t.Fatalf("token %d is %q", i, w)
		}
		b.WriteString(w)
	}
	text := b.String()
	if strings.Contains(text, "..") || strings.HasPrefix(text, " ") || strings.Contains(text, "  ") {
		t.Errorf("odd text: %.300s", text)
	}
	for i := 0; ; {
		next := strings.Index(text[i:], ". ")
		if next < 0 {
			break
		}
		i += next + 2
		if c := text[i]; c >= 'a' && c <= 'z' {
			t.Fatalf("a sentence begins with %q", text[i:i+10])
		}
	}
	if word(8, 5) == word(7, 5) && word(8, 6) == word(7, 6) && word(8, 7) == word(7, 7) {
		t.Error("the seed does not matter")
	}
}
