package bench

import (
	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/endpoint"
)

// guideProfile is that of guidellm.
type guideProfile struct{}

// delta is what guidellm takes for an iteration, in choice 0.
const delta = endpoint.Text | endpoint.Reasoning | endpoint.Tool

func (guideProfile) read(r *endpoint.Reply) Values {
	v := Values{E2E: ended(r)}
	if !r.Record.Stream {
		return v
	}
	begin, end := first(r.Events, delta, endpoint.First), last(r.Events, delta, endpoint.First)
	v.TTFT = begin
	n, reported := output(r)
	if !reported {
		for i := range r.Events {
			if m := r.Events[i].Mark; m&delta != 0 && m&endpoint.First != 0 {
				n++
			}
		}
	}
	v.TPOT = per(call.Lasting(0), end, n)
	v.ITL = per(begin, end, n-1)
	return v
}

func (guideProfile) steps() bool { return true }

func (guideProfile) says() []string {
	return []string{
		"TTFT: to the first delta of choice 0 with text, reasoning or a tool call.",
		"TPOT: from sending the call to the last such delta, divided by n: the time to the first token is in it. n is the reported output tokens or, without them, the number of deltas.",
		"ITL: (last delta − first delta) / (n − 1), which is our TPOT. There are no single gaps.",
		"E2E: to the end of the stream.",
		"Percentiles are values that occurred, without interpolation.",
	}
}
