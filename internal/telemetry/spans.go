package telemetry

import (
	"net"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/weirgate/weir/internal/call"
)

// The shape of a call's trace:
//
//	SERVER POST                           received … ended; Caddy's own where its tracing is on
//	├─ queue                              the gateway's own, when there was one
//	└─ CLIENT chat {model}                admitted … ended, over all attempts
//	   ├─ CLIENT POST                     an attempt that came to nothing
//	   └─ CLIENT POST                     the last attempt
//	      ├─ network                      connect and round trip: to the engine's door
//	      ├─ queue                        the engine's own
//	      ├─ prefill                      its front end, and the work on the prompt
//	      └─ decode                       first token … end
//
// Children lie one after the other between known instants. Time blocked in writes
// to the client is no child, since it lies scattered within the others: it is
// a phase among the attributes of the CLIENT span.

// spansOf returns how many spans a call makes at most.
func spansOf(rec *call.Record) int { return 7 + max(len(rec.Trail), 1) }

// shortest is the least duration of a child: what is below is noise of the clock.
const shortest = time.Microsecond

// made is one call's spans in the making.
type made struct {
	*callSpans
	rec   *call.Record
	ended time.Duration
}

func (t *Tracer) spans(s *Span, rec *call.Record) *callSpans {
	m := made{callSpans: callsSpans.Get().(*callSpans), rec: rec, ended: max(rec.Instants.Ended.Or(0), 0)}
	m.trace, m.parent, m.received, m.resource, m.scope = s.trace, s.parent, rec.Time, t.resource, t.scope
	admitted := min(max(rec.Instants.Admitted.Or(m.ended), 0), m.ended)
	failed := rec.Outcome.Failed()
	if s.server.IsValid() {
		m.add(callSpan{id: s.server, name: spanServer, kind: trace.SpanKindServer, to: m.ended, failed: failed}, m.serverAttributes())
	}
	if queued, _ := rec.Phases.QueueGateway.Get(); queued >= 100*time.Microsecond { // less is the way through the limits
		m.child(s.server, spanQueue, admitted-queued, admitted, rec.PhaseSources.QueueGateway)
	}
	if rec.Outcome != call.Refused { // one that was refused had nothing to do with an upstream
		m.add(callSpan{id: s.client, above: s.server, name: clientName(rec), kind: trace.SpanKindClient, from: admitted, to: m.ended, failed: failed}, m.clientAttributes())
		m.attempts(s.client, admitted)
	}
	return m.callSpans
}

func clientName(rec *call.Record) string {
	if rec.Model == "" {
		return operation(rec)
	}
	return operation(rec) + " " + rec.Model
}

// operation is never empty, since the name of a span must not be.
func operation(rec *call.Record) string {
	if rec.Operation == "" {
		return rec.Dialect
	}
	return rec.Operation
}

// provider names whose API was spoken, in the conventions' words where they have
// one. Who serves it is another matter: vLLM speaks OpenAI's.
// https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/registry/attributes/gen-ai.md
func provider(dialect string) string {
	family, _, _ := strings.Cut(dialect, ".")
	if family == "gemini" {
		return "gcp.gemini"
	}
	return family
}

// attempts makes a span of each attempt, and below the last one the phases.
func (m *made) attempts(above trace.SpanID, admitted time.Duration) {
	trail := m.rec.Trail
	if len(trail) == 0 { // a handler without a connection of its own
		m.phases(above, admitted)
	}
	for i := range trail {
		a := &trail[i]
		from := min(max(a.Start.Or(admitted), admitted), m.ended)
		to, last := m.ended, i == len(trail)-1
		if !last {
			to = min(max(trail[i+1].Start.Or(m.ended), from), m.ended)
		}
		attrs := append(m.attrs, attrMethod.String("POST"), attrReused.Bool(a.Reused))
		attrs = appendAddress(attrs, a.Upstream)
		if resent := m.rec.Attempts - len(trail) + i; resent > 0 {
			attrs = append(attrs, attrResendCount.Int(resent))
		}
		if last && m.rec.Status > 0 && a.FirstByte.IsKnown() {
			attrs = append(attrs, attrStatus.Int(m.rec.Status))
		}
		lost := !last && !a.FirstByte.IsKnown()
		if lost {
			attrs = append(attrs, attrErrorType.String("connection_lost"))
		}
		id := newSpanID()
		m.add(callSpan{id: id, above: above, name: spanAttempt, kind: trace.SpanKindClient, from: from, to: to,
			failed: lost || last && m.rec.Outcome.Failed()}, attrs)
		if last {
			m.phases(id, from)
		}
	}
}

// phases makes the children of the last attempt, which began at from.
func (m *made) phases(above trace.SpanID, from time.Duration) {
	p, src, at := &m.rec.Phases, &m.rec.PhaseSources, m.rec.Instants
	sent, known := at.Sent.Get()
	if !known {
		return
	}
	reached := sent + p.UpstreamRTT.Or(0)
	m.child(above, spanNetwork, from, reached, src.Connect)
	// The front end stands before the queue, and what it took was split off the end.
	queue := reached + p.Frontend.Or(0)
	prefill := queue + p.QueueEngine.Or(0)
	m.child(above, spanQueue, queue, prefill, src.QueueEngine, attrQueueTime.Float64(p.QueueEngine.Or(0).Seconds()))
	worked := p.Prefill.Plus(p.Engine)
	if m.rec.Stream {
		m.child(above, spanPrefill, prefill, at.FirstToken.Or(prefill+worked.Or(0)), weakest(src.Prefill, src.Engine), attrPrefillTime.Float64(worked.Or(0).Seconds()))
		if first, known := at.FirstToken.Get(); known {
			m.child(above, spanDecode, first, m.ended, src.Decode, attrDecodeTime.Float64(p.Decode.Or(0).Seconds()))
		}
		return
	}
	m.child(above, spanPrefill, prefill, prefill+worked.Or(0), weakest(src.Prefill, src.Engine), attrPrefillTime.Float64(worked.Or(0).Seconds()))
	if decode, known := p.Decode.Get(); known {
		m.child(above, spanDecode, prefill+worked.Or(0), prefill+worked.Or(0)+decode, src.Decode, attrDecodeTime.Float64(decode.Seconds()))
	}
}

// weakest returns the source that claims less.
func weakest(a, b call.Source) call.Source {
	for _, s := range [...]call.Source{call.Unattributed, call.Inferred, call.FromEngine} {
		if a == s || b == s {
			return s
		}
	}
	return call.Measured
}

// child makes a span of one part of the call, unless it took no time. It lies
// within the call whatever the figures say.
func (m *made) child(above trace.SpanID, name string, from, to time.Duration, source call.Source, more ...attribute.KeyValue) {
	from, to = min(max(from, 0), m.ended), min(to, m.ended)
	if to-from >= shortest {
		m.add(callSpan{id: newSpanID(), above: above, name: name, kind: trace.SpanKindInternal, from: from, to: to},
			append(append(m.attrs, more...), attrSource.String(string(source))))
	}
}

func (m *made) serverAttributes() []attribute.KeyValue {
	r := m.rec
	attrs := append(m.attrs, attrMethod.String("POST"), attrPath.String(r.Path), attrCallID.String(r.ID), attrOutcome.String(string(r.Outcome)))
	attrs = appendText(attrs, attrProtocol, protocolVersion(r.ClientProtocol))
	if r.Status > 0 {
		attrs = append(attrs, attrStatus.Int(r.Status))
	}
	attrs = appendText(attrs, attrKey, r.Key)
	attrs = appendText(attrs, attrClass, r.Class)
	return m.appendError(attrs)
}

func (m *made) clientAttributes() []attribute.KeyValue {
	r := m.rec
	attrs := append(m.attrs, attrOperation.String(operation(r)), attrProvider.String(provider(r.Dialect)),
		attrCallID.String(r.ID), attrDialect.String(r.Dialect), attrOutcome.String(string(r.Outcome)))
	attrs = appendText(attrs, attrModel, r.Model)
	attrs = appendText(attrs, attrResponseModel, r.ResponseModel)
	attrs = appendText(attrs, attrResponseID, r.ResponseID)
	attrs = appendText(attrs, attrKey, r.Key)
	attrs = appendText(attrs, attrClass, r.Class)
	attrs = appendAddress(attrs, r.Upstream)
	if reasons := r.FinishReason.Reasons(); len(reasons) > 0 {
		attrs = append(attrs, attrFinish.StringSlice(reasons))
	}
	attrs = appendSeconds(attrs, attrFirstChunk, r.TTFTUpstream)
	attrs = appendSeconds(attrs, attrTTFT, r.TTFT)
	attrs = appendSeconds(attrs, attrTPOT, r.TPOT)
	for _, n := range [...]struct {
		key   attribute.Key
		count call.Count
	}{{attrInput, r.Input}, {attrOutput, r.Output}, {attrCached, r.Cached}, {attrCacheWrite, r.CacheWrite}, {attrReasoning, r.Reasoning}} {
		if v, known := n.count.Get(); known {
			attrs = append(attrs, n.key.Int64(v))
		}
	}
	if r.UsageSource != call.UsageNone {
		attrs = appendText(attrs, attrUsageSource, string(r.UsageSource))
	}
	if r.Replayed {
		attrs = append(attrs, attrReplayed.Bool(true))
	}
	for i, d := range phaseSpans(&r.Phases) {
		attrs = appendSeconds(attrs, phaseKeys[i], d)
	}
	return m.appendError(attrs)
}

// appendError says why the call failed: our short code, else the status, else the outcome.
// https://github.com/open-telemetry/semantic-conventions/blob/main/docs/registry/attributes/error.md
func (m *made) appendError(attrs []attribute.KeyValue) []attribute.KeyValue {
	switch r := m.rec; {
	case !r.Outcome.Failed():
		return attrs
	case r.Error != "":
		return append(attrs, attrErrorType.String(r.Error))
	case r.Outcome == call.UpstreamError && r.Status >= 400:
		return append(attrs, attrErrorType.String(strconv.Itoa(r.Status)))
	default:
		return append(attrs, attrErrorType.String(string(r.Outcome)))
	}
}

func appendText(attrs []attribute.KeyValue, key attribute.Key, s string) []attribute.KeyValue {
	if s == "" {
		return attrs
	}
	return append(attrs, key.String(s))
}

func appendSeconds(attrs []attribute.KeyValue, key attribute.Key, d call.Duration) []attribute.KeyValue {
	if span, known := d.Get(); known {
		return append(attrs, key.Float64(span.Seconds()))
	}
	return attrs
}

// appendAddress says where an upstream is.
func appendAddress(attrs []attribute.KeyValue, hostPort string) []attribute.KeyValue {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return appendText(attrs, attrAddress, hostPort)
	}
	attrs = append(attrs, attrAddress.String(host))
	if n, err := strconv.Atoi(port); err == nil {
		attrs = append(attrs, attrPort.Int(n))
	}
	return attrs
}

// protocolVersion is "1.1" of "HTTP/1.1", and "2" of "HTTP/2.0".
func protocolVersion(proto string) string {
	switch proto {
	case "HTTP/1.0", "HTTP/1.1":
		return proto[len("HTTP/"):]
	case "HTTP/2.0", "HTTP/3.0":
		return proto[len("HTTP/") : len("HTTP/")+1]
	}
	return ""
}
