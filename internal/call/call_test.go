package call

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// full is a record with every field known.
func full() *Record {
	n, d, x := Known(0), Lasting(1500*time.Microsecond), Figure(0.5)
	rec := &Record{
		Identity: Identity{ID: "id", RequestID: "r", ResponseID: "s", TraceID: "t", Run: "u", Time: time.Unix(0, 0).UTC(),
			Key: "k", Model: "m", ResponseModel: "n", Class: "c", Bench: true, Probe: true, ClientRetries: 1, Dialect: "d", Path: "p", Stream: true},
		Result: Result{Status: 200, Outcome: Completed, Error: "e", Terminated: true, Degraded: []Degradation{ParseErrors}},
		Tokens: Tokens{Usage: Usage{n, n, n, n, n}, UsageSource: UsageReported, ContentEvents: n, FirstContentEvent: n, ParseErrors: 1},
		Timing: Timing{d, d, d, d, d, d, d, d, d, d},
		Phases: Phases{d, d, d, d, d, d, d, d, d, d, d},
		Engine: Engine{d, d, d, d, d, d},
		Surroundings: Surroundings{EngineLoad{n, n, x, d}, EngineLoad{n, n, x, d}, d,
			GPUWindow{GPUs: 1, Samples: 2, Utilization: x, MemoryBandwidth: x, ClockRatio: x, Reasons: []string{"r"}, Joules: x}},
		Admission: Admission{n, n, n, "r", "w"},
		Transport: Transport{Upstream: "u", Attempts: 2, Replayed: true, BytesIn: n, BytesOut: 3, ClientProtocol: "HTTP/2.0"},
	}
	s := Measured
	rec.PhaseSources = PhaseSources{s, s, s, s, s, s, s, s, s, s, s}
	rec.FinishReason.Set(1, "stop")
	rec.FinishReason.Set(0, "length")
	return rec
}

func flat(t *testing.T, rec *Record) map[string]any {
	t.Helper()
	b, err := json.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	for _, group := range []string{"phases", "phase_sources", "engine", "engine_at_dispatch", "engine_at_first_token", "gpu"} {
		if g, ok := all[group].(map[string]any); ok {
			for k, v := range g {
				all[group+"."+k] = v
			}
		}
		delete(all, group)
	}
	return all
}

// TestFieldsAreTheJSON holds the access log and the placeholders to the JSON form.
func TestFieldsAreTheJSON(t *testing.T) {
	for name, rec := range map[string]*Record{"full": full(), "empty": {}} {
		want := flat(t, rec)
		got := make(map[string]any)
		for f := range rec.Fields {
			b, err := json.Marshal(f.Value)
			if err != nil {
				t.Fatal(err)
			}
			var v any
			if err := json.Unmarshal(b, &v); err != nil {
				t.Fatal(err)
			}
			got[strings.TrimPrefix(f.Group+"."+f.Name, ".")] = v
		}
		w, _ := json.Marshal(want)
		g, _ := json.Marshal(got)
		if string(w) != string(g) {
			t.Errorf("%s:\n got %s\nwant %s", name, g, w)
		}
	}
	if names := FieldNames(); len(names) != len(flat(t, full())) {
		t.Errorf("FieldNames has %d names, a full record %d", len(names), len(flat(t, full())))
	}
}

func TestRecordJSONRoundTrip(t *testing.T) {
	want, _ := json.Marshal(full())
	var rec Record
	if err := json.Unmarshal(want, &rec); err != nil {
		t.Fatal(err)
	}
	if got, _ := json.Marshal(&rec); string(got) != string(want) {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// TestUnknownIsAbsent: nothing that was not set may appear as 0.
func TestUnknownIsAbsent(t *testing.T) {
	b, err := json.Marshal(&Record{})
	if err != nil {
		t.Fatal(err)
	}
	for _, absent := range []string{"tokens\"", "_ms", "phases", "engine", "finish_reason", "content_events", "bytes_in"} {
		if strings.Contains(string(b), absent) {
			t.Errorf("an empty record shows %q: %s", absent, b)
		}
	}
}

func TestOptional(t *testing.T) {
	if n, known := (Count{}).Get(); n != 0 || known {
		t.Error("the zero Count is known")
	}
	if s := Known(2).Plus(Count{}); s != Known(2) {
		t.Errorf("2 plus unknown is %v", s)
	}
	if s := (Count{}).Plus(Count{}); s.IsKnown() {
		t.Error("unknown plus unknown is known")
	}
	if d := Lasting(5).Minus(Duration{}); d.IsKnown() {
		t.Error("a difference with an unknown is known")
	}
	for _, ms := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e300} {
		if Milliseconds(ms).IsKnown() {
			t.Errorf("%v ms is known", ms)
		}
	}
	if d := Milliseconds(85.2); d != Lasting(85_200_000) {
		t.Errorf("85.2 ms is %v", d)
	}
	for _, in := range []string{`"x"`, `{}`, `1.5`} {
		if err := new(Count).UnmarshalJSON([]byte(in)); err == nil {
			t.Errorf("count %s was read", in)
		}
	}
}

func TestName(t *testing.T) {
	for in, want := range map[string]string{
		"":                                    "",
		"gpt":                                 "gpt",
		"a\x00b\nc\x7f":                       "abc",
		strings.Repeat("x", 200):              strings.Repeat("x", MaxName),
		strings.Repeat("x", MaxName-1) + "é…": strings.Repeat("x", MaxName-1),
		strings.Repeat("x", MaxName-2) + "é…": strings.Repeat("x", MaxName-2) + "é",
	} {
		if got := Name([]byte(in)); got != want {
			t.Errorf("Name(%q) = %q, want %q", in, got, want)
		}
		if got := NameOf(in); got != want {
			t.Errorf("NameOf(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestFinish(t *testing.T) {
	var f Finish
	f.Set(0, "")
	f.Set(-1, "x")
	f.Set(1<<20, "x")
	if !f.IsZero() || f.First() != "" {
		t.Errorf("nothing finished, got %+v", f)
	}
	f.Set(3, "c")
	f.Set(2, "b")
	if f.First() != "b" || f.Choices() != 2 || !f.Multiple() {
		t.Errorf("got %q of %d", f.First(), f.Choices())
	}
	f.Set(0, "a")
	if b, _ := json.Marshal(f); string(b) != `{"0":"a","2":"b","3":"c"}` {
		t.Errorf("got %s", b)
	}
}

func TestOutcomeFailed(t *testing.T) {
	kept := []Outcome{Completed, ClientGone, Refused}
	for _, o := range Outcomes {
		if o.Failed() == slices.Contains(kept, o) {
			t.Errorf("%s: Failed() = %v", o, o.Failed())
		}
	}
}

// TestGaps checks count, maximum and every percentile against a sorted list.
func TestGaps(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for trial := range 200 {
		var g Gaps
		n := 1 + rng.IntN(500)
		raw := make([]time.Duration, n)
		for i := range raw {
			raw[i] = time.Duration(math.Exp(rng.Float64() * math.Log(60e9))) // 1 ns … 60 s
			g.Add(raw[i])
		}
		slices.Sort(raw)
		if top, _ := g.Max().Get(); top != raw[n-1] || g.Count() != uint64(n) {
			t.Fatalf("trial %d: max %v of %d, want %v of %d", trial, top, g.Count(), raw[n-1], n)
		}
		for _, q := range []float64{0, 0.5, 0.9, 0.99, 1} {
			want := raw[uint64(q*float64(n-1))]
			got, _ := g.Quantile(q).Get()
			if diff := (got - want).Abs(); diff > time.Microsecond && float64(diff) > GapError*float64(want) {
				t.Fatalf("trial %d: p%v = %v, want %v within 1/32", trial, q*100, got, want)
			}
		}
	}
	var g Gaps
	g.Add(-time.Second)
	g.Add(time.Hour)
	if top := g.Max(); top != Lasting(time.Hour) || g.Quantile(1) != top {
		t.Errorf("max is %v, p100 %v", top, g.Quantile(1))
	}
	if (*Gaps)(nil).Quantile(0.5).IsKnown() || new(Gaps).Max().IsKnown() {
		t.Error("no gaps, yet a percentile")
	}
	if n := testing.AllocsPerRun(100, func() { g.Add(time.Millisecond) }); n != 0 {
		t.Errorf("Add allocates %v times", n)
	}
}

func ms(n int64) Duration { return Lasting(time.Duration(n) * time.Millisecond) }

func TestSplit(t *testing.T) {
	u := Duration{}
	full := Instants{BodyRead: ms(10), Admitted: ms(15), Sent: ms(20), FirstByte: ms(30), FirstToken: ms(120), LastToken: ms(220), Ended: ms(230)}
	with := func(change func(*Timeline)) Timeline {
		t := Timeline{Instants: full, Streamed: true}
		change(&t)
		return t
	}
	for name, c := range map[string]struct {
		in      Timeline
		want    Phases
		clamped bool
	}{
		"nothing known of the engine": {
			with(func(*Timeline) {}),
			Phases{Upload: ms(10), QueueGateway: ms(5), Connect: ms(5), Prefill: ms(100), Decode: ms(100), Tail: ms(10), Delivery: ms(0)}, false},
		"queue and prefill": {
			with(func(t *Timeline) { t.Engine = Engine{Queue: ms(30), Prefill: ms(60)}; t.UpstreamRTT = ms(1) }),
			Phases{Upload: ms(10), QueueGateway: ms(5), Connect: ms(5), UpstreamRTT: ms(1), QueueEngine: ms(30), Prefill: ms(60), Frontend: ms(9),
				Decode: ms(100), Tail: ms(10), Delivery: ms(0)}, false},
		"prefill only": {
			with(func(t *Timeline) { t.Engine = Engine{Prefill: ms(60)} }),
			Phases{Upload: ms(10), QueueGateway: ms(5), Connect: ms(5), QueueEngine: ms(40), Prefill: ms(60), Decode: ms(100), Tail: ms(10), Delivery: ms(0)}, false},
		"engine claims more than passed": {
			with(func(t *Timeline) { t.Engine = Engine{Queue: ms(80), Prefill: ms(60)} }),
			Phases{Upload: ms(10), QueueGateway: ms(5), Connect: ms(5), QueueEngine: ms(80), Prefill: ms(20), Frontend: ms(0), Decode: ms(100), Tail: ms(10), Delivery: ms(0)}, true},
		"slow reader": {
			with(func(t *Timeline) { t.Blocked = Blocked{BeforeFirstToken: 4e6, Decode: 50e6, Tail: 6e6} }),
			Phases{Upload: ms(10), QueueGateway: ms(5), Connect: ms(5), Prefill: ms(96), Decode: ms(50), Tail: ms(4), Delivery: ms(60)}, false},
		"not streamed": {
			Timeline{Instants: Instants{BodyRead: ms(1), Admitted: ms(1), Sent: ms(2), FirstByte: ms(102), Ended: ms(104)}},
			Phases{Upload: ms(1), QueueGateway: ms(0), Connect: ms(1), Engine: ms(100), Tail: ms(2), Delivery: ms(0)}, false},
		"not streamed, engine tells all": {
			Timeline{Instants: Instants{BodyRead: ms(1), Admitted: ms(1), Sent: ms(2), FirstByte: ms(102), Ended: ms(104)},
				Engine: Engine{Queue: ms(5), Prefill: ms(20), Decode: ms(70)}},
			Phases{Upload: ms(1), QueueGateway: ms(0), Connect: ms(1), QueueEngine: ms(5), Prefill: ms(20), Decode: ms(70), Frontend: ms(5), Tail: ms(2), Delivery: ms(0)}, false},
		"left during upload": {
			Timeline{Instants: Instants{Ended: ms(7)}, Streamed: true}, Phases{Upload: ms(7)}, false},
		"left in a silent prefill": {
			Timeline{Instants: Instants{BodyRead: ms(1), Admitted: ms(1), Sent: ms(3), Ended: ms(60)}, Streamed: true},
			Phases{Upload: ms(1), QueueGateway: ms(0), Connect: ms(2), Prefill: ms(57)}, false},
		"never connected": {
			Timeline{Instants: Instants{BodyRead: ms(1), Admitted: ms(1), Ended: ms(60)}, Streamed: true},
			Phases{Upload: ms(1), QueueGateway: ms(0), Connect: ms(59)}, false},
		"refused in the queue": {
			Timeline{Instants: Instants{BodyRead: ms(1), Admitted: u, Ended: ms(60)}, Streamed: true},
			Phases{Upload: ms(1), QueueGateway: ms(59)}, false},
	} {
		got, src, clamped := Split(c.in)
		if got != c.want || clamped != c.clamped {
			t.Errorf("%s:\n got %s (clamped %v)\nwant %s (clamped %v)", name, show(got), clamped, show(c.want), c.clamped)
		}
		checkSplit(t, name, c.in, got, src)
	}
}

func show(p Phases) string { b, _ := json.Marshal(p); return string(b) }

// checkSplit holds what must be true of every split.
func checkSplit(t *testing.T, name string, in Timeline, p Phases, src PhaseSources) {
	t.Helper()
	if sum := p.Sum(); sum != in.Ended.Or(0) {
		t.Errorf("%s: phases add up to %v, the call took %v: %s", name, sum, in.Ended.Or(0), show(p))
	}
	rec := Record{Phases: p, PhaseSources: src}
	sources, values := 0, 0
	for f := range rec.Fields {
		switch f.Group {
		case "phases":
			values++
			if f.Value.(float64) < 0 {
				t.Errorf("%s: %s is negative", name, f.Name)
			}
		case "phase_sources":
			sources++
		}
	}
	if sources != values {
		t.Errorf("%s: %d phases, %d sources", name, values, sources)
	}
}

// FuzzSplit: whatever the instants and figures, the phases add up.
func FuzzSplit(f *testing.F) {
	f.Add(int64(1), uint16(0xffff), true)
	f.Add(int64(2), uint16(0x00ff), false)
	f.Fuzz(func(t *testing.T, seed int64, known uint16, streamed bool) {
		rng := rand.New(rand.NewPCG(uint64(seed), 7))
		bit := 0
		next := func() Duration {
			bit++
			if known>>(bit-1)&1 == 0 {
				return Duration{}
			}
			return Lasting(time.Duration(rng.Int64N(int64(time.Second))) - time.Duration(rng.Int64N(int64(time.Millisecond))))
		}
		in := Timeline{Streamed: streamed, UpstreamRTT: next(),
			Instants: Instants{BodyRead: next(), Admitted: next(), Sent: next(), FirstByte: next(), FirstToken: next(), LastToken: next()},
			Engine:   Engine{Queue: next(), Load: next(), Prefill: next(), Decode: next()}}
		in.Ended = Lasting(time.Duration(rng.Int64N(int64(2 * time.Second))))
		in.Blocked = Blocked{time.Duration(rng.Int64N(1e9)), time.Duration(rng.Int64N(1e9)), time.Duration(rng.Int64N(1e9))}
		p, src, _ := Split(in)
		checkSplit(t, "fuzz", in, p, src)
	})
}
