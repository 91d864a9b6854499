package diagnose

import (
	"testing"

	"github.com/weirgate/weir/internal/call"
)

// TestChangeUnknown: when a figure is not known, a comparison says less, and
// never something else: the layer stays, or it is undetermined, or the change
// itself is not seen.
func TestChangeUnknown(t *testing.T) {
	more := []struct {
		name   string
		forget func(*call.Record)
	}{
		{"gauges", func(r *call.Record) { r.AtDispatch, r.AtFirstToken = call.EngineLoad{}, call.EngineLoad{} }},
		{"gpu", func(r *call.Record) { r.GPU = call.GPUWindow{} }},
		{"cached_tokens", func(r *call.Record) { r.Cached = call.Count{} }},
		{"output_tokens", func(r *call.Record) { r.Output, r.TPOT = call.Count{}, call.Duration{} }},
		{"queue and prefill", func(r *call.Record) {
			if r.Phases.Prefill.IsKnown() && r.PhaseSources.Prefill == call.FromEngine {
				untold(0, r)
			}
		}},
	}
	// Where the figure is what tells two layers apart, the finding is the one
	// that is left.
	left := map[Code]Code{CodeUploadStalled: CodeUploadSlow, CodeFrontend: CodeBeforeEngine, CodeModelLoad: CodeAdmissionCap, CodeGPUUnderUsed: CodeAdmissionCap}
	for name, s := range changeCases {
		if s.code == "" {
			continue
		}
		want := changeMeanings[changePlaces[s.code]].Layer
		for _, f := range append(forget[:len(forget):len(forget)], more...) {
			lost := s
			lost.n = 60
			lost.before = func(i int, r *call.Record) { apply(s.before, i, r); f.forget(settle(r)) }
			lost.after = func(i int, r *call.Record) { apply(s.after, i, r); f.forget(settle(r)) }
			got := lost.compare()
			if got.Code == "" || got.Layer == want || got.Code == left[s.code] {
				continue
			}
			t.Errorf("%s without %s: %s, layer %s (%q), with it %s", name, f.name, got.Code, got.Layer, got.Reasons, s.code)
		}
	}
}

func apply(f func(int, *call.Record), i int, r *call.Record) {
	if f != nil {
		f(i, r)
	}
}
