package spend

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/keys"
	"github.com/weirgate/weir/internal/ledger"
)

// written is a ledger whose rows come late: those in the queue are in the answer
// only after Flush.
type written struct {
	fake
	queue []row
	err   error
}

func (w *written) Flush(context.Context) error {
	w.rows, w.queue = append(w.rows, w.queue...), nil
	return w.err
}

// TestSeedUnderLoad: calls end before, while and after the ledger is asked, and
// are counted once.
func TestSeedUnderLoad(t *testing.T) {
	now := instantOf(t, "2026-11-30T12:00:00Z")
	for name, k := range map[string]*keys.Key{
		"tokens": limited("a", keys.Budget{Tokens: call.Known(100), Per: keys.Daily}),
		"money":  limited("a", keys.Budget{Tokens: call.Known(100), Money: 1, Per: keys.Daily}),
	} {
		b := NewBudgets(fixed(list(t, `{"model":"*","input":1,"output":1}`)))
		w := new(written)
		end := func(tokens int64) {
			w.queue = append(w.queue, row{at: now, key: "a", model: "m", reported: ledger.Sums{Input: tokens}})
			b.Add(k, "m", now, ledger.Sums{Input: tokens})
		}
		w.rows = []row{{at: now.Add(-time.Hour), key: "a", model: "m", estimated: ledger.Sums{Output: 50}}} // of an earlier process
		end(1)
		if got := b.Check(k, now); got.Seeded || got.Tokens != 1 || got.Exceeded {
			t.Errorf("%s: unseeded: %+v", name, got)
		}
		n := 0
		w.before = func() {
			if n++; n <= 2 { // in two rounds a call ends while the ledger answers, once in the answer, once not
				end(2)
				if n == 2 {
					w.rows, w.queue = append(w.rows, w.queue...), nil
				}
			}
		}
		if err := b.Seed(t.Context(), w, []*keys.Key{k}, now); err != nil {
			t.Fatal(err)
		}
		end(3)
		if got := b.Check(k, now); !got.Seeded || got.Tokens != 58 || n != 3 || k.Budget.Money > 0 && got.Money.String() != "0.000058" {
			t.Errorf("%s: after %d questions: %+v, want 58 tokens after 3", name, n, got)
		}
	}
}

// TestSeedOfABusyKey: a key in all of whose rounds calls end is seeded by the
// last, in which no call is missed.
func TestSeedOfABusyKey(t *testing.T) {
	now := instantOf(t, "2026-11-30T12:00:00Z")
	k := limited("a", keys.Budget{Money: 1})
	b := NewBudgets(nil)
	f := &fake{rows: []row{{at: now, key: "a", reported: ledger.Sums{Input: 50}}}}
	f.before = func() { b.Add(k, "m", now, ledger.Sums{Input: 1}) }
	if err := b.Seed(t.Context(), f, []*keys.Key{k}, now); err != nil {
		t.Fatal(err)
	}
	if got := b.Check(k, now); !got.Seeded || got.Tokens != 51 || got.UnpricedTokens != 51 || len(f.questions) != seedTries {
		t.Errorf("after %d questions: %+v", len(f.questions), got)
	}
}

// TestSeedFails: what this process counted refuses by itself, and nothing else
// does; a later try mends it.
func TestSeedFails(t *testing.T) {
	now := instantOf(t, "2026-11-30T12:00:00Z")
	k := limited("a", keys.Budget{Tokens: call.Known(100)})
	b := NewBudgets(nil)
	broken := errors.New("locked")
	all := []*keys.Key{k}
	if err := b.Seed(t.Context(), &fake{err: broken}, all, now); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if err := b.Seed(t.Context(), &written{err: broken}, all, now); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	b.Add(k, "m", now, ledger.Sums{Input: 99})
	if got := b.Check(k, now); got.Seeded || got.Exceeded || got.Tokens != 99 {
		t.Errorf("got %+v", got)
	}
	b.Add(k, "m", now, ledger.Sums{Input: 1})
	if got := b.Check(k, now); got.Seeded || !got.Exceeded {
		t.Errorf("got %+v", got)
	}
	// The ledger lost some of what was counted here: the larger figure stands.
	if err := b.Seed(t.Context(), &fake{rows: []row{{at: now, key: "a", reported: ledger.Sums{Input: 40}}}}, all, now); err != nil {
		t.Fatal(err)
	}
	if got := b.Check(k, now); !got.Seeded || got.Tokens != 100 {
		t.Errorf("got %+v", got)
	}
}

// TestSeedAcrossAMidnight: the answer to a question about a day that has ended is
// of no use.
func TestSeedAcrossAMidnight(t *testing.T) {
	now := instantOf(t, "2026-11-30T23:59:59Z")
	k := limited("a", keys.Budget{Tokens: call.Known(100), Per: keys.Daily})
	b := NewBudgets(nil)
	f := &fake{rows: []row{{at: now, key: "a", reported: ledger.Sums{Input: 40}}}}
	f.before = func() { b.Check(k, now.Add(time.Second)) }
	if err := b.Seed(t.Context(), f, []*keys.Key{k}, now); err != nil {
		t.Fatal(err)
	}
	if got := b.Check(k, now.Add(time.Second)); !got.Seeded || got.Tokens != 0 {
		t.Errorf("got %+v", got)
	}
}

// TestSeedOfManyKeys: questions are about a bounded number of keys, and one of
// another zone gets its own.
func TestSeedOfManyKeys(t *testing.T) {
	now := instantOf(t, "2026-11-30T12:00:00Z")
	f := new(fake)
	var all []*keys.Key
	for i := range 150 {
		budget := keys.Budget{Tokens: call.Known(1000), Per: keys.Daily}
		if i%3 == 0 {
			budget.Zone = zone(t, "Europe/Berlin")
		}
		all = append(all, limited(strconv.Itoa(i), budget))
		f.rows = append(f.rows, row{at: now, key: strconv.Itoa(i), reported: ledger.Sums{Input: int64(i)}})
	}
	b := NewBudgets(nil)
	if err := b.Seed(t.Context(), f, all, now); err != nil {
		t.Fatal(err)
	}
	for i, k := range all {
		if got := b.Check(k, now); !got.Seeded || got.Tokens != int64(i) {
			t.Errorf("key %d: %+v", i, got)
		}
	}
	if len(f.questions) != 3 { // 64 + 36 of UTC, 50 of Berlin
		t.Errorf("%d questions", len(f.questions))
	}
	for _, q := range f.questions {
		if len(q.Keys) > seedKeys || q.Since.IsZero() {
			t.Errorf("asked %+v", q)
		}
	}
}
