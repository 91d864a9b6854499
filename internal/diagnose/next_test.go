package diagnose

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// TestNextIsNotThere: no finding of any case proposes what its record shows to be
// configured, in one call or in a window.
func TestNextIsNotThere(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		r := with(cases[name].change)
		report := Window([]*call.Record{r, r}, Options{MinCalls: 1})
		texts := slices.Clone(report.Reasons)
		for _, f := range slices.Concat(Call(r), report.Findings) {
			texts = append(texts, f.Next)
		}
		for _, text := range texts {
			if strings.Contains(text, "engine option") && !(r.AtDispatch.IsZero() && r.AtFirstToken.IsZero()) {
				t.Errorf("%s: gauges are there: %q", name, text)
			}
			if strings.Contains(text, "gpu option") && !r.GPU.IsZero() {
				t.Errorf("%s: GPUs are sampled: %q", name, text)
			}
		}
	}
	r := with(func(r *call.Record) {
		r.Phases.QueueEngine = lasting(4 * time.Second)
		r.AtDispatch, r.AtFirstToken, r.GPU = call.EngineLoad{}, call.EngineLoad{}, call.GPUWindow{}
	})
	if next := find(t, Call(r), CodeEngineQueue).Next; !strings.Contains(next, "engine option") || !strings.Contains(next, "gpu option") {
		t.Errorf("nothing is watched: %q", next)
	}
}

// TestNextByMaker: flags are those of the engine that it is.
func TestNextByMaker(t *testing.T) {
	flags := []string{"--max-num-seqs", "--max-running-requests", "--parallel", "OLLAMA_NUM_PARALLEL"}
	for name, c := range map[string]struct {
		change func(*call.Record)
		want   []string
	}{
		"vLLM":            {func(*call.Record) {}, flags[:1]},
		"SGLang":          {func(r *call.Record) { r.Dialect = "sglang.generate" }, flags[1:2]},
		"llama.cpp":       {func(r *call.Record) { r.Engine.Queue = call.Duration{} }, flags[2:3]},
		"llama.cpp's own": {func(r *call.Record) { r.Dialect = "llamacpp.completion" }, flags[2:3]},
		"Ollama":          {func(r *call.Record) { r.Dialect = "ollama.chat" }, flags[3:]},
		"by spans":        {func(r *call.Record) { r.Engine.E2E = lasting(9 * time.Second) }, flags},
		"unknown":         {func(r *call.Record) { r.Engine = call.Engine{} }, flags},
	} {
		f := find(t, Call(with(func(r *call.Record) { queued(r); c.change(r) })), CodeEngineQueue)
		for _, flag := range flags {
			if strings.Contains(f.Next, flag) != slices.Contains(c.want, flag) {
				t.Errorf("%s: %s in %q", name, flag, f.Next)
			}
		}
	}
	// Of engines of two makers all flags are named.
	both := many(30, func(i int) *call.Record {
		return with(func(r *call.Record) {
			if queued(r); i%2 == 0 {
				r.Dialect = "ollama.chat"
			}
		})
	})
	if next := find(t, Window(both, Options{}).Findings, CodeEngineQueue).Next; !strings.Contains(next, flags[1]) {
		t.Errorf("two makers: %q", next)
	}
}

// TestWalls: each kind of refusal says what it is, and what helps, in a finding of
// its own.
func TestWalls(t *testing.T) {
	walls := []struct{ by, code, summary, next, not string }{
		{"key tokens_per_minute", "rate_limit_exceeded", "Refused by a limit of the gateway in 10 of 100 calls (key tokens_per_minute).", "raise the limit", "valid key"},
		{"queue full", "overloaded", "Refused by the gateway's queue in 10 of 100 calls (queue full).", "Retry-After", "valid key"},
		{"key", "invalid_api_key", "Refused for want of a valid API key in 10 of 100 calls (invalid_api_key).", "weir keys list", "Retry-After"},
		{"model", "model_not_allowed", "Refused because the key may not use the model in 10 of 100 calls (model_not_allowed).", "may use", "Retry-After"},
		{"budget", "insufficient_quota", "Refused because the key's budget is spent in 10 of 100 calls (insufficient_quota).", "budget", "Retry-After"},
		{"ledger", "usage_not_recordable", "Refused because usage could not be recorded in 10 of 100 calls (usage_not_recordable).", "GET /weir/ledger", "Retry-After"},
		{"path", "path_not_allowed", "Refused because the path is not open in 10 of 100 calls (path_not_allowed).", "allow_paths", "Retry-After"},
		{"memory", "overloaded", "Refused because the gateway held as many request bodies as it may in 10 of 100 calls (overloaded).", "more gateways", "valid key"},
		{"site timeout", "overloaded", "Refused because the site's own time for a request was over while the call waited in 10 of 100 calls (overloaded).", "more time", "valid key"},
	}
	r := Window(many(100, func(i int) *call.Record {
		return with(func(r *call.Record) {
			if i/10 < len(walls) {
				refused(r, 0)
				r.RefusedBy, r.Error = walls[i/10].by, walls[i/10].code
			}
		})
	}), Options{})
	if len(r.Findings) != len(walls) {
		t.Fatalf("%d findings: %v", len(r.Findings), codes(r.Findings))
	}
	for _, w := range walls {
		i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Summary == w.summary })
		if i < 0 {
			t.Errorf("no %q", w.summary)
			continue
		}
		f := r.Findings[i]
		if f.Code != CodeRefused || f.Calls != 10 || !strings.Contains(f.Next, w.next) || strings.Contains(f.Next, w.not) {
			t.Errorf("%s: %+v", w.by, f)
		}
	}
}

// TestHeadlines: every verdict has one, and too few calls are no alarm.
func TestHeadlines(t *testing.T) {
	for _, v := range []Verdict{Found, NothingFound, Undetermined, TooFewCalls} {
		if headlines[v] == "" {
			t.Errorf("%s has no headline", v)
		}
	}
	var out strings.Builder
	if err := Text(&out, Window([]*call.Record{healthy()}, Options{})); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "\nTOO FEW CALLS TO TELL\n") || strings.Contains(out.String(), "UNDETERMINED") {
		t.Errorf("%s", &out)
	}
}
