package spend

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestMoneyIsExact compares the arithmetic with big integers.
func TestMoneyIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	edges := []int64{0, 1, -1, math.MaxInt64, math.MinInt64 + 1, 1 << 32, -(1 << 32), 1e9, 1e18}
	random := func() int64 {
		if rng.IntN(4) == 0 {
			return edges[rng.IntN(len(edges))]
		}
		return int64(rng.Uint64()) >> rng.IntN(63)
	}
	var sum Money
	exact := new(big.Int)
	for range 20_000 {
		n, price := random(), max(0, random())
		price %= maxPrice * 1e9
		m, want := times(n, price), new(big.Int).Mul(big.NewInt(n), big.NewInt(price))
		if m.big().Cmp(want) != 0 {
			t.Fatalf("%d·%d = %v, want %v", n, price, m.big(), want)
		}
		// Halved, so that the sum stays in range.
		half := times(n/20_000, price)
		before := sum
		sum = sum.Plus(half)
		exact.Add(exact, half.big())
		if sum.big().Cmp(exact) != 0 {
			t.Fatalf("the sum is %v, want %v", sum.big(), exact)
		}
		if back := sum.Minus(half); back != before || sum.Compare(before) != half.big().Sign() || before.Compare(sum) != -half.big().Sign() {
			t.Fatalf("%v minus %v is %v, want %v", sum, half, back, before)
		}
		if f, _ := new(big.Rat).SetFrac(exact, big.NewInt(1e15)).Float64(); math.Abs(sum.Float()-f) > math.Abs(f)*1e-15 {
			t.Fatalf("%v as a float is %v, want %v", sum, sum.Float(), f)
		}
	}
}

func TestMoneyText(t *testing.T) {
	for _, tt := range []struct {
		tokens, price     int64
		exact, two, whole string
	}{
		{0, 5, "0", "0.00", "0"},
		{1, 1, "0.000000000000001", "0.00", "0"},
		{1_000_000, 2_500_000_000, "2.5", "2.50", "3"},
		{1_000_000, 1_000_000_000_000, "1000", "1000.00", "1000"},
		{1_000_000, 4_999_999, "0.004999999", "0.00", "0"},
		{1_000_000, 5_000_000, "0.005", "0.01", "0"},
		{-1_000_000, 5_000_000, "-0.005", "-0.01", "0"},
		{-1_000_000, 4_000_000, "-0.004", "0.00", "0"},
		{-3_000_000, 2_500_000_000, "-7.5", "-7.50", "-8"},
		{math.MaxInt64, maxPrice * 1e9, "9223372036854775807000", "9223372036854775807000.00", "9223372036854775807000"},
	} {
		m := times(tt.tokens, tt.price)
		b, err := json.Marshal(m)
		if m.String() != tt.exact || m.Rounded(2) != tt.two || m.Rounded(0) != tt.whole || string(b) != tt.exact || err != nil {
			t.Errorf("%d·%d: %s, %s, %s, %s (%v)", tt.tokens, tt.price, m, m.Rounded(2), m.Rounded(0), b, err)
		}
		if tt.tokens >= 0 && len(tt.exact) < 20 {
			if back, err := ParseMoney(m.String()); back != m || err != nil {
				t.Errorf("%s was read as %s (%v)", m, back, err)
			}
		}
	}
	if m := times(1_000_000, 1); m.Rounded(99) != "0.000000001000000" || m.Rounded(-1) != "0" {
		t.Errorf("%s and %s", m.Rounded(99), m.Rounded(-1))
	}
	for _, bad := range []string{"", "-1", "+1", "1e3", ".5", "5.", "1,5", " 1", "0x1", "1.0000000000000001", "1000000000000001", strings.Repeat("1", 65), "NaN"} {
		if m, err := ParseMoney(bad); err == nil {
			t.Errorf("%q was read as %s", bad, m)
		}
	}
}

func TestMoneyOfFloats(t *testing.T) {
	for f, want := range map[float64]string{0.1: "0.1", 25: "25", 12345678.9: "12345678.9", 1e15: "1000000000000000", 1e-15: "0.000000000000001",
		1.23456789012345678e-3: "0.001234567890123", 1e-20: "0", math.NaN(): "0", math.Inf(1): "0", -1: "0", 1e16: "0"} {
		if got := moneyOf(f); got.String() != want {
			t.Errorf("%v is %s, want %s", f, got, want)
		}
	}
}

// FuzzParseMoney: whatever is read is written as it was, but for zeros.
func FuzzParseMoney(f *testing.F) {
	for _, s := range []string{"0", "1.5", "000.100", "999999999999.999999999999999", "1.", "-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := ParseMoney(s)
		if err != nil {
			return
		}
		want, ok := new(big.Rat).SetString(s)
		got, _ := new(big.Rat).SetString(m.String())
		if !ok || want.Cmp(got) != 0 {
			t.Errorf("%q was read as %s", s, m)
		}
	})
}
