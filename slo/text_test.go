package slo

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// randomObjective returns one that ParseObjective can make.
func randomObjective(rng *rand.Rand) Objective {
	o := Objective{Number: Number(rng.IntN(Numbers)), Target: 1 + Target(rng.IntN(million-1))}
	if rng.IntN(2) == 0 {
		o.Target = []Target{500_000, 950_000, 990_000, 999_000}[rng.IntN(4)]
	}
	o.Fallback = o.Number
	if o.Number.Timed() {
		o.Threshold = 1 + time.Duration(rng.Int64N(int64(MaxThreshold)))
		if rng.IntN(2) == 0 { // round ones
			unit := []time.Duration{time.Microsecond, ms, time.Second, time.Minute, time.Hour}[rng.IntN(5)]
			o.Threshold = time.Duration(1+rng.IntN(24)) * unit
		}
		if f := Number(rng.IntN(Numbers)); f != TTFT && f.contains(o.Number) {
			o.Fallback = f
		}
	}
	for _, i := range rng.Perm(2)[:rng.IntN(3)] {
		o.When = append(o.When, Condition{quantities[i], 1 + rng.Int64N(MaxTokens)})
	}
	return o
}

// TestObjectiveRoundTrip: what Text writes, ParseObjective reads.
func TestObjectiveRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	fallbacks := 0
	for range 8000 {
		o := randomObjective(rng)
		if o.Fallback != o.Number {
			fallbacks++
		}
		if got, err := ParseObjective(o.Text()); !reflect.DeepEqual(got, o) || err != nil {
			t.Fatalf("%+v is written %q and read as %+v, %v", o, o.Text(), got, err)
		}
	}
	if fallbacks < 200 {
		t.Errorf("only %d fallbacks", fallbacks)
	}
}

func TestEnvelopeRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 3000 {
		var e Envelope
		for i := range rng.IntN(MaxTerms) {
			e.Terms = append(e.Terms, Term{quantities[rng.IntN(2)], Target(1 + i + 1000*rng.IntN(900)), 1 + rng.Int64N(MaxTokens)})
		}
		if len(e.Terms) == 0 || rng.IntN(2) == 0 {
			e.CallsPerMinute = 1 + rng.Int64N(MaxCallsPerMinute)>>rng.IntN(29)
		}
		if got, err := ParseEnvelope(e.Text()); !reflect.DeepEqual(got, e) || err != nil {
			t.Fatalf("%+v is written %q and read as %+v, %v", e, e.Text(), got, err)
		}
	}
	if got := (Envelope{}).Text(); got != "" {
		t.Errorf("no envelope is written %q", got)
	}
}

func TestText(t *testing.T) {
	for _, want := range []string{"ttft p99 <= 2s", "tpot p95 <= 40ms", "success 99.9%", "goodput 95%", "prefill p99 <= 10s else ttft_upstream",
		"ttft p95 <= 1.5s when input_tokens <= 8000, output_tokens <= 500", "e2e p95 <= 1m", "e2e p95 <= 1m30s", "e2e p50 <= 1h", "e2e p50 <= 1d", "network p99 <= 20ms",
		"e2e p50 <= 10h10m", "e2e p50 <= 1h0m5s", "tpot p50 <= 1.5µs"} {
		o, err := ParseObjective(want)
		if got := o.Text(); got != want || err != nil {
			t.Errorf("%q is written %q, %v", want, got, err)
		}
	}
	// TTFT is the zero Fallback, and stands in for nothing.
	if got := (Objective{Number: TPOT, Target: 950_000, Threshold: 40 * ms}).Text(); got != "tpot p95 <= 40ms" {
		t.Errorf("got %q", got)
	}
	for _, want := range []string{"input_tokens p95 <= 8000, output_tokens p95 <= 500, rate <= 2/s", "rate <= 90/min"} {
		e, err := ParseEnvelope(want)
		if got := e.Text(); got != want || err != nil {
			t.Errorf("%q is written %q, %v", want, got, err)
		}
	}
	for i, want := range []string{"1h/5m x 14.4 page", "6h/30m x 6 page", "3d/6h x 1 ticket"} {
		if got := DefaultBurn()[i].String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSpanText(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for range 20_000 {
		d := 1 + time.Duration(rng.Int64()>>rng.IntN(62))
		for range rng.IntN(4) { // rounder
			d = max(d-d%[]time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour, ms}[rng.IntN(5)], 1)
		}
		if got, err := parseSpan(spanText(d)); got != d || err != nil {
			t.Fatalf("%d is written %q and read as %d, %v", d, spanText(d), got, err)
		}
	}
}

func TestShortFloat(t *testing.T) {
	for in, want := range map[float64]string{14.4: "14.4", 6: "6", 20: "20", 1000: "1000", 1e6: "1000000", 8.999999999: "9", 1.0 / 3: "0.3333", 0.9 * 1e6: "900000",
		123456: "123500", 0.00012345678: "0.0001235", math.Inf(1): "+Inf"} {
		if got := shortFloat(in); got != want {
			t.Errorf("%v is written %q, want %q", in, got, want)
		}
	}
	for in, want := range map[float64]string{9.0000001: "9", 12.857142857: "12.85", 900: "900", 899.99: "899.9", 1.8: "1.8", 0.9000009: "0.9", 12345: "12340"} {
		if got := floorFloat(in); got != want {
			t.Errorf("%v is floored %q, want %q", in, got, want)
		}
	}
}

// FuzzParse: what is read is sound, and written so that it reads the same.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"ttft p99 <= 2s", "success 99.9%", "prefill p99 <= 10s else ttft_upstream", "rate <= 2/s, input_tokens p95 <= 8k",
		"ttft p95 <= 1.5s when input_tokens <= 8000, output_tokens <= 500", "rolling 30d", "calendar_month Europe/Berlin", "p99.9", "1d12h"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if o, err := ParseObjective(text); err == nil {
			if again, err := ParseObjective(o.Text()); !reflect.DeepEqual(again, o) || err != nil || o.validate() != nil {
				t.Errorf("%q: %+v, then %+v, %v", text, o, again, err)
			}
		}
		if e, err := ParseEnvelope(text); err == nil {
			if again, err := ParseEnvelope(e.Text()); !reflect.DeepEqual(again, e) || err != nil {
				t.Errorf("%q: %+v, then %+v, %v", text, e, again, err)
			}
		}
		if p, err := ParsePeriod(text); err == nil {
			if again, err := ParsePeriod(p.Name()); again.Name() != p.Name() || err != nil || p.validate() != nil {
				t.Errorf("%q: %+v, then %+v, %v", text, p, again, err)
			}
		}
		if target, err := ParseTarget(text); err == nil && !target.valid() {
			t.Errorf("%q: %d", text, target)
		}
		if d, err := parseSpan(text); err == nil && d <= 0 {
			t.Errorf("%q: %d", text, d)
		}
	})
}
