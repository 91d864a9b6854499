//go:build unix

package slo

import (
	"syscall"
	"testing"
	"time"
)

// BenchmarkCall is what a call costs over the seven objectives of a preset, into all windows and
// the times for display: one that is recorded as it ends, and one that is followed, whose first
// token is judged as it comes. At most 300 ns are wanted, and no allocation. cpu-ns/op is what the
// processor took, whatever else it had to do.
func BenchmarkCall(b *testing.B) {
	for _, followed := range []bool{false, true} {
		b.Run(map[bool]string{false: "recorded", true: "followed"}[followed], func(b *testing.B) {
			preset, _ := Preset(Interactive)
			tr, _ := configured(b, preset)
			now := start
			f := factsFor(now)
			var p Pending
			tr.Watch(&p, Interactive, "m", now, true, nil)
			tr.End(&p, &f)
			b.ReportAllocs()
			n, begin := 0, cpu()
			first := now.Add(500 * time.Millisecond)
			f.Received, f.Ended = now, now.Add(3*time.Second)
			for b.Loop() {
				n++
				if n%1000 == 0 {
					now = now.Add(time.Second)
					first = now.Add(500 * time.Millisecond)
					f.Received, f.Ended = now, now.Add(3*time.Second)
					tr.Tick(now)
				}
				tr.Watch(&p, Interactive, "m", now, true, nil)
				if followed {
					tr.FirstToken(&p, first)
				}
				tr.End(&p, &f)
			}
			b.ReportMetric(float64(cpu()-begin)/float64(n), "cpu-ns/op")
		})
	}
}

// BenchmarkStatus is what a status over 200 series of eight objectives costs.
func BenchmarkStatus(b *testing.B) {
	tr, now := full(b, 1)
	b.ReportAllocs()
	n, begin := 0, cpu()
	for b.Loop() {
		n++
		tr.Status(now)
	}
	b.ReportMetric(float64(cpu()-begin)/float64(n)/1e6, "cpu-ms/op")
}

// BenchmarkTick is what a Tick costs while 10,000 calls await their first token.
func BenchmarkTick(b *testing.B) {
	tr, _ := configured(b, whole("interactive"))
	calls := make([]Pending, 10_000)
	for i := range calls {
		tr.Watch(&calls[i], "interactive", "m", start, true, nil)
	}
	n, begin := 0, cpu()
	for b.Loop() {
		n++
		tr.Tick(start.Add(time.Second))
	}
	b.ReportMetric(float64(cpu()-begin)/float64(n)/1e6, "cpu-ms/op")
}

// BenchmarkSnapshot is what a snapshot of 200 series takes, and to restore it.
func BenchmarkSnapshot(b *testing.B) {
	tr, _ := full(b, 1)
	var snapshot []byte
	var writing, reading time.Duration
	n := 0
	for b.Loop() {
		n++
		begin := cpu()
		snapshot = tr.Snapshot()
		middle := cpu()
		if err := New().Restore(snapshot); err != nil {
			b.Fatal(err)
		}
		writing, reading = writing+middle-begin, reading+cpu()-middle
	}
	b.ReportMetric(float64(len(snapshot))/(1<<20), "MiB")
	b.ReportMetric(float64(writing)/float64(n)/1e6, "cpu-ms/snapshot")
	b.ReportMetric(float64(reading)/float64(n)/1e6, "cpu-ms/restore")
}

// cpu returns what the process has taken of processors.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
