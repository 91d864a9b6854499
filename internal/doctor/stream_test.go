package doctor

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/sim"
)

// script is an engine whose first call goes well and whose others have a fault.
func script(t *testing.T, fault string) string {
	t.Helper()
	cfg := quick(sim.VLLM)
	cfg.FaultScript = first(1, fault)
	return engineAt(t, cfg)
}

// streaming is an engine whose streams a function handles.
func streaming(t *testing.T, cfg sim.Config, stream func(w http.ResponseWriter, r *http.Request, engine http.Handler)) string {
	t.Helper()
	engine := start(t, cfg)
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if r.Method == http.MethodPost && bytes.Contains(body, []byte(`"stream":true`)) {
			stream(w, r, engine)
			return
		}
		engine.ServeHTTP(w, r)
	})) + "/v1"
}

// fixed answers every stream with some text.
func fixed(kind, body string) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, body)
	}
}

func TestStreamFaults(t *testing.T) {
	chunk := `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n"
	end := `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	simple := quick(sim.VLLM)
	for _, c := range []struct {
		name, base string
		level      Level
		parts      []string
	}{
		{"error in it", script(t, "error:5"), Red, []string{"carries an error", "engine's log"}},
		{"no end", script(t, "truncate:5"), Red, []string{"ends without its end", "[DONE]"}},
		{"breaks off", script(t, "abort:5"), Red, []string{"breaks off", "time-out"}},
		{"refused", script(t, "status:400"), Red, []string{"200 to a call, but 400"}},
		{"in one piece", streaming(t, simple, fixed("application/json", `{"object":"chat.completion","choices":[{"index":0,"message":{"content":"a b"},"finish_reason":"stop"}]}`)), Red,
			[]string{"does not stream", "in one piece, as application/json", "member stream"}},
		{"empty", streaming(t, simple, fixed("text/event-stream", "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\n"+end)), Red, []string{"is empty", "--model"}},
		{"another API's", streaming(t, simple, fixed("text/event-stream", "event: ping\ndata: {\"x\":1}\n\ndata: {\"y\":1}\n\n")), Red, []string{"not one of the chat API", "--api"}},
		{"as plain text", streaming(t, simple, fixed("text/plain", chunk+chunk+end)), Yellow, []string{"Content-Type is text/plain", "text/event-stream"}},
		{"bad JSON", streaming(t, simple, fixed("text/event-stream", chunk+"data: {\"choices\n\n"+chunk+end)), Yellow, []string{"1 are not proper JSON", "writes into its streams"}},
		{"a long event", streaming(t, simple, fixed("text/event-stream", chunk+"data: {\"x\":\""+strings.Repeat("y", 1<<20)+"\"}\n\n"+end)), Yellow, []string{"more than 1 MiB", "logprobs"}},
		{"out of sight", streaming(t, simple, fixed("text/event-stream", `data: {"choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":"length"}],"usage":{"prompt_tokens":9,"completion_tokens":16}}`+"\n\ndata: [DONE]\n\n")), Green,
			[]string{"16 tokens show nothing"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			findings := run(t, of(c.base))
			want(t, findings, "answer", Green)
			want(t, findings, "stream", c.level, c.parts...)
			if c.level == Red {
				want(t, findings, "buffering", Grey, "not checked because "+find(t, findings, "stream").Title)
				want(t, findings, "flags", Grey, "not checked because")
			}
		})
	}
}

func TestStreamHangs(t *testing.T) {
	cfg := of(script(t, "hang:3"))
	cfg.Timeout = 500 * time.Millisecond
	findings := run(t, cfg)
	want(t, findings, "stream", Red, "does not end in time", "--timeout")
}
