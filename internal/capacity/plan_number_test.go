package capacity

import (
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestPlanNumber(t *testing.T) {
	for in, want := range map[string][3]string{ // nearest, down, up
		"0": {"0", "0", "0"}, "134": {"134", "134", "134"}, "20": {"20", "20", "20"}, "1036": {"1,036", "1,036", "1,036"},
		"191.4285714": {"191.43", "191.42", "191.43"}, "19.999999": {"20", "19.999", "20"}, "20.000001": {"20", "20", "20.001"},
		"54.361536688": {"54.362", "54.361", "54.362"}, "0.4194304": {"0.41943", "0.41943", "0.41944"}, "0.0519045": {"0.051905", "0.051904", "0.051905"},
		"1234567.8": {"1,234,568", "1,234,567", "1,234,568"}, "327680": {"327,680", "327,680", "327,680"}, "0.00000000000000001": {"0", "0", "0.000000000001"},
		"99999.6": {"100,000", "99,999", "100,000"}, "2.6": {"2.6", "2.6", "2.6"}, "0.53125": {"0.53125", "0.53125", "0.53125"},
	} {
		r, ok := new(big.Rat).SetString(in)
		if !ok {
			t.Fatal(in)
		}
		for i, rounding := range []planRounding{planNearest, planDown, planUp} {
			if got := planNumber(r, rounding); got != want[i] {
				t.Errorf("%s, rounding %d: %s, want %s", in, rounding, got, want[i])
			}
		}
	}
	if got := planSigned(big.NewRat(-77, 10)); got != "−7.7" {
		t.Errorf("−7.7 is written %s", got)
	}
}

// TestPlanNumberBounds: what is shown is read back within the fifth digit, and on the
// side that the rounding says.
func TestPlanNumberBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		r := big.NewRat(rng.Int64()>>rng.IntN(62), 1+rng.Int64()>>rng.IntN(62))
		if r.Cmp(big.NewRat(1, 100_000)) < 0 {
			continue
		}
		for _, rounding := range []planRounding{planNearest, planDown, planUp} {
			text := planNumber(r, rounding)
			shown, ok := new(big.Rat).SetString(strings.ReplaceAll(text, ",", ""))
			if !ok {
				t.Fatalf("%s is shown %s", r, text)
			}
			off := new(big.Rat).Sub(shown, r)
			if rounding == planDown && off.Sign() > 0 || rounding == planUp && off.Sign() < 0 {
				t.Fatalf("%s is shown %s, rounding %d", r.FloatString(9), text, rounding)
			}
			if off.Abs(off).Quo(off, r).Cmp(big.NewRat(1, 10_000)) > 0 {
				t.Fatalf("%s is shown %s", r.FloatString(9), text)
			}
			if strings.Contains(text, ".") && strings.HasSuffix(text, "0") {
				t.Fatalf("%s has closing zeros", text)
			}
		}
	}
}

func TestPlanFloorCeil(t *testing.T) {
	for _, c := range []struct {
		n, d        int64
		floor, ceil int64
	}{{0, 1, 0, 0}, {20, 1, 20, 20}, {7, 2, 3, 4}, {-7, 2, -4, -3}, {-4, 2, -2, -2}, {1, 1 << 62, 0, 1}} {
		r := big.NewRat(c.n, c.d)
		if got := planFloor(r).Int64(); got != c.floor {
			t.Errorf("floor of %s is %d", r, got)
		}
		if got := planCeil(r).Int64(); got != c.ceil {
			t.Errorf("ceiling of %s is %d", r, got)
		}
	}
}

// TestPlanDecimal: 0.9 is nine tenths, and not the binary fraction next to it.
func TestPlanDecimal(t *testing.T) {
	for f, want := range map[float64]string{0.9: "9/10", 0.7: "7/10", 20: "20", 1e-6: "1/1000000", 2.5e3: "2500", 0.3333: "3333/10000"} {
		if got := planDecimal(f).RatString(); got != want {
			t.Errorf("%v is %s, want %s", f, got, want)
		}
	}
}

func TestPlanSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 25 * time.Millisecond: "0.025 s", 300 * time.Millisecond: "0.3 s", 1: "0.000000001 s", time.Hour: "3600 s", 1500 * time.Microsecond: "0.0015 s",
	} {
		if got := planSpan(d); got != want {
			t.Errorf("%v is written %s, want %s", d, got, want)
		}
	}
}
