package slo

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// complete completes a configuration that must be right.
func complete(tb testing.TB, c Config) (Config, []Warning) {
	tb.Helper()
	c, warnings, err := c.Complete()
	if err != nil {
		tb.Fatal(err)
	}
	return c, warnings
}

func classOf(tb testing.TB, texts ...string) Class {
	tb.Helper()
	return Class{Name: "gold", Objectives: parseAll(tb, texts...)}
}

func TestCompleteDefaults(t *testing.T) {
	c, warnings := complete(t, Config{})
	want := Config{Period: Period{Rolling: 30 * 24 * time.Hour}, Burn: DefaultBurn(), MinBad: 5, Warn: 0.5, Freeze: 0.8, MinCalls: 59}
	if !reflect.DeepEqual(c, want) || len(warnings) != 0 {
		t.Errorf("got %+v, %v", c, warnings)
	}
	own := Config{Period: Period{Zone: time.UTC}, Burn: []BurnRule{}, MinBad: 1, Warn: 0.1, Freeze: 1, MinCalls: 7}
	if c, _ := complete(t, own); !reflect.DeepEqual(c, own) {
		t.Errorf("what was given became %+v", c)
	}
	if c, _ := complete(t, Config{Period: Period{Rolling: 24 * time.Hour}, Burn: []BurnRule{}}); c.Period.Rolling != 24*time.Hour {
		t.Errorf("the period became %s", c.Period.Name())
	}
}

func TestCompleteNames(t *testing.T) {
	gold := classOf(t, "ttft p99 <= 2s", "ttft p99 <= 1s when input_tokens <= 5", "ttft p99 <= 3s when output_tokens <= 5", "ttft p99.9 <= 9s", "success 99%",
		"success 98% when input_tokens <= 5", "tpot p95 <= 1s", "goodput 90%")
	gold.Objectives[6].Name = "ttft_p99_2" // is taken
	c, _ := complete(t, Config{Classes: []Class{gold, {Name: "silver", Objectives: parseAll(t, "ttft p99 <= 2s")}}})
	var names []string
	for _, class := range c.Classes {
		for _, o := range class.Objectives {
			names = append(names, o.Name)
		}
	}
	want := []string{"ttft_p99", "ttft_p99_3", "ttft_p99_4", "ttft_p99.9", "success", "success_2", "ttft_p99_2", "goodput", "ttft_p99"}
	if !slices.Equal(names, want) {
		t.Errorf("names are %q, want %q", names, want)
	}
	if gold.Objectives[0].Name != "" {
		t.Error("Complete changed what it was given")
	}
}

// TestCompleteFallback: the zero Fallback is none.
func TestCompleteFallback(t *testing.T) {
	for n := range Number(Numbers) {
		o := Objective{Number: n, Target: 950_000}
		if n.Timed() {
			o.Threshold = time.Second
		}
		c, _ := complete(t, Config{Classes: []Class{{Name: "gold", Objectives: []Objective{o, {Number: Success, Target: 990_000}}}}})
		if got := c.Classes[0].Objectives[0].Fallback; got != n {
			t.Errorf("%s has the fallback %s", n, got)
		}
	}
}

// TestCompleteTwice: a complete configuration is one already, default rules that were
// scaled included.
func TestCompleteTwice(t *testing.T) {
	config := Config{Classes: []Class{classOf(t, "ttft p50 <= 2s", "tpot p90 <= 1s"), Presets()[Batch], Presets()[Interactive]}}
	once, first := complete(t, config)
	twice, second := complete(t, once)
	if !reflect.DeepEqual(once, twice) || !reflect.DeepEqual(first, second) || len(first) == 0 {
		t.Errorf("first\n%+v, %v, then\n%+v, %v", once, first, twice, second)
	}
	if err := once.Validate(); err != nil {
		t.Error(err)
	}
}

func TestScaledFactors(t *testing.T) {
	c, warnings := complete(t, Config{Classes: []Class{classOf(t, "ttft p50 <= 2s", "tpot p90 <= 1s", "success 95%", "goodput 93%")}})
	var got []string
	for _, w := range warnings {
		if w.Kind == WarnScaled {
			got = append(got, w.String())
		}
	}
	want := []string{
		"class gold: objective ttft_p50: the burn rule 1h/5m x 14.4 page needs more than it can burn in practice: p50 burns at most 2, when all calls are bad; here the rule fires at 1.8",
		"class gold: objective ttft_p50: the burn rule 6h/30m x 6 page needs more than it can burn in practice: p50 burns at most 2, when all calls are bad; here the rule fires at 1.8",
		"class gold: objective tpot_p90: the burn rule 1h/5m x 14.4 page needs more than it can burn in practice: p90 burns at most 10, when all calls are bad; here the rule fires at 9",
		"class gold: objective goodput: the burn rule 1h/5m x 14.4 page needs more than it can burn in practice: 93% burns at most 14.29, when all calls are bad; here the rule fires at 12.86",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s, want\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !reflect.DeepEqual(c.Burn, DefaultBurn()) {
		t.Errorf("the rules became %v", c.Burn)
	}
}

func TestLateRules(t *testing.T) {
	_, warnings := complete(t, Config{Period: Period{Rolling: 24 * time.Hour}})
	var got []string
	for _, w := range warnings {
		got = append(got, string(w.Kind)+": "+w.String())
	}
	want := []string{
		"late_rule: the burn rule 6h/30m x 6 page fires when 150% of the budget of rolling 1d is spent; take a longer period, or rules with shorter windows",
		"late_rule: the burn rule 3d/6h x 1 ticket fires when 300% of the budget of rolling 1d is spent; take a longer period, or rules with shorter windows",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if _, warnings := complete(t, Config{Period: Period{Zone: time.UTC}}); len(warnings) != 0 {
		t.Errorf("in months: %v", warnings)
	}
}

// TestMinBadReason holds the figures of DefaultMinBad: the chance of so many bad calls in a
// window that is just large enough to fire 14.4, at the rate that the budget allows.
func TestMinBadReason(t *testing.T) {
	chance := func(minBad int) float64 {
		mean, below, term := float64(minBad)/14.4, 0.0, 1.0
		for k := range minBad {
			below += term
			term *= mean / float64(k+1)
		}
		return 1 - below*math.Exp(-mean)
	}
	for minBad, want := range map[int]float64{DefaultMinBad: 3.2e-5, 4: 2.0e-4, 2: 8.8e-3} {
		if got := chance(minBad); math.Abs(got/want-1) > 0.03 {
			t.Errorf("%d bad calls: %v, want %v", minBad, got, want)
		}
	}
}

func TestCallsToFreeze(t *testing.T) {
	c, _ := complete(t, Config{})
	for target, want := range map[Target]int64{900_000: 59, 950_000: 59, 990_000: 299, 995_000: 598, 999_000: 2995} {
		if got := c.CallsToFreeze(target); got != want {
			t.Errorf("%s: %d, want %d", target, got, want)
		}
		// One bad call of so many is no freeze.
		if spent := 1 / (target.BudgetShare() * float64(want)); spent > 0.34 {
			t.Errorf("%s: one bad call of %d is %v of the budget", target, want, spent)
		}
	}
	c.MinCalls = 10_000
	if got := c.CallsToFreeze(999_000); got != 10_000 {
		t.Errorf("got %d", got)
	}
}
