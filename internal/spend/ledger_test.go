package spend

import (
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/keys"
	"github.com/weirgate/weir/internal/ledger"
)

// realLedger opens a ledger in a file, and closes it at the end.
func realLedger(t *testing.T) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(ledger.Options{Path: filepath.Join(t.TempDir(), "usage.db"), Retention: ledger.KeepAll, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return l
}

// randomCall makes the record of a call that may have ended in any way.
func randomCall(rng *rand.Rand, id int, at time.Time) (*call.Record, *keys.Key) {
	row := new(call.Record)
	row.ID, row.Time, row.Key = strconv.Itoa(id), at, "abc"[rng.IntN(3):][:1]
	row.Model = []string{"gpt-4o", "gpt-4o-mini", "llama", ""}[rng.IntN(4)]
	row.Outcome = call.Outcomes[rng.IntN(len(call.Outcomes))]
	row.Status, row.Attempts = []int{0, 200, 400, 502}[rng.IntN(4)], rng.IntN(3)
	row.UsageSource = []call.UsageSource{"", call.UsageNone, call.UsageReported, call.UsageTimings, call.UsageCounted, call.UsagePartial}[rng.IntN(6)]
	maybe := func() call.Count {
		switch rng.IntN(12) {
		case 0, 1, 2, 3:
			return call.Count{}
		case 4: // nonsense
			return call.Known([]int64{-1, maxTokens + 1, math.MaxInt64, math.MinInt64}[rng.IntN(4)])
		}
		return call.Known(rng.Int64N(100_000))
	}
	if row.UsageSource != "" && row.UsageSource != call.UsageNone {
		row.Usage = call.Usage{Input: maybe(), Output: maybe(), Cached: maybe(), CacheWrite: maybe(), Reasoning: maybe()}
	}
	row.EstimatedInput, row.EstimatedOutput = maybe(), maybe()
	return row, limited(row.Key, keys.Budget{Money: 1, Per: keys.Monthly})
}

// TestBudgetsCountWhatTheLedgerSums: however calls end, the sums, the reports and
// the budgets of this process, and those of the next one, agree.
func TestBudgetsCountWhatTheLedgerSums(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	start := instantOf(t, "2026-11-01T00:00:00Z")
	now := start.Add(29 * 24 * time.Hour)
	l := realLedger(t)
	p := list(t, `{"model":"gpt*","input":2.5,"cached_input":0.3,"output":10}`, `{"model":"gpt-4o","input":3,"output":7,"reasoning":9,"valid_from":"2026-11-12T07:00:00Z"}`)
	b := NewBudgets(fixed(p))
	plain := new(fake)
	all := map[string]*keys.Key{}
	for i := range 500 {
		row, key := randomCall(rng, i, start.Add(rand64(rng, now.Sub(start))))
		all[key.Alias] = key
		used := Used(row)
		l.End(row)
		b.Add(key, row.Model, row.Time, used)
		plain.rows = append(plain.rows, rowOf(row, used))
	}
	if err := l.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := NewBudgets(fixed(p))
	if err := next.Seed(t.Context(), l, []*keys.Key{all["a"], all["b"], all["c"]}, now); err != nil {
		t.Fatal(err)
	}
	q := ledger.Query{By: []ledger.Grouping{ledger.ByKey}, Since: start}
	lines, err := Report(t.Context(), l, q, p, now)
	if err != nil || len(lines) != 3 {
		t.Fatalf("%+v (%v)", lines, err)
	}
	want := priceEach(plain, q, p)
	for _, line := range lines {
		mine, later := b.Check(all[line.Key], now), next.Check(all[line.Key], now)
		if mine.Seeded = true; mine != later {
			t.Errorf("%s: counted %+v, seeded %+v", line.Key, mine, later)
		}
		w := want[groupOf(line.Usage)]
		if mine.Money != line.Cost.Total() || mine.Tokens != Tokens(line.Reported)+Tokens(line.Estimated) || line.UnpricedTokens != call.Known(mine.UnpricedTokens) ||
			w.Cost.Total() != mine.Money || w.Calls != line.Calls {
			g, _ := json.Marshal(line)
			t.Errorf("%s: counted %+v, reported %s, each by itself %s", line.Key, mine, g, w.Cost.Total())
		}
	}
}

// rowOf is a call for the fake ledger, of which all that was used is taken as
// reported.
func rowOf(r *call.Record, used ledger.Sums) row {
	return row{at: r.Time, key: r.Key, model: r.Model, reported: used}
}

// TestReportOfARealLedger: the ledger and the plain way agree, whatever is asked.
func TestReportOfARealLedger(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	base := instantOf(t, "2026-10-24T00:00:00Z")
	span := 60 * time.Hour
	l, plain := realLedger(t), new(fake)
	for i := range 400 {
		row, _ := randomCall(rng, i, base.Add(rand64(rng, span)))
		l.End(row)
		plain.rows = append(plain.rows, rowOf(row, Used(row)))
	}
	if err := l.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 15 {
		p := randomPrices(t, rng, base, span)
		q := ledger.Query{Zone: zone(t, "Europe/Berlin"), By: []ledger.Grouping{ledger.ByKey, []ledger.Grouping{ledger.ByModel, ledger.ByDay, ledger.ByHour}[rng.IntN(3)]}}
		if rng.IntN(2) == 0 {
			q.Since = base.Add(rand64(rng, span/2))
		}
		got, err := Report(t.Context(), l, q, p, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		want := priceEach(plain, q, p)
		if len(got) != len(want) {
			t.Fatalf("%d lines, want %d", len(got), len(want))
		}
		for _, line := range got {
			w, ok := want[groupOf(line.Usage)]
			w.NoUsage = line.NoUsage // the plain way does not tell
			w.complete()
			if !ok || line.PricedTokens != w.PricedTokens || line.UnpricedTokens != w.UnpricedTokens || (line.Cost == nil) != (w.Cost == nil) ||
				w.Cost != nil && line.Cost.Total() != w.Cost.Total() {
				t.Fatalf("by %v: %+v, want %+v", q.By, line, w)
			}
		}
	}
}
