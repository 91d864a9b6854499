package slo

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

const month = 30 * 24 * time.Hour

// TestWorkbookRecommendations holds the table "Recommended parameters for a 99.9 % SLO
// alerting configuration" of the SRE workbook.
func TestWorkbookRecommendations(t *testing.T) {
	for i, want := range []struct {
		page        bool
		long, short time.Duration
		burn, spent float64
	}{
		{true, time.Hour, 5 * time.Minute, 14.4, 0.02},
		{true, 6 * time.Hour, 30 * time.Minute, 6, 0.05},
		{false, 3 * 24 * time.Hour, 6 * time.Hour, 1, 0.10},
	} {
		r := DefaultBurn()[i]
		if !reflect.DeepEqual(r, BurnRule{want.long, want.short, want.burn, want.page}) {
			t.Errorf("rule %d is %+v", i, r)
		}
		if got := BudgetSpentAtAlert(r, month); math.Abs(got-want.spent) > 1e-15 {
			t.Errorf("%s spends %v, want %v", r, got, want.spent)
		}
		if r.Long != 12*r.Short {
			t.Errorf("%s: the short window is not a twelfth", r)
		}
		if got := FactorFor(r, 999_000); got != want.burn {
			t.Errorf("%s: the factor is %v", r, got)
		}
	}
	// Its example of one window: 5 % of the budget in an hour is a burn of 36.
	if got := BudgetSpentAtAlert(BurnRule{Long: time.Hour, Factor: 36}, month); math.Abs(got-0.05) > 1e-15 {
		t.Errorf("got %v", got)
	}
	if got := BudgetSpentAtAlert(DefaultBurn()[0], 0); !math.IsInf(got, 1) {
		t.Errorf("of no period: %v", got)
	}
}

// TestTimeToAlert has the workbook's formula, (1 − SLO)/error ratio · window · burn, at 99.9 %
// for error ratios up to an outage.
func TestTimeToAlert(t *testing.T) {
	rules := DefaultBurn()
	for _, tt := range []struct {
		rule  int
		ratio float64
		want  time.Duration // 0 is never
	}{
		{0, 1, 51840 * time.Millisecond}, {0, 0.1, 518400 * time.Millisecond}, {0, 0.02, 43*time.Minute + 12*time.Second},
		{0, 0.0145, 3575172414 * time.Microsecond}, {0, 0.0144, 0}, {0, 0.01, 0}, {0, 0.001, 0}, {0, 0, 0},
		{1, 1, 129600 * time.Millisecond}, {1, 0.1, 21*time.Minute + 36*time.Second}, {1, 0.01, 3*time.Hour + 36*time.Minute}, {1, 0.006, 0}, {1, 0.002, 0},
		{2, 1, 259200 * time.Millisecond}, {2, 0.1, 43*time.Minute + 12*time.Second}, {2, 0.01, 7*time.Hour + 12*time.Minute}, {2, 0.002, 36 * time.Hour}, {2, 0.001, 0},
		{0, 1.01, 0}, {0, -1, 0}, {0, math.NaN(), 0}, {0, math.Inf(1), 0},
	} {
		got, ok := TimeToAlert(rules[tt.rule], 999_000, tt.ratio)
		if diff := got - tt.want; ok != (tt.want > 0) || diff < -time.Microsecond || diff > time.Microsecond {
			t.Errorf("%s at %v: %s, %v; want %s", rules[tt.rule], tt.ratio, got, ok, tt.want)
		}
	}
	if _, ok := TimeToAlert(BurnRule{}, 999_000, 1); ok {
		t.Error("no rule fires")
	}
}

// TestSpentByThen: what is burnt from the start of the trouble to the alert is what
// BudgetSpentAtAlert says, whatever the target and the ratio.
func TestSpentByThen(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	fired := 0
	for range 10_000 {
		target := 940_000 + Target(rng.IntN(59_999))
		ratio := rng.Float64()
		for _, r := range DefaultBurn() {
			took, ok := TimeToAlert(r, target, ratio)
			if burn := ratio / target.BudgetShare(); ok != (burn > r.Factor) {
				t.Fatalf("%s: %s burns at %v, and fires: %v", r, target, burn, ok)
			} else if ok {
				fired++
				if took > r.Long {
					t.Fatalf("%s takes %s", r, took)
				}
				if got := burn * float64(took) / float64(month); math.Abs(got/BudgetSpentAtAlert(r, month)-1) > 1e-6 {
					t.Fatalf("%s: spent %v", r, got)
				}
			}
		}
	}
	if fired < 10_000 {
		t.Errorf("only %d fired", fired)
	}
}

// TestEveryDefaultCanFire: scaled as it is, each default rule fires in an outage, for whatever target.
func TestEveryDefaultCanFire(t *testing.T) {
	for target := Target(1); target < million; target += 97 {
		for _, r := range DefaultBurn() {
			factor := FactorFor(r, target)
			if factor > r.Factor || factor > 0.9*target.MaxBurn() || target >= 937_500 && factor != r.Factor {
				t.Fatalf("%s of %s: %v", r, target, factor)
			}
			if took, ok := TimeToAlert(r, target, 1); !ok || took > r.Long {
				t.Fatalf("%s of %s: %s, %v", r, target, took, ok)
			}
		}
	}
	for target, want := range map[Target]float64{900_000: 9, 500_000: 1.8, 950_000: 14.4, 937_500: 14.4, 999_000: 14.4} {
		if got := FactorFor(DefaultBurn()[0], target); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %v, want %v", target, got, want)
		}
	}
}

// TestMonthlyBudget is the monthly example: 10 M calls at 99.9 % allow 10,000 bad ones, 43 minutes by time.
func TestMonthlyBudget(t *testing.T) {
	target, err := ParseTarget("99.9%")
	if err != nil {
		t.Fatal(err)
	}
	if got := 10e6 * target.BudgetShare(); got != 10_000 {
		t.Errorf("%v bad calls", got)
	}
	if got := time.Duration(float64(month) * target.BudgetShare()).Round(time.Second); got != 43*time.Minute+12*time.Second {
		t.Errorf("%s", got)
	}
	// The workbook's table of burn rates and how long a budget lasts.
	for burn, lasts := range map[float64]time.Duration{1: month, 2: month / 2, 10: 3 * 24 * time.Hour, 1000: 43*time.Minute + 12*time.Second} {
		r := BurnRule{Long: time.Duration(float64(month) / burn), Factor: burn}
		if got := BudgetSpentAtAlert(r, month); math.Abs(got-1) > 1e-12 || r.Long != lasts {
			t.Errorf("at %v a budget lasts %s, and %v of it", burn, r.Long, got)
		}
	}
}
