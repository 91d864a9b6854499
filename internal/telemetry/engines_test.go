package telemetry

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/engine"
)

// engines is a state in which everything of one engine is known, and one is down.
func engines() []EngineState {
	return []EngineState{
		{Engine: "10.0.0.1:8000", Kind: "vllm", Up: true, Running: call.Known(7), Waiting: call.Known(0), MaxSeqs: call.Known(256),
			KVUse: call.Figure(0.5), KVTokens: call.Known(400_000), Preemptions: call.Known(3), PrefixQueries: call.Known(1000),
			PrefixHits: call.Known(640), Prompt: call.Known(5000), Generated: call.Known(900)},
		{Engine: "10.0.0.2:8000", Running: call.Known(9), KVUse: call.Figure(1)},
	}
}

func TestEngines(t *testing.T) {
	m := New()
	if f := gather(t, m)["weir_engine_up"]; f != nil {
		t.Errorf("engines without a source: %v", f)
	}
	m.Engines(engines)
	all := gather(t, m)
	first := []string{"engine", "10.0.0.1:8000"}
	for name, want := range map[string]float64{
		"weir_engine_up": 1, "weir_engine_running": 7, "weir_engine_waiting": 0, "weir_engine_max_seqs": 256, "weir_engine_kv_use_ratio": 0.5,
		"weir_engine_kv_capacity_tokens": 400_000,
	} {
		if got := find(t, all, name, first...); got == nil || got.GetGauge().GetValue() != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for name, want := range map[string]float64{
		"weir_engine_preemptions_total": 3, "weir_engine_prefix_cache_queried_tokens_total": 1000, "weir_engine_prefix_cache_hit_tokens_total": 640,
		"weir_engine_prompt_tokens_total": 5000, "weir_engine_generated_tokens_total": 900,
	} {
		if got := find(t, all, name, first...); got == nil || got.GetCounter().GetValue() != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if got := find(t, all, "weir_engine_up", "engine", "10.0.0.2:8000", "kind", ""); got == nil || got.GetGauge().GetValue() != 0 {
		t.Errorf("the engine that is down: %v", got)
	}
	for name, f := range all {
		if strings.HasPrefix(name, "weir_engine_") && name != "weir_engine_up" && len(f.GetMetric()) != 1 {
			t.Errorf("%s of an engine that is down", name)
		}
	}
	m.Engines(nil)
	if f := gather(t, m)["weir_engine_up"]; f != nil {
		t.Errorf("engines after their source was taken away: %v", f)
	}
}

// TestUnknownOfEngines: what an engine does not tell is absent, and never 0.
func TestUnknownOfEngines(t *testing.T) {
	m := New()
	m.Engines(func() []EngineState {
		return []EngineState{{Engine: "e", Kind: "tgi", Up: true, Waiting: call.Known(0)}}
	})
	for name := range gather(t, m) {
		if strings.HasPrefix(name, "weir_engine_") && name != "weir_engine_up" && name != "weir_engine_waiting" {
			t.Errorf("%s is shown, and unknown", name)
		}
	}
}

// TestEnginesTakeAnyState: no state costs the scrape, and labels are bounded.
func TestEnginesTakeAnyState(t *testing.T) {
	m := New()
	m.Engines(func() []EngineState {
		all := []EngineState{{Engine: "\xff", Up: true, Running: call.Known(1)}, {}, {}, {Engine: "twice", Kind: "\xfe", Up: true, Running: call.Known(1)},
			{Engine: "twice", Up: true, Running: call.Known(2)}}
		for i := range 1000 {
			all = append(all, EngineState{Engine: fmt.Sprint(i), Kind: fmt.Sprint(i), Up: true, Running: call.Known(1)})
		}
		return all
	})
	all := gather(t, m)
	if got := len(all["weir_engine_up"].GetMetric()); got == 0 || got > EngineCap {
		t.Errorf("%d engines, want some and at most %d", got, EngineCap)
	}
	if got := find(t, all, "weir_engine_running", "engine", "twice").GetGauge().GetValue(); got != 1 {
		t.Errorf("of two states of one engine the first is shown: %v", got)
	}
	for _, s := range all["weir_engine_up"].GetMetric() {
		if !hasLabels(s, []string{"kind", ""}) && !hasLabels(s, []string{"kind", Other}) {
			t.Errorf("an unknown kind has a label of its own: %v", s)
		}
	}
}

// TestEngineKinds: the kinds that are shown are those that engines can be.
func TestEngineKinds(t *testing.T) {
	for _, name := range engineKinds {
		if k, err := engine.ParseKind(name); err != nil || string(k) != name {
			t.Errorf("kind %s: %q, %v", name, k, err)
		}
	}
}
