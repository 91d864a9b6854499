package endpoint

import (
	"fmt"
	"net/http"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// failed says why a call failed, from its record, why it broke off (kind, ""
// when it did not) and the size of its answer. Only FailedEmpty stands beside a
// record that calls the call completed: the answer was whole, and there was
// nothing in it.
func failed(rec *call.Record, kind Kind, bytes int64) Kind {
	empty := rec.ContentEvents == call.Known(0)
	switch rec.Outcome {
	case call.Completed:
		if empty {
			return FailedEmpty
		}
		return ""
	case call.ClientGone:
		return FailedCancelled
	case call.Timeout:
		return FailedTimeout
	case call.StreamError:
		return FailedStream
	case call.Truncated:
		if bytes == 0 {
			return FailedEmpty
		}
		return FailedTruncated
	case call.UpstreamError:
		if k := KindOfStatus(rec.Status); k != "" {
			return k
		}
		if kind != "" {
			return kind
		}
		return FailedReset
	}
	if k := KindOfStatus(rec.Status); k != "" {
		return k
	}
	return FailedShape
}

// failure puts a failed call in words. An answer's own message is left out: it
// may quote the prompt. The answer stands in Reply.Body.
func (r *reading) failure(err error) error {
	reply, rec := &r.reply, &r.reply.Record
	var what string
	switch status := reply.Status; {
	case status >= 300:
		what = fmt.Sprintf("answered %d %s", status, http.StatusText(status))
		if status >= 400 && rec.Error != "" && rec.Error != fmt.Sprintf("status_%d", status) {
			what += " (" + rec.Error + ")"
		}
		if to := reply.Header.Get("Location"); status < 400 && to != "" {
			what += " to " + to + ", which is not followed since the POST would arrive as a GET"
		}
	case err != nil && reply.Failed != FailedStream: // an error that came before the end counts for more
		what = r.broke(err)
	default:
		what = describe(reply.Failed, rec.Error)
	}
	text := r.client.secret.text("POST " + r.to.url.String() + ": " + what + ": " + hint(reply.Failed))
	return &Failure{Kind: reply.Failed, Text: text, Err: r.client.secret.err(err)}
}

// broke says how a call broke off.
func (r *reading) broke(err error) string {
	after := r.reply.End.Round(time.Millisecond)
	answered := r.reply.Status != 0
	switch r.reply.Failed {
	case FailedTimeout:
		if answered {
			return fmt.Sprintf("the answer was not whole after %v", after)
		}
		return fmt.Sprintf("no answer within %v", after)
	case FailedCancelled:
		return fmt.Sprintf("given up after %v", after)
	case FailedReset:
		if answered {
			return fmt.Sprintf("the connection was lost within the answer (%v)", err)
		}
		return fmt.Sprintf("the connection was lost before an answer came (%v)", err)
	}
	return err.Error()
}

// describe says what was wrong with an answer of status 2xx.
func describe(kind Kind, code string) string {
	switch kind {
	case FailedStream:
		return "the stream carried an error (" + code + ")"
	case FailedTruncated:
		return "the answer ended before its end"
	case FailedEmpty:
		return "the answer has no output in it"
	}
	if code != "" && code != string(kind) {
		return "the answer is not the API's (" + code + ")"
	}
	return "the answer is not the API's"
}
