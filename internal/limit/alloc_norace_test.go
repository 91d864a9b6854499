//go:build !race

package limit

import (
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// TestAllocations: no call allocates once its buckets are there.
func TestAllocations(t *testing.T) {
	p := New("test", time.Now)
	apply(t, p, enforced(perKey(roomy), Rule{Scope: PerModel, Limits: roomy},
		Rule{Scope: PerKeyModel, Limits: roomy}, Rule{Scope: PerPool, Limits: roomy}))
	own := roomy
	r := Request{Key: "k", Model: "m", KeyLimits: &own, Input: 100, Output: 100}
	running := admit(t, p, r) // keeps the sets
	large := r
	large.Input = MaxLimit * 2
	var ticket Ticket
	want := func(name string, f func()) {
		t.Helper()
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	want("admit and settle", func() {
		if p.Admit(&r, &ticket) != nil {
			t.Error("refused")
		}
		ticket.Charge(500)
		ticket.Settle(call.Known(1), call.Known(600))
	})
	want("admit and cancel", func() {
		p.Admit(&r, &ticket)
		ticket.Cancel()
	})
	want("refuse", func() {
		if p.Admit(&large, &ticket) == nil || ticket.WouldRefuse().Wall() == "" {
			t.Error("admitted")
		}
	})
	want("standing", func() {
		if !p.Standing(&r).Tokens.Applies || !running.Standing().Tokens.Applies {
			t.Error("no standing")
		}
	})
	r.Key = "nobody took from this"
	r.KeyLimits = nil
	want("standing of a new key", func() { p.Standing(&r) })
	want("a debt above the burst", func() {
		p.Admit(&Request{Key: "k", Model: "m", KeyLimits: &own}, &ticket)
		ticket.Settle(call.Known(MaxLimit), call.Known(MaxLimit))
		running.Charge(1)
	})
}
