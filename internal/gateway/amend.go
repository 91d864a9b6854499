package gateway

import (
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/otlpin"
)

// track tells the joiner which span of the engine's belongs to this call. It is
// called before the call is sent.
func (c *Call) track() {
	b := c.beside
	if b.Joiner == nil || b.Tracer == nil || c.options.Private || !c.dialect.WritesTokens() {
		return
	}
	if trace, span, ok := c.span.Joins(); ok {
		c.ticket = b.Joiner.Track(otlpin.TraceID(trace), otlpin.SpanID(span))
	}
}

// join takes what the engine's span says of a call that has ended and whose
// record has been kept, without holding it up: the span as a rule comes later. The
// phases are counted when they are final.
func (c *Call) join(rec *call.Record) {
	if c.ticket == nil {
		c.gateway.phases(rec)
		return
	}
	g, ledger := c.gateway, c.records()
	final := func(span otlpin.EngineSpan, joined bool) {
		final := rec
		// Where the engine made several requests of one call (several choices, or one
		// that was sent twice), the figures of one of them are not the call's.
		joined = joined && span.Others == 0
		if a, learnt := rec.Learnt(span.Engine()); joined && learnt {
			final = rec.Amended(a)
			g.amend(rec, final)
			c.correct(final)
			if ledger != nil {
				ledger.Amend(a)
			}
		}
		g.phases(final)
	}
	switch span, answer := c.ticket.Done(time.Now(), final); answer {
	case otlpin.Joined:
		final(span, true)
	case otlpin.None:
		final(otlpin.EngineSpan{}, false)
	case otlpin.Awaited:
	}
}

// records returns where the call is recorded durably; nil where it is not.
func (c *Call) records() Ledger {
	if c.entry == nil || c.entry.unknownCaller() || c.probe {
		return nil
	}
	return c.options.Admission.Ledger
}

// amend puts the amended record in the place of the one it was made of.
func (g *Gateway) amend(rec, amended *call.Record) {
	g.recent.replace(rec, amended)
	g.failed.replace(rec, amended)
	g.history.replace(rec, amended)
}

// phases counts the phases of a record that will not change any more.
func (g *Gateway) phases(rec *call.Record) {
	if rec.Probe {
		return
	}
	defer g.forgive()
	g.metrics.Phases(rec)
}

// replace puts a record in the place of another, if that is still there.
func (r *ring) replace(old, rec *call.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.records {
		if r.records[i] == old {
			r.records[i] = rec
			return
		}
	}
}
