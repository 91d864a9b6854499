package otlpin

import (
	"time"

	"github.com/weirgate/weir/internal/call"
)

// TraceID and SpanID name a trace and a span of it, as in W3C trace context.
// All zeros is none.
type (
	TraceID = [16]byte
	SpanID  = [8]byte
)

// Match says how a span was found to belong to a call.
type Match string

const (
	// ByParent: the span's ancestors lead to the call's own CLIENT span.
	ByParent Match = "parent"
	// ByTrace: its ancestors are not all known, but the call was the only one of
	// its trace.
	ByTrace Match = "trace"
)

// EngineSpan is what an engine said of one request in a span. Figures that the
// span does not carry, or that cannot be true (negative, no number, more than a
// day), are unknown.
type EngineSpan struct {
	TraceID  TraceID
	SpanID   SpanID
	ParentID SpanID // zero for the root of a trace

	// Start and End are by the engine's wall clock; zero is unknown.
	Start, End time.Time

	// Queue is the time from the request's arrival at the scheduler until it was
	// scheduled.
	Queue call.Duration
	// Prefill is the time from being scheduled to the first token.
	Prefill call.Duration
	// PrefillWithQueue is the time to the first token of an engine that reports
	// queue and prefill as one. Prefill is then known only together with Queue.
	PrefillWithQueue call.Duration
	// Decode is the time from the first token to the last.
	Decode call.Duration
	// TTFT and E2E run from the request's arrival at the engine's front end.
	TTFT, E2E call.Duration

	// InputTokens and OutputTokens are the engine's counts.
	InputTokens, OutputTokens call.Count

	// Kind is the engine, "vllm" or "sglang", as far as the span tells; "" is unknown.
	Kind string
	// Model and RequestID are the engine's names, at most 128 bytes.
	Model, RequestID string

	// Match says how the span was joined; "" before that.
	Match Match
	// Others is how many further engine requests of the same call were known when
	// this one was delivered: a call for several choices or prompts has some, so has
	// one that was sent twice. This one is the last that started and, among those that
	// started together, the one with the earliest first token.
	Others int
}

// Engine returns the span's figures in the form that call.Split takes.
func (s EngineSpan) Engine() call.Engine {
	return call.Engine{Queue: s.Queue, Prefill: s.Prefill, Decode: s.Decode, E2E: s.E2E}
}

// hasFigures tells an engine's span from any other.
func (s *EngineSpan) hasFigures() bool {
	return s.Queue.IsKnown() || s.Prefill.IsKnown() || s.PrefillWithQueue.IsKnown() ||
		s.Decode.IsKnown() || s.TTFT.IsKnown() || s.E2E.IsKnown()
}

// firstToken is when the first token came, for comparison among requests of one call.
func (s *EngineSpan) firstToken() call.Duration {
	if s.TTFT.IsKnown() {
		return s.TTFT
	}
	if s.PrefillWithQueue.IsKnown() {
		return s.PrefillWithQueue
	}
	if s.Queue.IsKnown() && s.Prefill.IsKnown() {
		return s.Queue.Plus(s.Prefill)
	}
	return call.Duration{}
}

// betterThan is a total order, so that the choice does not depend on which span
// came first: see Others for the rule, and below for what breaks ties.
func (s *EngineSpan) betterThan(o *EngineSpan) bool {
	if s.Match != o.Match {
		return s.Match == ByParent
	}
	if !s.Start.Equal(o.Start) {
		return s.Start.After(o.Start)
	}
	a, aKnown := s.firstToken().Get()
	b, bKnown := o.firstToken().Get()
	if aKnown != bKnown {
		return aKnown
	}
	if a != b {
		return a < b
	}
	return string(s.SpanID[:]) < string(o.SpanID[:])
}

// seen is one span as it was read: an EngineSpan and what else the Joiner needs.
type seen struct {
	EngineSpan
	// stage marks a span that is one stage of a request and bears its figure as
	// its own duration (SGLang's prefill_waiting): only Queue is set.
	stage bool
}

// engine tells whether the span says something of a request's phases.
func (s *seen) engine() bool { return s.stage || s.hasFigures() }
