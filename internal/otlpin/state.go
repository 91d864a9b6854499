package otlpin

import "github.com/weirgate/weir/internal/call"

// JoinCounts are a Joiner's totals since its start.
type JoinCounts struct {
	// Tracked is the calls that waited or wait for a span, Untracked those for
	// which there was no room, or no trace id.
	Tracked   int64 `json:"tracked"`
	Untracked int64 `json:"untracked"`
	// Joined is the calls that got a span, Unjoined those that ended without one.
	Joined   int64 `json:"joined"`
	Unjoined int64 `json:"unjoined"`
	// EngineSpans is the spans with an engine's figures in tracked traces. Those of
	// other traces are not looked into.
	EngineSpans int64 `json:"engine_spans"`
	// Foreign is the spans, of whatever kind, of traces that no call is tracked in.
	Foreign int64 `json:"foreign"`
	// Late is the spans of requests that came after the join window of their call had closed.
	Late int64 `json:"late"`
	// Ambiguous is the spans of requests that belong to one of several calls of a trace,
	// and do not show which, or came when all of these had ended.
	Ambiguous int64 `json:"ambiguous"`
	// Duplicate is the engine spans that came again.
	Duplicate int64 `json:"duplicate"`
	// Further is the spans of further requests of one call: several choices or
	// prompts, or a call that was sent twice.
	Further int64 `json:"further"`
	// Overflow is the engine spans that were not kept because too many were.
	Overflow int64 `json:"overflow"`
	// Panics is the deliveries that panicked: a mistake in the program.
	Panics int64 `json:"panics,omitempty"`
}

// JoinState is a Joiner at one moment.
type JoinState struct {
	JoinCounts
	// Open is the calls that run or wait for their span.
	Open int `json:"open"`
	// Window is how long after its end a call waits.
	Window call.Duration `json:"window_ms"`
	// Latest is by how much the latest of the late spans missed the window; unknown while
	// there is none. A window longer by this would have joined all of them.
	Latest call.Duration `json:"latest_late_ms,omitzero"`
}

// State tells what the Joiner did and holds.
func (j *Joiner) State() JoinState {
	if j == nil {
		return JoinState{}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	s := JoinState{JoinCounts: j.count, Open: j.open, Window: call.Lasting(j.window)}
	if j.count.Late > 0 {
		s.Latest = call.Lasting(j.latest)
	}
	return s
}

// State is a Receiver at one moment, with the Joiner's part.
type State struct {
	// Batches is the export requests that were taken, Spans the spans in them.
	Batches int64 `json:"batches"`
	Spans   int64 `json:"spans"`
	// Malformed is the requests that could not be read as OTLP, Refused those that
	// were too large, of an unknown encoding, broke off, or came when too many did.
	Malformed int64 `json:"malformed_batches"`
	Refused   int64 `json:"refused_batches"`
	// Panics is the requests whose reading panicked: a mistake in the program.
	Panics int64 `json:"panics,omitempty"`
	// Join is what became of the spans; zero without a Joiner.
	Join JoinState `json:"join"`
	// Forward is what goes on to the collector; nil when nothing does.
	Forward *ForwardState `json:"forward,omitempty"`
}

// State tells what the Receiver did and holds.
func (r *Receiver) State() State {
	r.mu.Lock()
	forwarder := r.forwarder
	r.mu.Unlock()
	return State{
		Batches: r.count.batches.Load(), Spans: r.count.spans.Load(),
		Malformed: r.count.malformed.Load(), Refused: r.count.refused.Load(), Panics: r.count.panics.Load(),
		Join: r.options.Joiner.State(), Forward: forwarder.state(),
	}
}
