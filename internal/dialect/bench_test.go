package dialect

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/jsonscan"
)

// hot returns two typical events of each dialect's streams, as they follow each
// other in the middle of an answer. A name may have a variant after an @.
func hot(t testing.TB) map[string][2][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/hot/*.ndjson")
	if err != nil || len(files) == 0 {
		t.Fatal("no typical events:", err)
	}
	all := map[string][2][]byte{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		one, two, _ := bytes.Cut(bytes.TrimSpace(b), []byte("\n"))
		all[strings.TrimSuffix(filepath.Base(f), ".ndjson")] = [2][]byte{one, two}
	}
	return all
}

func hotDialect(name string) *Dialect {
	base, _, _ := strings.Cut(name, "@")
	return ByName(base)
}
func TestHotPathDoesNotAllocate(t *testing.T) {
	typical := hot(t)
	for name, data := range typical {
		r := hotDialect(name).NewResponse(nil)
		a, b := data[0], data[1]
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
		if _, ok := typical[name]; !ok && d.Operation != "embeddings" && d.Operation != "rerank" {
			t.Errorf("%s has no typical event", name)
		}
	}
}

func BenchmarkEvent(b *testing.B) {
	for name, data := range hot(b) {
		b.Run(name, func(b *testing.B) {
			r := hotDialect(name).NewResponse(nil)
			r.Event(nil, data[1])
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				r.Event(nil, data[i&1])
				i++
			}
		})
	}
}

// BenchmarkEventRead is the same without the short ways for events like the one before.
func BenchmarkEventRead(b *testing.B) {
	for name, data := range hot(b) {
		b.Run(name, func(b *testing.B) {
			r := hotDialect(name).NewResponse(nil)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				r.plain.around, r.trail = nil, jsonscan.Trail{}
				r.read(nil, data[i&1])
				i++
			}
		})
	}
}

func TestBodyAllocatesLittle(t *testing.T) {
	body := []byte(`{"id":"c","object":"chat.completion","created":1,"model":"m1","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`)
	d := ByName("openai.chat")
	if n := testing.AllocsPerRun(100, func() {
		r := d.NewResponse(nil)
		r.Body(body)
		r.EndBody()
		r.Close()
	}); n > 9 {
		t.Errorf("%v allocations", n)
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
