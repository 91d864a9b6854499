package caddymodule

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/call"
)

// received is what an upstream got.
type received struct {
	body    string
	length  int64 // -1 when the request was chunked
	accepts string
}

// likeVLLM reports usage in a stream only to those who ask, as vLLM does.
type likeVLLM struct{ got chan received }

func (u *likeVLLM) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	u.got <- received{string(body), r.ContentLength, r.Header.Get("Accept-Encoding")}
	var asked struct {
		Stream  bool
		Options *struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	_ = json.Unmarshal(body, &asked)
	switch r.Header.Get("X-Way") {
	case "refuse":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, refusesOptions)
		return
	case "compress": // in spite of identity
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, answer+usageEvent+done)
		_ = z.Close()
		return
	}
	if !asked.Stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, whole)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, answer)
	_ = http.NewResponseController(w).Flush()
	if asked.Options != nil && asked.Options.Usage {
		_, _ = io.WriteString(w, usageEvent)
	}
	_, _ = io.WriteString(w, done)
}

const (
	refusesOptions = `{"error":{"message":"unknown field stream_options","type":"invalid_request_error"}}`
	whole          = `{"object":"chat.completion","choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":2}}`
	answer         = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}\n\n" +
		": PROCESSING\n\n" +
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\"},\"finish_reason\":\"stop\"}]}\n\n"
)

var policies = []string{"passthrough", "inject", "inject_and_strip"}

// TestUsagePolicy sends requests under each policy, with a length and chunked,
// over each protocol, and compares what the upstream and the client get.
func TestUsagePolicy(t *testing.T) {
	up := &likeVLLM{got: make(chan received, 1)}
	address := serve(t, up)
	sites := make(map[string]site)
	var config strings.Builder
	for _, policy := range policies {
		sites[policy] = newSite(t)
		config.WriteString(sites[policy].block("weir {\nusage_policy " + policy + "\n}\nreverse_proxy " + address))
	}
	run := start(t, "", config.String())
	for _, s := range sites {
		run.awaitCertificate(s)
	}
	const (
		said   = `{"stream":true,"stream_options":{"include_usage":true},"model":"m","messages":[]}`
		denied = `{"stream":true,"stream_options":{"include_usage":false},"model":"m","messages":[]}`
	)
	const chat = "/v1/chat/completions"
	for name, c := range map[string]struct {
		path, body string
		asks       string // the body that asks for usage; "" when none may be made
		usage      bool   // the upstream reports it without being asked by us
	}{
		"silent":        {chat, `{"model":"m","stream":true,"messages":[]}`, `{"stream_options":{"include_usage":true},"model":"m","stream":true,"messages":[]}`, false},
		"spaced":        {chat, " {\n\t\"model\": \"m\", \"stream\": true, \"messages\": []\n}\n", " {\"stream_options\":{\"include_usage\":true},\n\t\"model\": \"m\", \"stream\": true, \"messages\": []\n}\n", false},
		"null":          {chat, `{"stream":true,"stream_options":null,"messages":[]}`, `{"stream":true,"stream_options":{"include_usage":true},"messages":[]}`, false},
		"empty options": {chat, `{"stream":true,"stream_options":{},"messages":[]}`, `{"stream":true,"stream_options":{"include_usage":true},"messages":[]}`, false},
		"other options": {chat, `{"stream":true,"stream_options":{"x":1},"messages":[]}`, `{"stream":true,"stream_options":{"include_usage":true,"x":1},"messages":[]}`, false},
		"completions":   {"/v1/completions", `{"model":"m","stream":true,"prompt":"x"}`, `{"stream_options":{"include_usage":true},"model":"m","stream":true,"prompt":"x"}`, false},
		"in a string":   {chat, `{"messages":[{"content":"\"stream_options\":{\"include_usage\":false}"}],"stream":true}`, `{"stream_options":{"include_usage":true},"messages":[{"content":"\"stream_options\":{\"include_usage\":false}"}],"stream":true}`, false},
		"nested":        {chat, `{"x":{"stream_options":{"include_usage":false}},"stream":true}`, `{"stream_options":{"include_usage":true},"x":{"stream_options":{"include_usage":false}},"stream":true}`, false},
		"asked":         {chat, said, "", true},
		"denied":        {chat, denied, "", false}, // cases row 30
		"twice":         {chat, `{"stream":true,"stream_options":{},"stream_options":{}}`, "", false},
		"not streaming": {chat, `{"model":"m","stream":false,"messages":[]}`, "", true},
		"no stream":     {chat, `{"model":"m","messages":[]}`, "", true},
		"malformed":     {chat, `{"model":"m","stream":true,"messages":[`, "", true},
		"no object":     {chat, `[true]`, "", true},
		"anthropic":     {"/v1/messages", streaming, "", false},
		"responses":     {"/v1/responses", `{"model":"m","stream":true,"input":"x"}`, "", false},
		"embeddings":    {"/v1/embeddings", `{"model":"m","input":"x"}`, "", true},
	} {
		for _, policy := range policies {
			for _, protocol := range protocols {
				for _, chunked := range []bool{false, true} {
					what := fmt.Sprintf("%s %s %s chunked=%v", name, policy, protocol, chunked)
					r := post(context.Background(), t, sites[policy].url(protocol, c.path), what, c.body)
					if chunked {
						r.ContentLength = -1
						r.Body = io.NopCloser(struct{ io.Reader }{strings.NewReader(c.body)})
					}
					got := fetch(t, sharedClient(t, protocol), r)
					at := await(t, up.got, "request")
					want, edited := c.body, policy != "passthrough" && c.asks != ""
					if edited {
						want = c.asks
					}
					if at.body != want {
						t.Errorf("%s: upstream got\n%s\nwant\n%s", what, at.body, want)
					}
					if length := int64(len(want)); at.length != length && !(chunked && at.length == -1) {
						t.Errorf("%s: Content-Length is %d, the body has %d", what, at.length, length)
					}
					if !strings.Contains(c.path, "/v1/c") {
						continue // what a dialect makes of a foreign answer is not the policy's
					}
					var stream struct{ Stream bool }
					_ = json.Unmarshal([]byte(c.body), &stream)
					body := whole
					if stream.Stream {
						body = answer
						if c.usage || edited && policy == "inject" {
							body += usageEvent
						}
						body += done
					}
					if got.status != 200 || got.body != body {
						t.Errorf("%s: the client got %d\n%s\nwant\n%s", what, got.status, got.body, body)
					}
					rec := run.record(what)
					hidden := slices.Contains(rec.Degraded, call.UsageHidden)
					if knows := rec.UsageSource == call.UsageReported; knows != (c.usage || edited) || knows && rec.Input.Or(-1) != 7 {
						t.Errorf("%s: usage %s %v", what, rec.UsageSource, rec.Usage)
					}
					if want := stream.Stream && !c.usage && !edited && name != "twice"; hidden != want {
						t.Errorf("%s: degraded %v", what, rec.Degraded)
					}
					if n, known := rec.BytesIn.Get(); !known || n != int64(len(c.body)) {
						t.Errorf("%s: %d bytes came in, the client sent %d", what, n, len(c.body))
					}
					if rec.BytesOut != int64(len(got.body)) {
						t.Errorf("%s: %d bytes went out, the client got %d", what, rec.BytesOut, len(got.body))
					}
				}
			}
		}
	}
}

var sharedClients = make(map[string]*http.Client)

// sharedClient is one client a protocol and test, so that a loop does not make
// a connection a call.
func sharedClient(t *testing.T, protocol string) *http.Client {
	key := t.Name() + protocol
	if sharedClients[key] == nil {
		sharedClients[key] = client(t, protocol)
		t.Cleanup(func() { delete(sharedClients, key) })
	}
	return sharedClients[key]
}

// TestUsagePolicyRefused: an upstream that does not know the option, and one
// that compresses although it was asked not to: both answers pass as they are.
func TestUsagePolicyRefused(t *testing.T) {
	up := &likeVLLM{got: make(chan received, 1)}
	address := serve(t, up)
	s := newSite(t)
	run := start(t, "", s.http("weir {\nusage_policy inject_and_strip\n}\nreverse_proxy "+address))
	c := client(t, "http/1.1")
	for _, way := range []string{"refuse", "compress"} {
		r := post(context.Background(), t, s.url("http/1.1", "/v1/chat/completions"), way, streaming)
		r.Header.Set("X-Way", way)
		r.Header.Set("Accept-Encoding", "gzip, br")
		got := fetch(t, c, r)
		if at := await(t, up.got, "request"); at.accepts != "identity" || !strings.Contains(at.body, `"include_usage":true`) {
			t.Errorf("%s: the upstream was asked for %q: %s", way, at.accepts, at.body)
		}
		rec := run.record(way)
		if way == "refuse" {
			if got.status != 400 || got.body != refusesOptions || rec.Outcome != call.UpstreamError || rec.Status != 400 {
				t.Errorf("%d %s, record %s %d", got.status, got.body, rec.Outcome, rec.Status)
			}
			continue
		}
		plain := gunzip(t, way, []byte(got.body))
		if !bytes.Equal(plain, []byte(answer+usageEvent+done)) || rec.Outcome != call.Completed || rec.Input.Or(-1) != 7 {
			t.Errorf("%s: %s, record %+v", way, plain, rec)
		}
	}
}
