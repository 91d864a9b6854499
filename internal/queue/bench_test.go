package queue

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"
)

// BenchmarkUncontended is the cost that a queue adds to a call that need not wait.
func BenchmarkUncontended(b *testing.B) {
	q := newQueue(b, Config{Calls: 64, Tokens: 1e6})
	ask := Ask{Key: "key", Class: Interactive, Tokens: Tokens{Input: 1000, Output: 500}}
	ctx := context.Background()
	var s Slot
	b.ReportAllocs()
	for b.Loop() {
		if err := q.Enter(ctx, &ask, &s); err != nil {
			b.Fatal(err)
		}
		s.Settle(Tokens{Input: 1000, Output: 200})
		s.Release()
	}
}

// BenchmarkUncontendedParallel is the same from all processors at once, each with its key.
func BenchmarkUncontendedParallel(b *testing.B) {
	q := newQueue(b, Config{Calls: 64})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		var s Slot
		ask := Ask{Key: fmt.Sprintf("%p", &s), Tokens: Tokens{Input: 1000, Output: 500}}
		for pb.Next() {
			if err := q.Enter(context.Background(), &ask, &s); err != nil {
				b.Error(err)
				return
			}
			s.Release()
		}
	})
}

// BenchmarkDispatch measures, on the wall clock, from just before a release until the next
// caller runs on, with a thousand calls of a hundred keys waiting.
func BenchmarkDispatch(b *testing.B) {
	q := newQueue(b, Config{Calls: 1, MaxWait: time.Hour, MaxWaiting: 2000, MaxPerClass: 2000})
	var released time.Time
	var took []time.Duration
	cur := new(Slot)
	if err := q.Enter(context.Background(), &Ask{}, cur); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	in := make(chan *Slot)
	gone := make(chan struct{})
	worker := func(i int) {
		defer func() { gone <- struct{}{} }()
		ask := Ask{Key: fmt.Sprint(i % 100), Class: []string{Interactive, Completion, Batch}[i%3], Tokens: Tokens{Input: int64(i)}}
		for {
			s := new(Slot)
			if err := q.Enter(ctx, &ask, s); err != nil {
				return
			}
			took = append(took, time.Since(released)) // one call is in flight, so one goroutine is here
			in <- s
		}
	}
	const workers = 1000
	for i := range workers {
		go worker(i)
	}
	for q.State().Waiting < workers {
		time.Sleep(time.Millisecond)
	}
	b.ReportAllocs()
	for b.Loop() {
		released = time.Now()
		cur.Release()
		cur = <-in
	}
	b.StopTimer()
	cancel()
	for range workers {
		<-gone
	}
	cur.Release()
	slices.Sort(took)
	at := func(q float64) float64 { return float64(took[int(q*float64(len(took)-1))].Nanoseconds()) }
	b.ReportMetric(at(0.5), "p50-ns")
	b.ReportMetric(at(0.99), "p99-ns")
}

// BenchmarkState is a scrape with a thousand calls of as many keys waiting.
func BenchmarkState(b *testing.B) {
	q := newQueue(b, Config{Calls: 1, MaxWait: time.Hour})
	var s Slot
	if err := q.Enter(context.Background(), &Ask{}, &s); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan error)
	const callers = 700
	for i := range callers {
		go func() { gone <- q.Enter(ctx, &Ask{Key: fmt.Sprint(i)}, new(Slot)) }()
	}
	for q.State().Waiting < callers {
		time.Sleep(time.Millisecond)
	}
	q.mu.Lock()
	q.flow.samples = enough // so that it predicts
	q.flow.depart(time.Now(), 1)
	q.mu.Unlock()
	b.ReportAllocs()
	for b.Loop() {
		q.State()
	}
	cancel()
	for range callers {
		<-gone
	}
	s.Release()
}
