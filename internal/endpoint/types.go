package endpoint

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// API is one way of asking a model for text.
type API string

// The APIs that a client can speak.
const (
	Chat        API = "chat"        // OpenAI chat completions
	Completions API = "completions" // OpenAI completions
	Responses   API = "responses"   // OpenAI Responses
	Messages    API = "messages"    // Anthropic messages
)

// Ask is what a call asks for.
type Ask struct {
	API    API
	Model  string
	System string // "" is none
	Prompt string
	Stream bool
	// MaxTokens bounds the output; 0 says nothing of it, but with Messages,
	// where it must be said, means 1024.
	MaxTokens int
	// IgnoreEOS asks the engine to write MaxTokens tokens whatever it has to
	// say. vLLM, SGLang and llama.cpp know it; others may refuse it.
	IgnoreEOS bool
	// Temperature is absent when nil.
	Temperature *float64
	// Usage asks for usage in a stream, where the API must be asked.
	Usage bool
	// Extra are members to add to the body, or to replace.
	Extra map[string]json.RawMessage
}

// Mark is what one event of a stream carried: a set of the constants below.
type Mark uint8

// What an event may carry. Content is the definition of the gateway, and
// includes all of Text, Reasoning and Tool; the others are there for the
// definitions of other tools.
const (
	Content   Mark = 1 << iota // at least one character of model output
	Text                       // of that, text to be read (content, text)
	Reasoning                  // of that, reasoning or thinking
	Tool                       // of that, tool calls
	Choices                    // a choices array that is not empty (chat, completions), a delta of output (others)
	First                      // choice number 0 is among it; APIs that write one answer have it on each event of output
	Usage                      // usage that is not null
	Done                       // the API's terminal event
)

// Event is one event of a stream.
type Event struct {
	// At is when the read that completed it returned, since the call's start.
	At   time.Duration
	Mark Mark
	// Output is the running count of output tokens, 0 when the event carries none.
	Output int32
}

// Kind says why a call failed, for counting; "" is no failure.
type Kind string

// The kinds of failure.
const (
	FailedDNS       Kind = "dns"             // the name does not resolve
	FailedConnect   Kind = "connect"         // refused or unreachable
	FailedTLS       Kind = "tls"             // no TLS, or a certificate that does not hold
	FailedTimeout   Kind = "timeout"         // ours
	FailedReset     Kind = "connection_lost" // broke off before or within the answer
	FailedCancelled Kind = "cancelled"       // the context was done
	FailedAuth      Kind = "auth"            // 401, 403
	FailedNotFound  Kind = "not_found"       // 404, 405
	FailedLimit     Kind = "rate_limited"    // 429
	FailedRequest   Kind = "bad_request"     // other 4xx
	FailedServer    Kind = "server_error"    // 5xx
	FailedStream    Kind = "stream_error"    // an error inside a 200 answer
	FailedTruncated Kind = "truncated"       // no proper end
	FailedShape     Kind = "unrecognised"    // a 200 answer that is not the API's
	FailedEmpty     Kind = "empty"           // an answer without any output
)

// Reply is what came back of one call.
type Reply struct {
	// Record holds the gateway's figures, taken on this side: received is the
	// instant at which the call was handed to the transport.
	Record call.Record
	// Start is that instant, on the wall and the monotonic clock.
	Start time.Time
	// End is the offset from Start of the last byte of the body, or of the failure.
	End time.Duration
	// Events are a stream's events, in order. The slice belongs to the caller of
	// Call, who may give it back with the next one. An answer that came compressed
	// has none, nor has one that is no stream.
	Events []Event
	// Dropped is how many events a stream had beyond the 524,288 that are kept.
	Dropped int
	// Connected is how long name, connection and TLS took; unknown on a
	// connection that had served before.
	Connected call.Duration
	// Reused is whether the connection had served before.
	Reused bool
	// Status and Header are the answer's, 0 and nil without one.
	Status int
	Header http.Header
	// Failed says why the call failed, Err in words. Err is a *Failure and holds
	// neither key nor prompt. Failed and Record.Outcome agree; an answer that was
	// whole and had no output is completed there and FailedEmpty here.
	Failed Kind
	Err    error
	// Body is the beginning of the answer of a call that failed, at most 4 KiB,
	// or of all answers, at most 64 KiB, when the client was made with KeepBody.
	// Where the key stood in it, it says [key].
	Body []byte
	// Reads are the sizes and times of the reads of the body, kept with
	// KeepReads, the first 65,536 of them.
	Reads []Read
}

// Read is one read of a body.
type Read struct {
	At    time.Duration
	Bytes int
}

// Caller sends calls. *Client is one; tests have others.
type Caller interface {
	// Call sends body to the API's URL and reads the answer to its end. id goes
	// out as X-Request-Id. events may be nil; its memory is used for Reply.Events.
	Call(ctx context.Context, api API, body []byte, id string, events []Event) Reply
}
