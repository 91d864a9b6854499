package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/sim"
)

// TestFaults: whatever the engine does wrong is called by its name, and the
// record agrees.
func TestFaults(t *testing.T) {
	cases := []struct {
		fault   string
		kind    Kind
		outcome call.Outcome
	}{
		{"status:500", FailedServer, call.UpstreamError},
		{"status:503", FailedServer, call.UpstreamError},
		{"status:400", FailedRequest, call.UpstreamError},
		{"status:422", FailedRequest, call.UpstreamError},
		{"status:401", FailedAuth, call.UpstreamError},
		{"status:403", FailedAuth, call.UpstreamError},
		{"status:404", FailedNotFound, call.UpstreamError},
		{"refuse:2", FailedLimit, call.UpstreamError},
		{"error:5", FailedStream, call.StreamError},
		{"error_done:5", FailedStream, call.StreamError},
		{"error:0", FailedStream, call.StreamError},
		{"truncate:5", FailedTruncated, call.Truncated},
		{"abort:5", FailedReset, call.UpstreamError},
		{"abort:0", FailedReset, call.UpstreamError},
		{"hang", FailedTimeout, call.Timeout},
		{"hang:5", FailedTimeout, call.Timeout},
		{"slow:200ms", "", call.Completed},
		{"html", FailedShape, call.Unrecognised},
		{"empty", FailedEmpty, call.Truncated},
		{"bad_json:5", "", call.Completed},
		{"no_usage", "", call.Completed},
		{"big_line:100000", "", call.Completed},
		{"big_line:2000000", "", call.Completed}, // more than is kept of an event
		{"gzip", "", call.Completed},
	}
	for _, k := range sim.FaultKinds {
		kind, _, _ := strings.Cut(k.Kind, ":")
		found := false
		for _, c := range cases {
			found = found || strings.HasPrefix(c.fault, kind)
		}
		if !found {
			t.Errorf("no case for the fault %s", k.Kind)
		}
	}
	for _, quirks := range allQuirks {
		for _, api := range APIs {
			for _, c := range cases {
				t.Run(fmt.Sprintf("%s/%s/%s", quirks, api, c.fault), func(t *testing.T) {
					engine := sim.Config{Quirks: quirks, Fault: c.fault, OutputMin: 20, OutputMax: 20}
					withEngine(t, engine, Config{Timeout: time.Minute}, func(t *testing.T, _ *sim.Engine, client *Client) {
						r := client.Call(t.Context(), api, bodyOf(t, plainAsk(api, 20)), "f", nil)
						if r.Failed != c.kind || r.Record.Outcome != c.outcome {
							t.Fatalf("%q, %s, want %q, %s (%v)", r.Failed, r.Record.Outcome, c.kind, c.outcome, r.Err)
						}
						checkFailure(t, r)
						if c.fault == "hang" && r.End != time.Minute {
							t.Errorf("ended after %v, want a minute", r.End)
						}
					})
				})
			}
		}
	}
}

// checkFailure checks what holds of every reply of a failed call.
func checkFailure(t *testing.T, r Reply) {
	t.Helper()
	if r.Failed == "" {
		if r.Err != nil || r.Body != nil {
			t.Errorf("no failure, and yet %v and %d bytes", r.Err, len(r.Body))
		}
		return
	}
	if r.Err == nil || KindOf(r.Err) != r.Failed {
		t.Fatalf("%q comes with the error %v of kind %q", r.Failed, r.Err, KindOf(r.Err))
	}
	if text := r.Err.Error(); !strings.HasPrefix(text, "POST http") || strings.HasSuffix(text, ": ") || strings.Contains(text, ": :") {
		t.Errorf("the error says %q", text)
	}
	for err := r.Err; err != nil; err = errors.Unwrap(err) {
		shows(t, "the error", err.Error())
	}
	shows(t, "the body", string(r.Body))
	if len(r.Body) > maxFailedBody {
		t.Errorf("%d bytes of the body were kept", len(r.Body))
	}
}

// TestGzipHasNoEvents: a compressed stream is measured, but not event by event.
func TestGzipHasNoEvents(t *testing.T) {
	withEngine(t, sim.Config{Fault: "gzip"}, Config{}, func(t *testing.T, e *sim.Engine, c *Client) {
		r := c.Call(t.Context(), Chat, bodyOf(t, plainAsk(Chat, 10)), "z", nil)
		truth, _ := e.Truth("z")
		if want := call.Lasting(truth.FirstToken.Sub(truth.Received)); r.Record.TTFT != want || len(r.Events) != 0 {
			t.Errorf("TTFT %v, want %v; %d events, want none", r.Record.TTFT, want, len(r.Events))
		}
		if got := r.Header.Get("Content-Encoding"); got != "gzip" {
			t.Errorf("Content-Encoding %q", got)
		}
	})
}

// TestNoUsage: without usage the number of tokens is not known, and not 0.
func TestNoUsage(t *testing.T) {
	withEngine(t, sim.Config{Fault: "no_usage"}, Config{}, func(t *testing.T, _ *sim.Engine, c *Client) {
		r := c.Call(t.Context(), Chat, bodyOf(t, plainAsk(Chat, 10)), "n", nil)
		if r.Record.Output.IsKnown() || r.Record.TPOT.IsKnown() || marked(r.Events, Usage) != 0 || lastOutput(r.Events) != 0 {
			t.Errorf("record %+v, events %v", r.Record.Tokens, r.Events)
		}
	})
}

// TestEmptyAnswers: an answer that is whole and has nothing in it failed.
func TestEmptyAnswers(t *testing.T) {
	const chunk = `data: {"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":%s}]}` + "\n\n"
	cases := []struct {
		name, contentType, body string
		kind                    Kind
	}{
		{"stream", "text/event-stream", fmt.Sprintf(chunk, `"stop"`) + "data: [DONE]\n\n", FailedEmpty},
		{"only its end", "text/event-stream", "data: [DONE]\n\n", FailedEmpty},
		{"no end either", "text/event-stream", fmt.Sprintf(chunk, "null"), FailedTruncated},
		{"whole", "application/json", `{"id":"1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":0}}`, FailedEmpty},
		{"nothing", "application/json", "", FailedEmpty},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			client := handled(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.contentType)
				_, _ = w.Write([]byte(c.body))
			}, Config{})
			r := client.Call(t.Context(), Chat, bodyOf(t, plainAsk(Chat, 5)), "e", nil)
			if r.Failed != c.kind {
				t.Errorf("%q (%s, %v), want %q", r.Failed, r.Record.Outcome, r.Err, c.kind)
			}
			checkFailure(t, r)
		})
	}
}

// TestGivenUp: a context that is done is told from a time-out of ours, before
// the answer, within it, and after its end.
func TestGivenUp(t *testing.T) {
	for _, fault := range []string{"hang", "hang:3"} {
		t.Run(fault, func(t *testing.T) {
			withEngine(t, sim.Config{Fault: fault}, Config{}, func(t *testing.T, _ *sim.Engine, c *Client) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(5*time.Second, cancel)
				r := c.Call(ctx, Chat, bodyOf(t, plainAsk(Chat, 10)), "c", nil)
				if r.Failed != FailedCancelled || r.Record.Outcome != call.ClientGone || r.End != 5*time.Second {
					t.Errorf("%q, %s after %v: %v", r.Failed, r.Record.Outcome, r.End, r.Err)
				}
				if !errors.Is(r.Err, context.Canceled) {
					t.Errorf("the error is %v", r.Err)
				}
				checkFailure(t, r)

				ctx, cancel = context.WithTimeout(t.Context(), 7*time.Second)
				defer cancel()
				r = c.Call(ctx, Chat, bodyOf(t, plainAsk(Chat, 10)), "d", nil)
				if r.Failed != FailedTimeout || r.Record.Outcome != call.Timeout || r.End != 7*time.Second {
					t.Errorf("%q, %s after %v: %v", r.Failed, r.Record.Outcome, r.End, r.Err)
				}
			})
		})
	}
	t.Run("after the end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			client := handled(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = w.Write([]byte(`data: {"choices":[{"index":0,"delta":{"content":"yes"}}]}` + "\n\ndata: [DONE]\n\n"))
				cancel() // the connection stays open
				time.Sleep(time.Second)
			}, Config{})
			r := client.Call(ctx, Chat, bodyOf(t, plainAsk(Chat, 5)), "e", nil)
			time.Sleep(2 * time.Second) // the handler ends
			if r.Failed != "" || r.End != 0 || r.Record.Outcome != call.Completed {
				t.Errorf("%q, %s: %v", r.Failed, r.Record.Outcome, r.Err)
			}
		})
	})
}

// TestRedirect: a redirect is told and not followed.
func TestRedirect(t *testing.T) {
	calls := 0
	client := handled(t, func(w http.ResponseWriter, r *http.Request) {
		calls++
		http.Redirect(w, r, "https://other.test/v1/chat/completions?k="+testKey, http.StatusMovedPermanently)
	}, Config{})
	r := client.Call(t.Context(), Chat, bodyOf(t, plainAsk(Chat, 5)), "r", nil)
	if r.Failed != FailedShape || r.Status != 301 || r.Record.Outcome != call.Unrecognised || calls != 1 {
		t.Errorf("%q, %d, %s, %d calls: %v", r.Failed, r.Status, r.Record.Outcome, calls, r.Err)
	}
	if !strings.Contains(r.Err.Error(), "https://other.test/v1/chat/completions") {
		t.Errorf("the error does not say where to: %v", r.Err)
	}
	checkFailure(t, r)
	shows(t, "the header", r.Header.Get("Location"))
}
