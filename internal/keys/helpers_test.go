package keys

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// noon is the time of most tests.
var noon = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

// key returns the nth key of the tests.
func key(n int) string { return fmt.Sprintf("sk-test-0123456789-%06d", n) }

// hashed returns the hash of the nth key, as it stands in a file.
func hashed(t testing.TB, n int) string {
	t.Helper()
	sum, err := Digest(key(n))
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// document returns a file of entries, each written as `"alias":"a"…` with # in
// the place of the hash of the key with the entry's number.
func document(t testing.TB, entries ...string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(`{"version":1,"keys":[`)
	for i, e := range entries {
		if i > 0 {
			b.WriteString(",")
		}
		if !strings.Contains(e, `"hashes"`) {
			e += `,"hashes":[{"sha256":"#"}]`
		}
		b.WriteString("\n{" + strings.ReplaceAll(e, "#", hashed(t, i)) + "}")
	}
	b.WriteString("\n]}\n")
	return b.String()
}

// many returns a file of n keys.
func many(t testing.TB, n int) string {
	t.Helper()
	entries := make([]string, n)
	for i := range entries {
		entries[i] = fmt.Sprintf(`"alias":"team-%d","limits":{"tokens_per_minute":"200k"},"models":["llama-*"]`, i)
	}
	return document(t, entries...)
}

// put writes a file anew, as most programs do: in place.
func put(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// opened writes a file and opens a Store of it.
func opened(t testing.TB, text string) (s *Store, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "keys.json")
	put(t, path, text)
	return Open(path, noon), path
}

// marshal writes a File as Edit does.
func marshal(t testing.TB, f *File) string {
	t.Helper()
	var b bytes.Buffer
	if err := f.write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// wantError checks an error's text.
func wantError(t testing.TB, what string, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: the error is %q; want %q in it", what, err, part)
		}
	}
}
