package keys

import (
	"strings"
	"testing"
)

func TestNew(t *testing.T) {
	seen := map[string]bool{}
	counts := map[rune]int{}
	const rounds = 2000
	for range rounds {
		key := New()
		random, ok := strings.CutPrefix(key, "sk-weir-")
		if !ok || len(random) != 32 || strings.Trim(random, base62) != "" || seen[key] {
			t.Fatalf("made %q", key)
		}
		if _, err := Digest(key); err != nil {
			t.Fatal(err)
		}
		seen[key] = true
		for _, c := range random {
			counts[c]++
		}
	}
	// Each of the 62 comes 1032 ± 32 times; ten deviations are one chance in 10²³.
	for _, c := range base62 {
		if counts[c] < 700 || counts[c] > 1360 {
			t.Errorf("%c came %d times in %d", c, counts[c], rounds*32)
		}
	}
}

// TestBase62IsUnbiased: over all bytes, each character comes equally often.
func TestBase62IsUnbiased(t *testing.T) {
	counts := map[byte]int{}
	for b := range 256 {
		if c, ok := base62Of(byte(b)); ok {
			counts[c]++
		}
	}
	if len(counts) != 62 || len(base62) != 62 {
		t.Errorf("%d characters of %d", len(counts), len(base62))
	}
	for c, n := range counts {
		if n != 4 {
			t.Errorf("%c comes %d times", c, n)
		}
	}
}

func TestDigest(t *testing.T) {
	// printf %s sk-test-0123456789abcdef | sha256sum
	const want = "c871f067542d565c57ebb8b54f99afe326644dceeb5c05fc2209a8161a52875e"
	if got, err := Digest("sk-test-0123456789abcdef"); got != want || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for key, why := range map[string]string{
		"":                            "0 characters",
		"0123456789012345678":         "at least 20",
		strings.Repeat("k", 513):      "at most 512",
		"0123456789 0123456789":       "blank",
		"0123456789012345678901\n":    "line break",
		"schlüssel-mit-genug-zeichen": "ASCII",
		"sk-test-0123456789\x00abcd":  "ASCII",
		"sk-test-0123456789\x7fabcde": "ASCII",
	} {
		got, err := Digest(key)
		if err == nil || got != "" || !strings.Contains(err.Error(), why) {
			t.Errorf("Digest(%.30q) = %q, %v; want an error with %q", key, got, err, why)
		} else if key != "" && strings.Contains(err.Error(), key) {
			t.Errorf("the error shows the key: %v", err)
		}
	}
	for _, key := range []string{strings.Repeat("k", 20), strings.Repeat("k", 512)} {
		if _, err := Digest(key); err != nil {
			t.Errorf("%d characters: %v", len(key), err)
		}
	}
}
