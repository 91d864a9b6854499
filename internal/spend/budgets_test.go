package spend

import (
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/keys"
	"github.com/weirgate/weir/internal/ledger"
)

func limited(alias string, b keys.Budget) *keys.Key { return &keys.Key{Alias: alias, Budget: &b} }

func fixed(p *Prices) func() *Prices { return func() *Prices { return p } }

// seeded returns Budgets for which the ledger has nothing.
func seeded(t testing.TB, p *Prices, now time.Time, all ...*keys.Key) *Budgets {
	t.Helper()
	b := NewBudgets(fixed(p))
	if err := b.Seed(t.Context(), new(fake), all, now); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTokenBudget(t *testing.T) {
	now := instantOf(t, "2026-11-30T12:00:00Z")
	k := limited("a", keys.Budget{Tokens: call.Known(100), Per: keys.Daily, Warn: 0.5})
	b := seeded(t, nil, now, k)
	want := State{Limited: true, Seeded: true, TokenLimit: call.Known(100), Starts: instantOf(t, "2026-11-30T00:00:00Z"), Resets: instantOf(t, "2026-12-01T00:00:00Z")}
	check := func(at time.Time) {
		t.Helper()
		if got := b.Check(k, at); got != want {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
	check(now)
	b.Add(k, "m", now, ledger.Sums{Input: 40, Cached: 40, Output: 9})
	want.Tokens, want.Fraction = 49, 0.49
	check(now)
	b.Add(k, "m", now, ledger.Sums{Input: 1})
	want.Tokens, want.Fraction, want.Warn = 50, 0.5, true
	check(now)
	b.Add(k, "m", now, ledger.Sums{Output: 49})
	want.Tokens, want.Fraction = 99, 0.99
	check(now)
	b.Add(k, "m", now, ledger.Sums{Output: 2})
	want.Tokens, want.Fraction, want.Exceeded = 101, 1.01, true
	check(now)
	// A clock that was set back, and a call of yesterday, change nothing.
	check(now.Add(-24 * time.Hour))
	b.Add(k, "m", now.Add(-24*time.Hour), ledger.Sums{Output: 2})
	check(now)
	check(want.Resets.Add(-1))
	// The next day is a new one, of which all is known.
	want.Starts, want.Resets = want.Resets, want.Resets.Add(24*time.Hour)
	want.Tokens, want.Fraction, want.Exceeded, want.Warn = 0, 0, false, false
	check(want.Starts)
	// A call that began before it, too, belongs to the day before.
	b.Add(k, "m", want.Starts.Add(-1), ledger.Sums{Output: 2})
	check(want.Starts)
}

func TestKeysWithoutBudget(t *testing.T) {
	b := NewBudgets(nil)
	for _, k := range []*keys.Key{nil, {Alias: "a"}} {
		b.Add(k, "m", time.Now(), ledger.Sums{Input: 1})
		if got := b.Check(k, time.Now()); got != (State{}) {
			t.Errorf("got %+v", got)
		}
	}
	if len(b.accounts) != 0 {
		t.Errorf("%d accounts are kept for keys without a budget", len(b.accounts))
	}
}

func TestBudgetOfNothing(t *testing.T) {
	now := time.Unix(1e9, 0)
	k := limited("a", keys.Budget{Tokens: call.Known(0)})
	if got := seeded(t, nil, now, k).Check(k, now); !got.Exceeded || got.Fraction != 1 || !got.Warn {
		t.Errorf("a budget of 0 tokens: %+v", got)
	}
}

// TestMoneyBudget: prices change within the period, are corrected, vanish, and the
// costs follow; what has no price is said to have none.
func TestMoneyBudget(t *testing.T) {
	now := instantOf(t, "2026-11-30T12:30:00Z")
	p := list(t, `{"model":"m","input":1,"output":2}`, `{"model":"m","input":3,"output":4,"valid_from":"2026-11-30T12:00:00Z"}`)
	b := NewBudgets(func() *Prices { return p })
	k := limited("a", keys.Budget{Money: 0.00001, Tokens: call.Known(1000), Per: keys.Monthly})
	if err := b.Seed(t.Context(), new(fake), []*keys.Key{k}, now); err != nil {
		t.Fatal(err)
	}
	b.Add(k, "m", now.Add(-time.Hour), ledger.Sums{Input: 1, Output: 1})         // 3 millionths
	b.Add(k, "m", now, ledger.Sums{Input: 1})                                    // 3
	b.Add(k, "unknown", now.Add(-2*time.Hour), ledger.Sums{Input: 5, Output: 2}) // no price
	b.Add(k, "m", now.Add(-time.Hour), ledger.Sums{Output: 1})                   // 2, out of order
	got := b.Check(k, now)
	if got.Money.String() != "0.000008" || got.MoneyLimit.String() != "0.00001" || got.UnpricedTokens != 7 || got.Tokens != 11 || got.Exceeded || !got.Warn || got.Fraction != 0.8 {
		t.Errorf("got %+v", got)
	}
	p = list(t, `{"model":"m","input":1,"output":2}`, `{"model":"u*","input":1,"output":0.5}`, `{"model":"m","input":3,"output":2.5,"valid_from":"2026-11-30T11:00:00Z"}`)
	if got = b.Check(k, now); got.Money.String() != "0.000017" || got.UnpricedTokens != 0 || !got.Exceeded {
		t.Errorf("corrected: %+v", got)
	}
	p = nil
	b.Add(k, "m", now, ledger.Sums{Input: 1})
	if got = b.Check(k, now); !got.Money.IsZero() || got.UnpricedTokens != 12 || got.Exceeded {
		t.Errorf("without a list: %+v", got)
	}
}

// TestBudgetIsPricingEachCall: at any time, a budget says what each call, priced
// by itself, adds up to.
func TestBudgetIsPricingEachCall(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	berlin := zone(t, "Europe/Berlin")
	for trial := range 40 {
		base := instantOf(t, "2026-10-24T22:00:00Z") // a day of 25 hours begins
		var p *Prices
		b := NewBudgets(func() *Prices { return p })
		k := limited("a", keys.Budget{Money: 1, Zone: berlin, Per: keys.Daily})
		rows := randomRows(rng, 100, []string{"gpt-4o", "gpt-4o-mini", "llama", "other"}, base.Add(-2*time.Hour), 27*time.Hour)
		before := &fake{rows: rows[:50]}
		for i := range before.rows {
			before.rows[i].key = "a"
		}
		p = randomPrices(t, rng, base, 25*time.Hour)
		if err := b.Seed(t.Context(), before, []*keys.Key{k}, base.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		for i, r := range rows {
			if i < 50 {
				continue
			}
			b.Add(k, r.model, r.at, plus(r.reported, r.estimated))
			if rng.IntN(5) == 0 {
				p = randomPrices(t, rng, base, 25*time.Hour)
			}
			var money Money
			var tokens, unpriced int64
			for _, r := range rows[:i+1] {
				if r.at.Before(base) {
					continue
				}
				used := plus(r.reported, r.estimated)
				tokens += Tokens(used)
				if rates, ok := p.At(r.model, r.at); ok {
					money = money.Plus(rates.Cost(used))
				} else {
					unpriced += Tokens(used)
				}
			}
			got := b.Check(k, base.Add(24*time.Hour))
			if got.Money != money || got.Tokens != tokens || got.UnpricedTokens != unpriced || !got.Resets.Equal(base.Add(25*time.Hour)) {
				t.Fatalf("trial %d, call %d: %+v, want %s, %d tokens, %d unpriced", trial, i, got, money, tokens, unpriced)
			}
		}
	}
}

func TestModelsOfAnAccountAreBounded(t *testing.T) {
	now := time.Unix(1e9, 0)
	k := limited("a", keys.Budget{Money: 1})
	b := seeded(t, list(t, `{"model":"*","input":1,"output":1}`), now, k)
	for i := range maxSpentModels + 10 {
		b.Add(k, strconv.Itoa(i), now, ledger.Sums{Input: 1_000})
	}
	b.Add(k, "junk", now, ledger.Sums{})
	if got := b.Check(k, now); got.UnpricedTokens != 10_000 || got.Money.String() != "0.256" || got.Tokens != 266_000 {
		t.Errorf("got %+v", got)
	}
	b.prices = fixed(list(t, `{"model":"*","input":2,"output":1}`))
	if got := b.Check(k, now); got.UnpricedTokens != 10_000 || got.Money.String() != "0.512" {
		t.Errorf("got %+v", got)
	}
}

func TestChangedBudget(t *testing.T) {
	now := instantOf(t, "2026-11-30T12:00:00Z")
	k := limited("a", keys.Budget{Tokens: call.Known(100), Per: keys.Daily})
	b := seeded(t, nil, now, k)
	b.Add(k, "m", now, ledger.Sums{Input: 50})
	// A reloaded file has the same key once more, with another limit: what was spent stays.
	more := limited("a", keys.Budget{Tokens: call.Known(200), Per: keys.Daily, Zone: time.UTC})
	if got := b.Check(more, now); got.Tokens != 50 || !got.Seeded || got.Fraction != 0.25 {
		t.Errorf("got %+v", got)
	}
	// A call that was admitted under the old budget counts, and changes nothing else.
	b.Add(k, "m", now, ledger.Sums{Input: 10})
	// Another period begins anew, and asks the ledger.
	month := limited("a", keys.Budget{Tokens: call.Known(200), Per: keys.Monthly})
	if got := b.Check(month, now); got.Tokens != 0 || got.Seeded {
		t.Errorf("got %+v", got)
	}
	b.Add(k, "m", now, ledger.Sums{Input: 5})
	f := &fake{rows: []row{{at: instantOf(t, "2026-11-01T00:00:00Z"), key: "a", reported: ledger.Sums{Input: 30}}, {at: now, key: "a", reported: ledger.Sums{Input: 65}},
		{at: instantOf(t, "2026-10-31T23:59:59Z"), key: "a", reported: ledger.Sums{Input: 7}}, {at: now, key: "b", reported: ledger.Sums{Input: 9}}}}
	if err := b.Seed(t.Context(), f, []*keys.Key{month, {Alias: "c"}}, now); err != nil {
		t.Fatal(err)
	}
	if got := b.Check(month, now); got.Tokens != 95 || !got.Seeded {
		t.Errorf("got %+v", got)
	}
	if q := f.questions; len(q) != 1 || len(q[0].Keys) != 1 || len(q[0].By) != 1 {
		t.Errorf("asked %+v", q)
	}
	// Nothing is left to ask, and a key that is gone is forgotten.
	if err := b.Seed(t.Context(), f, []*keys.Key{month}, now); err != nil || len(f.questions) != 1 {
		t.Errorf("asked %+v (%v)", f.questions, err)
	}
	if err := b.Seed(t.Context(), f, nil, now); err != nil || len(b.accounts) != 0 {
		t.Errorf("%d accounts (%v)", len(b.accounts), err)
	}
}

// TestUsed: a call counts what its upstream reported, else the estimates, and
// nothing where it cannot have used anything.
func TestUsed(t *testing.T) {
	a := call.Admission{EstimatedInput: call.Known(10), EstimatedOutput: call.Known(20), Reserved: call.Known(99)}
	usage := call.Usage{Input: call.Known(5), Cached: call.Known(3), CacheWrite: call.Known(1), Output: call.Known(4), Reasoning: call.Known(2)}
	record := func(outcome call.Outcome, status, attempts int, source call.UsageSource) *call.Record {
		r := new(call.Record)
		r.Outcome, r.Status, r.Attempts, r.UsageSource = outcome, status, attempts, source
		if source != "" && source != call.UsageNone {
			r.Usage = usage
		}
		return r
	}
	reported, estimated, nothing := ledger.Sums{Input: 5, Cached: 3, CacheWrite: 1, Output: 4, Reasoning: 2}, ledger.Sums{Input: 10, Output: 20}, ledger.Sums{}
	for name, tt := range map[string]struct {
		rec  *call.Record
		want ledger.Sums
	}{
		"reported":                     {record(call.Completed, 200, 1, call.UsageReported), reported},
		"partial":                      {record(call.ClientGone, 200, 1, call.UsagePartial), reported},
		"an error that reported usage": {record(call.UpstreamError, 500, 1, call.UsageReported), reported},
		"not reported":                 {record(call.Completed, 200, 1, call.UsageNone), estimated},
		"client left in the prefill":   {record(call.ClientGone, 0, 1, ""), estimated},
		"crashed":                      {record(call.Crashed, 0, 1, ""), estimated},
		"lost connection":              {record(call.UpstreamError, 502, 1, ""), nothing},
		"refused":                      {record(call.Refused, 429, 0, ""), nothing},
		"upstream said no":             {record(call.UpstreamError, 400, 1, ""), nothing},
		"never sent":                   {record(call.ClientGone, 0, 0, ""), nothing},
		"answered without an attempt":  {record(call.Completed, 200, 0, ""), estimated},
	} {
		tt.rec.Admission = a
		if got := Used(tt.rec); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

// TestBudgetsAtOnce: what many goroutines add is all there, while others look,
// seed, and change prices.
func TestBudgetsAtOnce(t *testing.T) {
	now := instantOf(t, "2026-11-30T12:00:00Z")
	lists := []*Prices{list(t, `{"model":"*","input":1,"output":1}`), list(t, `{"model":"*","input":2,"output":1}`)}
	b := NewBudgets(func() *Prices { return lists[rand.IntN(2)] })
	all := []*keys.Key{limited("a", keys.Budget{Money: 1}), limited("b", keys.Budget{Tokens: call.Known(math.MaxInt64)})}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for range 500 {
				for _, k := range all {
					b.Add(k, "m"+strconv.Itoa(g), now.Add(time.Duration(g)*time.Hour), ledger.Sums{Input: 1_000_000})
					b.Check(k, now)
				}
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			if err := b.Seed(t.Context(), new(fake), all, now); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	lists[1] = lists[0]
	if got := b.Check(all[0], now); got.Tokens != 2000e6 || got.Money.String() != "2000" || !got.Seeded {
		t.Errorf("got %+v", got)
	}
	if got := b.Check(all[1], now); got.Tokens != 2000e6 {
		t.Errorf("got %+v", got)
	}
}
