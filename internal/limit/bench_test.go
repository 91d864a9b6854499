package limit

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// roomy never refuses the benchmarks.
var roomy = six(MaxLimit, MaxLimit, MaxLimit, MaxLimit, MaxLimit, MaxLimit)

// BenchmarkAdmit6 measures one call through six dimensions of one key: Admit, and
// Settle with figures that differ from the reservation.
func BenchmarkAdmit6(b *testing.B) {
	p := New("bench", time.Now)
	apply(b, p, enforced(perKey(roomy)))
	benchmark(b, p, &Request{Key: "k", Model: "m", Input: 100, Output: 100})
}

// BenchmarkAdmit6OwnLimits is the same where the limits are the key's own.
func BenchmarkAdmit6OwnLimits(b *testing.B) {
	p := New("bench", time.Now)
	apply(b, p, Policy{Mode: Enforce})
	benchmark(b, p, &Request{Key: "k", Model: "m", Input: 100, Output: 100, KeyLimits: &roomy})
}

// BenchmarkAdmit24 has all six dimensions in all four scopes.
func BenchmarkAdmit24(b *testing.B) {
	p := New("bench", time.Now)
	apply(b, p, enforced(perKey(roomy), Rule{Scope: PerModel, Limits: roomy},
		Rule{Scope: PerKeyModel, Limits: roomy}, Rule{Scope: PerPool, Limits: roomy}))
	benchmark(b, p, &Request{Key: "k", Model: "m", Input: 100, Output: 100})
}

func benchmark(b *testing.B, p *Pool, r *Request) {
	var t Ticket
	b.ReportAllocs()
	for b.Loop() {
		if ref := p.Admit(r, &t); ref != nil {
			b.Fatal(*ref)
		}
		t.Settle(call.Known(90), call.Known(120))
	}
}

// BenchmarkAdmit6Parallel has all processors at one pool, each with a key of its own.
func BenchmarkAdmit6Parallel(b *testing.B) {
	p := New("bench", time.Now)
	apply(b, p, enforced(perKey(roomy)))
	var keys atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		r := &Request{Key: strconv.FormatInt(keys.Add(1), 10), Input: 100, Output: 100}
		var t Ticket
		for pb.Next() {
			if ref := p.Admit(r, &t); ref != nil {
				b.Error(*ref)
				return
			}
			t.Settle(call.Known(90), call.Known(120))
		}
	})
}

// BenchmarkAdmitIdle has 50 keys take turns that stay far below their limits: each
// is idle between its calls.
func BenchmarkAdmitIdle(b *testing.B) {
	p := New("bench", time.Now)
	apply(b, p, enforced(perKey(roomy)))
	var keys [50]string
	for i := range keys {
		keys[i] = strconv.Itoa(i)
	}
	var t Ticket
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		if ref := p.Admit(&Request{Key: keys[i%len(keys)], Input: 100, Output: 100}, &t); ref != nil {
			b.Fatal(*ref)
		}
		t.Settle(call.Known(90), call.Known(90))
		i++
	}
}

// BenchmarkRefused6 measures a refusal.
func BenchmarkRefused6(b *testing.B) {
	p := New("bench", time.Now)
	apply(b, p, enforced(perKey(six(1, 100, 100, 100, 1, 100))))
	r := &Request{Key: "k", Input: 10, Output: 50}
	admit(b, p, *r)
	var t Ticket
	b.ReportAllocs()
	for b.Loop() {
		if p.Admit(r, &t) == nil {
			b.Fatal("admitted")
		}
	}
}

// BenchmarkCharge measures an event of a stream that is below the next step.
func BenchmarkCharge(b *testing.B) {
	p := New("bench", time.Now)
	apply(b, p, enforced(perKey(roomy)))
	t := admit(b, p, Request{Key: "k", Output: 1000})
	b.ReportAllocs()
	for b.Loop() {
		t.Charge(500)
	}
}

// BenchmarkJunk measures calls that each name another model when there is no room:
// the worst that a caller can do to the others.
func BenchmarkJunk(b *testing.B) {
	p := New("bench", time.Now)
	policy := enforced(Rule{Scope: PerModel, Limits: atOnce(MaxLimit)})
	policy.MaxBuckets = 1000
	apply(b, p, policy)
	for i := range 1000 {
		admit(b, p, Request{Model: "busy " + strconv.Itoa(i)})
	}
	var t Ticket
	models := make([]string, 1<<16)
	for i := range models {
		models[i] = strconv.Itoa(i)
	}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		p.Admit(&Request{Model: models[i%len(models)]}, &t)
		t.Cancel()
		i++
	}
}
