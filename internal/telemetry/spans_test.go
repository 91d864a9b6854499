package telemetry

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/weirgate/weir/internal/call"
)

// collector keeps the spans it is given.
type spanCollector struct {
	spans []sdktrace.ReadOnlySpan
	fails error
	hangs bool
}

func (c *spanCollector) export(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if c.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	c.spans = append(c.spans, spans...)
	return c.fails
}

func tracerTo(t testing.TB, c *spanCollector, sampler sdktrace.Sampler, o ExportOptions) *Tracer {
	t.Helper()
	tracer, err := newTracer(&outlet{export: c.export, report: o.Report}, sampler, o)
	if err != nil {
		t.Fatal(err)
	}
	return tracer
}

// flush ends the tracer and returns its spans by name; attempts as "attempt".
func flush(t testing.TB, tracer *Tracer, c *spanCollector) map[string][]sdktrace.ReadOnlySpan {
	t.Helper()
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	byName := make(map[string][]sdktrace.ReadOnlySpan)
	for _, s := range c.spans {
		name := s.Name()
		if name == spanAttempt && s.SpanKind() == trace.SpanKindClient {
			name = "attempt"
		}
		byName[name] = append(byName[name], s)
	}
	return byName
}

func postTo(header ...string) *http.Request {
	r, _ := http.NewRequest(http.MethodPost, "http://gateway/v1/chat/completions", http.NoBody)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// traced is a call with every phase of a stream, sent again once.
func traced() *call.Record {
	at := func(ms int) call.Duration { return call.Lasting(time.Duration(ms) * time.Millisecond) }
	rec := &call.Record{
		Identity: call.Identity{ID: "c1", Time: time.Unix(1_790_000_000, 0), Key: "team-a", Model: "m", ResponseModel: "m-1", ResponseID: "chatcmpl-1",
			Class: "interactive", Dialect: "openai.chat", Operation: "chat", Path: "/v1/chat/completions", Stream: true},
		Result:       call.Result{Status: 200, Outcome: call.Completed, Terminated: true},
		Tokens:       call.Tokens{Usage: call.Usage{Input: call.Known(100), Output: call.Known(50), Cached: call.Known(0)}, UsageSource: call.UsageReported},
		Timing:       call.Timing{TTFT: at(620), TTFTUpstream: at(510), TPOT: at(20), E2E: at(1700)},
		PhaseSources: call.PhaseSources{QueueGateway: call.Measured, Connect: call.Measured, QueueEngine: call.FromEngine, Frontend: call.Inferred, Prefill: call.FromEngine, Decode: call.Measured},
		Transport: call.Transport{Upstream: "10.0.0.1:8000", Attempts: 2, Replayed: true, ClientProtocol: "HTTP/1.1",
			Instants: call.Instants{BodyRead: at(10), Admitted: at(60), Sent: at(110), FirstByte: at(600), FirstToken: at(620), LastToken: at(1600), Ended: at(1700)},
			Trail: []call.Attempt{
				{Start: at(61), Connected: at(62), Sent: at(63), Upstream: "10.0.0.1:8000", Reused: true},
				{Start: at(80), Connected: at(100), Sent: at(110), FirstByte: at(600), Upstream: "10.0.0.1:8000"},
			}},
	}
	rec.FinishReason.Set(0, "stop")
	rec.Phases = call.Phases{Upload: at(10), QueueGateway: at(50), Connect: at(50), UpstreamRTT: at(2), QueueEngine: at(200), Frontend: at(8),
		Prefill: at(300), Decode: at(970), Tail: at(95), Delivery: at(15)}
	return rec
}

func same(a, b sdktrace.ReadOnlySpan) bool {
	return a.SpanContext().SpanID() == b.SpanContext().SpanID()
}

func attr(s sdktrace.ReadOnlySpan, key attribute.Key) (attribute.Value, bool) {
	for _, a := range s.Attributes() {
		if a.Key == key {
			return a.Value, true
		}
	}
	return attribute.Value{}, false
}

func TestShape(t *testing.T) {
	var c spanCollector
	tracer := tracerTo(t, &c, parentDecides, ExportOptions{})
	r := postTo()
	s := tracer.Begin(r)
	s.Propagate(r.Header, true)
	rec := traced()
	if !tracer.End(&s, rec) {
		t.Fatal("a sampled call left no spans")
	}
	byName := flush(t, tracer, &c)
	parents := map[string]string{"POST": "", "chat m": "POST", "attempt": "chat m", "network": "attempt", "prefill": "attempt", "decode": "attempt"}
	byID := make(map[trace.SpanID]sdktrace.ReadOnlySpan)
	for _, s := range c.spans {
		byID[s.SpanContext().SpanID()] = s
	}
	for name, parent := range parents {
		spans := byName[name]
		if want := map[bool]int{true: 2, false: 1}[name == "attempt"]; len(spans) != want {
			t.Fatalf("%d spans named %s, want %d", len(spans), name, want)
		}
		for _, s := range spans {
			above := byID[s.Parent().SpanID()]
			if parent == "" {
				if s.Parent().IsValid() {
					t.Errorf("%s has a parent", name)
				}
				continue
			}
			if above == nil || !same(above, byName[parent][0]) && !same(above, byName[parent][len(byName[parent])-1]) {
				t.Errorf("%s is not below %s", name, parent)
			}
		}
	}
	if queues := byName["queue"]; len(queues) != 2 {
		t.Fatalf("%d queues, want the gateway's and the engine's", len(queues))
	} else if gateway, engine := queues[0], queues[1]; !same(byID[gateway.Parent().SpanID()], byName["POST"][0]) || !same(byID[engine.Parent().SpanID()], byName["attempt"][1]) {
		t.Error("the queues do not lie where they belong")
	}
	for _, s := range c.spans { // times nest
		if above := byID[s.Parent().SpanID()]; above != nil && (s.StartTime().Before(above.StartTime()) || s.EndTime().After(above.EndTime())) {
			t.Errorf("%s lies outside of %s", s.Name(), above.Name())
		}
	}
	for name, want := range map[string][2]int{"POST": {0, 1700}, "chat m": {60, 1700}, "network": {80, 112}, "prefill": {320, 620}, "decode": {620, 1700}} {
		s := byName[name][0]
		from, to := s.StartTime().Sub(rec.Time).Milliseconds(), s.EndTime().Sub(rec.Time).Milliseconds()
		if from != int64(want[0]) || to != int64(want[1]) {
			t.Errorf("%s from %d to %d ms, want %v", name, from, to, want)
		}
	}
	if q := byName["queue"][1]; q.StartTime().Sub(rec.Time) != 120*time.Millisecond || q.EndTime().Sub(rec.Time) != 320*time.Millisecond {
		t.Errorf("the engine's queue from %v to %v", q.StartTime().Sub(rec.Time), q.EndTime().Sub(rec.Time))
	}
	sum := 0.0
	for _, a := range byName["chat m"][0].Attributes() { // phases add up
		if strings.HasPrefix(string(a.Key), attrPhase) && a.Key != attrSource {
			sum += a.Value.AsFloat64()
		}
	}
	if diff := sum - 1.7; diff > 1e-9 || diff < -1e-9 {
		t.Errorf("phases add up to %v s, want 1.7", sum)
	}
	// What the upstream was told is the CLIENT span's place.
	client := byName["chat m"][0].SpanContext()
	if want := "00-" + client.TraceID().String() + "-" + client.SpanID().String() + "-01"; r.Header.Get("traceparent") != want {
		t.Errorf("traceparent %q, want %q", r.Header.Get("traceparent"), want)
	}
	if v, _ := attr(byName["attempt"][1], attrResendCount); v.AsInt64() != 1 {
		t.Errorf("resend_count %v, want 1", v.AsInt64())
	}
	if _, there := attr(byName["attempt"][0], attrResendCount); there {
		t.Error("the first attempt has a resend_count")
	}
	if v, _ := attr(byName["chat m"][0], attrInput); v.AsInt64() != 100 {
		t.Errorf("input tokens %v", v.AsInt64())
	}
	if _, there := attr(byName["chat m"][0], attrReasoning); there {
		t.Error("reasoning tokens that nobody reported")
	}
}

// TestParents: whose child a call is, and who decides.
func TestParents(t *testing.T) {
	const remote = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0"
	ids, _ := trace.TraceIDFromHex("0af7651916cd43dd8448eb211c80319c")
	above, _ := trace.SpanIDFromHex("00f067aa0ba902b7")
	caddys := trace.NewSpanContext(trace.SpanContextConfig{TraceID: ids, SpanID: above, TraceFlags: trace.FlagsSampled})
	none := 0.0
	for name, c := range map[string]struct {
		request *http.Request
		share   *float64
		spans   int
		parent  string // of the topmost span
		server  bool
	}{
		"root":              {postTo(), nil, 9, "", true},
		"root, none wanted": {postTo(), &none, 0, "", true},
		"caller sampled":    {postTo("Traceparent", remote+"1"), &none, 9, "b7ad6b7169203331", true},
		"caller not":        {postTo("Traceparent", remote+"0"), nil, 0, "", true},
		"caller garbled":    {postTo("Traceparent", "00-zz"), nil, 9, "", true},
		"caddy's tracing": {postTo("Traceparent", remote+"0").WithContext(trace.ContextWithSpanContext(context.Background(), caddys)), nil, 8,
			"00f067aa0ba902b7", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_TRACES_SAMPLER", "")
			sampler, err := samplerOf(c.share)
			if err != nil {
				t.Fatal(err)
			}
			var got spanCollector
			tracer := tracerTo(t, &got, sampler, ExportOptions{})
			s := tracer.Begin(c.request)
			if kept := tracer.End(&s, traced()); kept != (c.spans > 0) {
				t.Errorf("kept is %v", kept)
			}
			byName := flush(t, tracer, &got)
			if len(got.spans) != c.spans {
				t.Fatalf("%d spans, want %d", len(got.spans), c.spans)
			}
			if c.spans == 0 {
				return
			}
			if got := len(byName["POST"]) == 1; got != c.server {
				t.Errorf("a SERVER span of our own: %v", got)
			}
			top := byName["chat m"][0]
			if c.server {
				top = byName["POST"][0]
			}
			if got := top.Parent(); c.parent != "" && got.SpanID().String() != c.parent || c.parent == "" && got.IsValid() {
				t.Errorf("the parent is %v, want %q", got.SpanID(), c.parent)
			}
			if s.TraceID() != top.SpanContext().TraceID().String() {
				t.Error("the record's trace id leads elsewhere")
			}
		})
	}
}

// TestKept: failed and slow calls leave spans whatever the sampling says.
func TestKept(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*call.Record)
		keep   bool
	}{
		"usual":       {func(*call.Record) {}, false},
		"client left": {func(r *call.Record) { r.Outcome = call.ClientGone }, false},
		"failed":      {func(r *call.Record) { r.Outcome, r.Error = call.UpstreamError, "dns" }, true},
		"first token": {func(r *call.Record) { r.TTFT = call.Lasting(2 * time.Second) }, true},
		"whole call":  {func(r *call.Record) { r.Instants.Ended = call.Lasting(time.Minute) }, true},
		"refused":     {func(r *call.Record) { r.Outcome = call.Refused }, false},
	} {
		t.Run(name, func(t *testing.T) {
			var got spanCollector
			tracer := tracerTo(t, &got, sdktrace.NeverSample(), ExportOptions{Keep: Keep{TTFT: 2 * time.Second, E2E: time.Minute}})
			rec := traced()
			c.change(rec)
			s := tracer.Begin(postTo())
			if s.Sampled() {
				t.Error("chosen at its begin")
			}
			kept := tracer.End(&s, rec)
			byName := flush(t, tracer, &got)
			if kept != c.keep || (len(got.spans) > 0) != c.keep {
				t.Fatalf("kept is %v with %d spans, want %v", kept, len(got.spans), c.keep)
			}
			if rec.Outcome == call.UpstreamError {
				if v, _ := attr(byName["chat m"][0], attrErrorType); v.AsString() != "dns" {
					t.Errorf("error.type is %q", v.AsString())
				}
			}
		})
	}
}

// TestHostileFigures: whatever an engine reports, spans lie within the call, and
// none ends before it begins.
func TestHostileFigures(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	any := func() call.Duration {
		if r.IntN(4) == 0 {
			return call.Duration{}
		}
		return call.Lasting(time.Duration(r.Int64N(int64(4*time.Second))) - time.Second)
	}
	for range 500 {
		rec := traced()
		rec.Stream = r.IntN(2) == 0
		p, at := &rec.Phases, &rec.Instants
		for _, d := range []*call.Duration{&p.Connect, &p.UpstreamRTT, &p.QueueGateway, &p.QueueEngine, &p.Frontend, &p.Prefill, &p.Engine, &p.Decode,
			&at.Admitted, &at.Sent, &at.FirstByte, &at.FirstToken, &at.Ended} {
			*d = any()
		}
		for i := range rec.Trail {
			rec.Trail[i].Start = any()
		}
		rec.Trail = rec.Trail[:r.IntN(3)]
		var got spanCollector
		tracer := tracerTo(t, &got, parentDecides, ExportOptions{})
		s := tracer.Begin(postTo())
		tracer.End(&s, rec)
		flush(t, tracer, &got)
		if len(got.spans) > spansOf(rec) {
			t.Fatalf("%d spans, room was asked for %d", len(got.spans), spansOf(rec))
		}
		ended := rec.Time.Add(max(at.Ended.Or(0), 0))
		for _, s := range got.spans {
			if s.EndTime().Before(s.StartTime()) || s.StartTime().Before(rec.Time) || s.EndTime().After(ended) {
				t.Fatalf("%s from %v to %v in a call from %v to %v", s.Name(), s.StartTime(), s.EndTime(), rec.Time, ended)
			}
		}
		if tracer.out.waiting.Load() != 0 {
			t.Fatalf("%d spans wait after the end", tracer.out.waiting.Load())
		}
	}
}

// TestNoText: no attribute has room for a prompt or an answer.
func TestNoText(t *testing.T) {
	var c spanCollector
	tracer := tracerTo(t, &c, parentDecides, ExportOptions{})
	s := tracer.Begin(postTo())
	tracer.End(&s, traced())
	flush(t, tracer, &c)
	for _, s := range c.spans {
		for _, a := range s.Attributes() {
			for _, word := range []string{"messages", "prompt", "completion", "instructions", "content"} {
				if slices.Contains(strings.FieldsFunc(string(a.Key), func(r rune) bool { return r == '.' || r == '_' }), word) {
					t.Errorf("%s has the attribute %s", s.Name(), a.Key)
				}
			}
		}
	}
}
