package doctor

import (
	"bytes"
	"slices"
	"testing"

	"github.com/weirgate/weir/internal/sim"
)

// TestHealthy: an engine in good health raises no alarm, and is warned of
// nothing but what is true of it.
func TestHealthy(t *testing.T) {
	for _, c := range []struct {
		name  string
		cfg   sim.Config
		model string
		warns []string // the checks that are yellow
		greys []string
	}{
		{name: "vllm", cfg: sim.Config{Quirks: sim.VLLM, PerRequestMetrics: true, ForceUsage: true}, greys: []string{"gpu"}},
		// Usage comes to those who ask, and no answer of the chat API tells phases.
		{name: "sglang", cfg: sim.Config{Quirks: sim.SGLang, PerRequestMetrics: true}, model: "weir-sim", warns: []string{"usage"}, greys: []string{"flags", "gpu"}},
		// It closes connections after every second stream, without a word.
		{name: "llamacpp", cfg: sim.Config{Quirks: sim.LlamaCPP}, warns: []string{"keep_alive"}, greys: []string{"gpu"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := of(engineAt(t, c.cfg))
			cfg.Model = c.model
			findings := run(t, cfg)
			var warns, greys []string
			for _, f := range findings {
				switch f.Level {
				case Red:
					t.Errorf("an alarm: %+v", f)
				case Yellow:
					warns = append(warns, f.Check)
				case Grey:
					greys = append(greys, f.Check)
				}
			}
			if !slices.Equal(warns, c.warns) || !slices.Equal(greys, c.greys) {
				var all bytes.Buffer
				if err := Text(&all, findings, 0, false); err != nil {
					t.Fatal(err)
				}
				t.Errorf("warnings %v, want %v; grey %v, want %v\n%s", warns, c.warns, greys, c.greys, all.String())
			}
		})
	}
}
