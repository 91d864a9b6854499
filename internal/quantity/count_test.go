package quantity

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

func TestParseCount(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "7": 7, "007": 7, "200k": 200_000, "200K": 200_000, "1.5M": 1_500_000, "1.5m": 1_500_000,
		"2G": 2e9, "2B": 2e9, "2b": 2e9, "3T": 3e12, "1_000": 1000, "1_000_000.5k": 1_000_000_500,
		"0.5k": 500, "1.000": 1, "2.50k": 2500, "200 k": 200_000, "\t 5 ": 5, "1e6": 1e6, "1.5E+3": 1500, "2500e-2": 25, "0e30": 0,
		"9223372036854775807": math.MaxInt64, "9223372.036854775807T": math.MaxInt64,
	} {
		if got, err := ParseCount(in); got != want || err != nil {
			t.Errorf("ParseCount(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for in, why := range map[string]string{
		"": "begin with a number", " ": "begin with a number", "k": "begin with a number", "-1": "begin with a number",
		"+1": "begin with a number", ".5k": "begin with a number", "_1": "begin with a number", "unlimited": "begin with a number",
		"1__0": "unit", "1_": "unit", "1.k": "unit", "1.5.2": "unit", "1,000": "unit", "1x": "unit", "1kk": "unit", "1ki": "unit",
		"1e": "unit", "1e+": "unit", "1e3k": "unit", "1  k": "unit", "1\tk": "unit", "0x10": "unit", "1/2": "unit", "NaN": "begin", "Inf": "begin", "٣": "begin",
		"1.5": "whole number", "1.0005k": "whole number", "1e-1": "whole number", "9223372036854775808": "whole number", "10000000T": "whole number",
		"1e31": "begin", "1e999999999999999999": "begin", strings.Repeat("1", 65): "too long",
	} {
		got, err := ParseCount(in)
		if err == nil || got != 0 {
			t.Errorf("ParseCount(%q) = %d, %v", in, got, err)
			continue
		}
		if !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "200k") {
			t.Errorf("ParseCount(%q) says %q: want %q and an example", in, err, why)
		}
	}
}

// TestErrorsDoNotRepeatSecrets: a key in the wrong place is not logged whole.
func TestErrorsDoNotRepeatSecrets(t *testing.T) {
	const secret = "sk-weir-0123456789abcdefghij"
	_, count := ParseCount(secret)
	_, size := ParseSize(secret)
	_, span := ParseDuration(secret)
	for _, err := range []error{count, size, span} {
		if err == nil || strings.Contains(err.Error(), secret[:maxQuoted+1]) || !strings.Contains(err.Error(), secret[:maxQuoted]+`"…`) {
			t.Errorf("the error is %v", err)
		}
	}
	if got := quote("äöüß"); got != `"äöüß"` {
		t.Errorf("quoted as %s", got)
	}
	if got := quote(strings.Repeat("ä", 17)); got != `"`+strings.Repeat("ä", 16)+`"…` {
		t.Errorf("cut to %s", got)
	}
}

func TestFormatCount(t *testing.T) {
	for in, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1k", 1234: "1234", 1250: "1.25k", 1500: "1.5k", 1050: "1.05k", 200_000: "200k", 999_990: "999.99k",
		1_500_000: "1.5M", 1_250_000: "1.25M", 1_234_000: "1234k", 1_234_567: "1234567", 2e9: "2G", 3e12: "3T", 5e15: "5000T",
		math.MaxInt64: "9223372036854775807", -200_000: "-200000", math.MinInt64: "-9223372036854775808",
	} {
		if got := FormatCount(in); got != want {
			t.Errorf("FormatCount(%d) = %q, want %q", in, got, want)
		}
	}
}

// magnitudes calls check with numbers of every size, round ones and crooked ones.
func magnitudes(check func(n int64)) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		n := rng.Int64() >> rng.IntN(63)
		check(n)
		for range rng.IntN(18) {
			n = n / 10 * 10
			n -= n % int64(math.Pow10(rng.IntN(6)))
		}
		check(n)
		check(int64(rng.IntN(1000)) << rng.IntN(54))
	}
	check(math.MaxInt64)
	check(0)
}

func TestCountRoundTrip(t *testing.T) {
	magnitudes(func(n int64) {
		if got, err := ParseCount(FormatCount(n)); got != n || err != nil {
			t.Fatalf("%d is written %q and read as %d, %v", n, FormatCount(n), got, err)
		}
	})
}

func TestCountJSON(t *testing.T) {
	type document struct {
		N *Count `json:"n,omitempty"`
	}
	for in, want := range map[string]string{
		`{"n":200000}`: `{"n":"200k"}`, `{"n":"200k"}`: `{"n":"200k"}`, `{"n":2e5}`: `{"n":"200k"}`, `{"n":1.5e3}`: `{"n":"1.5k"}`,
		`{"n":0}`: `{"n":0}`, `{"n":"0"}`: `{"n":0}`, `{"n":1234}`: `{"n":1234}`, `{"n":"\u0032k"}`: `{"n":"2k"}`, `{"n":null}`: `{}`, `{}`: `{}`,
	} {
		var d document
		if err := json.Unmarshal([]byte(in), &d); err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got, err := json.Marshal(d); string(got) != want || err != nil {
			t.Errorf("%s became %s, %v; want %s", in, got, err, want)
		}
	}
	for _, in := range []string{`{"n":-1}`, `{"n":1.5}`, `{"n":"x"}`, `{"n":""}`, `{"n":true}`, `{"n":[1]}`, `{"n":{}}`, `{"n":1e40}`} {
		if err := json.Unmarshal([]byte(in), new(document)); err == nil || !strings.Contains(err.Error(), "200k") {
			t.Errorf("%s: %v", in, err)
		}
	}
	c := Count(5)
	if err := c.UnmarshalJSON([]byte("null")); err != nil || c != 5 {
		t.Errorf("null made it %d, %v", c, err)
	}
	if err := c.UnmarshalJSON([]byte(`"open`)); err == nil {
		t.Error("a broken string was read")
	}
}

// FuzzCount: what is read is written and read again as the same, and plain
// numbers are read as the standard library reads them.
func FuzzCount(f *testing.F) {
	for _, in := range []string{"200k", "1.5M", "1_000", "1e6", "2 B", "9223372036854775807", "1e-3", "0.001k", "--", "1__2"} {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		n, err := ParseCount(in)
		if plain, plainErr := strconv.ParseInt(in, 10, 64); plainErr == nil && plain >= 0 && len(in) <= maxText && in[0] != '+' && in[0] != '-' && (err != nil || n != plain) {
			t.Fatalf("%q is %d, read as %d, %v", in, plain, n, err)
		}
		if err != nil {
			if n != 0 {
				t.Fatalf("%q: %d and %v", in, n, err)
			}
			return
		}
		if again, err := ParseCount(FormatCount(n)); n < 0 || again != n || err != nil {
			t.Fatalf("%q is %d, written %q, read as %d, %v", in, n, FormatCount(n), again, err)
		}
		b, err := json.Marshal(Count(n))
		if err != nil {
			t.Fatal(err)
		}
		var c Count
		if err := json.Unmarshal(b, &c); err != nil || int64(c) != n {
			t.Fatalf("%d in JSON is %s, read as %d, %v", n, b, c, err)
		}
	})
}
