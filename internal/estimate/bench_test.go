package estimate

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkScanner measures bodies of about 20 kB; ns/byte is the figure.
func BenchmarkScanner(b *testing.B) {
	for name, text := range map[string]string{
		"english": "The gateway measures every call, and passes each byte on without holding it back. ",
		"chinese": "网关会测量每一次调用，并且把每个字节原样传递下去。",
		"russian": "Шлюз измеряет каждый вызов и передаёт каждый байт без задержки. ",
		"escaped": `\u7f51\u5173\u4f1a\u6d4b\u91cf\u6bcf\u4e00\u6b21\u8c03\u7528\n`,
		"code":    `func (s *Scanner) text(p []byte) {\n\tfor i := 0; i < len(p); i++ {\n\t\ts.n[joins]++\n\t}\n}\n`,
		"base64":  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGA",
	} {
		body := []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat(text, 20000/len(text)) + `"}]}`)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				var s Scanner
				s.Write(body)
				if f := s.Features(); !f.Known() {
					b.Fatal("not known")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(body)), "ns/byte")
		})
	}
}

// BenchmarkEstimator measures what one call costs with a model that knows all
// features, which is the slowest.
func BenchmarkEstimator(b *testing.B) {
	e, of := settled(b, "m", 0)
	for name, do := range map[string]func(s *keyed){
		"Predict":     func(s *keyed) { e.Predict("m", s.key, &s.features) },
		"Learn":       func(s *keyed) { e.Learn("m", s.key, &s.features, s.tokens[0]) },
		"Output":      func(s *keyed) { e.Output("m", s.key) },
		"LearnOutput": func(s *keyed) { e.LearnOutput("m", s.key, s.tokens[0]) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				do(&of[i])
				if i++; i == len(of) {
					i = 0
				}
			}
		})
	}
}

// BenchmarkSnapshot measures a full estimator.
func BenchmarkSnapshot(b *testing.B) {
	e := New(0, 0)
	f := scan(saying("some text"))
	for i := range DefaultPairs {
		model, key := fmt.Sprint("model-", i%DefaultModels), fmt.Sprint("key-", i)
		e.Learn(model, key, &f, 5)
		for j := range int64(30) {
			e.LearnOutput(model, key, j*j*j)
		}
	}
	snapshot := e.Snapshot()
	b.Run("Snapshot", func(b *testing.B) {
		b.SetBytes(int64(len(snapshot)))
		for b.Loop() {
			e.Snapshot()
		}
	})
	b.Run("Restore", func(b *testing.B) {
		b.SetBytes(int64(len(snapshot)))
		for b.Loop() {
			if err := e.Restore(snapshot); err != nil {
				b.Fatal(err)
			}
		}
	})
}
