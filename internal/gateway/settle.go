package gateway

import (
	"net/http"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/limit"
	"github.com/weirgate/weir/internal/meter"
	"github.com/weirgate/weir/internal/queue"
	"github.com/weirgate/weir/internal/spend"
)

// used is what a call cost the limits: the upstream's figures, else what is
// known to have come. An unknown figure leaves what was reserved: else whoever
// hangs up before an answer that is not streamed would pay nothing for it.
func used(rec *call.Record) (input, output call.Count) {
	input, output = rec.Input, rec.Output
	if rec.Stream && (rec.UsageSource == call.UsagePartial || !output.IsKnown()) {
		// The running figure of a stream that broke off may lag behind its events.
		output = call.Known(max(output.Or(0), rec.ContentEvents.Or(0)))
	}
	if rec.UsageSource != call.UsageNone {
		return input, output
	}
	if rec.Outcome == call.UpstreamError && rec.Status >= 400 {
		return call.Known(0), call.Known(0) // the upstream refused, and read nothing
	}
	return input, output
}

// estimateOutput says how many tokens must have been written at least, where the
// upstream did not say: each content-bearing event carries one or more.
func estimateOutput(rec *call.Record) call.Count {
	if rec.Output.IsKnown() && rec.UsageSource != call.UsagePartial {
		return call.Count{}
	}
	return rec.ContentEvents
}

// settle closes the call's accounts.
func (c *Call) settle(rec *call.Record) {
	a, e := c.options.Admission, c.entry
	rec.Admission = e.facts
	switch {
	case e.refused != nil:
		rec.RefusedBy = e.refused.by
	case !e.left && !c.probe:
		if c.dialect.WritesTokens() {
			rec.EstimatedOutput = estimateOutput(rec)
		}
		c.learn(rec)
	}
	if !rec.Instants.Sent.IsKnown() && (c.tap.status == 0 || c.tap.status == meter.StatusClientClosed) {
		e.ticket.Cancel() // it never got out whole, so nobody has worked on it
		e.slot.Settle(queue.Tokens{})
	} else {
		input, output := used(rec)
		e.ticket.Settle(input, output)
		if rec.Outcome == call.UpstreamError && output.Or(0) == 0 {
			// It used nothing, but it held its place: free, its key would be
			// served before all others, and fail again.
			input, output = call.Known(e.input), call.Known(min(e.output, DefaultOutput))
		}
		e.slot.Settle(queue.Tokens{Input: input.Or(e.input), Output: output.Or(e.output)})
	}
	e.slot.Release()
	if a.Ledger != nil && !e.unknownCaller() && !c.probe {
		a.Ledger.End(rec)
	}
	if a.Budgets != nil && e.caller != nil && e.caller.Budget != nil {
		a.Budgets.Add(e.caller, rec.Model, rec.Time, spend.Used(rec))
	}
}

// unknownCaller tells whether the call was refused for want of a key that is
// known: there is nobody to keep books for, and whoever sends such calls must
// not fill them.
func (e *entry) unknownCaller() bool {
	return e != nil && e.refused != nil && e.refused.by == byKey && e.caller == nil
}

// learn takes what the upstream reported into the predictions.
func (c *Call) learn(rec *call.Record) {
	a, e := c.options.Admission, c.entry
	if rec.Outcome == call.Completed {
		a.forecast.learn(rec.TTFTUpstream)
	}
	if a.Estimates == nil || rec.UsageSource != call.UsageReported && rec.UsageSource != call.UsageTimings {
		return
	}
	if n, known := rec.Input.Get(); known && e.seen {
		a.Estimates.Learn(rec.Model, rec.Key, &e.features, n)
	}
	if n, known := rec.Output.Get(); known && rec.Outcome == call.Completed && c.dialect.WritesTokens() {
		a.Estimates.LearnOutput(rec.Model, rec.Key, n/max(c.wants.N.Or(1), 1))
	}
}

// leaveEntry gives back whatever the call still holds, on every path, a fault
// in settle included.
func (c *Call) leaveEntry() {
	e := c.entry
	if e == nil {
		return
	}
	e.ticket.Settle(call.Count{}, call.Count{})
	e.slot.Release()
	c.entry = nil
	*e = entry{}
	entries.Put(e)
}

// charge tells the limits what the stream has written so far.
func (c *Call) charge() {
	c.entry.ticket.Charge(c.meter.ContentEvents())
}

// tellLimits tells the client how its limits stand, where they are enforced and
// the upstream tells of none.
func (c *Call) tellLimits(h http.Header) {
	a := c.options.Admission
	if a.Limits != nil && a.Limits.Mode() == limit.Enforce {
		var space [4]window
		c.dialect.LimitHeaders(h, time.Now(), windows(space[:0], c.entry.ticket.Standing()))
	}
}
