package doctor

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/endpoint"
)

// checkAnswer looks at the answer that is not streamed, as far as its status and
// its end go; its shape is looked at next.
func checkAnswer(ctx context.Context, v *visit) Finding {
	r := v.plain(ctx)
	if r.Status == 0 {
		return v.unanswered(r)
	}
	if r.Status >= http.StatusBadRequest {
		return v.badStatus(r)
	}
	if r.Status >= http.StatusMultipleChoices {
		return red(fmt.Sprintf("the API redirects (%d)", r.Status), "To "+v.foreign(rootOf(r.Header.Get("Location")))+".",
			"use that address if it is yours: clients do not follow a redirect of a POST")
	}
	if !unpacks(r) {
		return red("the answer cannot be unpacked", "Its Content-Encoding is "+v.foreign(r.Header.Get("Content-Encoding"))+".",
			"let whatever compresses answers do it as it says, or leave it")
	}
	failed := r.Failed
	if failed == endpoint.FailedTruncated && shapeOf(r.Body) != "text" {
		failed = "" // it is whole, and something else: the next check says what
	}
	switch failed {
	case endpoint.FailedReset, endpoint.FailedTruncated:
		return red("the answer breaks off", "It was announced as longer than what came.", "look for a limit of size or a time-out of what stands between here and the engine, and see the engine's log")
	case endpoint.FailedTimeout:
		return red("the answer did not end in time", fmt.Sprintf("%d tokens were asked for, and %s waited for.", maxTokens, v.Timeout),
			"see whether the engine is overloaded; --timeout gives it more")
	case endpoint.FailedEmpty:
		if n, known := r.Record.Output.Get(); known && n > 0 {
			return green("the endpoint answers", fmt.Sprintf("Its %d tokens show nothing: such a model thinks first, out of sight.", n))
		}
		if shapeOf(r.Body) == shapeOwn[v.API] {
			return yellow("the answer has no output in it", "Its shape is right, and its text is empty.", "see the engine's log, and name another model (--model)")
		}
	}
	return green("the endpoint answers, in " + shortMS(r.End))
}

// unpacks tells whether an answer's compression can be undone.
func unpacks(r *endpoint.Reply) bool {
	return !slices.Contains(r.Record.Degraded, call.InflateFailed) && !slices.Contains(r.Record.Degraded, call.EncodingUnknown)
}

// unanswered is a call without an answer.
func (v *visit) unanswered(r *endpoint.Reply) Finding {
	switch r.Failed {
	case endpoint.FailedTimeout:
		return red("the call was not answered in time", fmt.Sprintf("%d tokens were asked for, and %s waited for.", maxTokens, v.Timeout),
			"see whether the engine hangs, loads its model or has a long queue; --timeout gives it more")
	case endpoint.FailedCancelled:
		return grey("not checked because the doctor was stopped")
	case endpoint.FailedReset:
		return red("the connection was closed before an answer", "The request had been sent, over a fresh connection.",
			"see the log of the engine, or of what stands before it, for a crash or a refusal")
	}
	return red("the call could not be sent", "", "run the doctor again; the endpoint could be reached a moment ago")
}

// badStatus is an answer of status 400 or more, other than those that the key,
// the model and the limits account for.
func (v *visit) badStatus(r *endpoint.Reply) Finding {
	code := ""
	if c := v.foreign(codeOf(r.Body)); c != "" {
		code = "Its code is " + c + "."
	}
	title := fmt.Sprintf("the endpoint answers %d", r.Status)
	switch r.Status {
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return red(fmt.Sprintf("the endpoint does not have the %s API (%d)", v.API, r.Status), code, "choose another with --api; chat is the one that most have")
	case http.StatusRequestEntityTooLarge:
		return red(title+": the request is too large", code, "raise the limit of what stands before the engine: the doctor's requests have less than one KiB")
	case http.StatusBadGateway:
		return red(title+": what stands before the engine does not reach it", code, "start the engine, and check the address that the proxy or gateway has of it")
	case http.StatusServiceUnavailable:
		detail := code
		if wait, known := retryAfter(r.Header, v.now()); known {
			detail = sentences(detail, "It asks to wait "+roughly(wait)+".")
		}
		return red(title+": the engine takes no calls", detail, "wait while it loads its model; if it stays so, its queue is full, or nothing stands behind the balancer")
	case http.StatusGatewayTimeout:
		return red(title+": the engine does not answer in time", code, "see whether it hangs or is overloaded; the time-out is that of what stands before it")
	case 529:
		return red(title+": the provider is overloaded", code, "wait, and see the provider's status page")
	}
	if r.Status >= http.StatusInternalServerError {
		return red(title+": the server fails", code, "see the engine's log for the error; the request is a plain one of "+fmt.Sprint(maxTokens)+" tokens")
	}
	return red(title+": it does not take the request", code, "choose another API (--api) or model (--model): the request is a plain one")
}
