package gateway

import (
	"net/http"
	"strings"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/queue"
	"github.com/weirgate/weir/slo"
)

// Judge sets what judges calls by their class's objectives; nil judges none. It is
// called before the first call.
func (g *Gateway) Judge(t *slo.Tracker) { g.tracker = t }

// judges tells whether the call counts for objectives: a load test and a probe do
// not, nor does who has not shown a good key.
func (c *Call) judges() bool {
	return c.gateway.tracker != nil && !c.identity.Bench && !c.probe
}

// watch begins to judge the call, when it is known what it asks for.
func (c *Call) watch() {
	if !c.judges() {
		return
	}
	defer c.gateway.forgive()
	c.watched = true
	c.gateway.tracker.Watch(&c.judged, c.identity.Class, c.identity.Model, c.identity.Time, c.wants.Stream && c.dialect.WritesTokens(), c)
	c.gateway.tracker.Queued(&c.judged, c.identity.Time.Add(c.instants.BodyRead.Or(0)))
}

// SentAt implements slo.Sender.
func (c *Call) SentAt() (time.Time, bool) {
	sent, known := c.trace.sent().Get()
	return c.identity.Time.Add(sent), known
}

// wasAdmitted tells that the call has left the gateway's queue.
func (c *Call) wasAdmitted() {
	if !c.watched {
		return
	}
	defer c.gateway.forgive()
	c.gateway.tracker.Admitted(&c.judged, c.identity.Time.Add(c.instants.Admitted.Or(0)))
}

// heard tells of the first token, and of the first that is not reasoning, once
// each. It runs after a write until both are known.
func (c *Call) heard() {
	if first, known := c.meter.FirstToken().Get(); known && !c.tokenSeen {
		c.tokenSeen = true
		c.gateway.live.settled(c)
		if c.watched {
			defer c.gateway.forgive()
			c.gateway.tracker.FirstToken(&c.judged, c.identity.Time.Add(first))
		}
	}
	visible, known := c.meter.FirstVisible().Get()
	if !known {
		return
	}
	c.allHeard = true
	if c.watched {
		defer c.gateway.forgive()
		c.gateway.tracker.FirstVisible(&c.judged, c.identity.Time.Add(visible))
	}
}

// judge counts the call for the objectives of its class, at its end.
func (c *Call) judge(rec *call.Record) {
	if !c.judges() || c.entry.unknownCaller() {
		return
	}
	defer c.gateway.forgive()
	if !c.watched { // it was refused, or broke off, before it was known what it asks for
		c.gateway.tracker.Watch(&c.judged, c.identity.Class, c.identity.Model, c.identity.Time, false, nil)
	}
	f := c.facts(rec)
	if c.entry != nil && c.entry.refused != nil && c.entry.refused.final {
		f.Ending = slo.Excused // it could not have passed at any time
	}
	c.gateway.tracker.End(&c.judged, &f)
	c.watched = false
}

// forget lets go of a call whose end was not told, which a fault has kept from it.
func (c *Call) forget() {
	if c.watched {
		defer c.gateway.forgive()
		c.gateway.tracker.Forget(&c.judged)
	}
}

// correct judges anew what was unknown when the call ended. It may run on another
// goroutine while the call lets go of its entry, so it must not look there.
func (c *Call) correct(amended *call.Record) {
	if !c.judges() {
		return
	}
	defer c.gateway.forgive()
	f := c.facts(amended)
	c.gateway.tracker.Correct(&c.judged, &f)
}

func (c *Call) facts(rec *call.Record) slo.Facts {
	return factsOf(rec, c.identity.Time, c.dialect.WritesTokens())
}

// factsOf is what a record says to objectives. writes is whether the API writes tokens.
//
// Times of a call that failed, or whose client was at fault or left, are not
// counted: an error that comes at once is no quick answer. What was decided
// before its end stands (see slo).
func factsOf(rec *call.Record, received time.Time, writes bool) slo.Facts {
	f := slo.Facts{
		Received: received, Ended: received.Add(rec.Instants.Ended.Or(0)), Ending: endingOf(rec),
		Input: rec.Input.Or(-1), Output: rec.Output.Or(-1),
	}
	if f.Ending != slo.Answered {
		return f
	}
	v := &f.Values
	v[slo.TTFT], v[slo.TTFTUpstream], v[slo.TTFTVisible] = valueOf(rec.TTFT), valueOf(rec.TTFTUpstream), valueOf(rec.TTFTVisible)
	v[slo.ICLMax], v[slo.E2E] = valueOf(rec.ICLMax), valueOf(rec.E2E)
	v[slo.TPOT] = valueOf(rec.TPOT)
	if !rec.TPOT.IsKnown() && !rec.Output.IsKnown() && rec.ContentEvents.Or(0) > 1 && rec.FinishReason.Choices() <= 1 {
		v[slo.TPOT] = slo.Unknown() // several tokens came, and nobody says how many
	}
	if v[slo.Network] = slo.Unknown(); rec.ClientRTT.IsKnown() {
		v[slo.Network] = slo.Exactly(rec.ClientRTT.Or(0))
	}
	if rec.Instants.Sent.IsKnown() {
		v[slo.Queue] = queueOf(rec)
		if writes {
			v[slo.Prefill] = prefillOf(rec)
		}
	}
	return f
}

// valueOf is a number that is either measured or does not exist.
func valueOf(d call.Duration) slo.Value {
	if span, known := d.Get(); known {
		return slo.Exactly(span)
	}
	return slo.Value{}
}

// told says whether a phase is the engine's own figure, or follows from such.
func told(s call.Source) bool { return s == call.FromEngine || s == call.Inferred }

// queueOf adds up the gateway's queue and the engine's. Of the engine's its gauges
// may tell a bound alone.
func queueOf(rec *call.Record) slo.Value {
	ours := rec.Phases.QueueGateway.Or(0)
	switch {
	case rec.Phases.QueueEngine.IsKnown() && told(rec.PhaseSources.QueueEngine):
		return slo.Exactly(ours + rec.Phases.QueueEngine.Or(0))
	case rec.QueueBound.IsKnown():
		return slo.AtMost(ours + rec.QueueBound.Or(0))
	}
	if most, known := untilWork(rec); known {
		return slo.AtMost(ours + most) // Queued and Admitted tell where ours alone is too long
	}
	return slo.AtLeast(ours)
}

// untilWork is the time from when the request was sent to the first that came of the
// engine's work: its queue and its prefill are within.
func untilWork(rec *call.Record) (time.Duration, bool) {
	if rec.Stream {
		return rec.TTFTUpstream.Get()
	}
	return rec.Instants.FirstByte.Minus(rec.Instants.Sent).Get()
}

// prefillOf is at most the time to the first token where it may hide the engine's queue.
func prefillOf(rec *call.Record) slo.Value {
	if !rec.Phases.Prefill.IsKnown() && !rec.Phases.Engine.IsKnown() {
		return slo.Value{} // there was none: no token came
	}
	if rec.Phases.Prefill.IsKnown() && told(rec.PhaseSources.Prefill) {
		return slo.Exactly(rec.Phases.Prefill.Or(0))
	}
	if most, known := untilWork(rec); known {
		return slo.AtMost(most)
	}
	return slo.Unknown()
}

// endingOf says whose the outcome is, the service's or the client's.
func endingOf(rec *call.Record) slo.Ending {
	switch rec.Outcome {
	case call.Completed:
		return slo.Answered
	case call.ClientGone:
		return slo.Left
	case call.ReaderStalled:
		return slo.Excused // the answer was there, and nobody took it
	case call.Refused:
		// By the service as a whole, or by what the caller itself may have.
		overloaded := rec.Status == http.StatusServiceUnavailable || rec.Status == http.StatusTooManyRequests
		if overloaded && !callersOwn(rec.RefusedBy) {
			return slo.Failed
		}
		return slo.Excused
	case call.UpstreamError, call.Timeout:
		if rec.Status >= 400 && rec.Status < 500 && rec.Status != http.StatusTooManyRequests {
			return slo.Excused
		}
	}
	return slo.Failed
}

// queueFullKey is the wall of a caller who has as many calls waiting as one may.
var queueFullKey = "queue " + queue.FullKey.String()

// callersOwn tells of a wall whether it is the caller's: a limit of its key, its
// budget, its part of the queue.
func callersOwn(wall string) bool {
	return strings.HasPrefix(wall, "key ") || strings.HasPrefix(wall, "key_model ") || wall == byBudget || wall == queueFullKey
}
