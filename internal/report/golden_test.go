package report

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/bench"
)

var update = flag.Bool("update", false, "write the golden files of testdata anew")

var canned = []struct {
	name string
	of   func() bench.Result
}{{"simple", simple}, {"ladder", ladder}, {"plain", plainly}}

// TestGolden compares all texts with those that were looked at and found right.
// After a change they are written by: go test ./internal/report -update
func TestGolden(t *testing.T) {
	for _, c := range canned {
		for _, f := range []struct {
			name  string
			write func(io.Writer, bench.Result) error
		}{
			{"80.txt", func(w io.Writer, r bench.Result) error { return Text(w, r, 80, false) }},
			{"160.txt", func(w io.Writer, r bench.Result) error { return Text(w, r, 160, false) }},
			{"colour.txt", func(w io.Writer, r bench.Result) error { return Text(w, r, 100, true) }},
			{"md", Markdown},
			{"csv", CSV},
		} {
			var b bytes.Buffer
			if err := f.write(&b, c.of()); err != nil {
				t.Fatal(err)
			}
			golden(t, c.name+"."+f.name, b.Bytes())
		}
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(got, want) {
		return
	}
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(g), len(w)) {
		if at(g, i) != at(w, i) {
			t.Errorf("%s, line %d:\n got %q\nwant %q", name, i+1, at(g, i), at(w, i))
			return
		}
	}
}
