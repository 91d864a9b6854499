package diagnose

import "github.com/weirgate/weir/internal/call"

// What findings of failures rest on.
var (
	failedWith  = &figure{name: "error", label: "%", bare: true}
	refusedBy   = &figure{name: "refused_by", label: "%", bare: true}
	afterWait   = &figure{name: "phases.queue_gateway_ms", unit: InMilliseconds, label: "it had waited in the gateway's queue"}
	gotTokens   = &figure{name: "content_events", unit: InPieces, label: "pieces of the answer had come"}
	outOfRoom   = &figure{label: "the upstream said that it is overloaded or limits its callers", bare: true}
	beforeByte  = &figure{label: "no byte of an answer came", bare: true}
	clientAlone = &figure{name: "client_retries", unit: InPieces, label: "the client had tried before"}
)

// failures says which layer broke a call off. An error of the client's (4xx but
// 408 and 429) and a client that left are nobody's fault here.
func failures(l *look, s *sheet) {
	rec := l.rec
	switch rec.Outcome {
	case call.Refused:
		s.condition(CodeRefused, l)
		wall := wallOf(rec.RefusedBy)
		s.hits[len(s.hits)-1].wall = wall
		if wall > refusedByQueue && rec.Error != "" {
			s.named(failedWith, rec.Error) // says more than the name of the wall
		} else {
			s.named(refusedBy, oneOf(rec.RefusedBy, rec.Error, string(rec.Outcome)))
		}
		if d, known := l.took(queueGateway); known && d >= Noticeable {
			s.pro(afterWait, milliseconds(d))
		}
		if n := rec.ClientRetries; n > 0 {
			s.pro(clientAlone, float64(n))
		}
	case call.GatewayShutdown, call.InternalError, call.Crashed:
		s.condition(CodeGatewayFault, l)
		s.named(failedWith, oneOf(rec.Error, string(rec.Outcome)))
	case call.UpstreamError, call.StreamError, call.Truncated, call.Unrecognised, call.Timeout:
		if rec.Error == uploadStalled || clientsError(rec) {
			return
		}
		broken(l, s)
	}
}

func broken(l *look, s *sheet) {
	rec := l.rec
	with := oneOf(rec.Error, string(rec.Outcome))
	switch d, known := l.took(connect); {
	case l.sent():
		s.condition(CodeUpstreamFailed, l)
		s.named(failedWith, with)
		if rec.Status == 429 || rec.Status == 503 {
			s.pro(outOfRoom, 0)
		}
		if !rec.TTFB.IsKnown() {
			s.pro(beforeByte, 0)
		} else if n, known := rec.ContentEvents.Get(); known && n > 0 {
			s.pro(gotTokens, float64(n))
		}
	case known: // it broke off in connect, which runs to its end
		if stands(d, Dominant, l.elapsed) {
			s.span(CodeUpstreamUnreachable, call.Measured, d, OfElapsed, l.elapsed)
		} else {
			s.condition(CodeUpstreamUnreachable, l)
		}
		s.named(failedWith, with)
		reaching(l, s)
	}
	// What broke off before is in the upload or the gateway's queue; those have rules
	// of their own.
}

// clientsError tells whether the upstream found fault with the request.
func clientsError(rec *call.Record) bool {
	return rec.Outcome == call.UpstreamError && rec.Status >= 400 && rec.Status < 500 && rec.Status != 408 && rec.Status != 429
}

// oneOf returns the first that says something.
func oneOf(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}
