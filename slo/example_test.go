package slo_test

import (
	"fmt"
	"log"
	"time"

	"github.com/weirgate/weir/slo"
)

// A qualified promise: "with input p95 ≤ 8000 and output p95 ≤ 500, at a steady 2 calls/s: success ≥ 99.5 %,
// TTFT p95 ≤ 1.5 s, TPOT p95 ≤ 30 ms, E2E p95 ≤ 20 s". Minutes with other traffic do not charge
// the budget.
func ExampleClass() {
	promise := slo.Class{Name: "qualified"}
	for _, line := range []string{"success 99.5%", "ttft p95 <= 1.5s", "tpot p95 <= 30ms", "e2e p95 <= 20s"} {
		objective, err := slo.ParseObjective(line)
		if err != nil {
			log.Fatal(err)
		}
		promise.Objectives = append(promise.Objectives, objective)
	}
	var err error
	if promise.Valid, err = slo.ParseEnvelope("input_tokens p95 <= 8000, output_tokens p95 <= 500, rate <= 2/s"); err != nil {
		log.Fatal(err)
	}

	config, warnings, err := slo.Config{Classes: []slo.Class{promise}}.Complete()
	if err != nil {
		log.Fatal(err)
	}
	for _, o := range config.Classes[0].Objectives {
		fmt.Printf("%-9s %s\n", o.Name, o.Text())
	}
	fmt.Println("valid while", config.Classes[0].Valid.Text())
	fmt.Println(config.Classes[0].Valid.CallsPerMinute, "calls a minute over", config.Period.Name())
	fmt.Println(len(warnings), "warnings") // 1.5 s and 500 tokens of 30 ms are 16.5 s
	// Output:
	// success   success 99.5%
	// ttft_p95  ttft p95 <= 1.5s
	// tpot_p95  tpot p95 <= 30ms
	// e2e_p95   e2e p95 <= 20s
	// valid while input_tokens p95 <= 8000, output_tokens p95 <= 500, rate <= 2/s
	// 120 calls a minute over rolling 30d
	// 0 warnings
}

func ExampleParseObjective() {
	for _, line := range []string{"ttft p95 ≤ 1.5s when input_tokens ≤ 8k", "ttft p99 2s"} {
		o, err := slo.ParseObjective(line)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(o.Text())
		fmt.Println(o.Number, o.Target, o.Threshold)
	}
	// Output:
	// ttft p95 <= 1.5s when input_tokens <= 8000
	// ttft p95 1.5s
	// objective "ttft p99 2s": <= is missing after p99; write it like: ttft p99 <= 2s
}

// A preset with an objective of one's own, and what is worth knowing about it.
func ExampleClass_With() {
	class, _ := slo.Preset(slo.Interactive)
	faster, err := slo.ParseObjective("ttft p99 <= 800ms")
	if err != nil {
		log.Fatal(err)
	}
	_, warnings, err := slo.Config{Classes: []slo.Class{class.With(faster).Without(slo.TPOT)}}.Complete()
	if err != nil {
		log.Fatal(err)
	}
	for _, w := range warnings {
		fmt.Println(w)
	}
	// Output:
	// class interactive: objective ttft_p99: ttft p99 <= 800ms is below queue p99 <= 1s, which is a part of it: a call that takes as long there has missed this one; raise the first or lower the second
}

func ExamplePeriod_At() {
	period, err := slo.ParsePeriod("calendar_month Europe/Berlin")
	if err != nil {
		log.Fatal(err)
	}
	from, to := period.At(time.Date(2025, time.March, 31, 21, 59, 0, 0, time.UTC))
	fmt.Println(from, "to", to)
	fmt.Println(to.Sub(from)) // an hour less than 31 days, for summer time
	// Output:
	// 2025-03-01 00:00:00 +0100 CET to 2025-04-01 00:00:00 +0200 CEST
	// 743h0m0s
}

func ExampleTimeToAlert() {
	target, err := slo.ParseTarget("99.9%")
	if err != nil {
		log.Fatal(err)
	}
	for _, rule := range slo.DefaultBurn() {
		took, _ := slo.TimeToAlert(rule, target, 0.10) // one call of ten is bad
		fmt.Printf("%s: after %s, and %.0f %% of the budget\n", rule, took, 100*slo.BudgetSpentAtAlert(rule, slo.DefaultRolling))
	}
	// Output:
	// 1h/5m x 14.4 page: after 8m38.4s, and 2 % of the budget
	// 6h/30m x 6 page: after 21m36s, and 5 % of the budget
	// 3d/6h x 1 ticket: after 43m12s, and 10 % of the budget
}

func ExampleUpperBad() {
	target, err := slo.ParseTarget("p99")
	if err != nil {
		log.Fatal(err)
	}
	n := slo.CallsNeeded(target, 0.95)
	fmt.Printf("%d calls without one bad: at most %.2f %% are\n", n, 100*slo.UpperBad(0, n, 0.95))
	low, high := slo.ClopperPearson(997, 1000, 0.95)
	fmt.Printf("997 of 1000 good: %.2f to %.2f %%\n", 100*low, 100*high)
	// Output:
	// 299 calls without one bad: at most 1.00 % are
	// 997 of 1000 good: 99.13 to 99.94 %
}

func ExampleHistogram() {
	var h slo.Histogram
	for i := range 100 {
		h.Add(time.Duration(i+1) * 10 * time.Millisecond)
	}
	p95, _ := h.Quantile(0.95) // of the times themselves: 950.5 ms
	fmt.Println(h.Count(), p95.Round(time.Millisecond))
	// Output: 100 953ms
}
