package capacity

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/stats"
)

// TestLowerBound: without the engine's limits no more is claimed than holds: the knee lies
// above the bound, and the result says that it is one.
func TestLowerBound(t *testing.T) {
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			seeds := uint64(3)
			if raceDetector {
				seeds = 1
			}
			for seed := range seeds {
				records := s.observe(t, s.ladder(), 300, 50+seed)
				o := s.options(seed)
				full := s.limits
				for name, limits := range map[string]Limits{"nothing": {}, "KV tokens": {KVTokens: full.KVTokens}, "max_num_seqs": {MaxNumSeqs: full.MaxNumSeqs}} {
					if seed > 0 && name != "nothing" {
						continue
					}
					limits.BatchTokens = full.BatchTokens
					o.Engines = map[string]Limits{"": limits}
					u := estimate(t, records, o)
					if u.Label == Refused || u.Bound != AtLeast {
						t.Fatalf("with %s known: %s, %s: %v", name, u.Label, u.Bound, u.Reasons)
					}
					knee := known(t, u.Knee, "knee")
					if knee > s.knee {
						t.Errorf("seed %d, %s known: at least %.2f calls/s are claimed, and the knee lies at %.2f", seed, name, knee, s.knee)
					}
					if u.KneeHigh.IsKnown() || !says(u.Reasons, "lower bound") ||
						says(u.Advice, "max_num_seqs 256") == (name == "max_num_seqs") || says(u.Advice, "kv_tokens 131072") == (name == "KV tokens") {
						t.Errorf("%s known: the bound is not said to be one: high %v, %v, %v", name, u.KneeHigh, u.Reasons, u.Advice)
					}
					if u.Binds == BindsTPOT {
						t.Errorf("%s known: %s binds, of which there is no objective", name, u.Binds)
					}
					if name == "nothing" {
						t.Logf("seed %d: at least %.2f of %.2f calls/s, where %s bind; with %d sequences and %d KV tokens seen at once", seed, knee, s.knee, u.Binds, u.Limits.MaxNumSeqs.Value.Or(0), u.Limits.KVTokens.Value.Or(0))
					}
				}
			}
		})
	}
}

// TestOthersShareTheEngine: half of the calls reach the engine by another way. The gauges
// show it, and what is claimed is about our half.
func TestOthersShareTheEngine(t *testing.T) {
	s := shapes()[0]
	s.elsewhere, s.gauges = true, true
	u := estimate(t, s.observe(t, s.ladder(), 800, 3), s.options(3))
	if u.Label == Refused {
		t.Fatal(u.Reasons)
	}
	knee := known(t, u.Knee, "knee")
	t.Logf("knee %.2f calls/s of ours, of %.2f in all; share %.2f from %s", knee, s.knee, u.Fit.Share, u.Fit.Batch)
	if u.Fit.Batch != "gauges" || math.Abs(u.Fit.Share-0.5) > 0.08 {
		t.Errorf("our share is %.2f by %s", u.Fit.Share, u.Fit.Batch)
	}
	if math.Abs(knee/(s.knee/2)-1) > 0.2 {
		t.Errorf("the knee for our half is %.2f calls/s, want about %.2f", knee, s.knee/2)
	}
}

// TestGauges: where all calls come through here the gauges change nothing, and the KV
// cache's use is read from them.
func TestGauges(t *testing.T) {
	s := shapes()[1]
	s.gauges = true
	u := estimate(t, s.observe(t, s.ladder(), 300, 4), s.options(4))
	if u.Fit == nil || u.Fit.Share != 1 || u.Fit.Batch != "calls" {
		t.Fatalf("%+v, %v", u.Fit, u.Reasons)
	}
	if knee := known(t, u.Knee, "knee"); math.Abs(knee/s.knee-1) > 0.15 {
		t.Errorf("the knee is %.2f calls/s, want %.2f", knee, s.knee)
	}
}

// TestTPOTBinds: with an objective for TPOT that is reached first, the knee is where that is.
func TestTPOTBinds(t *testing.T) {
	s := shapes()[2]
	o := s.options(5)
	o.TPOT = Objective{Limit: 50 * time.Millisecond}
	u := estimate(t, s.observe(t, s.ladder(), 300, 5), o)
	if u.Label == Refused || u.Binds != "tpot" {
		t.Fatalf("%s, %s binds: %v", u.Label, u.Binds, u.Reasons)
	}
	knee := known(t, u.Knee, "knee")
	p95 := func(rate float64) float64 {
		var list []float64
		for _, truth := range s.truths(t, rate, 2000, 9) {
			decode, _ := truth.Decode()
			list = append(list, decode.Seconds()/float64(truth.Output-1))
		}
		slices.Sort(list)
		return stats.Quantile(list, 0.95)
	}
	below, above := p95(0.9*knee), p95(1.1*knee)
	t.Logf("knee %.2f calls/s; TPOT p95 %.1f ms a tenth below, %.1f ms a tenth above, watermark 40 ms", knee, 1e3*below, 1e3*above)
	if below > 0.040 || above < 0.040 {
		t.Errorf("TPOT p95 is %v s a tenth below the knee, %v s a tenth above; the watermark is 0.04 s", below, above)
	}
	if full := known(t, estimate(t, s.observe(t, s.ladder(), 300, 5), s.options(5)).Knee, "knee"); full < knee {
		t.Errorf("without the TPOT objective %.2f calls/s fit, with it %.2f", full, knee)
	}
}

// TestBursts: calls that come four at once need more room than calls that come alone, and the
// estimate knows from the records.
func TestBursts(t *testing.T) {
	s := shapes()[0]
	s.crowd = 4
	u := estimate(t, s.observe(t, s.ladder(), 400, 6), s.options(6))
	if u.Label == Refused {
		t.Fatal(u.Reasons)
	}
	knee := known(t, u.Knee, "knee")
	below, above := s.late(t, 0.85*knee, 3000, 300, 301), s.late(t, 1.15*knee, 3000, 300, 301)
	t.Logf("knee %.2f calls/s in fours, %.2f alone; late 15 %% below: %.2f %%, 15 %% above: %.2f %%", knee, s.knee, 100*below, 100*above)
	if knee > 0.97*s.knee {
		t.Errorf("in fours %.2f calls/s fit, alone %.2f", knee, s.knee)
	}
	if below > 0.01 || above < 0.01 {
		t.Errorf("%.2f %% are late 15 %% below the knee, %.2f %% 15 %% above", 100*below, 100*above)
	}
}

// TestWholeAnswers: calls that are not streamed load the engine too, and are noted.
func TestWholeAnswers(t *testing.T) {
	s := shapes()[0]
	s.whole = true
	u := estimate(t, s.observe(t, s.ladder(), 420, 7), s.options(7))
	if u.Label == Refused || !says(u.Notes, "not streamed") {
		t.Fatalf("%s: %v, %v", u.Label, u.Reasons, u.Notes)
	}
	if knee := known(t, u.Knee, "knee"); math.Abs(knee/s.knee-1) > 0.15 {
		t.Errorf("the knee is %.2f calls/s, want %.2f", knee, s.knee)
	}
}

// TestFromJSON: records that were written down and read again, without instants, say the same.
func TestFromJSON(t *testing.T) {
	s := shapes()[0]
	records := s.observe(t, s.ladder(), 300, 8)
	b, err := json.Marshal(records)
	if err != nil {
		t.Fatal(err)
	}
	var again []*call.Record
	if err := json.Unmarshal(b, &again); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(again)
	again = append(again, nil)
	u, v := estimate(t, records, s.options(8)), estimate(t, again, s.options(8))
	a, c := known(t, u.Knee, "knee"), known(t, v.Knee, "knee of JSON")
	if math.Abs(a/c-1) > 0.001 {
		t.Errorf("the knee is %v calls/s, from JSON %v", a, c)
	}
	if w := estimate(t, records, s.options(8)); w.Knee != u.Knee || w.KneeLow != u.KneeLow || w.KneeHigh != u.KneeHigh {
		t.Error("the same records and seed give another estimate")
	}
}
