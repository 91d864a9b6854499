package diagnose

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// TestBounds: names without end make neither a report nor its memory long, and
// no call is lost from the counts.
func TestBounds(t *testing.T) {
	const n = 3000
	r := Window(many(n, func(i int) *call.Record {
		return with(func(r *call.Record) {
			unanswered(r, call.UpstreamError, fmt.Sprint("error_", i))
			r.Upstream, r.Model, r.Key, r.Outcome = fmt.Sprint("u", i), fmt.Sprint("m", i), fmt.Sprint("k", i), call.UpstreamError
			r.GPU.ClockRatio = figureOf(0.5)
			for j := range 100 {
				r.GPU.Reasons = append(r.GPU.Reasons, fmt.Sprint("reason_", i, "_", j))
			}
			r.GPU.Reasons = append(r.GPU.Reasons, "hw_thermal")
		})
	}), Options{})
	if len(r.Errors) != maxErrors+1 || r.Errors[maxErrors].Name != "other" {
		t.Errorf("errors: %v", r.Errors)
	}
	sum := 0
	for _, e := range r.Errors {
		sum += e.Calls
	}
	if sum != n {
		t.Errorf("errors of %d calls, want %d", sum, n)
	}
	for _, f := range r.Findings {
		if len(f.For)+len(f.Against) > maxSums+int(dimensions) || f.Calls != n {
			t.Errorf("%s: %d pieces of evidence, %d calls", f.Code, len(f.For)+len(f.Against), f.Calls)
		}
		for _, e := range f.For {
			if e.Figure == "upstream" || e.Figure == "model" || e.Figure == "key" {
				t.Errorf("one of %d: %s", n, e.Text)
			}
		}
	}
}

// TestNextUnattributed: the advice is one that the engine behind the API can take.
func TestNextUnattributed(t *testing.T) {
	for dialect, want := range map[string]string{
		"openai.chat": "--enable-per-request-metrics", "sglang.generate": "SGLang with --enable-metrics", "tgi.generate_stream": "TGI", "gemini.native": "hosted",
	} {
		r := with(func(r *call.Record) { unsplitBy(r, 3*time.Second); r.Dialect = dialect })
		if f := find(t, Call(r), CodeUnattributed); !strings.Contains(f.Next, want) {
			t.Errorf("%s: %q", dialect, f.Next)
		}
	}
}

// TestBrokenOffBeforeTheUpstream: a request that did not come whole in time is not
// the upstream's fault.
func TestBrokenOffBeforeTheUpstream(t *testing.T) {
	r := with(func(r *call.Record) {
		unsent(r, call.Timeout, "timeout")
		r.Phases = call.Phases{Upload: lasting(30 * time.Second)}
		r.PhaseSources = call.PhaseSources{Upload: call.Measured}
	})
	wantCodes(t, Call(r), "upload_stalled")
	r.BytesIn = known(9e6)
	wantCodes(t, Call(r), "upload_slow")
}
