package report

import (
	"math"
	"testing"
	"time"
)

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		v    float64
		want string
	}{
		{0, "0"}, {1, "1.00"}, {-1, "-1.00"}, {0.5, "0.500"}, {0.0004, "<0.001"}, {-0.0004, ">-0.001"}, {0.0005, "0.001"},
		{0.9996, "1.00"}, {9.994, "9.99"}, {9.996, "10.0"}, {18.27, "18.3"}, {999.94, "999.9"}, {999.96, "1,000"}, {30500, "30,500"},
		{-1234567.8, "-1,234,568"}, {1e15, "1.000e+15"}, {math.MaxFloat64, "1.798e+308"},
		{math.NaN(), "–"}, {math.Inf(1), "–"}, {math.Inf(-1), "–"},
	} {
		if got := number(c.v); got != c.want {
			t.Errorf("number(%v) = %q, want %q", c.v, got, c.want)
		}
	}
	for _, c := range []struct {
		v    float64
		want string
	}{{8, "8"}, {2.5, "2.5"}, {0.25, "0.25"}, {1000, "1,000"}, {100, "100"}, {0, "0"}, {math.NaN(), "–"}} {
		if got := tidy(c.v); got != c.want {
			t.Errorf("tidy(%v) = %q, want %q", c.v, got, c.want)
		}
	}
	for _, c := range []struct {
		v    *float64
		want string
	}{{nil, "–"}, {ptr(0.0), "0"}, {ptr(0.3), "0.300"}, {ptr(99.96), "100.0"}, {ptr(4210.4), "4,210"}, {ptr(math.NaN()), "–"}, {ptr(1e300), "1.000e+300"}} {
		if got := whole(c.v); got != c.want {
			t.Errorf("whole = %q, want %q", got, c.want)
		}
	}
}

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		v    float64
		want string
	}{{0, "0"}, {1, "100"}, {0.9999, ">99.9"}, {0.0001, "<0.1"}, {0.985, "98.5"}, {0.9994, "99.9"}, {math.NaN(), "–"}, {math.Inf(1), "–"}} {
		if got := percent(c.v); got != c.want {
			t.Errorf("percent(%v) = %q, want %q", c.v, got, c.want)
		}
	}
	if got := percentOf(0, 0); got != unknown {
		t.Errorf("a share of nothing is %q", got)
	}
	if got := percentOf(9999, 10000); got != ">99.9" {
		t.Errorf("all but one are %q", got)
	}
}

func TestChange(t *testing.T) {
	for _, c := range []struct {
		a, b *float64
		want string
	}{
		{ptr(10.0), ptr(11.0), "+10.0"}, {ptr(10.0), ptr(9.59), "-4.1"}, {ptr(10.0), ptr(10.001), "0.0"}, {ptr(1.0), ptr(20.0), "+1,900"},
		{nil, ptr(1.0), "–"}, {ptr(1.0), nil, "–"}, {ptr(0.0), ptr(1.0), "–"}, {ptr(1.0), ptr(math.Inf(1)), "–"}, {ptr(1.0), ptr(math.NaN()), "–"},
	} {
		if got := change(c.a, c.b); got != c.want {
			t.Errorf("change = %q, want %q", got, c.want)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{500 * time.Millisecond: "500 ms", 2500 * time.Microsecond: "2.5 ms", 2 * time.Second: "2 s", 90 * time.Second: "1m30s"} {
		if got := span(d); got != want {
			t.Errorf("span(%v) = %q, want %q", d, got, want)
		}
	}
}
