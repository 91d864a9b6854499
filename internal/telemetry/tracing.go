package telemetry

import "github.com/weirgate/weir/internal/call"

// JoinState tells what became of the spans that engines send.
type JoinState struct {
	// Joined is the calls that got a span, Unjoined those that waited in vain,
	// Untracked those that could not wait.
	Joined, Unjoined, Untracked int64
	// Late, Ambiguous and Overflow are engines' spans that were not joined: the
	// join window had closed, they do not show whose they are, too many came.
	Late, Ambiguous, Overflow int64
	// Forwarded and ForwardDropped are spans that were passed on to the collector,
	// and that were to be and were not; unknown where none are passed on.
	Forwarded, ForwardDropped call.Count
}

// Spans sets where figures of the export of spans come from, as Live does for
// calls; without an export there should be no source.
func (m *Metrics) Spans(state func() TracerState) {
	if m != nil {
		m.spans.set(state)
	}
}

// Joins does the same for the spans that engines send.
func (m *Metrics) Joins(state func() JoinState) {
	if m != nil {
		m.joins.set(state)
	}
}

func (s sending) spans(t TracerState) {
	s.figure(spansExported, float64(t.Exported))
	s.figure(spansFailed, float64(t.Failed))
	s.figure(spansDropped, float64(t.Dropped))
	s.figure(spansWaiting, float64(t.Waiting))
}

func (s sending) joins(j JoinState) {
	s.figure(spansJoined, float64(j.Joined))
	s.figure(spansUnjoined, float64(j.Unjoined))
	s.figure(spansUntracked, float64(j.Untracked))
	s.figure(spansLate, float64(j.Late))
	s.figure(spansAmbiguous, float64(j.Ambiguous))
	s.figure(spansOverflow, float64(j.Overflow))
	s.count(spansForwarded, j.Forwarded)
	s.count(spansForwardDropped, j.ForwardDropped)
}
