package slo

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

// full returns a tracker of ten classes, 20 models each, that has counted calls for 30 days. Each
// model has 20 to 400 calls a minute, of which some are bad and some unknown for each
// objective. Only one minute or hour in every so many has calls, which makes no difference to
// memory, since a row takes what it takes.
func full(t testing.TB, every int) (*Tracker, time.Time) {
	t.Helper()
	var classes []Class
	for i := range 10 {
		classes = append(classes, whole(fmt.Sprint("class", i)))
	}
	models := make([]string, 20)
	for i := range models {
		models[i] = fmt.Sprint("model", i)
	}
	tr, _ := configured(t, classes...)
	rng := rand.New(rand.NewPCG(1, 2))
	now := start
	fill := func(step time.Duration, scale int64, until time.Time) {
		for ; now.Before(until); now = now.Add(step * time.Duration(every)) {
			tr.Tick(now)
			a := tr.clock.state.Load()
			for _, c := range *tr.classes.Load() {
				c.mu.Lock()
				for m := range 20 {
					s := tr.at(c, a, models[m], true)
					n := int64(20+m*20) * scale
					var x spot
					s.spot(&x, a, now.Unix())
					for col := range c.layout.keys {
						s.count(a, &x, col, Good, n-n/20+rng.Int64N(n/10+1))
						s.count(a, &x, col, Bad, rng.Int64N(n/100+2))
						s.count(a, &x, col, UnknownKept, rng.Int64N(n/50+2))
					}
				}
				c.mu.Unlock()
			}
		}
	}
	fill(time.Hour, 60, start.Add(27*24*time.Hour-3*time.Hour))
	fill(time.Minute, 1, start.Add(30*24*time.Hour))
	// The times of the last hour, for display: a spread of 30 between the fastest and
	// the slowest of 99 in a hundred calls.
	for minute := range int64(60) {
		at := now.Add(time.Duration(minute-60) * time.Minute)
		part := floorDiv(minuteOf(at), partMinutes)
		for _, c := range *tr.classes.Load() {
			for _, s := range c.series {
				for _, n := range c.def.numbers {
					for range 20 {
						d := time.Duration(float64(time.Second) * (0.1 + rng.ExpFloat64()*0.7))
						s.display.current(n, part).Add(d)
					}
				}
			}
		}
	}
	return tr, now
}

// BenchmarkMemory prints what TestMemory measures.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		tr, _ := full(b, 1)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/(1<<20), "MiB")
		runtime.KeepAlive(tr)
	}
}
