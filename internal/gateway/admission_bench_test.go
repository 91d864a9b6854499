//go:build unix

package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/estimate"
	"github.com/weirgate/weir/internal/keys"
	"github.com/weirgate/weir/internal/ledger"
	"github.com/weirgate/weir/internal/limit"
	"github.com/weirgate/weir/internal/queue"
)

// BenchmarkAdmission measures what keys, limits, the queue and the ledger add to
// a call, one after the other: the difference to the line before.
func BenchmarkAdmission(b *testing.B) {
	dir := b.TempDir()
	path := filepath.Join(dir, "keys.json")
	if err := keys.Edit(path, time.Now(), func(f *keys.File) error { return f.Add(keys.Entry{Alias: "team-a"}, aKey, time.Now()) }); err != nil {
		b.Fatal(err)
	}
	pool := widePool(b)
	q, err := queue.New("p", queue.Config{Calls: 1000})
	if err != nil {
		b.Fatal(err)
	}
	l, err := ledger.Open(ledger.Options{Path: filepath.Join(dir, "usage.db")})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close(context.Background()) }()
	a := &Admission{}
	for _, step := range []struct {
		name string
		add  func()
	}{
		{"meter alone", func() { a = nil }},
		{"keys", func() { a = &Admission{Keys: keys.Open(path, time.Now())} }},
		{"estimates", func() { a.Estimates = estimate.New(0, 0) }},
		{"limits", func() { a.Limits = pool }},
		{"queue", func() { a.Queue = q }},
		{"ledger", func() { a.Ledger = l }},
	} {
		step.add()
		run := admittedCall(a)
		b.Run(step.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
		})
	}
}

// widePool has limits for each key and for all that no call comes near: they fill
// as slowly as real ones, so that buckets are kept, but hold more than is used.
func widePool(b *testing.B) *limit.Pool {
	pool := limit.New("p", nil)
	limits := call.Limits{TokensPerMinute: call.Known(1e6), RequestsPerMinute: call.Known(1e4), Concurrency: call.Known(1e6)}
	burst := limit.Burst{Tokens: call.Known(1e11), Requests: call.Known(1e11)}
	if err := pool.Apply(limit.Policy{Mode: limit.Enforce, Rules: []limit.Rule{
		{Scope: limit.PerKey, Limits: limits, Burst: burst}, {Scope: limit.PerPool, Limits: limits, Burst: burst}}}); err != nil {
		b.Fatal(err)
	}
	return pool
}

// admittedCall returns a function that runs a call with a JSON answer.
func admittedCall(a *Admission) func() {
	g := New(ignored{})
	g.SetSecretSource(func() []byte { return []byte("secret") })
	body := replayable{strings.NewReader(askJSON)}
	r, _ := http.NewRequest("POST", "http://x/v1/chat/completions", body)
	r = r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, new(http.Server)))
	r.ContentLength = int64(len(askJSON))
	r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + aKey}, "Accept-Encoding": {"gzip"}}
	answer := []byte(wholeJSON)
	options, around := &Options{Admission: a}, new(Surroundings)
	buf := make([]byte, 4096)
	return func() {
		_, _ = body.Seek(0, io.SeekStart)
		w := nowhere{http.Header{"Content-Type": {"application/json"}}}
		_ = g.Begin(r, options, around).Serve(w, NextFunc(func(w http.ResponseWriter, r *http.Request) error {
			attempted(r)
			for {
				if _, err := r.Body.Read(buf); err != nil {
					break
				}
			}
			_ = r.Body.Close()
			_, err := w.Write(answer)
			return err
		}))
	}
}

// BenchmarkAdmissionCost is what keys, estimates, limits, the queue and the
// ledger together add to a call, in time of all processors: short runs of calls
// with all of that and runs of the same calls with none of it take turns, so that
// what else the machine does falls on both alike, and the median of the
// differences is reported. Nothing is sent: neither HTTP nor an upstream is in it.
//
// Once the database is locked by somebody else meanwhile, so that the figure is
// what a call pays on its own way; once a run is over when its rows are in the
// database, and the figure has the committer's work in it.
func BenchmarkAdmissionCost(b *testing.B) {
	for _, c := range []struct {
		name         string
		callers      int
		ask          string
		answer, kind string
		books        bookkeeping
	}{
		{"64 callers", 64, askJSON, wholeJSON, "application/json", heldBack},
		{"64 callers, committed", 64, askJSON, wholeJSON, "application/json", committed},
		{"64 callers, no ledger", 64, askJSON, wholeJSON, "application/json", noBooks},
		{"1 caller", 1, askJSON, wholeJSON, "application/json", heldBack},
		{"1 caller, committed", 1, askJSON, wholeJSON, "application/json", committed},
		{"1 caller, no ledger", 1, askJSON, wholeJSON, "application/json", noBooks},
		{"64 callers, prompt of 2 kB", 64, strings.Replace(askJSON, `"x"`, `"`+strings.Repeat("What will the river do? ", 85)+`"`, 1), wholeJSON, "application/json", heldBack},
		{"64 callers, stream of 64 tokens", 64, askStream, strings.Repeat(stripToken, 64) + stripFinish + stripUsage + stripDone, "text/event-stream", heldBack},
	} {
		b.Run(c.name, func(b *testing.B) {
			dir := b.TempDir()
			path := filepath.Join(dir, "keys.json")
			if err := keys.Edit(path, time.Now(), func(f *keys.File) error {
				for i := range c.callers {
					if err := f.Add(keys.Entry{Alias: fmt.Sprintf("team-%d", i)}, keyOf(i), time.Now()); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				b.Fatal(err)
			}
			q, err := queue.New("p", queue.Config{Calls: 1000})
			if err != nil {
				b.Fatal(err)
			}
			l := openLedger(b, filepath.Join(dir, "usage.db"), c.books == heldBack)
			// What is not measured has no secret, and makes no id of the key either.
			without := newCallers(c.callers, nil, c.ask, c.kind, c.answer)
			a := &Admission{Keys: keys.Open(path, time.Now()), RequireKey: true, Limits: widePool(b), Queue: q,
				Estimates: estimate.New(0, 0), ReaderTimeout: time.Minute}
			if c.books != noBooks {
				a.Ledger = l
			}
			with := newCallers(c.callers, a, c.ask, c.kind, c.answer)
			const calls = 6400 // of a run
			run := func(all []func()) (cpu time.Duration, memory uint64) {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				cpu = -cpuTime()
				var wg sync.WaitGroup
				for _, one := range all {
					wg.Go(func() {
						for range calls / len(all) {
							one()
						}
					})
				}
				wg.Wait()
				if c.books == committed {
					if err := l.Flush(context.Background()); err != nil {
						b.Fatal(err)
					}
				}
				cpu += cpuTime()
				runtime.ReadMemStats(&after)
				return cpu, after.TotalAlloc - before.TotalAlloc
			}
			run(without)
			run(with) // now all that grows has grown, and the estimates have learnt
			var added, base, bytes []float64
			for b.Loop() {
				baseCPU, baseBytes := run(without)
				fullCPU, fullBytes := run(with)
				added, base = append(added, float64(fullCPU-baseCPU)/calls), append(base, float64(baseCPU)/calls)
				bytes = append(bytes, (float64(fullBytes)-float64(baseBytes))/calls)
			}
			b.ReportMetric(0, "ns/op") // an op is two runs
			b.ReportMetric(median(added), "added-cpu-ns/call")
			b.ReportMetric(median(base), "other-cpu-ns/call")
			b.ReportMetric(median(bytes), "added-B/call")
			switch s := l.State(); {
			case s.Dropped > 0:
				b.Errorf("the ledger has lost %d entries", s.Dropped)
			case c.books == heldBack && s.Rows > 1:
				b.Errorf("%d rows were committed: the committer was not held back", s.Rows)
			}
		})
	}
}

// bookkeeping is what becomes of the rows.
type bookkeeping int

const (
	heldBack  bookkeeping = iota // they stay in the spill
	committed                    // they are in the database before a run is over
	noBooks                      // there is no ledger
)

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// cpuTime is what the process has used. On a machine that does other things it
// tells more than the clock.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func keyOf(i int) string { return fmt.Sprintf("%s%02d", aKey[:len(aKey)-2], i) }

// openLedger opens a ledger; one that is held back finds its database locked
// until the benchmark ends.
func openLedger(b *testing.B, path string, held bool) *ledger.Ledger {
	l, err := ledger.Open(ledger.Options{Path: path, MaxSpill: 16 << 30, Breaker: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	if !held {
		return l
	}
	l.End(&call.Record{Identity: call.Identity{ID: "first", Time: time.Now()}, Result: call.Result{Outcome: call.Completed}, Tokens: call.Tokens{UsageSource: call.UsageNone}})
	if err := l.Flush(context.Background()); err != nil { // there is a database now
		b.Fatal(err)
	}
	conn, err := sqlite3.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	if err := conn.Exec("BEGIN IMMEDIATE"); err != nil {
		b.Fatal(err)
	}
	return l
}

// newCallers returns functions that run one call each, every one for a caller
// of its own. All go through one gateway.
func newCallers(n int, a *Admission, ask, kind, answer string) []func() {
	g := New(ignored{})
	options, around := &Options{Admission: a}, new(Surroundings)
	all := make([]func(), n)
	for i := range all {
		body := replayable{strings.NewReader(ask)}
		r, _ := http.NewRequest("POST", "http://x/v1/chat/completions", body)
		r = r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, new(http.Server)))
		r.ContentLength = int64(len(ask))
		r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + keyOf(i)}, "Accept-Encoding": {"gzip"}}
		events, buf := strings.SplitAfter(answer, "\n\n"), make([]byte, 4096)
		next := NextFunc(func(w http.ResponseWriter, r *http.Request) error {
			attempted(r)
			for {
				if _, err := r.Body.Read(buf); err != nil {
					break
				}
			}
			_ = r.Body.Close()
			for _, e := range events {
				if _, err := w.Write(append(buf[:0], e...)); err != nil {
					return err
				}
			}
			return nil
		})
		all[i] = func() {
			_, _ = body.Seek(0, io.SeekStart)
			_ = g.Begin(r, options, around).Serve(nowhere{http.Header{"Content-Type": {kind}}}, next)
		}
	}
	return all
}
