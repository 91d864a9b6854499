package rules

import (
	"strings"
	"testing"
	"unicode/utf8"

	goyaml "gopkg.in/yaml.v3"
)

// FuzzYAML: whatever text is written reads back as the same text.
func FuzzYAML(f *testing.F) {
	for _, text := range []string{"", "plain", "yes", "No", "null", "~", "1", "1e3", "0x1", "-", "- a", "a: b", "a #b", "#", "it's", `say "x"`, `\`, "'\"", "a\nb", "a\n b\n", " a\nb",
		"a\n\nb", "a \nb", "\n", "\t", "é", "\u0085", "\u2028", "\ufeff", "\U0001f600", "\x7f", "\x00", "%a", "@a", "`a", "{a}", "[a]", "!a", "&a", "*a", "|", ">", "?", ": ", "2001-01-01"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) || strings.ContainsRune(text, utf8.RuneError) {
			return // YAML has text alone
		}
		var y yaml
		y.comment(0, text)
		y.line(0, "list:")
		y.line(1, "- first: x")
		y.comment(2, text)
		y.text(2, "second", text)
		y.line(2, "third: %s", scalar(text))
		var b strings.Builder
		if err := y.writeTo(&b); err != nil {
			t.Fatal(err)
		}
		var got struct{ List []map[string]string }
		if err := goyaml.Unmarshal([]byte(b.String()), &got); err != nil {
			t.Fatalf("%v:\n%s", err, b.String())
		}
		if len(got.List) != 1 || got.List[0]["first"] != "x" || got.List[0]["second"] != text || got.List[0]["third"] != text {
			t.Fatalf("%q reads back as %q:\n%s", text, got.List, b.String())
		}
	})
}

func TestWrap(t *testing.T) {
	text := "one two three four\nfive\n\nsixsixsixsix seven"
	want := []string{"one two", "three four", "five", "", "sixsixsixsix", "seven"}
	got := wrap(text, 10)
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("%q, want %q", got, want)
	}
}
