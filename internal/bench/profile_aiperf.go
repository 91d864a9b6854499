package bench

import "github.com/weirgate/weir/internal/endpoint"

// aiperfProfile is that of aiperf. It was held against version 0.13.0 with streams
// of text. By its source that version also ends TTFT with the name or the arguments
// of a tool call, and ends E2E with no refusal and no audio.
type aiperfProfile struct{}

func (aiperfProfile) read(r *endpoint.Reply) Values {
	v := Values{E2E: ended(r)}
	if !r.Record.Stream {
		return v
	}
	v.TTFT = first(r.Events, endpoint.Text|endpoint.Reasoning, 0)
	v.E2E = last(r.Events, endpoint.Content|endpoint.Text|endpoint.Reasoning, 0)
	if n, ok := output(r); ok {
		v.ITL = per(v.TTFT, v.E2E, n-1)
	}
	return v
}

func (aiperfProfile) steps() bool { return false }

func (aiperfProfile) says() []string {
	return []string{
		"TTFT: to the first event with text or reasoning. aiperf 0.13.0 takes a tool call as well.",
		"ITL: (E2E − TTFT) / (n − 1), one figure a call. aiperf counts n with its own tokenizer unless told --use-server-token-count; here n is the reported output tokens, and ITL is absent without them. There is no TPOT, and there are no single gaps.",
		"E2E: to the last event with output; what follows it is left out.",
		"Percentiles interpolate linearly, as ours do.",
	}
}
