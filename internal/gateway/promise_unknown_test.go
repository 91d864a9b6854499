package gateway

import (
	"testing"
	"time"

	"github.com/weirgate/weir/slo"
)

// TestFewFailuresPageNobody: a quarter of what success allows, in traffic of which the
// engine tells nothing: what is unknown must not make the few bad calls all that counts.
func TestFewFailuresPageNobody(t *testing.T) {
	keep(t, func(t *testing.T, k *keeper) {
		good, n := streams(1500*time.Millisecond, 10*time.Millisecond), 0
		for range 10 { // at 50 a second, each with an engine that may have queued for a second
			k.traffic(slo.Interactive, 3999, 20*time.Millisecond, good)
			k.traffic(slo.Interactive, 1, 20*time.Millisecond, refused())
			n += 4000
		}
		if len(k.told) > 0 {
			t.Errorf("of %d calls 0.025 %% failed; told %v", n, k.summaries())
		}
	})
}
