package doctor

import (
	"context"
	"net/http"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/endpoint"
	"github.com/weirgate/weir/internal/engine"
)

// checkUsage says whether streams tell the tokens they used, unasked and asked.
func checkUsage(ctx context.Context, v *visit) Finding {
	plain, unasked, asked := v.plain(ctx), v.stream(ctx), v.usageStream(ctx)
	if asked.Status == http.StatusTooManyRequests {
		return grey("not judged because the endpoint answers 429")
	}
	switch {
	case tellsUsage(unasked):
		detail := ""
		if unasked.Record.UsageSource == call.UsageTimings {
			detail = "Unasked it stands in the engine's timings."
		}
		return green("every stream tells the tokens it used", detail)
	case tellsUsage(asked):
		next := "in Weir: usage_policy inject"
		switch v.engineKind() {
		case engine.VLLM:
			next = "start vLLM with --enable-force-include-usage; or " + next
		case "":
			next = "if the engine is vLLM, start it with --enable-force-include-usage; or " + next
		}
		return yellow("streams tell the tokens they used only to those who ask",
			"A client that does not send stream_options.include_usage leaves no figure.", next)
	}
	detail := ""
	if asked.Status >= http.StatusBadRequest {
		detail = "It refuses stream_options."
	}
	level := yellow
	if v.Admin != "" {
		level = red // usage is what a gateway bills and limits by
	}
	v.goOn()
	if tellsUsage(plain) {
		return level("streams do not tell the tokens they used", sentences(detail, "Answers that are not streamed do."),
			"upgrade the engine or ask the provider: without usage, streams can be billed and limited by estimates only")
	}
	return level("no answer tells the tokens it used", detail,
		"see whether what stands before the engine takes usage out; without it, calls can be billed and limited by estimates only")
}

// tellsUsage tells whether an answer reports what it used.
func tellsUsage(r *endpoint.Reply) bool {
	switch r.Record.UsageSource {
	case call.UsageReported, call.UsageTimings:
		return r.Record.Output.IsKnown() && r.Record.Input.IsKnown()
	}
	return false
}
