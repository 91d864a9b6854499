package rules

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
	_ "time/tzdata" // for machines that have no time zones

	"github.com/weirgate/weir/slo"
)

var update = flag.Bool("update", false, "write the golden files of testdata anew")

// complete returns a configuration as the gateway has it.
func complete(t testing.TB, c slo.Config) slo.Config {
	t.Helper()
	c, _, err := c.Complete()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// parsed returns an objective as the Caddyfile has it.
func parsed(t testing.TB, text string) slo.Objective {
	t.Helper()
	o, err := slo.ParseObjective(text)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// small has one class with two objectives, of which one cannot burn 14.4 times.
func small(t testing.TB) slo.Config {
	return complete(t, slo.Config{Classes: []slo.Class{{
		Name: "chat", Objectives: []slo.Objective{parsed(t, "ttft p99 <= 2s"), parsed(t, "success 90%")},
	}}})
}

// monthly has a calendar period, an envelope, a condition and a rule of its own.
func monthly(t testing.TB) slo.Config {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	valid, err := slo.ParseEnvelope("input_tokens p95 <= 8000, rate <= 2/s")
	if err != nil {
		t.Fatal(err)
	}
	return complete(t, slo.Config{
		Classes: []slo.Class{{Name: "qualified", Valid: valid, Objectives: []slo.Objective{parsed(t, "e2e p95 <= 20s when output_tokens <= 500")}}},
		Period:  slo.Period{Zone: zone},
		Burn:    []slo.BurnRule{{Long: 90 * time.Minute, Short: 10 * time.Minute, Factor: 10, Page: true}},
		MinBad:  3,
	})
}

// presets has everything that is built in.
func presets(t testing.TB) slo.Config {
	all := slo.Presets()
	return complete(t, slo.Config{Classes: []slo.Class{all[slo.Interactive], all[slo.Completion], all[slo.Batch]}})
}

// golden compares with what was looked at and found right.
// After a change it is written by: go test ./internal/rules -update
func golden(t *testing.T, name string, write func(io.Writer) error) {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("%s is not what is written now, from byte %d on; look at the change, then write it with -update", path, common(b.Bytes(), want))
	}
}

// common is how many bytes two texts begin with that are the same.
func common(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// broken is a writer that fails.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
