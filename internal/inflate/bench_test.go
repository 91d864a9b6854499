package inflate

import (
	"strings"
	"testing"
)

// BenchmarkEvent measures one flushed event of 200 bytes in a long stream.
func BenchmarkEvent(b *testing.B) {
	event := `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"m1","choices":[{"index":0,"delta":{"content":"Ab"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n"
	plain := make([]string, 1000)
	for i := range plain {
		plain[i] = event
	}
	for _, e := range encodings {
		b.Run(strings.ReplaceAll(e.name, " ", "_"), func(b *testing.B) {
			body, ends := encode(b, e.encoder, plain...)
			b.SetBytes(int64(len(event)))
			b.ReportAllocs()
			for n := 0; n < b.N; {
				d, err := New(e.encoding, func([]byte) {})
				if err != nil {
					b.Fatal(err)
				}
				from := 0
				for _, end := range ends {
					if err := d.Write(body[from:end]); err != nil {
						b.Fatal(err)
					}
					from = end
					n++
				}
				d.Close()
			}
		})
	}
}

// BenchmarkBody measures one JSON answer of 2 KiB, from New to Close.
func BenchmarkBody(b *testing.B) {
	answer := `{"id":"chatcmpl-1","choices":[{"message":{"content":"` + strings.Repeat("some words of an answer ", 80) + `"}}],"usage":{"prompt_tokens":3}}`
	for _, e := range encodings {
		b.Run(strings.ReplaceAll(e.name, " ", "_"), func(b *testing.B) {
			body, _ := encode(b, e.encoder, answer)
			b.SetBytes(int64(len(answer)))
			b.ReportAllocs()
			for range b.N {
				d, err := New(e.encoding, func([]byte) {})
				if err != nil {
					b.Fatal(err)
				}
				d.Write(body)
				if err := d.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
