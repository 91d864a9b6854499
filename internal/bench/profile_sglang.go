package bench

import (
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/endpoint"
)

// sglangProfile is that of sglang's bench_serving.
type sglangProfile struct{}

func (sglangProfile) read(r *endpoint.Reply) Values {
	v := Values{E2E: ended(r)}
	if !r.Record.Stream {
		return v
	}
	v.TTFT = first(r.Events, endpoint.Text, 0)
	if n := len(r.Events); n > 0 {
		v.E2E = call.Lasting(r.Events[n-1].At)
	}
	if n, ok := output(r); ok {
		v.TPOT = per(v.TTFT, v.E2E, n-1)
	}
	if v.Gaps = sglangGaps(r.Events); v.Gaps == nil {
		v.Gaps = chunkGaps(r.Events, endpoint.Text)
		if v.Gaps != nil {
			v.GapsOf = Chunks
		}
		return v
	}
	v.GapsOf = Tokens
	return v
}

// sglangGaps returns gap/Δtokens, Δ times, for each event with text after the
// first; one that brought no token is passed over and its time falls to the
// next. Nil when an event with text carries no count, or none grew.
func sglangGaps(events []endpoint.Event) []float32 {
	var gaps []float32
	var at time.Duration
	var count, start int32
	for i := range events {
		e := &events[i]
		if e.Mark&endpoint.Text == 0 {
			continue
		}
		if e.Output < 1 {
			return nil
		}
		if count == 0 {
			start = e.Output
		} else {
			n := e.Output - count
			if n == 0 {
				continue
			}
			if n < 0 || e.Output-start > maxTokens {
				return nil
			}
			gaps = spread(gaps, e.At-at, n)
		}
		at, count = e.At, e.Output
	}
	return gaps
}

func (sglangProfile) steps() bool { return false }

func (sglangProfile) says() []string {
	return []string{
		"TTFT: to the first event with text; reasoning and tool calls before it do not count.",
		"TPOT: (E2E − TTFT) / (n − 1), with n the reported output tokens; absent when n is not reported.",
		"Gaps (its ITL): between events with text, divided by the tokens the event brought and counted once per token where the stream carries running counts, else between events. ITL per call: absent.",
		"E2E: to the last event, [DONE] included.",
		"Percentiles interpolate linearly, as ours do.",
	}
}
