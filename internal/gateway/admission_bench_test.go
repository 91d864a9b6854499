package gateway

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	pool := limit.New("p", nil)
	large := call.Limits{TokensPerMinute: call.Known(1e11), RequestsPerMinute: call.Known(1e11), Concurrency: call.Known(1e6)}
	if err := pool.Apply(limit.Policy{Mode: limit.Enforce, Rules: []limit.Rule{{Scope: limit.PerKey, Limits: large}, {Scope: limit.PerPool, Limits: large}}}); err != nil {
		b.Fatal(err)
	}
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
