package slo

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// TestConcurrency does everything at once, for the race detector, and counts what came
// out.
func TestConcurrency(t *testing.T) {
	tr, _ := configured(t, whole("a"), whole("b"))
	const workers, calls = 8, 300
	var callers, others sync.WaitGroup
	stop := make(chan struct{})
	for w := range workers {
		callers.Go(func() {
			var p Pending
			for i := range calls {
				now := start.Add(time.Duration(i) * time.Second)
				f := factsFor(now)
				tr.Watch(&p, []string{"a", "b"}[i%2], fmt.Sprint("m", w%3), now, true, nil)
				tr.Queued(&p, now)
				tr.Admitted(&p, now)
				tr.FirstToken(&p, now.Add(time.Second))
				tr.FirstVisible(&p, now.Add(time.Second))
				tr.End(&p, &f)
				tr.Correct(&p, &f)
			}
		})
	}
	for _, do := range []func(int){
		func(i int) { tr.Tick(start.Add(time.Duration(i) * time.Millisecond)) },
		func(i int) { tr.Status(start.Add(time.Duration(i) * time.Millisecond)) },
		func(int) { tr.Snapshot() },
		func(int) { tr.Changes() },
		func(int) { totalsOf(tr) },
		func(int) {
			_ = tr.Configure(*tr.config.Load(), start)
			tr.Dropped()
		},
	} {
		others.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					do(i)
					time.Sleep(time.Millisecond) // the calls' turn
				}
			}
		})
	}
	callers.Wait()
	close(stop)
	others.Wait()
	end := start.Add(calls * time.Second)
	s := tr.Status(end)
	var n int64
	for _, class := range []string{"a", "b"} {
		o := find(t, s, class, AllModels, "success")
		n += o.Good
		if o := find(t, s, class, AllModels, "ttft_p99"); o.Awaiting != 0 || o.Good+o.Bad != calls*workers/2 {
			t.Errorf("%s: %d await a token, and %d are judged", class, o.Awaiting, o.Good+o.Bad)
		}
	}
	if n != workers*calls {
		t.Errorf("%d calls are counted, want %d", n, workers*calls)
	}
}

// TestMergeAmongCalls: calls that end while another's counts are added are counted once,
// as are those that are added, whichever comes first.
func TestMergeAmongCalls(t *testing.T) {
	const models, workers, calls, merges = 40, 4, 500, 3
	call := func(tr *Tracker, model string, now time.Time) {
		var p Pending
		f := factsFor(now)
		tr.Watch(&p, "a", model, now, true, nil)
		tr.FirstToken(&p, now.Add(time.Second))
		tr.End(&p, &f)
	}
	other, _ := configured(t, whole("a"))
	for m := range models {
		for h := range 50 {
			call(other, fmt.Sprint("m", m), start.Add(time.Duration(h)*time.Hour))
			other.Tick(start.Add(time.Duration(h) * time.Hour))
		}
	}
	snapshot := other.Snapshot()
	tr, _ := configured(t, whole("a"))
	now := start.Add(50 * time.Hour)
	for h := range 51 {
		tr.Tick(start.Add(time.Duration(h) * time.Hour))
	}
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := range calls {
				call(tr, fmt.Sprint("m", (w*calls+i)%models), now.Add(time.Duration(i)*time.Second))
			}
		})
	}
	all.Go(func() {
		for range merges {
			if err := tr.Merge(snapshot); err != nil {
				t.Error(err)
			}
		}
	})
	all.Go(func() {
		for i := range 20 {
			tr.Tick(now.Add(time.Duration(i) * time.Minute))
			tr.Status(now.Add(time.Duration(i) * time.Minute))
			tr.Changes()
		}
	})
	all.Wait()
	const want = workers*calls + merges*models*50
	for _, objective := range []string{"success", "ttft_p99"} {
		if o := find(t, tr.Status(now.Add(time.Hour)), "a", AllModels, objective); o.Good+o.Bad != want {
			t.Errorf("%s: %d are judged, want %d", objective, o.Good+o.Bad, want)
		}
	}
}
