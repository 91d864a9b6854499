//go:build unix

package slo

import (
	"syscall"
	"testing"
	"time"
)

// BenchmarkCall is what a call costs: Watch, FirstToken and End over eight objectives, into all
// windows and the quantiles that are shown. At most 300 ns are wanted, and no allocation.
// cpu-ns/op is what the processor took, whatever else it had to do.
func BenchmarkCall(b *testing.B) {
	tr, _ := configured(b, whole("interactive"))
	now := start
	f := factsFor(now)
	var p Pending
	tr.Watch(&p, "interactive", "m", now, true, nil)
	tr.End(&p, &f)
	b.ReportAllocs()
	n, begin := 0, cpu()
	for b.Loop() {
		n++
		if n%1000 == 0 {
			now = now.Add(time.Second)
			tr.Tick(now)
		}
		f.Received, f.Ended = now, now.Add(3*time.Second)
		tr.Watch(&p, "interactive", "m", now, true, nil)
		tr.FirstToken(&p, now.Add(500*time.Millisecond))
		tr.End(&p, &f)
	}
	b.ReportMetric(float64(cpu()-begin)/float64(n), "cpu-ns/op")
}

// cpu returns what the process has taken of processors.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
