package alert

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkObserve is one evaluation of 10 classes, 20 models and 7 objectives, all well or
// all paging.
func BenchmarkObserve(b *testing.B) {
	for _, page := range []bool{false, true} {
		b.Run(fmt.Sprintf("page=%v", page), func(b *testing.B) {
			m := New(Options{Receivers: []Receiver{&scribe{name: "a"}, &scribe{name: "b"}}})
			now := time.Now()
			var all []standing
			for class := range 10 {
				for objective := range 7 {
					for model := range 21 {
						s := standing{class: fmt.Sprint("class", class), objective: fmt.Sprint("objective", objective), page: page}
						if model > 0 {
							s.model = fmt.Sprint("model", model)
						}
						all = append(all, s)
					}
				}
			}
			status := statusAt(now, all...)
			b.ReportAllocs()
			for b.Loop() {
				m.Observe(now, status)
			}
		})
	}
}
