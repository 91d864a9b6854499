package dialect

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/weirgate/weir/internal/call"
)

// TestCaptures reads what running engines sent.
func TestCaptures(t *testing.T) {
	known := call.Known
	ms := func(f float64) call.Duration { return call.Milliseconds(f) }
	llama := func(prefill, decode float64) call.Engine {
		return call.Engine{Prefill: ms(prefill), Decode: ms(decode)}
	}
	tests := []struct {
		file, dialect          string
		events, content, first int64
		usage                  call.Usage
		engine                 call.Engine
		finish                 string
		multiple               bool
	}{
		{"llama-chat-stream-n2", "openai.chat", 17, 10, 1, call.Usage{Input: known(16), Output: known(5), Cached: known(0)}, llama(1.557, 2.497), "length", true},
		{"llama-chat-stream-timings", "openai.chat", 14, 8, 3, call.Usage{Input: known(18), Output: known(8), Cached: known(16)}, llama(0.853, 3.381), "length", false},
		{"llama-messages-stream", "anthropic.messages", 13, 8, 2, call.Usage{Input: known(16), Output: known(8), Cached: known(15)}, call.Engine{}, "max_tokens", false},
		{"llama-native-completion-stream", "llamacpp.completion", 7, 6, 0, call.Usage{Input: known(16), Output: known(6), Cached: known(15)}, llama(0.581, 1.135), "limit", false},
		{"llama-responses-stream", "openai.responses", 16, 8, 4, call.Usage{Input: known(16), Output: known(8), Cached: known(15)}, llama(0.582, 1.323), "completed", false},
		{"llama-tools-stream", "openai.chat", 64, 60, 1, call.Usage{Input: known(5), Output: known(60), Cached: known(1)}, llama(0.762, 12.798), "length", false},
		{"llama58-progress-ping", "openai.chat", 26, 20, 3, call.Usage{Input: known(1696), Output: known(20), Cached: known(0)}, llama(1323.091, 84.328), "length", false},
		{"llama58-queue-1", "openai.chat", 304, 300, 1, call.Usage{Input: known(19), Output: known(300), Cached: known(0)}, llama(149.141, 2778.158), "length", false},
		{"sim-chat-stream-contusage", "openai.chat", 8, 4, 1, call.Usage{Input: known(9), Output: known(4), Cached: known(0)}, call.Engine{}, "stop", false},
		{"sim-chat-stream", "openai.chat", 13, 9, 1, call.Usage{Input: known(14), Output: known(9), Cached: known(0)}, call.Engine{}, "stop", false},
		{"sim-messages-stream", "anthropic.messages", 11, 5, 3, call.Usage{Input: known(9), Output: known(5), Cached: known(0), CacheWrite: known(0)}, call.Engine{}, "end_turn", false},
		{"sim-responses-stream", "openai.responses", 11, 3, 4, call.Usage{Input: known(9), Output: known(3)}, call.Engine{}, "completed", false},
		{"sim-tools-stream", "openai.chat", 12, 9, 1, call.Usage{Input: known(7), Output: known(12), Cached: known(0)}, call.Engine{}, "tool_calls", false},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			body := capture(t, tt.file)
			for _, size := range []int{len(body), 1, 100} {
				r := ByName(tt.dialect).NewResponse(nil)
				events(cut(body, size), r.Event)
				r.Close()
				a := r.Answer()
				if a.Events != tt.events || a.ContentEvents != tt.content || a.FirstContent != known(tt.first) || a.ParseErrors != 0 {
					t.Errorf("%d events, %d of content from %s, %d not read", a.Events, a.ContentEvents, show(a.FirstContent), a.ParseErrors)
				}
				if a.Usage != tt.usage || a.UsageSource != call.UsageReported {
					t.Errorf("usage is %+v, %s", a.Usage, a.UsageSource)
				}
				if a.Engine != tt.engine {
					t.Errorf("engine is %+v", a.Engine)
				}
				if a.Finish.First() != tt.finish || !a.Terminated || a.Error != "" || a.MultipleChoices != tt.multiple {
					t.Errorf("finish %q, terminated %t, error %q, multiple %t", a.Finish.First(), a.Terminated, a.Error, a.MultipleChoices)
				}
				if a.ResponseID == "" && tt.dialect != "llamacpp.completion" || a.ResponseModel != "tiny" {
					t.Errorf("id %q, model %q", a.ResponseID, a.ResponseModel)
				}
			}
		})
	}
}

func TestCapturedError(t *testing.T) {
	r := ByName("openai.chat").NewResponse(nil)
	events([][]byte{capture(t, "llama-chat-stream-INBAND-ERROR")}, r.Event)
	r.Close()
	if a := r.Answer(); a.Error != "server_error" || a.ContentEvents != 0 || a.Terminated || a.UsageSource != call.UsageNone {
		t.Errorf("got %+v", a)
	}
}

// capture returns the body of a captured HTTP answer.
func capture(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile("testdata/captures/" + name + ".raw")
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body
}
