package diagnose

import (
	"encoding/json"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// anyRecord returns a random record whose phases make up its times: any phase may be
// long, any figure unknown, and it may have ended in any way.
func anyRecord(rng *rand.Rand) *call.Record {
	r := healthy()
	if rng.IntN(4) == 0 {
		whole(r, time.Second)
		r.Phases.Engine = lasting(time.Duration(rng.IntN(9000)) * ms)
	}
	if r.Stream && rng.IntN(3) == 0 {
		unsplitBy(r, time.Duration(rng.IntN(5000))*ms)
	}
	p := &r.Phases
	for _, d := range []*call.Duration{&p.Upload, &p.QueueGateway, &p.Connect, &p.UpstreamRTT, &p.QueueEngine, &p.Frontend, &p.Prefill, &p.Decode, &p.Tail, &p.Delivery} {
		if d.IsKnown() && rng.IntN(4) == 0 {
			*d = lasting(time.Duration(rng.Int64N(int64(8 * time.Second))))
		}
	}
	if p.QueueEngine.IsKnown() && rng.IntN(3) == 0 {
		r.Engine.Load = lasting(time.Duration(rng.Int64N(int64(8 * time.Second))))
	}
	if rng.IntN(5) == 0 {
		r.PhaseSources.Prefill, r.QueueBound = call.Inferred, lasting(time.Duration(rng.IntN(2000))*ms)
		if !p.Prefill.IsKnown() {
			r.PhaseSources.Prefill = ""
		}
	}
	r.Outcome = call.Outcomes[rng.IntN(len(call.Outcomes))]
	r.Error = []string{"", "timeout", "status_503", "upload_stalled"}[rng.IntN(4)]
	r.Status = []int{0, 200, 400, 429, 500}[rng.IntN(5)]
	r.Attempts, r.Replayed = rng.IntN(4), rng.IntN(4) == 0
	r.AtDispatch = call.EngineLoad{Running: known(rng.Int64N(4)), Waiting: known(rng.Int64N(3)), KVUse: figureOf(rng.Float64()), Age: lasting(time.Duration(rng.IntN(7000)) * ms)}
	r.AtFirstToken = call.EngineLoad{Running: known(rng.Int64N(4)), Waiting: known(rng.Int64N(3)), KVUse: figureOf(rng.Float64()), Age: lasting(time.Duration(rng.IntN(7000)) * ms)}
	r.GPU = call.GPUWindow{GPUs: 1 + rng.IntN(3), Samples: rng.IntN(9), Utilization: figureOf(rng.Float64()), ClockRatio: figureOf(rng.Float64())}
	if rng.IntN(2) == 0 {
		r.GPU.Reasons = []string{"power_cap", "sw_thermal"}[rng.IntN(2):]
	}
	r.ClientRTT, r.UpstreamRTT = lasting(time.Duration(rng.IntN(900))*ms), lasting(time.Duration(rng.IntN(900))*ms)
	r.Input, r.Cached, r.BytesIn = known(rng.Int64N(3000)), known(rng.Int64N(3000)), known(rng.Int64N(3e6))
	if rng.IntN(8) == 0 {
		unsent(r, call.Timeout, "dial_timeout")
		r.Phases.Engine, r.PhaseSources.Engine = call.Duration{}, ""
	}
	for range rng.IntN(5) {
		forget[rng.IntN(len(forget))].forget(r)
	}
	return settle(r)
}

// forget makes one figure of a record unknown.
var forget = []struct {
	name   string
	forget func(*call.Record)
}{
	{"engine_at_dispatch.running", func(r *call.Record) { r.AtDispatch.Running = call.Count{} }},
	{"engine_at_dispatch.waiting", func(r *call.Record) { r.AtDispatch.Waiting = call.Count{} }},
	{"engine_at_dispatch.kv_use", func(r *call.Record) { r.AtDispatch.KVUse = call.Number{} }},
	{"engine_at_first_token.running", func(r *call.Record) { r.AtFirstToken.Running = call.Count{} }},
	{"engine_at_first_token.waiting", func(r *call.Record) { r.AtFirstToken.Waiting = call.Count{} }},
	{"engine_at_first_token.kv_use", func(r *call.Record) { r.AtFirstToken.KVUse = call.Number{} }},
	{"gpu.utilization", func(r *call.Record) { r.GPU.Utilization = call.Number{} }},
	{"gpu.clock_ratio", func(r *call.Record) { r.GPU.ClockRatio = call.Number{} }},
	{"gpu.memory_bandwidth", func(r *call.Record) { r.GPU.MemoryBandwidth = call.Number{} }},
	{"input_tokens", func(r *call.Record) { r.Input = call.Count{} }},
	{"bytes_in", func(r *call.Record) { r.BytesIn = call.Count{} }},
	{"client_rtt_ms", func(r *call.Record) { r.ClientRTT = call.Duration{} }},
	{"upstream_rtt_ms", func(r *call.Record) { r.UpstreamRTT = call.Duration{} }},
	{"icl_max_ms", func(r *call.Record) { r.ICLMax = call.Duration{} }},
	{"content_events", func(r *call.Record) { r.ContentEvents = call.Count{} }},
	{"engine.prefill_ms", func(r *call.Record) { r.Engine.Prefill = call.Duration{} }},
	{"engine.load_ms", func(r *call.Record) { r.Engine.Load = call.Duration{} }},
}

// derived are the figures that are no fields of a record.
var derived = map[string]func(*call.Record) float64{
	"computed_tokens": func(r *call.Record) float64 {
		in, cached := r.Input.Or(-1), r.Cached.Or(0)
		if cached > in {
			cached = 0
		}
		return float64(in - cached)
	},
	"prefill_per_computed_token_ms": func(r *call.Record) float64 {
		d := r.Phases.Prefill.Or(-1)
		if r.PhaseSources.Prefill == call.Inferred {
			d -= r.QueueBound.Or(-1)
		}
		in, cached := r.Input.Or(-1), r.Cached.Or(0)
		if cached > in {
			cached = 0
		}
		return d.Seconds() * 1000 / float64(in-cached)
	},
	"bytes_in_per_second": func(r *call.Record) float64 { return float64(r.BytesIn.Or(-1)) / r.Phases.Upload.Or(-1).Seconds() },
	"decode_per_token_ms": func(r *call.Record) float64 {
		return r.Phases.Decode.Or(-1).Seconds() * 1000 / float64(r.Output.Or(0)-1)
	},
}

// TestFiguresAreTheRecords: in each finding of 5,000 random calls, the share and
// the time follow from the record's phases, shares of one whole add up to 1 at
// most, and each figure that stands as evidence is the record's own, so that what
// is unknown is never evidence.
func TestFiguresAreTheRecords(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	seen := map[string]int{}
	for range 5000 {
		r := anyRecord(rng)
		fields := jsonOf(t, r)
		sums := map[Whole]float64{}
		for _, f := range Call(r) {
			seen[string(f.Code)]++
			if x, known := f.Share.Get(); known {
				sums[f.Of] += x
				whole := map[Whole]time.Duration{OfTTFT: r.TTFT.Or(0), OfElapsed: r.Phases.Sum(), OfTTFTAtClient: r.TTFT.Or(0) + r.ClientRTT.Or(0)}[f.Of]
				if got := f.Time.Or(-1); math.Abs(float64(got)-x*float64(whole)) > 1 {
					t.Fatalf("%s: %v is not %v of %v", f.Code, got, x, whole)
				}
			} else if f.Time.IsKnown() || f.Of != "" {
				t.Fatalf("%s has a time and no share: %+v", f.Code, f)
			}
			for _, e := range slices.Concat(f.For, f.Against) {
				v, hasValue := e.Value.Get()
				own, isField := fields[e.Figure]
				compute := derived[e.Figure]
				switch {
				case !hasValue:
					if e.Unit != NoUnit || e.Text == "" {
						t.Fatalf("%s: no value, yet %+v", f.Code, e)
					}
				case isField && math.Abs(own-v) > 1e-9*math.Abs(own):
					t.Fatalf("%s: %+v, the record has %v", f.Code, e, own)
				case compute != nil && math.Abs(compute(r)-v) > 1e-5*v:
					t.Fatalf("%s: %+v, the record makes it %v", f.Code, e, compute(r))
				case !isField && compute == nil:
					t.Fatalf("%s: nothing in the record is %+v", f.Code, e)
				}
			}
		}
		for of, sum := range sums {
			if sum > 1+1e-9 {
				t.Fatalf("shares of %s add up to %v: %v", of, sum, codes(Call(r)))
			}
		}
	}
	for _, m := range Codes() {
		if seen[string(m.Code)] < 5 {
			t.Errorf("%s was met %d times", m.Code, seen[string(m.Code)])
		}
	}
}

// TestUnknownIsNoEvidence: a figure that is made unknown stands as evidence
// nowhere, in no case.
func TestUnknownIsNoEvidence(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		for _, f := range forget {
			r := with(cases[name].change)
			f.forget(r)
			for _, found := range Call(r) {
				for _, e := range slices.Concat(found.For, found.Against) {
					if e.Figure == f.name {
						t.Errorf("%s without %s: %s says %q", name, f.name, found.Code, e.Text)
					}
				}
			}
		}
	}
}

// TestSureWithoutSplit: of time that nobody split, nothing is said but as a
// possibility, whatever gauges and GPUs show.
func TestSureWithoutSplit(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		r := anyRecord(rng)
		unsplitBy(r, time.Duration(rng.IntN(9000))*ms)
		r.Phases.Engine, r.PhaseSources.Engine = call.Duration{}, ""
		for _, f := range Call(settle(r)) {
			switch f.Code {
			case CodePrefillSlow, CodePrefillLong, CodeFrontend, CodeModelLoad:
				t.Fatalf("%s of a call that nobody split: %s", f.Code, f.Summary)
			case CodeEngineQueue, CodeUnattributed:
				if f.Source != call.Unattributed {
					t.Fatalf("%s is %s", f.Code, f.Source)
				}
			}
		}
	}
}

// jsonOf returns the numbers of a record's JSON form by name.
func jsonOf(t testing.TB, r *call.Record) map[string]float64 {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	fields := map[string]float64{}
	var walk func(prefix string, m map[string]any)
	walk = func(prefix string, m map[string]any) {
		for k, v := range m {
			switch v := v.(type) {
			case float64:
				fields[prefix+k] = v
			case map[string]any:
				walk(prefix+k+".", v)
			}
		}
	}
	walk("", all)
	return fields
}

// TestFigureNames: every figure is named as the record's own field, or is known
// to be derived.
func TestFigureNames(t *testing.T) {
	names := call.FieldNames()
	more := []string{"new_connections", "connecting_ms", "window_prefill_median_ms", "window_prefill_calls"}
	var s sheet
	var l look
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		if !l.at(with(cases[name].change)) {
			continue
		}
		s.fill(&l)
		for _, f := range s.facts {
			if n := f.figure.name; n != "" && !slices.Contains(names, n) && derived[n] == nil && !slices.Contains(more, n) {
				t.Errorf("%q is no field of a record", n)
			}
			if strings.Contains(f.figure.label, "%") != (f.name != "") {
				t.Errorf("%q and the name %q do not go together", f.figure.label, f.name)
			}
		}
	}
}
