package slo

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

func TestParseTarget(t *testing.T) {
	for in, want := range map[string]Target{
		"p99": 990_000, "p99.9": 999_000, "p99.99": 999_900, "p99.9999": 999_999, "p50": 500_000, "p1": 10_000, "p0.0001": 1,
		"99%": 990_000, "99.9%": 999_000, "99.90%": 999_000, "099.5%": 995_000, "99.5 %": 995_000, " p95 ": 950_000, "p99.900000000000000000000": 999_000,
	} {
		if got, err := ParseTarget(in); got != want || err != nil {
			t.Errorf("ParseTarget(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for in, why := range map[string]string{
		"": "neither a p", "99": "neither a p", "0.99": "neither a p", "P99": "neither a p", "p": "begin with a number", "%": "begin with a number",
		"p-1": "begin with a number", "p+1": "begin with a number", "p1e1": "begin with a number", "p99.": "begin with a number", "p.9": "begin with a number",
		"p99,9": "begin with a number", "pp99": "begin with a number", "p99%": "begin with a number", "p٩": "begin with a number", "p9__9": "begin with a number",
		"p99.99999": "four decimals", "99.00001%": "four decimals", "p0.0000000000000000001": "four decimals",
		"p100": "no call that may fail", "100%": "no call that may fail", "p101": "no call that may fail", "p0": "promises nothing", "0.0000%": "promises nothing",
		"p" + strings.Repeat("9", 30): "too large", "p1000000000000000": "too large",
	} {
		got, err := ParseTarget(in)
		if err == nil || got != 0 {
			t.Errorf("ParseTarget(%q) = %d, %v", in, got, err)
		} else if !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "p99.9 or 99.9%") {
			t.Errorf("ParseTarget(%q) says %q: want %q and an example", in, err, why)
		}
	}
}

// TestTargetRoundTrip: targets are read as they were written, both ways.
func TestTargetRoundTrip(t *testing.T) {
	for target := Target(1); target < million; target += 31 {
		for _, text := range []string{target.String(), target.Percent()} {
			if got, err := ParseTarget(text); got != target || err != nil {
				t.Fatalf("%d is written %q and read as %d, %v", target, text, got, err)
			}
		}
	}
	for target, want := range map[Target]string{990_000: "p99", 999_000: "p99.9", 500_000: "p50", 999_999: "p99.9999", 1: "p0.0001", 0: "p0", -5000: "p-0.5"} {
		if got := target.String(); got != want || target.Percent() != want[1:]+"%" {
			t.Errorf("%d is written %q and %q", target, got, target.Percent())
		}
	}
}

func TestTargetShares(t *testing.T) {
	for _, tt := range []struct {
		target              Target
		share, budget, burn float64
	}{
		{950_000, 0.95, 0.05, 20}, {990_000, 0.99, 0.01, 100}, {999_000, 0.999, 0.001, 1000}, {900_000, 0.9, 0.1, 10},
		{500_000, 0.5, 0.5, 2}, {995_000, 0.995, 0.005, 200}, {999_999, 0.999999, 0.000001, 1e6},
	} {
		if tt.target.Share() != tt.share || tt.target.BudgetShare() != tt.budget || tt.target.MaxBurn() != tt.burn {
			t.Errorf("%s: %v, %v, %v", tt.target, tt.target.Share(), tt.target.BudgetShare(), tt.target.MaxBurn())
		}
	}
	if got := Target(million).MaxBurn(); !math.IsInf(got, 1) {
		t.Errorf("without a budget, the largest burn is %v", got)
	}
}

// TestScaled holds scaled against rational arithmetic.
func TestScaled(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	whole := 0
	for range 20_000 {
		text := strconv.FormatInt(rng.Int64()>>rng.IntN(63), 10)
		if rng.IntN(2) == 0 {
			text += "." + strconv.FormatInt(rng.Int64()>>(30+rng.IntN(33)), 10)
		}
		mul, div := []int64{1, 60, 1000, 60_000, 1e9, 86_400e9}[rng.IntN(6)], []int64{1, 60}[rng.IntN(2)]
		exact, _ := new(big.Rat).SetString(text)
		exact.Mul(exact, big.NewRat(mul, div))
		got, err := scaled(text, mul, div)
		switch {
		case err == nil:
			whole++
			if exact.Cmp(new(big.Rat).SetInt64(got)) != 0 {
				t.Fatalf("%s·%d/%d = %d, want %s", text, mul, div, got, exact)
			}
		case err == errNotWhole:
			if exact.IsInt() {
				t.Fatalf("%s·%d/%d = %s, and that is whole", text, mul, div, exact)
			}
		case err == errTooLarge:
			digits := strings.ReplaceAll(text, ".", "")
			if n, _ := new(big.Float).SetString(digits); exact.Cmp(big.NewRat(1e15, 60)) < 0 && n.Cmp(big.NewFloat(1e15)) < 0 {
				t.Fatalf("%s·%d/%d = %s is not too large", text, mul, div, exact.FloatString(3))
			}
		default:
			t.Fatalf("%s: %v", text, err)
		}
	}
	if whole < 500 {
		t.Errorf("only %d of the products were whole", whole)
	}
}
