package capacity

import (
	"math"
	"os"
	"slices"
	"testing"

	"github.com/weirgate/weir/internal/stats"
)

// TestKnee: from calls at 40, 60 and 80 % of the true knee the estimate lies within 15 % of
// it, and its interval holds it. The estimate knows nothing of the engine but its limits
// and the records.
func TestKnee(t *testing.T) {
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			seeds := 30
			if s.name == "prompts" {
				seeds = 5 // a fourth shape, which takes longest
			}
			if raceDetector {
				seeds = 2
			}
			inside, labels := 0, map[Label]int{}
			var offs, widths []float64
			for seed := range uint64(seeds) {
				u := estimate(t, s.observe(t, s.ladder(), 300, seed), s.options(seed))
				labels[u.Label]++
				if u.Label == Refused || u.Bound != About || u.Binds != "ttft" {
					t.Fatalf("seed %d: %s, %s, binds %s: %v", seed, u.Label, u.Bound, u.Binds, u.Reasons)
				}
				knee, low, high := known(t, u.Knee, "knee"), known(t, u.KneeLow, "low"), known(t, u.KneeHigh, "high")
				off := knee/s.knee - 1
				offs, widths = append(offs, off), append(widths, (high-low)/knee)
				if math.Abs(off) > 0.15 {
					t.Errorf("seed %d: the knee is %.2f calls/s, not %.2f: %+.1f %%", seed, s.knee, knee, 100*off)
				}
				if low <= s.knee && s.knee <= high {
					inside++
				}
				if sustained := known(t, u.Sustainable, "sustainable"); math.Abs(sustained-0.9*knee) > 1e-9 {
					t.Errorf("seed %d: %v of %v is sustainable", seed, sustained, knee)
				}
			}
			slices.Sort(offs)
			width, _ := stats.Mean(widths)
			t.Logf("true knee %.2f calls/s: off by %+.1f to %+.1f %%, median %+.1f %%; %d of %d intervals hold it, mean width %.0f %%; %v",
				s.knee, 100*offs[0], 100*offs[len(offs)-1], 100*stats.Quantile(offs, 0.5), inside, seeds, 100*width, labels)
			if float64(inside) < 0.8*float64(seeds) {
				t.Errorf("%d of %d intervals hold the true knee, fewer than 80 %%", inside, seeds)
			}
		})
	}
}

// TestTrueKnees: the knees that the estimates are held to are those of the engines: a little
// below them fewer than one call in a hundred passes the watermark, a little above more. With
// WEIR_KNEES=1 it searches for them anew, which takes minutes.
func TestTrueKnees(t *testing.T) {
	list := shapes()
	if raceDetector {
		list = list[2:3]
	}
	for _, s := range list {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			if os.Getenv("WEIR_KNEES") != "" {
				t.Logf("the true knee is %.2f calls/s", s.search(t))
			}
			below, above := s.late(t, 0.95*s.knee, 2500, 100, 101), s.late(t, 1.06*s.knee, 2500, 100, 101)
			t.Logf("late at 95 %%: %.2f %%, at 106 %%: %.2f %%", 100*below, 100*above)
			if below > 0.01 || above <= 0.01 {
				t.Errorf("at 95 %% of the knee %.2f %% of the calls are late, at 106 %% %.2f %%", 100*below, 100*above)
			}
		})
	}
}

// search finds the true knee, from ten runs of 4000 calls at every rate that it tries.
func (s *shape) search(t *testing.T) float64 {
	low, high := 0.8*s.knee, 1.2*s.knee
	for high > 1.005*low {
		middle := math.Sqrt(low * high)
		if s.late(t, middle, 4000, 200, 201, 202, 203, 204, 205, 206, 207, 208, 209) > 0.01 {
			high = middle
		} else {
			low = middle
		}
	}
	return math.Sqrt(low * high)
}
