package dialect

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/weirgate/weir/internal/jsonscan"
)

// hot are two typical events of each dialect's streams, as they follow each
// other in the middle of an answer.
var hot = map[string][2]string{
	"openai.chat": {
		`{"id":"chatcmpl-3MaKZUN0KsMHl1bq0rruyhNPuwH7P6wT","object":"chat.completion.chunk","created":1790000000,"model":"m1","choices":[{"index":0,"delta":{"content":" fox"},"logprobs":null,"finish_reason":null,"token_ids":null}]}`,
		`{"id":"chatcmpl-3MaKZUN0KsMHl1bq0rruyhNPuwH7P6wT","object":"chat.completion.chunk","created":1790000000,"model":"m1","choices":[{"index":0,"delta":{"content":" jumped"},"logprobs":null,"finish_reason":null,"token_ids":null}]}`},
	"openai.chat/padded": {
		`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"m1","service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":" fox"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"qq7"}`,
		`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"m1","service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":" jumped"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"s"}`},
	"openai.chat/usage": {
		`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"m1","choices":[{"index":0,"delta":{"content":" fox"},"finish_reason":null}],"usage":{"prompt_tokens":8,"total_tokens":12,"completion_tokens":4}}`,
		`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"m1","choices":[{"index":0,"delta":{"content":" jumped"},"finish_reason":null}],"usage":{"prompt_tokens":8,"total_tokens":13,"completion_tokens":5}}`},
	"openai.completions": {
		`{"id":"cmpl-1","object":"text_completion","created":1790000000,"model":"m1","choices":[{"index":0,"text":" a","logprobs":null,"finish_reason":null}]}`,
		`{"id":"cmpl-1","object":"text_completion","created":1790000000,"model":"m1","choices":[{"index":0,"text":" bc","logprobs":null,"finish_reason":null}]}`},
	"openai.responses": {
		`{"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_68b1c1f0","output_index":0,"content_index":0,"delta":"Hel","logprobs":[],"obfuscation":"ab"}`,
		`{"type":"response.output_text.delta","sequence_number":5,"item_id":"msg_68b1c1f0","output_index":0,"content_index":0,"delta":"lo","logprobs":[],"obfuscation":"abc"}`},
	"openai.transcription": {`{"type":"transcript.text.delta","delta":"a","logprobs":[]}`, `{"type":"transcript.text.delta","delta":"bc","logprobs":[]}`},
	"openai.speech":        {`{"type":"speech.audio.delta","audio":"AAECAwQF"}`, `{"type":"speech.audio.delta","audio":"AwQFAAECAwQF"}`},
	"anthropic.messages": {
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo \"you\""}}`},
	"ollama.chat": {
		`{"model":"m1","created_at":"2026-11-30T00:00:00.123456Z","message":{"role":"assistant","content":"Yes"},"done":false}`,
		`{"model":"m1","created_at":"2026-11-30T00:00:00.133457Z","message":{"role":"assistant","content":"."},"done":false}`},
	"ollama.generate": {
		`{"model":"m1","created_at":"2026-11-30T00:00:00.123456Z","response":"Yes","done":false}`,
		`{"model":"m1","created_at":"2026-11-30T00:00:00.133457Z","response":".","done":false}`},
	"sglang.generate": {
		`{"text":"xy","output_ids":[5,6],"meta_info":{"id":"rid1","finish_reason":null,"prompt_tokens":6,"weight_version":"default","completion_tokens":2,"cached_tokens":2}}`,
		`{"text":"xyz","output_ids":[5,6,7],"meta_info":{"id":"rid1","finish_reason":null,"prompt_tokens":6,"weight_version":"default","completion_tokens":3,"cached_tokens":2}}`},
	"tgi.generate_stream": {
		`{"index":1,"token":{"id":1,"text":" a","logprob":-0.2,"special":false},"generated_text":null,"details":null}`,
		`{"index":2,"token":{"id":12,"text":" bc","logprob":-0.25,"special":false},"generated_text":null,"details":null}`},
	"llamacpp.completion": {
		`{"index":0,"content":" a","tokens":[5],"stop":false,"id_slot":-1,"tokens_predicted":1,"tokens_evaluated":4}`,
		`{"index":0,"content":" bc","tokens":[61],"stop":false,"id_slot":-1,"tokens_predicted":2,"tokens_evaluated":4}`},
	"gemini.native": {
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"A"}]},"index":0}],"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":1,"thoughtsTokenCount":5,"totalTokenCount":14},"modelVersion":"m1"}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"BC"}]},"index":0}],"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":2,"thoughtsTokenCount":5,"totalTokenCount":15},"modelVersion":"m1"}`},
	"cohere.v2.chat": {
		`{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"A"}}}}`,
		`{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":" BC"}}}}`},
}

func hotDialect(name string) *Dialect {
	base, _, _ := bytes.Cut([]byte(name), []byte("/"))
	return ByName(string(base))
}

func TestHotPathDoesNotAllocate(t *testing.T) {
	for name, data := range hot {
		r := hotDialect(name).NewResponse(nil)
		a, b := []byte(data[0]), []byte(data[1])
		if s := r.Event(nil, a); !s.Content {
			t.Errorf("%s: %s is not content: %+v", name, a, s)
		}
		r.Event(nil, b)
		if n := testing.AllocsPerRun(100, func() { r.Event(nil, a); r.Event(nil, b) }); n != 0 {
			t.Errorf("%s: %v allocations in two events", name, n)
		}
		if r.Answer().ParseErrors != 0 {
			t.Errorf("%s: not parsed", name)
		}
	}
	for name, d := range registry {
		if _, ok := hot[name]; !ok && d.Operation != "embeddings" && d.Operation != "rerank" && name != "tgi.generate" {
			t.Errorf("%s has no typical event", name)
		}
	}
}

func BenchmarkEvent(b *testing.B) {
	for name, data := range hot {
		b.Run(name, func(b *testing.B) {
			r := hotDialect(name).NewResponse(nil)
			two := [2][]byte{[]byte(data[0]), []byte(data[1])}
			r.Event(nil, two[1])
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				r.Event(nil, two[i&1])
				i++
			}
		})
	}
}

// BenchmarkEventRead is the same without the short ways for events like the one before.
func BenchmarkEventRead(b *testing.B) {
	for name, data := range hot {
		b.Run(name, func(b *testing.B) {
			r := hotDialect(name).NewResponse(nil)
			two := [2][]byte{[]byte(data[0]), []byte(data[1])}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				r.plain.around, r.trail = nil, jsonscan.Trail{}
				r.read(nil, two[i&1])
				i++
			}
		})
	}
}

func BenchmarkEmbeddingBody(b *testing.B) {
	var body bytes.Buffer
	body.WriteString(`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[`)
	for i := range 4096 {
		fmt.Fprintf(&body, "%.9f,", float64(i)/4096)
	}
	body.WriteString(`0]}],"model":"m","usage":{"prompt_tokens":8,"total_tokens":8}}`)
	d := ByName("openai.embeddings")
	b.SetBytes(int64(body.Len()))
	b.ReportAllocs()
	for b.Loop() {
		r := d.NewResponse(nil)
		r.Body(body.Bytes())
		r.EndBody()
		r.Close()
	}
}
