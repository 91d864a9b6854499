package call

import "time"

// Source says how a phase is known.
type Source string

const (
	Measured     Source = "measured"     // by the gateway's own clock
	FromEngine   Source = "engine"       // reported by the engine for this very call
	Inferred     Source = "inferred"     // follows from what is known
	Unattributed Source = "unattributed" // may hide another phase
)

// Phases partition the time from received to ended, for every outcome: their
// sum is exactly Ended. A phase that did not happen, or cannot be told apart,
// is unknown and its time stands in the phase that contains it.
type Phases struct {
	Upload       Duration `json:"upload_ms,omitzero"`
	QueueGateway Duration `json:"queue_gateway_ms,omitzero"`
	Connect      Duration `json:"connect_ms,omitzero"`
	UpstreamRTT  Duration `json:"upstream_rtt_ms,omitzero"`
	QueueEngine  Duration `json:"queue_engine_ms,omitzero"`
	Frontend     Duration `json:"frontend_ms,omitzero"`
	Prefill      Duration `json:"prefill_ms,omitzero"`
	Engine       Duration `json:"engine_ms,omitzero"`
	Decode       Duration `json:"decode_ms,omitzero"`
	Tail         Duration `json:"tail_ms,omitzero"`
	Delivery     Duration `json:"delivery_ms,omitzero"`
}

// PhaseSources names the Source of each known phase.
type PhaseSources struct {
	Upload       Source `json:"upload,omitempty"`
	QueueGateway Source `json:"queue_gateway,omitempty"`
	Connect      Source `json:"connect,omitempty"`
	UpstreamRTT  Source `json:"upstream_rtt,omitempty"`
	QueueEngine  Source `json:"queue_engine,omitempty"`
	Frontend     Source `json:"frontend,omitempty"`
	Prefill      Source `json:"prefill,omitempty"`
	Engine       Source `json:"engine,omitempty"`
	Decode       Source `json:"decode,omitempty"`
	Tail         Source `json:"tail,omitempty"`
	Delivery     Source `json:"delivery,omitempty"`
}

// IsZero reports PhaseSources that name nothing.
func (s PhaseSources) IsZero() bool { return s == PhaseSources{} }

// IsZero reports Phases of which nothing is known.
func (p Phases) IsZero() bool { return p == Phases{} }

// Sum adds all known phases.
func (p Phases) Sum() time.Duration {
	var sum time.Duration
	for _, d := range []Duration{p.Upload, p.QueueGateway, p.Connect, p.UpstreamRTT, p.QueueEngine,
		p.Frontend, p.Prefill, p.Engine, p.Decode, p.Tail, p.Delivery} {
		sum += d.Or(0)
	}
	return sum
}

// Timeline is what Split needs to know of one call.
type Timeline struct {
	Instants
	Blocked     Blocked
	Engine      Engine
	UpstreamRTT Duration
	// Streamed is whether the answer came as a stream or, without an answer,
	// was asked to.
	Streamed bool
}

// Split partitions received … ended into phases, and tells whether a remainder
// came out negative and had to be taken from prefill, then from the queue
// (clamped). Ended must be known; instants out of order are moved to the
// nearest possible place.
//
// Each phase ends at its next known instant. Time blocked in writes to the
// client is taken out of the phase it falls in and stands under Delivery. What
// lies between sent and the first token (the first byte when the answer is not
// streamed) is divided by what the engine reported: queue and prefill leave the
// rest to the front end; prefill alone leaves the rest to the engine's queue,
// inferred; with neither it is one unattributed span. The definitions are in
// the README.
func Split(t Timeline) (p Phases, src PhaseSources, clamped bool) {
	ended := max(t.Ended.Or(0), 0)
	at := time.Duration(0)
	// until moves the clock to the instant d and returns the time it passed;
	// an unknown instant is passed over and its time goes to the next.
	until := func(d Duration) time.Duration {
		to := min(max(d.Or(ended), at), ended)
		span := to - at
		at = to
		return span
	}

	p.Upload, src.Upload = Lasting(until(t.BodyRead)), Measured
	if !t.BodyRead.IsKnown() {
		return finish(p, src, t, at)
	}
	p.QueueGateway, src.QueueGateway = Lasting(until(t.Admitted)), Measured
	if !t.Admitted.IsKnown() {
		return finish(p, src, t, at)
	}
	sent := t.Sent
	if t.FirstByte.IsKnown() && (!sent.IsKnown() || t.FirstByte.Or(0) < sent.Or(0)) {
		sent = t.FirstByte
	}
	if !sent.IsKnown() && t.FirstToken.IsKnown() {
		sent = t.Admitted // a handler without a connection of its own
	}
	p.Connect, src.Connect = Lasting(until(sent)), Measured
	if !sent.IsKnown() {
		return finish(p, src, t, at)
	}

	answer := t.FirstToken // the end of what the engine did before its answer
	if !t.Streamed {
		answer = t.FirstByte
	}
	wait := until(answer)
	blocked := time.Duration(0)
	if t.Streamed || !answer.IsKnown() {
		// Writes before the first token (a role chunk, a ping) block within
		// the wait; those of an answer that is not streamed come after it.
		blocked = min(max(t.Blocked.BeforeFirstToken, 0), wait)
		wait -= blocked
	}
	clamped = p.split(&src, t, wait)

	delivered := blocked
	if t.Streamed && answer.IsKnown() {
		decode := until(t.LastToken)
		b := min(max(t.Blocked.Decode, 0), decode)
		p.Decode, src.Decode = Lasting(decode-b), Measured
		delivered += b
	}
	if answer.IsKnown() {
		tail := until(t.Ended)
		b := min(max(t.Blocked.Total()-delivered, 0), tail)
		p.Tail, src.Tail = Lasting(tail-b), Measured
		delivered += b
	}
	if t.FirstByte.IsKnown() || delivered > 0 {
		p.Delivery, src.Delivery = Lasting(delivered), Measured
	}
	return p, src, clamped
}

// finish closes a call that broke off before it was sent: the phase it was in
// runs to the end.
func finish(p Phases, src PhaseSources, t Timeline, at time.Duration) (Phases, PhaseSources, bool) {
	rest := max(t.Ended.Or(0), 0) - at
	last := &p.Upload
	if p.Connect.IsKnown() {
		last = &p.Connect
	} else if p.QueueGateway.IsKnown() {
		last = &p.QueueGateway
	}
	blocked := min(max(t.Blocked.Total(), 0), last.Or(0)+rest)
	*last = Lasting(last.Or(0) + rest - blocked)
	if blocked > 0 {
		p.Delivery, src.Delivery = Lasting(blocked), Measured
	}
	return p, src, false
}

// split divides the wait for the answer among round trip, queue, front end and
// prefill (and decode, when the answer is not streamed).
func (p *Phases) split(src *PhaseSources, t Timeline, wait time.Duration) (clamped bool) {
	rest := wait
	take := func(d time.Duration) Duration {
		got := min(max(d, 0), rest)
		clamped = clamped || got != d
		rest -= got
		return Lasting(got)
	}
	queue := t.Engine.Queue.Plus(t.Engine.Load) // a model load counts as queueing
	prefill, decode := t.Engine.Prefill, Duration{}
	if !t.Streamed {
		decode = t.Engine.Decode
	}
	if t.UpstreamRTT.IsKnown() {
		// The kernel's figure is smoothed over many calls: that it is longer than a
		// quick call waited does not contradict anything.
		p.UpstreamRTT, src.UpstreamRTT = take(min(t.UpstreamRTT.Or(0), rest)), Measured
	}
	if !prefill.IsKnown() || (!t.Streamed && !decode.IsKnown()) {
		// Not enough to split what is left.
		if t.Engine.Queue.IsKnown() && queue.IsKnown() {
			p.QueueEngine, src.QueueEngine = take(queue.Or(0)), FromEngine
		}
		if t.Streamed {
			p.Prefill, src.Prefill = Lasting(rest), Unattributed
		} else {
			p.Engine, src.Engine = Lasting(rest), Unattributed
		}
		return clamped
	}
	// A negative remainder is taken from prefill, then from the queue: the
	// queue is served first, so that what is missing falls on the later ones.
	if t.Engine.Queue.IsKnown() {
		p.QueueEngine, src.QueueEngine = take(queue.Or(0)), FromEngine
	}
	p.Prefill, src.Prefill = take(prefill.Or(0)), FromEngine
	if decode.IsKnown() {
		p.Decode, src.Decode = take(decode.Or(0)), FromEngine
	}
	if t.Engine.Queue.IsKnown() {
		p.Frontend, src.Frontend = Lasting(rest), Inferred
	} else {
		p.QueueEngine, src.QueueEngine = Lasting(rest), Inferred
	}
	return clamped
}

// Plus adds two spans. A known one plus an unknown one is the known one.
func (d Duration) Plus(e Duration) Duration {
	return Duration{d.o.plus(e.o)}
}
