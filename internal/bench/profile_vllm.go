package bench

import (
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/endpoint"
)

// vllmProfile is that of `vllm bench serve` with a chat endpoint.
type vllmProfile struct{}

func (vllmProfile) read(r *endpoint.Reply) Values {
	v := Values{E2E: ended(r)}
	if !r.Record.Stream {
		return v
	}
	// Its clock stops at each JSON chunk, the one with usage too, but not at
	// [DONE], which is the only event that is nothing but an end.
	var at time.Duration
	chunks := 0
	for i := range r.Events {
		e := &r.Events[i]
		if e.Mark == endpoint.Done {
			continue
		}
		if e.Mark&endpoint.Choices != 0 {
			if !v.TTFT.IsKnown() {
				v.TTFT = call.Lasting(e.At)
			} else {
				v.Gaps, v.GapsOf = append(v.Gaps, milliseconds(e.At-at)), Chunks
			}
		}
		at = e.At
		chunks++
	}
	if chunks > 0 {
		v.E2E = call.Lasting(at)
	}
	if n, ok := output(r); ok {
		v.TPOT = per(v.TTFT, v.E2E, n-1)
	}
	return v
}

func (vllmProfile) steps() bool { return false }

func (vllmProfile) says() []string {
	return []string{
		"TTFT: to the first chunk with a non-empty choices array; a chunk that only names the role counts, so it may come before any token.",
		"TPOT: (E2E − TTFT) / (n − 1), with n the reported output tokens; the time of the usage chunk is in it. vllm bench counts tokens itself where n is not reported; here TPOT is absent then.",
		"Gaps (its ITL): between chunks, from the one before, whatever it carried, to each chunk with choices after the first. ITL per call: absent.",
		"E2E: to the last JSON chunk, usage included, [DONE] not.",
		"Percentiles interpolate linearly, as ours do.",
	}
}
