package bench

import (
	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/endpoint"
)

// genaiProfile is that of genai-bench.
type genaiProfile struct{}

func (genaiProfile) read(r *endpoint.Reply) Values {
	v := Values{E2E: ended(r)}
	if !r.Record.Stream {
		return v
	}
	events := r.Events
	// Its loop over the stream is left at the terminal event.
	for i := range events {
		if events[i].Mark&endpoint.Done != 0 {
			v.E2E = call.Lasting(events[i].At)
			events = events[:i+1]
			break
		}
	}
	v.TTFT = first(events, endpoint.Text|endpoint.Reasoning, 0)
	if n, ok := output(r); ok {
		v.TPOT = per(v.TTFT, v.E2E, n-1)
	}
	return v
}

func (genaiProfile) steps() bool { return false }

func (genaiProfile) says() []string {
	return []string{
		"TTFT: to the first event with text or reasoning.",
		"TPOT: (E2E − TTFT) / (n − 1), with n the reported output tokens; what comes after the last token is in it. genai-bench counts tokens itself where n is not reported; here TPOT is absent then.",
		"E2E: to the terminal event, or the end of the stream without one. There are no single gaps.",
		"Percentiles interpolate linearly, as ours do.",
	}
}
