package doctor

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/weirgate/weir/internal/endpoint"
)

// anthropicVersion is the version of the Messages API that requests are written in.
const anthropicVersion = "2023-06-01"

// The doctor's calls: long enough for a stream to show its manners, short enough
// to cost nothing.
const (
	prompt    = "Count from one to twenty, in words, on one line."
	maxTokens = 16
)

// callOf is what one call asks for beside the prompt.
type callOf struct {
	name   string // the end of its X-Request-Id
	stream bool
	usage  bool // asks for usage in the stream
	gzip   bool // accepts a compressed answer
	tokens int  // 0 is maxTokens
}

// calls are the answers so far, each call made once and when it is wanted.
type calls struct {
	replies map[callOf]*endpoint.Reply
	order   []callOf
	ids     map[callOf]string
	stale   int  // calls that met a closed connection, and were sent again
	strict  bool // the model takes max_completion_tokens only, and no temperature
	model   string
}

// plain is the answer that is not streamed.
func (v *visit) plain(ctx context.Context) *endpoint.Reply {
	return v.reply(ctx, callOf{name: "plain"})
}

// stream is the stream that does not ask for usage.
func (v *visit) stream(ctx context.Context) *endpoint.Reply {
	return v.reply(ctx, callOf{name: "stream", stream: true})
}

// usageStream is the stream that asks for usage. APIs that have no such option
// give the same as stream, which is not sent again.
func (v *visit) usageStream(ctx context.Context) *endpoint.Reply {
	if v.API != endpoint.Chat && v.API != endpoint.Completions {
		return v.stream(ctx)
	}
	return v.reply(ctx, callOf{name: "usage", stream: true, usage: true})
}

// gzipStream is the stream that may come compressed.
func (v *visit) gzipStream(ctx context.Context) *endpoint.Reply {
	return v.reply(ctx, callOf{name: "gzip", stream: true, gzip: true})
}

// ask writes a request.
func (v *visit) ask(c callOf) endpoint.Ask {
	a := endpoint.Ask{API: v.API, Model: v.chosen(), Prompt: prompt, Stream: c.stream, MaxTokens: c.tokens, Usage: c.usage}
	if a.MaxTokens == 0 {
		a.MaxTokens = maxTokens
	}
	if !v.calls.strict {
		zero := 0.0
		a.Temperature = &zero
	} else if v.API == endpoint.Chat {
		a.Extra = map[string]json.RawMessage{"max_tokens": json.RawMessage("null"), "max_completion_tokens": fmt.Appendf(nil, "%d", a.MaxTokens)}
	}
	return a
}

// chosen is the model to call, "" when none is known.
func (v *visit) chosen() string {
	if v.Model == "" && len(v.found.Models) > 0 {
		return v.found.Models[0]
	}
	return v.Model
}

// reply makes a call, or returns the answer that it already had. A call that met
// a connection which the endpoint had closed is sent once more, as Weir does;
// so is one whose parameters a model is too new for.
func (v *visit) reply(ctx context.Context, c callOf) *endpoint.Reply {
	if r := v.calls.replies[c]; r != nil {
		return r
	}
	r := v.call(ctx, c)
	if r.Failed == endpoint.FailedReset && r.Reused && r.Status == 0 {
		v.calls.stale++
		r = v.call(ctx, c)
	}
	if r.Status == http.StatusBadRequest && !v.calls.strict && namesParameter(r.Body) {
		v.calls.strict = true
		r = v.call(ctx, c)
	}
	if v.calls.replies == nil {
		v.calls.replies, v.calls.ids = map[callOf]*endpoint.Reply{}, map[callOf]string{}
	}
	v.calls.replies[c], v.calls.ids[c] = &r, r.Record.RequestID
	v.calls.order = append(v.calls.order, c)
	return &r
}

// namesParameter tells whether an error is about a parameter that newer models
// of OpenAI do not take.
func namesParameter(body []byte) bool {
	return bytes.Contains(body, []byte("max_completion_tokens")) ||
		bytes.Contains(body, []byte("temperature")) && bytes.Contains(body, []byte("unsupported"))
}

// call sends one call.
func (v *visit) call(ctx context.Context, c callOf) endpoint.Reply {
	body, err := v.ask(c).Body()
	if err != nil {
		return endpoint.Reply{Failed: endpoint.FailedRequest, Err: err}
	}
	client := v.http
	if c.gzip {
		client = &http.Client{Transport: asksGzip{v.http.Transport}}
	}
	cfg := endpoint.Config{
		Root: v.root, Key: bareKey(v.Key), HTTP: client, Timeout: v.Timeout, KeepBody: true, KeepReads: true, Header: http.Header{},
	}
	if v.run != "" {
		cfg.Header.Set("X-Weir-Run", v.run)
	}
	sender, err := endpoint.NewClient(cfg)
	if err != nil {
		return endpoint.Reply{Failed: endpoint.FailedRequest, Err: err}
	}
	defer sender.Close()
	return sender.Call(ctx, v.API, body, v.visitID()+"-"+c.name, nil)
}

// visitID tells the calls of this visit from all others.
func (v *visit) visitID() string {
	if v.id == "" {
		var b [6]byte
		_, _ = rand.Read(b[:]) // never fails
		v.id = "doctor-" + hex.EncodeToString(b[:])
	}
	return v.id
}

// asksGzip accepts compressed answers, which an endpoint.Client does not.
type asksGzip struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t asksGzip) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Accept-Encoding", "gzip")
	return t.next.RoundTrip(r)
}

// errorOf reads what an error answer says in fields made for programs. What it
// says for people may quote the request, and is only looked at, never shown.
func errorOf(body []byte) (kind, message string) {
	var outer map[string]json.RawMessage
	if json.Unmarshal(body, &outer) != nil {
		return "", ""
	}
	fields := outer
	var inner map[string]json.RawMessage
	if json.Unmarshal(outer["error"], &inner) == nil && inner != nil {
		fields = inner
	}
	text := func(names ...string) string {
		for _, name := range names {
			var s string
			if json.Unmarshal(fields[name], &s) == nil && s != "" {
				return s
			}
		}
		return ""
	}
	kind = text("code", "type", "status")
	if message = text("message", "msg", "detail"); message == "" {
		var s string
		if json.Unmarshal(outer["error"], &s) == nil {
			message = s // Ollama
		}
	}
	return kind, message
}

// codeOf is an error's code, if it looks like one.
func codeOf(body []byte) string {
	kind, _ := errorOf(body)
	if kind == "" || len(kind) > 40 || strings.ContainsFunc(kind, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '.' && r != '-'
	}) {
		return ""
	}
	return kind
}
