package slo

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
)

// TestTrackedMonthlyBudget is the published example: ten million calls a month at 99.9 % allow ten thousand bad
// ones; when four fifths of them are gone in the first week, it freezes.
func TestTrackedMonthlyBudget(t *testing.T) {
	c, _, err := Config{Classes: []Class{successClass(999_000)}, Period: Period{Zone: time.UTC}}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	april := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
	tr := New()
	if err := tr.Configure(c, april); err != nil {
		t.Fatal(err)
	}
	const month, hours = 10_000_000, 30 * 24
	sent, failed := int64(0), int64(0)
	for h := range int64(7 * 24) {
		at := april.Add(time.Duration(h) * time.Hour)
		tr.Tick(at)
		n, bad := month*(h+1)/hours-sent, 8000*(h+1)/(7*24)-failed
		many(tr, "c", at, n-bad, bad)
		sent, failed = sent+n, failed+bad
		if h == 0 {
			continue
		}
		s := find(t, tr.Status(at.Add(time.Hour-1)), "c", AllModels, "success")
		want := StateOK
		if *s.Budget.ConsumedForecast >= 0.5 {
			want = StateWarning
		}
		if s.Budget.State != want && h < 7*24-2 {
			t.Fatalf("after %d hours with %v consumed the budget is %s, want %s", h+1, *s.Budget.ConsumedForecast, s.Budget.State, want)
		}
	}
	now := april.Add(7 * 24 * time.Hour)
	tr.Tick(now)
	status := tr.Status(now)
	if status.Period.Name != "calendar_month UTC" || !status.Period.From.Equal(april) || !status.Period.To.Equal(april.AddDate(0, 1, 0)) {
		t.Errorf("period is %+v", status.Period)
	}
	o := find(t, status, "c", AllModels, "success")
	if len(o.Firing) != 1 || o.Firing[0].Page {
		t.Errorf("it burns 3.4-fold, and %+v fires, want the ticket", o.Firing)
	}
	b := o.Budget
	if b.Forecast == nil || math.Abs(float64(*b.Forecast-month)) > 50 || math.Abs(*b.AllowedForecast-10_000) > 0.05 {
		t.Fatalf("forecast is %v calls with %v bad ones", *b.Forecast, *b.AllowedForecast)
	}
	if math.Abs(*b.ConsumedForecast-0.8) > 1e-5 || math.Abs(*b.Left-0.2) > 1e-5 {
		t.Errorf("consumed %v of the forecast, left %v", *b.ConsumedForecast, *b.Left)
	}
	// By what was sent so far it is spent more than thrice.
	if !near(*b.Consumed, 8000/(float64(sent)*0.001)) || *b.Consumed < 3.4 {
		t.Errorf("consumed %v of the budget so far", *b.Consumed)
	}
	// The forecast rounds to a call more or less, so one more bad call settles it.
	many(tr, "c", now.Add(-time.Minute), 0, 1)
	if b := find(t, tr.Status(now), "c", AllModels, "success").Budget; b.State != StateFreeze || b.TooFew {
		t.Errorf("the budget is %s with %v consumed, want a freeze", b.State, *b.ConsumedForecast)
	}
}

// TestBudgetEdges checks states at the exact share, where a calculation with floats would be off.
func TestBudgetEdges(t *testing.T) {
	for _, k := range []struct {
		good, bad int64
		want      State
		few       bool
	}{
		{1_000_000, 0, StateOK, false},
		{999_501, 499, StateOK, false},
		{999_500, 500, StateWarning, false},
		{999_201, 799, StateWarning, false},
		{999_200, 800, StateFreeze, false},
		{999_001, 999, StateFreeze, false},
		{999_000, 1000, StateExhausted, false},
		{0, 1_000_000, StateExhausted, false},
		{2994, 0, StateOK, false},
		{2992, 2, StateOK, true},
		{2994, 1, StateOK, false},
		{2990, 5, StateExhausted, false},
	} {
		tr, _ := configured(t, successClass(999_000))
		many(tr, "c", start, k.good, k.bad)
		b := find(t, tr.Status(start), "c", AllModels, "success").Budget
		if b.State != k.want || b.TooFew != k.few {
			t.Errorf("%d good and %d bad: %s, too few %v, want %s, %v", k.good, k.bad, b.State, b.TooFew, k.want, k.few)
		}
		if b.Forecast != nil {
			t.Errorf("a rolling period has a forecast")
		}
	}
}

// TestForecastWaits checks that nothing is forecast in the first hour, nor from the time before
// counts began.
func TestForecastWaits(t *testing.T) {
	c, _, err := Config{Classes: []Class{successClass(990_000)}, Period: Period{Zone: time.UTC}}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 4, 21, 0, 0, 0, 0, time.UTC)
	tr := New()
	if err := tr.Configure(c, begin); err != nil {
		t.Fatal(err)
	}
	many(tr, "c", begin, 1000, 0)
	if b := find(t, tr.Status(begin.Add(time.Hour-1)), "c", AllModels, "success").Budget; b.Forecast != nil {
		t.Errorf("it forecasts %d after less than an hour", *b.Forecast)
	}
	now := begin.Add(24 * time.Hour)
	b := find(t, tr.Status(now), "c", AllModels, "success").Budget
	if b.Forecast == nil || *b.Forecast != 10_000 {
		t.Errorf("1000 calls in the first of ten days forecast %v, want 10000", b.Forecast)
	}
}

// TestExactComparison compares with arithmetic of any size.
func TestExactComparison(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	number := func() int64 { return rng.Int64() >> rng.IntN(63) }
	for range 10_000 {
		a, b, c, d := number(), number(), number(), number()
		if rng.IntN(4) == 0 {
			c, d = b, a
		}
		want := new(big.Int).Mul(big.NewInt(a), big.NewInt(b)).Cmp(new(big.Int).Mul(big.NewInt(c), big.NewInt(d)))
		if got := compare(a, b, c, d); got != want {
			t.Fatalf("%d·%d against %d·%d is %d, want %d", a, b, c, d, got, want)
		}
	}
}
