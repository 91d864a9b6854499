package endpoint

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/dialect"
	"github.com/weirgate/weir/internal/meter"
)

const benchEvent = `{"id":"chatcmpl-6f9a1b2c3d4e5f60","object":"chat.completion.chunk","created":1720000000,"model":"meta-llama/Llama-3.1-8B-Instruct","choices":[{"index":0,"delta":{"content":" harbour"},"logprobs":null,"finish_reason":null}]`

func BenchmarkLook(b *testing.B) {
	for name, data := range map[string]string{
		"plain":         benchEvent + `}`,
		"running usage": benchEvent + `,"usage":{"prompt_tokens":811,"total_tokens":1023,"completion_tokens":212}}`,
	} {
		event := []byte(data)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				choicesForm.look(nil, event)
			}
		})
		b.Run(name+", by encoding/json", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				slow(event)
			}
		})
	}
	event := []byte(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" harbour"}}`)
	b.Run("messages", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			messagesForm.look(nil, event)
		}
	})
}

// BenchmarkPass reads events one a read, the meter's work included.
func BenchmarkPass(b *testing.B) {
	for name, data := range map[string]string{
		"plain":         benchEvent + `}`,
		"running usage": benchEvent + `,"usage":{"prompt_tokens":811,"total_tokens":1023,"completion_tokens":212}}`,
	} {
		event := []byte("data: " + data + "\n\n")
		b.Run(name, func(b *testing.B) {
			m := meter.New(dialect.ByName("openai.chat"), &call.Request{Stream: true})
			m.Header(200, http.Header{"Content-Type": {"text/event-stream"}})
			p := newPass("openai.chat", m, make([]Event, 0, 1024))
			at := time.Duration(0)
			b.ReportAllocs()
			for b.Loop() {
				at += time.Millisecond
				p.write(event, at)
				p.events = p.events[:len(p.events)%1000]
			}
		})
	}
}

// instant answers every request at once from memory.
type instant string

func (i instant) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: readCloser{strings.NewReader(string(i))}, Request: r, Proto: "HTTP/1.1"}, nil
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

// BenchmarkCall is what a call costs this process beside the transport, for an
// answer of 200 events.
func BenchmarkCall(b *testing.B) {
	answer := strings.Repeat("data: "+benchEvent+"}\n\n", 200) +
		"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":811,\"completion_tokens\":200}}\n\ndata: [DONE]\n\n"
	c, err := NewClient(Config{Root: "http://bench.test/v1", Key: testKey, HTTP: &http.Client{Transport: instant(answer)}})
	if err != nil {
		b.Fatal(err)
	}
	body := bodyOf(b, Ask{API: Chat, Model: "m", Prompt: strings.Repeat("word ", 800), Stream: true, Usage: true, MaxTokens: 200,
		Extra: map[string]json.RawMessage{"seed": raw("1")}})
	var events []Event
	b.ReportAllocs()
	for b.Loop() {
		r := c.Call(b.Context(), Chat, body, "id", events)
		if r.Failed != "" || len(r.Events) != 202 {
			b.Fatal(r.Failed, r.Err, len(r.Events))
		}
		events = r.Events
	}
}
