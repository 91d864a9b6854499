package capacity

import (
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// BenchmarkEstimate is a whole estimate with its interval.
func BenchmarkEstimate(b *testing.B) {
	for _, size := range []struct {
		name  string
		calls int
	}{{"1k", 1000}, {"10k", 10000}, {"100k", 100000}} {
		b.Run(size.name, func(b *testing.B) {
			records := made(size.calls, func(i int) float64 { return 4 + 6*float64(i)/float64(size.calls) }, nil)
			o := Options{TTFT: Objective{Limit: time.Second}, Engines: map[string]Limits{"": {MaxNumSeqs: call.Known(12), KVTokens: call.Known(100000)}}}
			for b.Loop() {
				r, err := Estimate(records, o)
				if err != nil {
					b.Fatal(err)
				}
				if r.Upstreams[0].Label == Refused {
					b.Fatal(r.Upstreams[0].Reasons)
				}
			}
		})
	}
}
