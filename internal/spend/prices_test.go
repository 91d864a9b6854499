package spend

import (
	"math/rand/v2"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/ledger"
)

// list makes a price list of entries that are JSON.
func list(t testing.TB, entries ...string) *Prices {
	t.Helper()
	p, err := ParsePrices([]byte(`{"version":1,"currency":"EUR","prices":[` + strings.Join(entries, ",") + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestParsePrices(t *testing.T) {
	p, err := ParsePrices([]byte(PriceExample))
	if err != nil || p.Currency() != "USD" {
		t.Fatalf("the example: %v, currency %q", err, p.Currency())
	}
	before, after := instantOf(t, "2026-11-30T23:59:59Z"), instantOf(t, "2026-12-01T00:00:00Z")
	for _, tt := range []struct {
		model string
		at    time.Time
		want  Rates
	}{
		{"gpt-4o", before, Rates{2_500_000_000, 1_250_000_000, 2_500_000_000, 10_000_000_000, 10_000_000_000}},
		{"gpt-4o", after, Rates{2_000_000_000, 500_000_000, 2_000_000_000, 8_000_000_000, 8_000_000_000}},
		{"claude-opus", after, Rates{3_000_000_000, 300_000_000, 3_750_000_000, 15_000_000_000, 15_000_000_000}},
		{"claude-", time.Time{}, Rates{3_000_000_000, 300_000_000, 3_750_000_000, 15_000_000_000, 15_000_000_000}},
		{"gpt-4o-mini", after, Rates{100_000_000, 100_000_000, 100_000_000, 100_000_000, 100_000_000}},
		{"", after, Rates{100_000_000, 100_000_000, 100_000_000, 100_000_000, 100_000_000}},
	} {
		if got, ok := p.At(tt.model, tt.at); !ok || got != tt.want {
			t.Errorf("%s at %v: %+v (%v), want %+v", tt.model, tt.at, got, ok, tt.want)
		}
	}
	var none *Prices
	if _, ok := none.At("x", after); ok || none.Currency() != "" || none.timeline("x") != nil {
		t.Error("no list has prices")
	}
}

func TestWhichPriceApplies(t *testing.T) {
	p := list(t,
		`{"model":"*","input":1,"output":1}`,
		`{"model":"a*","input":2,"output":2}`,
		`{"model":"a*","valid_from":"2026-06-01","input":3,"output":3}`,
		`{"model":"*bc","input":4,"output":4,"valid_from":"2026-07-01"}`,
		`{"model":"abc","input":5,"output":5,"valid_from":"2026-08-01T05:00:00+05:00"}`,
		`{"model":"*c*","input":6,"output":6,"valid_from":"2026-07-01"}`,
		`{"model":"zero","input":0,"output":0}`,
	)
	for _, tt := range []struct {
		model, at string
		want      int64
	}{
		{"abc", "2026-05-31T23:59:59Z", 2}, // of patterns the longer that has begun
		{"abc", "2026-06-01T00:00:00Z", 3}, // of the same pattern the later
		{"abc", "2026-07-01T00:00:00Z", 4}, // longer; of two as long that began together, the first
		{"abc", "2026-08-01T00:00:00Z", 5}, // exact, though patterns match
		{"abcd", "2026-08-01T00:00:00Z", 6},
		{"abcd", "2026-06-30T23:00:00Z", 3},
		{"b", "2026-08-01T00:00:00Z", 1},
		{"zero", "2026-08-01T00:00:00Z", 0}, // free is a price
	} {
		if got, ok := p.At(tt.model, instantOf(t, tt.at)); !ok || got.Input != tt.want*1e9 {
			t.Errorf("%s at %s: %d (%v), want %d", tt.model, tt.at, got.Input/1e9, ok, tt.want)
		}
	}
	if r, ok := list(t, `{"model":"a","input":1,"output":1,"valid_from":"2026-01-01"}`).At("a", instantOf(t, "2025-12-31T23:59:59Z")); ok {
		t.Errorf("priced before any price began: %+v", r)
	}
}

func TestBadPrices(t *testing.T) {
	entry := func(fields string) string {
		return `{"version":1,"currency":"USD","prices":[{"model":"ok","input":1,"output":1},{` + fields + `}]}`
	}
	for in, want := range map[string]string{
		``:                                     "EOF",
		`[]`:                                   "cannot be a JSON array",
		`{}`:                                   `begin it with "version": 1`,
		`{"version":2}`:                        `begin it with "version": 1`,
		`{"version":1}`:                        `write it like "currency": "USD"`,
		`{"version":1,"currency":"US dollar"}`: `write it like`,
		`{"version":1,"currency":"USD","Preise":[]}`:   `unknown field "Preise"`,
		`{"version":1,"currency":"USD","prices":[]} x`: "something follows the closing brace",
		`{"version":1,"currency":"USD","prices":[]`:    "unexpected EOF",
		`{"version":1,"currency":"USD","prices":[}`:    "byte 41",
		entry(``):                                                                          "price 2",
		entry(`"model":"a","output":1`):                                                    "it has no input price; what is free has the price 0",
		entry(`"model":"a","input":1`):                                                     "it has no output price",
		entry(`"model":"a","input":null,"output":1`):                                       "it has no input price",
		entry(`"input":1,"output":1`):                                                      "it names no model",
		entry(`"model":"a","input":"1","output":1`):                                        "write a number like 0.25",
		entry(`"model":"a","input":-1,"output":1`):                                         "without a sign",
		entry(`"model":"a","input":1e3,"output":1`):                                        "without a sign or an exponent",
		entry(`"model":"a","input":0.0000000001,"output":1`):                               "more than 9 decimals",
		entry(`"model":"a","input":1000000001,"output":1`):                                 "more than 1000000000",
		entry(`"model":"a","input":1,"output":1,"cache":1`):                                `unknown field "cache"`,
		entry(`"model":"a","input":1,"output":1,"valid_from":1`):                           `field "valid_from" cannot be a JSON number`,
		entry(`"model":"a","input":1,"output":1,"valid_from":"May"`):                       "neither a day like 2026-12-01",
		entry(`"model":"a","input":1,"output":1,"valid_from":"2026-01-01T00:30:00Z"`):      "not a full hour of UTC",
		entry(`"model":"a","input":1,"output":1,"valid_from":"2026-01-01T00:00:00+05:30"`): "not a full hour of UTC",
		entry(`"model":"ok","input":2,"output":2`):                                         "begins when price 1 does",
		entry(`"model":"` + strings.Repeat("x", 257) + `","input":2,"output":2`):           "longer than 256 bytes",
	} {
		if _, err := ParsePrices([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v does not say %q", in, err, want)
		}
	}
	many := strings.Repeat(`{},`, maxPrices) + `{}`
	if _, err := ParsePrices([]byte(`{"version":1,"currency":"USD","prices":[` + many + `]}`)); err == nil || !strings.Contains(err.Error(), "use patterns") {
		t.Errorf("too many: %v", err)
	}
}

// FuzzMatch compares with the standard library's globs, for names without what
// those treat otherwise.
func FuzzMatch(f *testing.F) {
	f.Add("a*b", "acb")
	f.Add("*", "")
	f.Add("*a*b*", "xaybz")
	f.Add("a**b", "ab")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 40 || len(name) > 40 || strings.ContainsAny(pattern+name, `/?[]\`) {
			return
		}
		want, err := path.Match(pattern, name)
		if err != nil {
			return
		}
		if got := match(pattern, name); got != want {
			t.Errorf("%q matches %q: %v, want %v", pattern, name, got, want)
		}
	})
}

func TestCost(t *testing.T) {
	r := Rates{Input: 3_000_000_000, CachedInput: 300_000_000, CacheWrite: 3_750_000_000, Output: 15_000_000_000, Reasoning: 16_000_000_000}
	s := ledger.Sums{Input: 1000, Cached: 600, CacheWrite: 100, Output: 50, Reasoning: 20}
	// 300·3 + 600·0.3 + 100·3.75 + 30·15 + 20·16 = 2225 millionths
	if got := r.Cost(s); got.String() != "0.002225" {
		t.Errorf("got %s, want 0.002225", got)
	}
	// The cost of a sum is the sum of the costs.
	rng := rand.New(rand.NewPCG(3, 4))
	var total ledger.Sums
	var parts Money
	for _, row := range randomRows(rng, 1000, []string{"m"}, time.Unix(0, 0), time.Hour) {
		total, parts = plus(total, row.reported), parts.Plus(r.Cost(row.reported))
	}
	if got := r.Cost(total); got != parts {
		t.Errorf("the parts add up to %s, the whole is %s", parts, got)
	}
}

// TestTimeline: at each hour, a timeline says what the list says.
func TestTimeline(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	base := instantOf(t, "2026-01-01T00:00:00Z")
	for range 300 {
		p := randomPrices(t, rng, base, 50*time.Hour)
		for _, model := range []string{"gpt-4o", "gpt-4o-mini", "llama", ""} {
			line := p.timeline(model)
			for h := -2; h < 53; h++ {
				at := base.Add(time.Duration(h)*time.Hour + rand64(rng, time.Hour))
				want, wantOK := p.At(model, at)
				if got, ok := line.at(at); got != want || ok != wantOK {
					t.Fatalf("%s at %v: %+v (%v), want %+v (%v)", model, at, got, ok, want, wantOK)
				}
			}
			for i := 1; i < len(line); i++ {
				if line[i].rates == line[i-1].rates || !line[i].from.After(line[i-1].from) {
					t.Fatalf("%s: step %d changes nothing: %+v", model, i, line)
				}
			}
		}
	}
}

// randomPrices makes a list whose prices change within a span of time.
func randomPrices(t testing.TB, rng *rand.Rand, from time.Time, span time.Duration) *Prices {
	t.Helper()
	patterns := []string{"gpt-4o", "gpt-4o-mini", "gpt*", "*mini", "l*a", "*"}
	var entries []string
	taken := map[string]bool{}
	for range rng.IntN(14) {
		e := `{"model":"` + patterns[rng.IntN(len(patterns))] + `"`
		if rng.IntN(3) > 0 {
			e += `,"valid_from":"` + from.Add(rand64(rng, span)).Truncate(time.Hour).Format(time.RFC3339) + `"`
		}
		if taken[e] {
			continue
		}
		taken[e] = true
		price := func() string { return Money{lo: rng.Uint64N(30_000)}.priceText() }
		e += `,"input":` + price() + `,"output":` + price()
		for _, field := range []string{"cached_input", "cache_write", "reasoning"} {
			if rng.IntN(2) == 0 {
				e += `,"` + field + `":` + price()
			}
		}
		entries = append(entries, e+"}")
	}
	return list(t, entries...)
}

// priceText writes a small number of 10⁻⁹ as a price.
func (m Money) priceText() string { return Money{lo: m.lo * 1_000_000}.String() }

// FuzzParsePrices: whatever is taken for a price list can be asked, and its
// timelines say what it says.
func FuzzParsePrices(f *testing.F) {
	f.Add(PriceExample)
	f.Add(`{"version":1,"currency":"€","prices":[{"model":"*a*","valid_from":"2026-11-30T05:00:00+05:00","input":1.5,"output":0,"reasoning":1}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePrices([]byte(text))
		if err != nil {
			return
		}
		for _, model := range []string{"", "gpt-4o", "claude-3"} {
			line := p.timeline(model)
			for _, at := range []time.Time{{}, time.Unix(0, 0), time.Unix(1796040000, 0)} {
				want, wantOK := p.At(model, at)
				if got, ok := line.at(at); got != want || ok != wantOK {
					t.Errorf("%q at %v: %+v (%v), want %+v (%v)", model, at, got, ok, want, wantOK)
				}
				want.Cost(ledger.Sums{Input: 1 << 40, Output: 1 << 40})
			}
		}
	})
}
