package doctor

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/endpoint"
)

// checkStream looks at a streamed answer: whether it is one, and whole.
func checkStream(ctx context.Context, v *visit) Finding {
	r := v.stream(ctx)
	rec := &r.Record
	kind := v.foreign(r.Header.Get("Content-Type"))
	switch {
	case r.Status == 0:
		return v.unanswered(r)
	case r.Status == http.StatusTooManyRequests:
		v.block("stream", "the endpoint answers 429")
		return grey("not checked because the endpoint answers 429")
	case r.Status != http.StatusOK:
		return red(fmt.Sprintf("the endpoint answers 200 to a call, but %d to one that streams", r.Status), "",
			"see whether engine and model can stream, and whether what stands before them lets it pass")
	case !rec.Stream:
		return red("the endpoint does not stream", "Asked to, it answered in one piece, as "+kind+".",
			"see whether what stands before the engine takes the member stream out of requests, or gathers answers")
	}
	switch r.Failed {
	case endpoint.FailedStream:
		code := ""
		if rec.Error != "" {
			code = "Its code is " + v.foreign(rec.Error) + "."
		}
		return red("the stream carries an error", code, "see the engine's log")
	case endpoint.FailedTruncated:
		return red("the stream ends without its end", "The API's last event did not come ("+endOf[v.API]+").",
			"see the engine's log, and look for a time-out or a limit of size on the way")
	case endpoint.FailedReset:
		return red("the stream breaks off", "The connection was lost in the middle.", "see the engine's log, and look for a time-out of what stands on the way")
	case endpoint.FailedTimeout:
		return red("the stream does not end in time", fmt.Sprintf("%s were waited for.", v.Timeout), "see whether the engine hangs or is overloaded; --timeout gives it more")
	case endpoint.FailedShape:
		return red("the stream is not one of the "+string(v.API)+" API", "Its events have nothing in them that a client reads.", "check --api and what stands before the engine")
	case endpoint.FailedEmpty:
		if n, known := rec.Output.Get(); known && n > 0 {
			v.block("stream", "the stream shows none of its tokens")
			return green("the endpoint streams", fmt.Sprintf("Its %d tokens show nothing: such a model thinks first, out of sight.", n))
		}
		return red("the stream is empty", "It has a proper end, and no output.", "see the engine's log, and name another model (--model)")
	}
	title := "the endpoint streams"
	if first, known := rec.TTFT.Minus(r.Connected).Get(); known {
		title += ", the first token after " + shortMS(first)
	} else if first, known := rec.TTFT.Get(); known {
		title += ", the first token after " + shortMS(first)
	}
	switch {
	case slices.Contains(rec.Degraded, call.EventTooLong):
		return yellow(title, "It has an event of more than 1 MiB, which is not read.", "see what the engine puts into it (logprobs, token ids)")
	case slices.Contains(rec.Degraded, call.ParseErrors):
		return yellow(title, fmt.Sprintf("Of its events %d are not proper JSON; some clients stop there.", rec.ParseErrors), "see what stands before the engine and writes into its streams")
	case !strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream"):
		return yellow(title, "Its Content-Type is "+kind+"; some proxies and clients treat as a stream nothing but text/event-stream.", "have it sent as text/event-stream")
	}
	return green(title)
}

// endOf is each API's last event.
var endOf = map[endpoint.API]string{
	endpoint.Chat: "data: [DONE]", endpoint.Completions: "data: [DONE]", endpoint.Responses: "response.completed", endpoint.Messages: "message_stop",
}
