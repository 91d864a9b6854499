package diagnose

import (
	"math/rand/v2"
	"testing"

	"github.com/weirgate/weir/internal/call"
)

// BenchmarkWindow looks at as many calls as the gateway keeps; nearly all of
// them show something, so that it is the worst case.
func BenchmarkWindow(b *testing.B) {
	for name, record := range map[string]func(*rand.Rand) *call.Record{
		"healthy": func(*rand.Rand) *call.Record { return healthy() }, "ill": anyRecord} {
		b.Run(name, func(b *testing.B) {
			rng := rand.New(rand.NewPCG(11, 12))
			list := many(1000, func(int) *call.Record { return record(rng) })
			b.ReportAllocs()
			for b.Loop() {
				Window(list, Options{})
			}
		})
	}
}

func BenchmarkCall(b *testing.B) {
	r := with(cases["engine queue"].change)
	b.ReportAllocs()
	for b.Loop() {
		Call(r)
	}
}

// BenchmarkCompare compares two windows of as many calls as the gateway keeps.
func BenchmarkCompare(b *testing.B) {
	before, after := windowOf(1000, nil), windowOf(1000, both(longQueue, slowly(1.5)))
	b.ReportAllocs()
	for b.Loop() {
		Compare(before, after, CompareOptions{})
	}
}
