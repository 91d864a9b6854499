package doctor

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/endpoint"
	"github.com/weirgate/weir/internal/sim"
)

// answering is an engine in good health but for calls, which are answered so.
func answering(t *testing.T, call http.HandlerFunc) string {
	t.Helper()
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			call(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"data":[{"id":"m"}]}`)
	})) + "/v1"
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestAnswerFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		call  http.HandlerFunc
		parts []string
	}{
		{"400", says(400, `{"error":{"message":"x","code":"bad_things"}}`), []string{"400", "does not take the request", "bad_things"}},
		{"404", says(404, `{"detail":"Not Found"}`), []string{"does not have the chat API (404)", "--api"}},
		{"413", says(413, ``), []string{"too large", "less than one KiB"}},
		{"500", says(500, `{"error":{"message":"x","type":"InternalServerError"}}`), []string{"500", "InternalServerError", "engine's log"}},
		{"502", says(502, `<html>nginx</html>`), []string{"does not reach it", "start the engine"}},
		{"503", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "20")
			says(503, `{}`)(w, r)
		}, []string{"takes no calls", "wait 20s", "loads its model"}},
		{"504", says(504, ``), []string{"in time", "hangs"}},
		{"529", says(529, `{"type":"error","error":{"type":"overloaded_error"}}`), []string{"overloaded", "status page"}},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://other.example.com/v1/chat/completions", 307)
		}, []string{"redirects (307)", "https://other.example.com/v1"}},
		{"breaks off before", func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }, []string{"closed before an answer", "crash"}},
		{"breaks off within", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "9999")
			_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"content":"a`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, []string{"breaks off", "time-out"}},
		{"garbled", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, `{"choices":[]}`)
		}, []string{"cannot be unpacked", "gzip"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			findings := run(t, of(answering(t, c.call)))
			want(t, findings, "answer", Red, c.parts...)
			want(t, findings, "shape", Grey, "not checked because "+find(t, findings, "answer").Title)
			want(t, findings, "stream", Grey, "not checked because")
			want(t, findings, "keep_alive", Grey, "not checked because")
		})
	}
}

func TestAnswerHangs(t *testing.T) {
	base := answering(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	cfg := of(base)
	cfg.Timeout = 200 * time.Millisecond
	findings := run(t, cfg)
	want(t, findings, "answer", Red, "not answered in time", "--timeout")
	want(t, findings, "stream", Grey, "not checked because")
	want(t, findings, "key", Green) // the list of models was not refused
}

func TestEmptyAnswer(t *testing.T) {
	base := answering(t, says(200, `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"stop"}]}`))
	want(t, run(t, of(base)), "answer", Yellow, "no output", "--model")
	base = answering(t, says(200, `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"length"}],"usage":{"prompt_tokens":9,"completion_tokens":16}}`))
	findings := run(t, of(base))
	want(t, findings, "answer", Green, "16 tokens show nothing")
	want(t, findings, "shape", Green)
}

func TestShapes(t *testing.T) {
	for _, c := range []struct {
		name, body string
		api        endpoint.API
		parts      []string
	}{
		{"web page", "<!doctype html><title>Sign in</title>", "", []string{"a web page", `"choices"`, "reading 'choices'", "address of the API"}},
		{"error", `{"error":{"message":"no credits","code":"no_credits"}}`, "", []string{"status is 200, but the answer is an error", "no_credits", "choices"}},
		{"error of a relay", `{"code":401,"msg":"invalid token"}`, "", []string{"status is 200, but the answer is an error"}},
		{"array", `[{"generated_text":"a"}]`, "", []string{"an array"}},
		{"Ollama", `{"model":"m","message":{"role":"assistant","content":"a"},"done":true}`, "", []string{"Ollama's own API", "/v1 address"}},
		{"stream of Ollama", "{\"model\":\"m\",\"message\":{\"content\":\"a\"},\"done\":false}\n{\"model\":\"m\",\"done\":true}\n", "", []string{"Ollama's own API"}},
		{"Anthropic", `{"type":"message","role":"assistant","content":[{"type":"text","text":"a"}],"usage":{"input_tokens":1,"output_tokens":1}}`, "", []string{"Anthropic's Messages API", "--api"}},
		{"OpenAI, for Anthropic", `{"object":"chat.completion","choices":[{"message":{"content":"a"}}]}`, endpoint.Messages, []string{"the chat API", `"content"`}},
		{"Gemini", `{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`, "", []string{"Gemini"}},
		{"wrapped", `{"code":0,"data":{"choices":[{"message":{"content":"a"}}]}}`, "", []string{"wrapped in another object"}},
		{"stream", "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n", "", []string{"a stream, though none was asked for"}},
		{"other JSON", `{"status":"ok"}`, "", []string{"JSON of another kind"}},
		{"text", `OK`, "", []string{"no JSON"}},
		{"nothing", ``, "", []string{"empty"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := of(answering(t, says(200, c.body)))
			cfg.API = c.api
			findings := run(t, cfg)
			want(t, findings, "shape", Red, c.parts...)
			want(t, findings, "stream", Grey, "not checked because "+find(t, findings, "shape").Title)
		})
	}
}

// TestOwnShapes: every API's own answers pass, those of a simulated engine.
func TestOwnShapes(t *testing.T) {
	base := engineAt(t, quick(sim.VLLM))
	for _, api := range endpoint.APIs {
		t.Run(string(api), func(t *testing.T) {
			t.Parallel()
			cfg := of(base)
			cfg.API = api
			findings := run(t, cfg)
			for _, check := range []string{"answer", "shape", "stream", "buffering", "compression", "keep_alive"} {
				want(t, findings, check, Green)
			}
			if api == endpoint.Responses || api == endpoint.Messages {
				want(t, findings, "usage", Green) // it is part of their streams
			}
		})
	}
}

func FuzzShape(f *testing.F) {
	for _, body := range []string{"", "{}", `{"data":{"data":{}}}`, "[", "null", `{"choices":null}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		shapeOf(body)
		codeOf(body)
		unknownModel(&endpoint.Reply{Status: 404, Body: body})
	})
}

// TestStopped: a doctor that is stopped says so, and waits for nothing.
func TestStopped(t *testing.T) {
	base := engineAt(t, quick(sim.VLLM))
	ctx, cancel := context.WithCancel(t.Context())
	findings := Run(ctx, of(base), func(f Finding) {
		if f.Check == "key" {
			cancel()
		}
	})
	want(t, findings, "key", Green)
	for _, check := range []string{"model", "stream", "gpu"} {
		want(t, findings, check, Grey, "the doctor was stopped")
	}
}

func TestUnanswered(t *testing.T) {
	v := newVisit(of("x"))
	for kind, level := range map[endpoint.Kind]Level{
		endpoint.FailedTimeout: Red, endpoint.FailedReset: Red, endpoint.FailedConnect: Red, endpoint.FailedCancelled: Grey,
	} {
		f := v.unanswered(&endpoint.Reply{Failed: kind})
		f.Check = "answer"
		want(t, []Finding{f}, "answer", level)
	}
}
