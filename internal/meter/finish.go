package meter

import (
	"net/http"
	"strconv"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// Cause is how the call ended as the gateway saw it, whatever the bytes say.
type Cause uint8

const (
	Answered     Cause = iota // the answer was handed over to its end
	ClientLeft                // the client closed the connection or cancelled
	UpstreamLost              // the upstream could not be reached, or broke off
	TimedOut                  // ours or the upstream's time-out
	ReaderCut                 // the client stopped reading, and was cut
	TurnedAway                // refused by our own limits
	ProcessEnds               // cut because the process shuts down
	Fault                     // a panic in a handler
)

// End is what the gateway knows of the end of a call.
type End struct {
	Cause    Cause
	At       time.Duration // when the call ended for the gateway
	Status   int           // as answered to the client, 0 when nothing was
	Error    string        // a short code; "" lets the answer speak
	Instants call.Instants // those that the gateway knows: BodyRead, Admitted, Sent, FirstByte
	// Short is whether the client has less of the body than its header announced.
	Short bool
	RTT   call.Duration // round trip of the upstream connection
	// UsageOnRequest is whether the upstream reports usage only to those who
	// ask, and the client did not.
	UsageOnRequest bool
}

// Finish closes the meter and fills in what it knows of rec: identity of the
// answer, result, tokens, timing, phases, engine figures and instants.
func (m *Meter) Finish(rec *call.Record, e End) {
	m.close()
	m.fill(rec, e)
	if !rec.Instants.Ended.IsKnown() { // fill has failed
		rec.Instants = e.Instants
		rec.Instants.Ended = call.Lasting(e.At)
		rec.Phases, rec.PhaseSources, _ = call.Split(call.Timeline{Instants: rec.Instants})
	}
	rec.BytesOut = m.bytes
	rec.Degraded = m.degraded
}

// fill is Finish but for what is known even after a fault in it.
func (m *Meter) fill(rec *call.Record, e End) {
	rec.Status, rec.Outcome, rec.Error = e.Status, call.InternalError, "meter_fault"
	rec.UsageSource = call.UsageNone
	defer m.guard()
	m.blocked.Tail += m.blockedSinceToken
	m.blockedSinceToken = 0
	a := m.answer.Answer()
	streamed := m.streamed()

	rec.ResponseID, rec.ResponseModel = a.ResponseID, a.ResponseModel
	rec.Stream = streamed
	rec.Terminated = a.Terminated
	rec.FinishReason = a.Finish
	rec.Outcome, rec.Error = m.outcome(a, e)
	m.tokens(rec, a)
	m.timing(rec, a, e, streamed)
	if a.ParseErrors > 0 {
		m.degraded.add(call.ParseErrors)
	}
	if e.UsageOnRequest && streamed && !m.off && !m.undecodable && rec.Outcome == call.Completed && rec.UsageSource == call.UsageNone {
		m.degraded.add(call.UsageHidden)
	}
	rec.Engine = a.Engine
	rec.Gaps = m.gaps
}

// StatusClientClosed is what proxies note for a client that left before an answer.
const StatusClientClosed = 499

// outcome decides how the call ended. What the gateway itself did or saw comes
// first, then errors in the answer, then whether the answer was whole.
func (m *Meter) outcome(a *call.Answer, e End) (call.Outcome, string) {
	code := func(fallback string) string {
		switch {
		case e.Error != "":
			return e.Error
		case a.Error != "":
			return a.Error
		}
		return fallback
	}
	whole := a.Terminated || (m.finished || !a.Finish.IsZero()) && !a.Usage.IsZero()
	switch e.Cause {
	case TurnedAway:
		return call.Refused, code("refused")
	case Fault:
		return call.InternalError, code("panic")
	case ReaderCut:
		return call.ReaderStalled, code("reader_stalled")
	}
	if a.Error != "" && m.status < 400 && m.status != 0 {
		return call.StreamError, a.Error
	}
	if a.Terminated && m.status < 400 && !e.Short {
		return call.Completed, ""
	}
	switch e.Cause {
	case ClientLeft:
		// A client that has its error answer may close before the handler has
		// returned. 499 is no answer but the server's own note of a client that
		// left.
		if m.status < 400 || m.status == StatusClientClosed && !e.Instants.FirstByte.IsKnown() {
			return call.ClientGone, ""
		}
	case ProcessEnds:
		return call.GatewayShutdown, code("gateway_shutdown")
	case TimedOut:
		return call.Timeout, code("timeout")
	}
	switch {
	case e.Status >= 400 || m.status >= 400:
		return call.UpstreamError, code("status_" + strconv.Itoa(max(e.Status, m.status)))
	case e.Cause == UpstreamLost:
		return call.UpstreamError, code("connection_lost")
	case m.status == 0:
		return call.UpstreamError, code("no_answer")
	case m.undecodable || m.off:
		// Nothing can be said against an answer that could not be read.
		return call.Completed, ""
	case m.framing == audioStream, whole:
		return call.Completed, ""
	case m.status >= 300, m.status == http.StatusNoContent:
		return call.Unrecognised, "status_" + strconv.Itoa(m.status) // whole, and no dialect's answer
	case m.framing == foreign, !a.Recognised && m.complete(a):
		return call.Unrecognised, "unrecognised"
	}
	return call.Truncated, "truncated"
}

// complete tells whether the answer carried whole events or a whole document,
// so that not recognising any of it means that it is something else.
func (m *Meter) complete(a *call.Answer) bool {
	if m.framing == document {
		return a.Events > 0 && a.ParseErrors == 0 && m.answer.BodyWhole()
	}
	return a.Events > a.ParseErrors
}

func (m *Meter) tokens(rec *call.Record, a *call.Answer) {
	rec.Usage = a.Usage
	rec.UsageSource = a.UsageSource
	if rec.UsageSource == "" {
		rec.UsageSource = call.UsageNone
	}
	rec.ParseErrors = a.ParseErrors
	if m.status == 0 || m.off || m.undecodable {
		return // nothing was read, or not all of it: not 0 events
	}
	if m.framing == audioStream {
		rec.ContentEvents = call.Known(m.rawEvents)
		rec.FirstContentEvent = call.Known(0)
		return
	}
	rec.ContentEvents = call.Known(a.ContentEvents)
	rec.FirstContentEvent = a.FirstContent
}

// timing computes the numbers of the call from its instants.
func (m *Meter) timing(rec *call.Record, a *call.Answer, e End, streamed bool) {
	at := e.Instants
	at.FirstToken, at.FirstVisible, at.LastToken = m.firstToken, m.firstVisible, m.lastToken
	ended := e.At
	if m.wrote && (e.Cause == Answered || rec.Outcome == call.Completed) {
		ended = m.delivered
	}
	at.Ended = call.Lasting(ended)

	rec.TTFT = at.FirstToken
	rec.TTFTUpstream = at.FirstToken.Minus(at.Sent)
	rec.TTFTVisible = at.FirstVisible
	rec.TTFB = at.FirstByte
	rec.UpstreamRTT = e.RTT
	if rec.Outcome != call.ClientGone {
		rec.E2E = at.Ended
	}
	rec.TPOT = m.tpot(a, streamed)
	rec.ICLP50, rec.ICLMax = m.gaps.Quantile(0.5), m.gaps.Max()

	var clamped bool
	rec.Phases, rec.PhaseSources, clamped = call.Split(call.Timeline{
		Instants: at, Blocked: m.blocked, Engine: a.Engine, UpstreamRTT: e.RTT, Streamed: streamed,
	})
	if clamped {
		m.degraded.add(call.PhaseClamped)
	}
	rec.Instants = at
}

// tpot is (last token − first token) / (n − 1), n being the upstream's own
// final figure for one choice. A running figure of a stream that broke off does
// not say how many tokens lay between the two instants.
func (m *Meter) tpot(a *call.Answer, streamed bool) call.Duration {
	n, known := a.Usage.Output.Get()
	span, timed := m.lastToken.Minus(m.firstToken).Get()
	if !known || !timed || n < 2 || !streamed || a.UsageSource == call.UsagePartial ||
		a.MultipleChoices || m.request.N.Or(1) > 1 || m.framing == audioStream {
		return call.Duration{}
	}
	return call.Lasting(span / time.Duration(n-1))
}
