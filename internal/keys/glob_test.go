package keys

import (
	"regexp"
	"strings"
	"testing"
)

func TestAllows(t *testing.T) {
	for _, c := range []struct {
		patterns string // separated by blanks
		yes, no  string
	}{
		{"", "llama-3 x", ""},
		{"llama-*", "llama- llama-3.1-8b llama-llama-", "llama Llama-3 xllama-3 qwen"},
		{"*-instruct", "-instruct llama-instruct", "llama-instruct2 instruct"},
		{"meta/*/8b", "meta//8b meta/llama/8b meta/a/b/8b", "meta/8b meta/llama/70b"},
		{"*a*b*", "ab xaxbx aab", "ba b a"},
		{"gpt qwen3-*", "gpt qwen3-8b", "gpt-4 qwen2"},
		{"**", "x", ""},
		{"?", "?", "x"},
		{"[a]", "[a]", "a"},
		{`a\*`, `a\ a\b`, "a*"},
		{"é*", "é éa", "e"},
	} {
		k := &Key{Models: strings.Fields(c.patterns)}
		for _, name := range strings.Fields(c.yes) {
			if !k.Allows(name) {
				t.Errorf("%q does not allow %q", c.patterns, name)
			}
		}
		for _, name := range strings.Fields(c.no) {
			if k.Allows(name) {
				t.Errorf("%q allows %q", c.patterns, name)
			}
		}
	}
	for patterns, want := range map[string]bool{"": true, "*": true, "llama-*": false, "a": false} {
		if got := (&Key{Models: strings.Fields(patterns)}).Allows(""); got != want {
			t.Errorf("%q allows a call that names no model: %v", patterns, got)
		}
	}
}

// TestGlobIsBounded: the pattern that makes naive matchers take for ever.
func TestGlobIsBounded(t *testing.T) {
	if glob(strings.Repeat("a*", 128)+"b", strings.Repeat("a", 4096)) {
		t.Error("it matches")
	}
}

// FuzzGlob compares with a regular expression.
func FuzzGlob(f *testing.F) {
	for _, c := range [][2]string{{"llama-*", "llama-3"}, {"*a*b*", "xxaxb"}, {"", ""}, {"**", ""}, {"a*a", "a"}, {"*ab", "aab"}} {
		f.Add(c[0], c[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > maxModel || len(name) > 1000 {
			return
		}
		re, err := regexp.Compile(`(?s)\A` + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + `\z`)
		if err != nil {
			return // not UTF-8
		}
		if got, want := glob(pattern, name), re.MatchString(name); got != want {
			t.Fatalf("glob(%q, %q) = %v", pattern, name, got)
		}
	})
}
