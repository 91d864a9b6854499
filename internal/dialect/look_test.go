package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/call"
)

func TestByPath(t *testing.T) {
	tests := map[string]string{
		"/v1/chat/completions":                     "openai.chat",
		"/chat/completions":                        "openai.chat",
		"/api/v1/chat/completions":                 "openai.chat",
		"/api/chat/completions":                    "openai.chat",
		"/openai/deployments/gpt/chat/completions": "openai.chat",
		"/a/b/c/d/e/f/g/h/v1/chat/completions":     "openai.chat",
		"/v1/chat/completions/":                    "openai.chat",
		"/v1/completions":                          "openai.completions",
		"/beta/completions":                        "openai.completions llamacpp.completion",
		"/v1/responses":                            "openai.responses",
		"/v1/responses/resp_1":                     "",
		"/v1/embeddings":                           "openai.embeddings",
		"/v1/audio/speech":                         "openai.speech",
		"/v1/audio/transcriptions":                 "openai.transcription",
		"/v1/audio/translations":                   "openai.transcription",
		"/v1/messages":                             "anthropic.messages",
		"/messages":                                "anthropic.messages",
		"/anthropic/v1/messages":                   "anthropic.messages",
		"/v1/messages/count_tokens":                "",
		"/v1/threads/t/messages":                   "",
		"/api/chat":                                "ollama.chat",
		"/ollama/api/chat":                         "ollama.chat",
		"/api/generate":                            "ollama.generate",
		"/api/embed":                               "ollama.embed",
		"/api/embeddings":                          "ollama.embed",
		"/generate":                                "tgi.generate sglang.generate",
		"/generate_stream":                         "tgi.generate_stream",
		"/completion":                              "llamacpp.completion",
		"/infill":                                  "llamacpp.completion",
		"/embedding":                               "llamacpp.embedding",
		"/v1beta/models/g-2:generateContent":       "gemini.native",
		"/v1beta/models/g-2:streamGenerateContent": "gemini.native",
		"/v1beta/models/g-2:countTokens":           "",
		"/v1/projects/p/models/claude@1:streamRawPredict": "openai.chat anthropic.messages",
		"/v2/chat":             "cohere.v2.chat",
		"/v1/rerank":           "cohere.rerank",
		"/v2/rerank":           "cohere.rerank",
		"/rerank":              "cohere.rerank",
		"/":                    "",
		"":                     "",
		"chat":                 "",
		"/mychat/xcompletions": "",
		"/xchat/completions":   "openai.completions llamacpp.completion",
		"/v1/models":           "",
		"/metrics":             "",
		":generateContent":     "",
		"//":                   "",
	}
	for path, want := range tests {
		var got []string
		for _, d := range ByPath(path) {
			got = append(got, d.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s is of %q, want %q", path, got, want)
		}
	}
	var all []string
	for _, d := range ByPath("/invocations") {
		all = append(all, d.Name)
	}
	if len(all) < 6 {
		t.Errorf("/invocations is of %q only", all)
	}
	for path := range tests {
		if n := testing.AllocsPerRun(10, func() { ByPath(path) }); n != 0 {
			t.Errorf("%s: %v allocations", path, n)
		}
	}
}

func TestNames(t *testing.T) {
	names := Names()
	if len(names) < 17 {
		t.Errorf("only %q", names)
	}
	for _, n := range names {
		if d := ByName(n); d == nil || d.Name != n || d.Operation == "" || d.refusal == nil || len(d.paths) == 0 || d.value == nil {
			t.Errorf("%s: %+v", n, d)
		}
	}
	if ByName("openai.chat.json") != nil || ByName("") != nil {
		t.Error("a name that is none")
	}
}

// look runs a body, cut into pieces, through a look.
func look(path, contentType, body string, size int) *Look {
	l := NewLook(ByPath(path), path, "", contentType)
	for _, p := range cut([]byte(body), size) {
		l.Write(bytes.Clone(p))
	}
	return l
}

func TestLook(t *testing.T) {
	const js = "application/json"
	tests := []struct {
		path, body string
		want       string
		req        call.Request
		malformed  bool
	}{
		{"/v1/chat/completions", `{"model":"m1","messages":[{"role":"user","content":"\"stream\":true"}],"stream":true,"max_tokens":64,"n":2,"stream_options":{"include_usage":true}}`,
			"openai.chat", call.Request{Model: "m1", Stream: true, MaxTokens: call.Known(64), N: call.Known(2), IncludeUsage: call.Yes}, false},
		{"/v1/chat/completions", ` {"messages":[],"model":"org\/m","max_completion_tokens":7,"stream_options":{"include_usage":false}} `,
			"openai.chat", call.Request{Model: "org/m", MaxTokens: call.Known(7), IncludeUsage: call.No}, false},
		{"/v1/chat/completions", `{"Model":"x","STREAM":true,"messages":[{"model":"inner","stream":true}],"stream":null}`, "openai.chat", call.Request{}, false},
		{"/v1/chat/completions", `{"model":"a","model":"b","stream":true,"stream":false,"messages":[]}`, "openai.chat", call.Request{Model: "b"}, false},
		{"/v1/chat/completions", `{"model":3,"max_tokens":-1,"n":"x","stream":"true"}`, "openai.chat", call.Request{}, false},
		{"/openai/deployments/gpt-x/chat/completions", `{"messages":[]}`, "openai.chat", call.Request{Model: "gpt-x"}, false},
		{"/openai/deployments/gpt-x/chat/completions", `{"messages":[],"model":"m"}`, "openai.chat", call.Request{Model: "m"}, false},
		{"/v1/chat/completions", ``, "openai.chat", call.Request{}, true},
		{"/v1/chat/completions", `[]`, "openai.chat", call.Request{}, true},
		{"/v1/chat/completions", `"x"`, "openai.chat", call.Request{}, true},
		{"/v1/chat/completions", `{"model":"m1"`, "openai.chat", call.Request{Model: "m1"}, true},
		{"/v1/chat/completions", `{"model":"m1"}}`, "openai.chat", call.Request{Model: "m1"}, true},
		{"/v1/chat/completions", `{"model":"m1",` + strings.Repeat(`"a":[`, 600), "openai.chat", call.Request{Model: "m1"}, true},
		{"/v1/completions", `{"prompt":"p","echo":true,"max_tokens":1}`, "openai.completions", call.Request{Echo: true, Prompt: call.DigestOf([]byte("p")), MaxTokens: call.Known(1)}, false},
		{"/completions", `{"prompt":"p","model":"m"}`, "openai.completions", call.Request{Model: "m"}, false},
		{"/v1/completions", `{"prompt":"p","n":2,"best_of":5}`, "openai.completions", call.Request{N: call.Known(2), BestOf: call.Known(5)}, false},
		{"/v1/chat/completions", `{"messages":[],"max_tokens":9,"max_completion_tokens":4}`, "openai.chat", call.Request{MaxTokens: call.Known(9)}, false},
		{"/completions", `{"prompt":"p","n_predict":8}`, "llamacpp.completion", call.Request{MaxTokens: call.Known(8)}, false},
		{"/v1/responses", `{"model":"m","input":"x","max_output_tokens":5,"stream":true}`, "openai.responses", call.Request{Model: "m", Stream: true, MaxTokens: call.Known(5)}, false},
		{"/v1/audio/speech", `{"model":"m","input":"x","stream_format":"sse"}`, "openai.speech", call.Request{Model: "m", Stream: true}, false},
		{"/v1/audio/speech", `{"model":"m","input":"x","stream_format":"audio"}`, "openai.speech", call.Request{Model: "m"}, false},
		{"/v1/messages", `{"messages":[],"max_tokens":9,"stream":true}`, "anthropic.messages", call.Request{Stream: true, MaxTokens: call.Known(9)}, false},
		{"/api/chat", `{"model":"m","messages":[],"options":{"num_predict":3}}`, "ollama.chat", call.Request{Model: "m", Stream: true, MaxTokens: call.Known(3)}, false},
		{"/api/chat", `{"model":"m","stream":null}`, "ollama.chat", call.Request{Model: "m", Stream: true}, false},
		{"/api/generate", `{"stream":false}`, "ollama.generate", call.Request{}, false},
		{"/api/embed", `{"model":"m","input":"x"}`, "ollama.embed", call.Request{Model: "m"}, false},
		{"/generate", `{"inputs":"x","parameters":{"max_new_tokens":4}}`, "tgi.generate", call.Request{MaxTokens: call.Known(4)}, false},
		{"/generate", `{"text":"x","stream":true,"sampling_params":{"max_new_tokens":4,"n":2}}`, "sglang.generate", call.Request{Stream: true, MaxTokens: call.Known(4), N: call.Known(2)}, false},
		{"/generate", `{"input_ids":[1,2]}`, "sglang.generate", call.Request{}, false},
		{"/generate", `{"what":1}`, "tgi.generate", call.Request{}, true},
		{"/generate_stream", `{"inputs":"x"}`, "tgi.generate_stream", call.Request{Stream: true}, false},
		{"/v1beta/models/g-2.5:streamGenerateContent", `{"contents":[],"generationConfig":{"maxOutputTokens":8,"candidateCount":2}}`, "gemini.native",
			call.Request{Model: "g-2.5", Stream: true, MaxTokens: call.Known(8), N: call.Known(2)}, false},
		{"/v1beta/models/stream-m:generateContent", `{}`, "gemini.native", call.Request{Model: "stream-m"}, false},
		{"/v1/p/publishers/anthropic/models/claude@2:streamRawPredict", `{"anthropic_version":"v","messages":[],"max_tokens":1}`, "anthropic.messages",
			call.Request{Model: "claude@2", Stream: true, MaxTokens: call.Known(1)}, false},
		{"/v1/p/publishers/mistralai/models/m:rawPredict", `{"messages":[]}`, "openai.chat", call.Request{Model: "m"}, false},
		{"/invocations", `{"messages":[]}`, "openai.chat", call.Request{}, false},
		{"/invocations", `{"prompt":"x"}`, "openai.completions", call.Request{}, false},
		{"/invocations", `{"input":"x"}`, "openai.embeddings", call.Request{}, false},
		{"/invocations", `{"inputs":"x"}`, "tgi.generate", call.Request{}, false},
		{"/invocations", `{"text":"x"}`, "sglang.generate", call.Request{}, false},
		{"/invocations", `{"query":"x","documents":[]}`, "cohere.rerank", call.Request{}, false},
		{"/invocations", `{"messages":[],"anthropic_version":"x"}`, "anthropic.messages", call.Request{}, false},
		{"/v1/rerank", `{"model":"m","query":"x"}`, "cohere.rerank", call.Request{Model: "m"}, false},
		{"/v1/audio/transcriptions", `{"model":"m1","stream":true}`, "openai.transcription", call.Request{Model: "m1", Stream: true}, false},
	}
	for _, tt := range tests {
		for _, size := range []int{1 << 20, 1, 5} {
			d, req, malformed := look(tt.path, js, tt.body, size).Done(true)
			if d == nil || d.Name != tt.want || req != tt.req || malformed != tt.malformed {
				t.Errorf("%s %.60s in pieces of %d:\n got %s %+v %t\nwant %s %+v %t", tt.path, tt.body, size, d.Name, req, malformed, tt.want, tt.req, tt.malformed)
			}
		}
	}
}

func TestLookCutOff(t *testing.T) {
	d, req, malformed := look("/v1/chat/completions", "application/json", `{"stream":true,"model":"m1","messages":[{"content":"aa`, 3).Done(false)
	if d.Name != "openai.chat" || req.Model != "m1" || !req.Stream || malformed {
		t.Errorf("got %s %+v %t", d.Name, req, malformed)
	}
	if _, _, malformed := NewLook(ByPath("/generate"), "/generate", "", "").Done(false); malformed {
		t.Error("a body that was not looked at is malformed")
	}
	if d, _, _ := NewLook(nil, "/", "", "").Done(true); d != nil {
		t.Error("a dialect out of nothing")
	}
}

func form1(model, stream string) string {
	return "--b0\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\n" +
		"RIFF\r\n\r\n--b\r\r\n--b\r\r\nmodel\r\n--b0\r\n" +
		"Content-Disposition: form-data; name=\"model\"\r\n\r\n" + model + "\r\n--b0\r\n" +
		"content-disposition: form-data; name=stream\r\n\r\n" + stream + "\r\n--b0--\r\n"
}

func TestLookForm(t *testing.T) {
	const path, kind = "/v1/audio/transcriptions", "multipart/form-data; boundary=b0"
	tests := []struct {
		body      string
		req       call.Request
		malformed bool
	}{
		{form1("whisper\r\n-x", "True"), call.Request{Model: "whisper-x", Stream: true, Multipart: true}, false},
		{form1("w", "0"), call.Request{Model: "w", Multipart: true}, false},
		{form1(strings.Repeat("w", 1000), "1"), call.Request{Model: strings.Repeat("w", call.MaxName), Stream: true, Multipart: true}, false},
		{"preamble\r\n" + form1("w", "1"), call.Request{Model: "w", Stream: true, Multipart: true}, false},
		{form1("w", "1")[:150], call.Request{Multipart: true}, true},
		{"", call.Request{Multipart: true}, true},
		{"--b0--", call.Request{Multipart: true}, false},
		{"--b0x\r\n", call.Request{Multipart: true}, true},
		{"--b0\r\n" + strings.Repeat("x", maxFormHeader+1), call.Request{Multipart: true}, true},
		{"--b0\r\nContent-Disposition: form-data; name=\"model\"; filename=\"m\"\r\n\r\nw\r\n--b0--", call.Request{Multipart: true}, false},
	}
	for _, tt := range tests {
		for _, size := range []int{1 << 20, 1, 2, 3, 7} {
			d, req, malformed := look(path, kind, tt.body, size).Done(true)
			if d.Name != "openai.transcription" || req != tt.req || malformed != tt.malformed {
				t.Errorf("%.50q in pieces of %d: got %+v %t, want %+v %t", tt.body, size, req, malformed, tt.req, tt.malformed)
			}
		}
	}
	for kind, want := range map[string]string{
		`multipart/form-data; boundary="a b"`: "a b", "Multipart/Form-Data;BOUNDARY=x": "x", "multipart/mixed; boundary=x": "",
		"multipart/form-data": "", "application/json": "", "": "", "multipart/form-data; boundary=" + strings.Repeat("x", 71): "",
	} {
		if got := formBoundary(kind); got != want {
			t.Errorf("%s: boundary %q", kind, got)
		}
	}
}

func TestIncludeUsageEdit(t *testing.T) {
	const chat = "/v1/chat/completions"
	tests := []struct{ path, body, want string }{
		{chat, `{"stream":true}`, `{"stream_options":{"include_usage":true},"stream":true}`},
		{chat, " {\n \"model\":\"m\", \"stream\": true}\n", " {\"stream_options\":{\"include_usage\":true},\n \"model\":\"m\", \"stream\": true}\n"},
		{chat, `{"stream_options":null,"stream":true}`, `{"stream_options":{"include_usage":true},"stream":true}`},
		{chat, `{"stream":true,"stream_options": { } }`, `{"stream":true,"stream_options": {"include_usage":true } }`},
		{chat, `{"stream":true,"stream_options":{"x":1}}`, `{"stream":true,"stream_options":{"include_usage":true,"x":1}}`},
		{chat, `{"stream":true,"stream_options":{"include_usage":null,"x":{}}}`, `{"stream":true,"stream_options":{"include_usage":true,"x":{}}}`},
		{chat, `{"stream":true,"messages":[{"stream_options":{"include_usage":false}}]}`, `{"stream_options":{"include_usage":true},"stream":true,"messages":[{"stream_options":{"include_usage":false}}]}`},
		{chat, `{"stream":true,"stream\u005foptions":{"x":1}}`, `{"stream":true,"stream\u005foptions":{"include_usage":true,"x":1}}`},
		{"/v1/completions", `{"stream":true}`, `{"stream_options":{"include_usage":true},"stream":true}`},
		// Left alone: the client's own word, no stream, not clear, not the dialect's.
		{chat, `{"stream":true,"stream_options":{"include_usage":false}}`, ""},
		{chat, `{"stream":true,"stream_options":{"include_usage":true}}`, ""},
		{chat, `{"stream":true,"stream_options":{"include_usage":"no"}}`, ""},
		{chat, `{"stream":true,"stream_options":{"include_usage":{}}}`, ""},
		{chat, `{"stream":true,"stream_options":{"include_usage":false,"include_usage":null}}`, ""},
		{chat, `{"stream":true,"stream_options":[]}`, ""},
		{chat, `{"stream":true,"stream_options":"x"}`, ""},
		{chat, `{"stream":true,"stream_options":{},"stream_options":null}`, ""},
		{chat, `{"stream":false}`, ""},
		{chat, `{}`, ""},
		{chat, `{"stream":true`, ""},
		{chat, `{"stream":true}}`, ""},
		{chat, `[{"stream":true}]`, ""},
		{"/v1/responses", `{"stream":true}`, ""},
		{"/v1/messages", `{"stream":true}`, ""},
		{"/api/chat", `{"stream":true}`, ""},
	}
	for _, tt := range tests {
		for _, size := range []int{1 << 20, 1, 4} {
			l := look(tt.path, "application/json", tt.body, size)
			if _, ok := l.IncludeUsageEdit(); ok {
				t.Errorf("%s: an edit before Done", tt.body)
			}
			l.Done(true)
			edit, ok := l.IncludeUsageEdit()
			if ok != (tt.want != "") {
				t.Errorf("%s in pieces of %d: edit %t", tt.body, size, ok)
				continue
			}
			if !ok {
				continue
			}
			if got := tt.body[:edit.Offset] + edit.Insert + tt.body[edit.Offset+edit.Delete:]; got != tt.want {
				t.Errorf("%s\n got %s\nwant %s", tt.body, got, tt.want)
			}
		}
	}
	l := look(chat, "application/json", `{"stream":true}`, 100)
	l.Done(false)
	if _, ok := l.IncludeUsageEdit(); ok {
		t.Error("an edit of a body that was not read to its end")
	}
}

// FuzzLook: any split, same result; an edit makes a valid body that asks for usage.
func FuzzLook(f *testing.F) {
	f.Add("/v1/chat/completions", []byte(`{"model":"m","stream":true,"stream_options":null}`), 3)
	f.Add("/generate", []byte(`{"text":"x","sampling_params":{"n":2}}`), 1)
	f.Add("/invocations", []byte(`{"prompt":["x"],"echo":true,"stream":true}`), 2)
	f.Fuzz(func(t *testing.T, path string, body []byte, size int) {
		if ByPath(path) == nil {
			path = "/v1/chat/completions"
		}
		whole := look(path, "", string(body), max(1, len(body)))
		d, req, malformed := whole.Done(true)
		for _, n := range []int{1, 1 + max(0, size)%(len(body)+1)} {
			l := look(path, "", string(body), n)
			if d2, req2, malformed2 := l.Done(true); d2 != d || req2 != req || malformed2 != malformed {
				t.Fatalf("pieces of %d: %s %+v %t, whole: %s %+v %t", n, d2.Name, req2, malformed2, d.Name, req, malformed)
			}
		}
		edit, ok := whole.IncludeUsageEdit()
		if !ok || !json.Valid(body) {
			return
		}
		edited := string(body[:edit.Offset]) + edit.Insert + string(body[edit.Offset+edit.Delete:])
		var asks struct {
			Options struct {
				Include bool `json:"include_usage"`
			} `json:"stream_options"`
		}
		var was map[string]json.RawMessage
		if err := json.Unmarshal([]byte(edited), &asks); err != nil && json.Unmarshal(body, &was) == nil {
			t.Fatalf("%s: %v", edited, err)
		}
		l := look(path, "", edited, len(edited))
		if _, req, malformed := l.Done(true); malformed || req.IncludeUsage != call.Yes {
			t.Fatalf("%s became %s, which does not ask", body, edited)
		}
		if _, again := l.IncludeUsageEdit(); again {
			t.Fatalf("%s is to be edited again", edited)
		}
	})
}

func FuzzForm(f *testing.F) {
	f.Add([]byte(form1("w", "true")), 3)
	f.Add([]byte("--b0\r\n\r\n\r\n--b0--"), 1)
	f.Fuzz(func(t *testing.T, body []byte, size int) {
		const path, kind = "/v1/audio/transcriptions", "multipart/form-data; boundary=b0"
		d, req, malformed := look(path, kind, string(body), max(1, len(body))).Done(true)
		for _, n := range []int{1, 1 + max(0, size)%(len(body)+1)} {
			d2, req2, malformed2 := look(path, kind, string(body), n).Done(true)
			if d2 != d || req2 != req || malformed2 != malformed {
				t.Fatalf("pieces of %d: %+v %t, whole: %+v %t", n, req2, malformed2, req, malformed)
			}
		}
	})
}

func TestLookAllocatesOnceBesideNames(t *testing.T) {
	body := []byte(`{"model":"m1","messages":[{"role":"user","content":"` + strings.Repeat("x", 1000) + `"}],"stream":true}`)
	if n := testing.AllocsPerRun(100, func() {
		l := NewLook(ByPath("/v1/chat/completions"), "/v1/chat/completions", "", "application/json")
		l.Write(body)
		l.Done(true)
	}); n > 2 {
		t.Errorf("%v allocations, want the look and the model's name", n)
	}
}

func BenchmarkLook(b *testing.B) {
	for _, size := range []int{1 << 10, 1 << 20} {
		body := []byte(`{"model":"m1","messages":[{"role":"user","content":"` + strings.Repeat("word ", size/5) + `"}],"stream":true}`)
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				l := NewLook(ByPath("/v1/chat/completions"), "/v1/chat/completions", "", "application/json")
				l.Write(body)
				l.Done(true)
			}
		})
	}
}
