package bench

import (
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/endpoint"
)

// weirProfile is ours: the gateway's own figures, taken on this side.
type weirProfile struct{}

func (weirProfile) read(r *endpoint.Reply) Values {
	v := Values{TTFT: r.Record.TTFT, TPOT: r.Record.TPOT, E2E: r.Record.E2E}
	if !r.Record.Stream {
		return v
	}
	if gaps, ok := tokenGaps(r.Events); ok {
		v.Gaps, v.GapsOf = gaps, Tokens
		v.ITL = mean(gaps)
		return v
	}
	if v.Gaps = chunkGaps(r.Events, endpoint.Content); v.Gaps != nil {
		v.GapsOf = Chunks
	}
	return v
}

func (weirProfile) steps() bool { return false }

func (weirProfile) says() []string {
	return []string{
		"TTFT: from sending the call to the first event that carries at least one character of output (text, reasoning, tool call); absent when the answer is not streamed.",
		"TPOT: (last token − first token) / (n − 1), with n the reported output tokens, reasoning included; absent when n is not reported or below 2.",
		"ITL: the gap between events divided by the tokens the event brought, once per token; absent when the stream carries no running token counts.",
		"Gaps: those of ITL where there are such counts, else between events that carry output (ICL).",
		"E2E: from sending the call to the last byte of the answer.",
		"Percentiles interpolate linearly between samples (type 7, as numpy does).",
	}
}

// chunkGaps returns the gaps between events with one of marks, nil when there
// are fewer than two.
func chunkGaps(events []endpoint.Event, marks endpoint.Mark) []float32 {
	n := 0
	for i := range events {
		if events[i].Mark&marks != 0 {
			n++
		}
	}
	if n < 2 {
		return nil
	}
	gaps, seen, before := make([]float32, 0, n-1), false, time.Duration(0)
	for i := range events {
		e := &events[i]
		if e.Mark&marks == 0 {
			continue
		}
		if seen {
			gaps = append(gaps, milliseconds(e.At-before))
		}
		seen, before = true, e.At
	}
	return gaps
}

// tokenGaps returns one gap for each token after the first event's. It is false
// unless every event with output carries a count that grew: an event that
// brought an unknown number of tokens cannot be divided by it.
func tokenGaps(events []endpoint.Event) ([]float32, bool) {
	var before *endpoint.Event
	var first int32
	for i := range events {
		e := &events[i]
		if e.Mark&endpoint.Content == 0 {
			continue
		}
		if e.Output < 1 || before != nil && e.Output <= before.Output {
			return nil, false
		}
		if before == nil {
			first = e.Output
		}
		before = e
	}
	if before == nil || before.Output == first || before.Output-first > maxTokens {
		return nil, false
	}
	gaps := make([]float32, 0, before.Output-first)
	before = nil
	for i := range events {
		e := &events[i]
		if e.Mark&endpoint.Content == 0 {
			continue
		}
		if before != nil {
			gaps = spread(gaps, e.At-before.At, e.Output-before.Output)
		}
		before = e
	}
	return gaps, true
}

// maxTokens bounds what a count from outside may make us allocate: no answer
// has more tokens.
const maxTokens = 1 << 21

// spread adds a gap that brought n tokens, once per token.
func spread(gaps []float32, gap time.Duration, n int32) []float32 {
	each := float32(float64(gap) / float64(time.Millisecond) / float64(n))
	for range n {
		gaps = append(gaps, each)
	}
	return gaps
}

// mean returns the mean of gaps in milliseconds; unknown without any.
func mean(gaps []float32) call.Duration {
	if len(gaps) == 0 {
		return call.Duration{}
	}
	sum := 0.0
	for _, g := range gaps {
		sum += float64(g)
	}
	return call.Milliseconds(sum / float64(len(gaps)))
}
