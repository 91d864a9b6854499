//go:build unix

package ledger

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// cpuTime is what the process has used. On a machine that does other things it
// tells more than the clock.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkCall is what one call pays: its start and its end. The committer
// works beside it, and is what bounds a loop that does nothing else; alone is
// without it.
func BenchmarkCall(b *testing.B) {
	rec, s := wide(rand.New(rand.NewPCG(1, 2)), 0), start("q7f3k2ab0000000000000")
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		var buf []byte
		for b.Loop() {
			buf = appendRow(buf[:0], rec, time.Now)
		}
		b.SetBytes(int64(len(buf)))
	})
	for _, alone := range []bool{true, false} {
		open := func(b *testing.B) *Ledger {
			d := new(faultyDisk)
			l := open(b, Options{disk: d, MaxSpill: 16 << 30})
			if alone {
				d.reads = make(chan struct{})
				b.Cleanup(func() {
					l.interrupt() // what has come together need not be committed
					close(d.reads)
				})
			}
			return l
		}
		name := map[bool]string{true: "alone", false: "with committer"}[alone]
		b.Run("start/"+name, func(b *testing.B) {
			l := open(b)
			b.ReportAllocs()
			cpu := cpuTime()
			for b.Loop() {
				l.Start(s)
			}
			b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N), "cpu-ns/op")
		})
		b.Run("end/"+name, func(b *testing.B) {
			l := open(b)
			b.ReportAllocs()
			cpu := cpuTime()
			for b.Loop() {
				l.End(rec) // the database has it after the first
			}
			b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N), "cpu-ns/op")
		})
		b.Run("both, 64 goroutines/"+name, func(b *testing.B) {
			l := open(b)
			b.ReportAllocs()
			b.SetParallelism(32)
			cpu := cpuTime()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					l.Start(s)
					l.End(rec)
				}
			})
			b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N), "cpu-ns/op")
		})
	}
}

// BenchmarkRows is how many rows a second the database takes, each transaction
// synced, in groups of several sizes.
func BenchmarkRows(b *testing.B) {
	for _, size := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			db, err := openDatabase(context.Background(), filepath.Join(b.TempDir(), "usage.db"))
			if err != nil {
				b.Fatal(err)
			}
			defer db.close()
			r := rand.New(rand.NewPCG(1, 2))
			group, n, cpu := make([]pending, size), 0, time.Duration(0)
			for b.Loop() {
				b.StopTimer()
				for i := range group {
					row := wide(r, n)
					n++
					group[i].fields = appendRow(group[i].fields[:0], row, time.Now)
				}
				b.StartTimer()
				cpu -= cpuTime()
				if added, _, _, err := db.add(group); err != nil || added != size {
					b.Fatal(added, err)
				}
				cpu += cpuTime()
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(cpu)/float64(n), "cpu-ns/row")
		})
	}
}

// BenchmarkRecovery opens a ledger over the spill of a process that crashed.
// ready is until calls are covered again, drained until all rows are in the database.
func BenchmarkRecovery(b *testing.B) {
	for _, size := range []int64{4 << 20, 32 << 20, DefaultMaxSpill} {
		b.Run(fmt.Sprintf("%dMiB", size>>20), func(b *testing.B) {
			var ready, drained time.Duration
			var got int64
			for b.Loop() {
				b.StopTimer()
				dir := b.TempDir()
				o := Options{Path: filepath.Join(dir, "usage.db")}
				spillOf(b, o.Path+".spill", size)
				b.StartTimer()
				began := time.Now()
				l, err := Open(o)
				if err != nil {
					b.Fatal(err)
				}
				if err := l.Start(start("new")); err != nil {
					b.Fatal(err)
				}
				ready += time.Since(began)
				flush(b, l)
				drained += time.Since(began)
				got = l.State().Replayed
				b.StopTimer()
				if err := l.Close(soon(b)); err != nil {
					b.Fatal(err)
				}
				os.RemoveAll(dir)
				b.StartTimer()
			}
			b.ReportMetric(float64(got), "rows")
			b.ReportMetric(ready.Seconds()*1e3/float64(b.N), "ready-ms")
			b.ReportMetric(drained.Seconds()*1e3/float64(b.N), "drained-ms")
		})
	}
}

// spillOf writes a spill of about size bytes: calls that ended, and every
// hundredth that did not.
func spillOf(t testing.TB, dir string, size int64) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	n, seg := 0, uint64(1)
	for total := int64(0); total < size; seg++ {
		var buf []byte
		for len(buf) < 4<<20 && total+int64(len(buf)) < size {
			row := wide(r, n)
			s := start(row.ID)
			s.Time = row.Time
			at := len(buf)
			buf, _ = sealEntry(appendStart(beginEntry(buf, kindStart), s, time.Now), at)
			if n++; n%100 != 0 {
				at = len(buf)
				buf, _ = sealEntry(appendRow(beginEntry(buf, kindEnd), row, time.Now), at)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, segment{n: seg}.name()), buf, 0o600); err != nil {
			t.Fatal(err)
		}
		total += int64(len(buf))
	}
}
