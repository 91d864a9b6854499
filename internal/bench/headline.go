package bench

// Headline is a figure that stands for a whole load: its spread over repeats is
// reported.
type Headline struct {
	// Name is its key in Run.Spread: that of its JSON form, with an underscore
	// before the quantile.
	Name string
	// Title is what it is called in a table, with its unit.
	Title string
	// Of returns the figure, and whether it is known.
	Of func(*Figures) (float64, bool)
}

// Headlines returns the figures that stand for a load, in the order in which to
// show them.
func Headlines() []Headline {
	return []Headline{
		{"calls_per_second", "calls/s", func(f *Figures) (float64, bool) { return f.CallsPerSecond, f.Seconds > 0 }},
		{"output_tokens_per_second", "output tokens/s", func(f *Figures) (float64, bool) { return known(f.OutputPerSecond) }},
		{"total_tokens_per_minute", "tokens/min", func(f *Figures) (float64, bool) { return known(f.TotalPerMinute) }},
		{"ttft_ms_p50", "TTFT p50 ms", func(f *Figures) (float64, bool) { return p50(f.TTFT) }},
		{"ttft_ms_p95", "TTFT p95 ms", func(f *Figures) (float64, bool) { return p95(f.TTFT) }},
		{"ttft_ms_p99", "TTFT p99 ms", func(f *Figures) (float64, bool) { return p99(f.TTFT) }},
		{"tpot_ms_p50", "TPOT p50 ms", func(f *Figures) (float64, bool) { return p50(f.TPOT) }},
		{"tpot_ms_p95", "TPOT p95 ms", func(f *Figures) (float64, bool) { return p95(f.TPOT) }},
		{"tpot_ms_p99", "TPOT p99 ms", func(f *Figures) (float64, bool) { return p99(f.TPOT) }},
		{"e2e_ms_p50", "E2E p50 ms", func(f *Figures) (float64, bool) { return p50(f.E2E) }},
		{"e2e_ms_p99", "E2E p99 ms", func(f *Figures) (float64, bool) { return p99(f.E2E) }},
		{"goodput", "goodput", func(f *Figures) (float64, bool) { return known(f.Goodput) }},
	}
}

func known(p *float64) (float64, bool) {
	if p == nil {
		return 0, false
	}
	return *p, true
}

func p50(q *Quantiles) (float64, bool) {
	if q == nil {
		return 0, false
	}
	return q.P50, true
}

func p95(q *Quantiles) (float64, bool) {
	if q == nil {
		return 0, false
	}
	return q.P95, true
}

func p99(q *Quantiles) (float64, bool) {
	if q == nil {
		return 0, false
	}
	return q.P99, true
}

// pick returns one value of q, absent when there is no q.
func pick(q *Quantiles, of func(*Quantiles) (float64, bool)) *float64 {
	v, ok := of(q)
	if !ok {
		return nil
	}
	return &v
}
