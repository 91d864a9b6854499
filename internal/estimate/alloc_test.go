//go:build !race

package estimate

import (
	"testing"

	"github.com/weirgate/weir/internal/estimate/testdata/corpus"
)

// TestAllocations: nothing on a call's path allocates, for names that are known.
func TestAllocations(t *testing.T) {
	e, of := settled(t, "m", 0)
	s := &samples(t, corpus.Test)[0]
	key := of[0].key
	e.LearnOutput("m", key, 1)
	var f Features
	for name, do := range map[string]func(){
		"Scanner": func() {
			var scanner Scanner
			scanner.Write(s.Body)
			f = scanner.Features()
		},
		"Predict":         func() { e.Predict("m", key, &s.features) },
		"Predict unknown": func() { e.Predict("unknown", "unknown", &s.features) },
		"Learn":           func() { e.Learn("m", key, &s.features, s.tokens[0]) },
		"Output":          func() { e.Output("m", key) },
		"LearnOutput":     func() { e.LearnOutput("m", key, 100) },
	} {
		if n := testing.AllocsPerRun(100, do); n != 0 {
			t.Errorf("%s allocates %g times", name, n)
		}
	}
	if !f.Known() {
		t.Error("the body is not known")
	}
}
