//go:build !race

package spend

import (
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/keys"
	"github.com/weirgate/weir/internal/ledger"
)

func TestAllocations(t *testing.T) {
	now := instantOf(t, "2026-11-30T12:00:00Z")
	k := limited("a", keys.Budget{Money: 1, Tokens: call.Known(1e9), Zone: zone(t, "Europe/Berlin")})
	b := seeded(t, list(t, `{"model":"*","input":1,"output":1}`), now, k)
	used := ledger.Sums{Input: 1, Output: 1}
	b.Add(k, "m", now, used)
	if n := testing.AllocsPerRun(100, func() { b.Check(k, now) }); n != 0 {
		t.Errorf("Check allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { b.Add(k, "m", now, used) }); n != 0 {
		t.Errorf("Add allocates %v times in an hour that it knows", n)
	}
}

func BenchmarkCheck(b *testing.B) {
	now := time.Unix(1796040000, 0)
	k := limited("a", keys.Budget{Money: 1, Tokens: call.Known(1e9), Zone: zone(b, "Europe/Berlin")})
	budgets := seeded(b, list(b, `{"model":"*","input":1,"output":1}`), now, k)
	budgets.Add(k, "m", now, ledger.Sums{Input: 1, Output: 1})
	b.ReportAllocs()
	for b.Loop() {
		budgets.Check(k, now)
	}
}

func BenchmarkAdd(b *testing.B) {
	now := time.Unix(1796040000, 0)
	k := limited("a", keys.Budget{Money: 1})
	budgets := seeded(b, list(b, `{"model":"*","input":1,"output":1}`), now, k)
	b.ReportAllocs()
	for b.Loop() {
		budgets.Add(k, "m", now, ledger.Sums{Input: 1, Output: 1})
	}
}
