package bench

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/weirgate/weir/internal/endpoint"
	"github.com/weirgate/weir/internal/stats"
)

// median sums repeats up, as Run.Median says, and tells how far they spread.
func median(repeats []Figures) (Figures, map[string]Spread) {
	if len(repeats) == 0 {
		return Figures{}, nil
	}
	number := func(of func(*Figures) float64) float64 { v, _ := stats.Median(each(repeats, of)); return v }
	// A rate needs time: a repeat of none has no rate, and is not one of 0.
	rate := func(of func(*Figures) float64) float64 {
		var values []float64
		for i := range repeats {
			if repeats[i].Seconds > 0 {
				values = append(values, of(&repeats[i]))
			}
		}
		v, _ := stats.Median(values)
		return v
	}
	whole := func(of func(*Figures) int) int { return middleCount(each(repeats, of)) }
	maybe := func(of func(*Figures) *float64) *float64 { return middleKnown(each(repeats, of)) }
	many := func(of func(*Figures) *Quantiles) *Quantiles { return middleQuantiles(each(repeats, of)) }
	m := Figures{
		Calls:   whole(func(f *Figures) int { return f.Calls }),
		Good:    whole(func(f *Figures) int { return f.Good }),
		Seconds: number(func(f *Figures) float64 { return f.Seconds }),

		CallsPerSecond:  rate(func(f *Figures) float64 { return f.CallsPerSecond }),
		Offered:         maybe(func(f *Figures) *float64 { return f.Offered }),
		Sent:            rate(func(f *Figures) float64 { return f.Sent }),
		Achieved:        maybe(func(f *Figures) *float64 { return f.Achieved }),
		InputPerSecond:  maybe(func(f *Figures) *float64 { return f.InputPerSecond }),
		OutputPerSecond: maybe(func(f *Figures) *float64 { return f.OutputPerSecond }),
		TotalPerSecond:  maybe(func(f *Figures) *float64 { return f.TotalPerSecond }),
		TotalPerMinute:  maybe(func(f *Figures) *float64 { return f.TotalPerMinute }),
		WithoutUsage:    whole(func(f *Figures) int { return f.WithoutUsage }),
		Concurrency:     rate(func(f *Figures) float64 { return f.Concurrency }),
		Peak:            whole(func(f *Figures) int { return f.Peak }),
		Goodput:         maybe(func(f *Figures) *float64 { return f.Goodput }),
		Undecided:       whole(func(f *Figures) int { return f.Undecided }),
		Held:            whole(func(f *Figures) int { return f.Held }),

		TTFT:   many(func(f *Figures) *Quantiles { return f.TTFT }),
		TPOT:   many(func(f *Figures) *Quantiles { return f.TPOT }),
		ITL:    many(func(f *Figures) *Quantiles { return f.ITL }),
		E2E:    many(func(f *Figures) *Quantiles { return f.E2E }),
		Late:   many(func(f *Figures) *Quantiles { return f.Late }),
		Input:  many(func(f *Figures) *Quantiles { return f.Input }),
		Output: many(func(f *Figures) *Quantiles { return f.Output }),

		Failures: map[endpoint.Kind]int{},
		Identity: together(repeats),
		Client:   anyDistorted(repeats),
	}
	for kind := range failures(repeats) {
		if n := whole(func(f *Figures) int { return f.Failures[kind] }); n > 0 {
			m.Failures[kind] = n
		}
	}
	// Gaps of tokens and gaps of chunks have no median together.
	m.GapsOf = repeats[0].GapsOf
	if !slices.ContainsFunc(repeats, func(f Figures) bool { return f.GapsOf != m.GapsOf }) {
		m.Gaps = many(func(f *Figures) *Quantiles { return f.Gaps })
	}
	if m.Gaps == nil {
		m.GapsOf = ""
	}
	return m, spreads(repeats)
}

// each returns one figure of all repeats.
func each[T any](repeats []Figures, of func(*Figures) T) []T {
	all := make([]T, len(repeats))
	for i := range repeats {
		all[i] = of(&repeats[i])
	}
	return all
}

// middleCount returns the median of counts, of an even number the mean of the two
// in the middle rounded down, so that parts stay no more than their whole.
func middleCount(all []int) int {
	slices.Sort(all)
	n := len(all)
	low, high := all[(n-1)/2], all[n/2]
	return low + (high-low)/2
}

// middleKnown is the median of the known ones, nil when there are none.
func middleKnown(all []*float64) *float64 {
	var values []float64
	for _, v := range all {
		if v != nil {
			values = append(values, *v)
		}
	}
	v, ok := stats.Median(values)
	if !ok {
		return nil
	}
	return &v
}

// middleQuantiles takes the median of each value.
func middleQuantiles(all []*Quantiles) *Quantiles {
	all = slices.DeleteFunc(all, func(q *Quantiles) bool { return q == nil })
	if len(all) == 0 {
		return nil
	}
	of := func(get func(*Quantiles) float64) float64 {
		values := make([]float64, len(all))
		for i, q := range all {
			values[i] = get(q)
		}
		v, _ := stats.Median(values)
		return v
	}
	counts := make([]int, len(all))
	for i, q := range all {
		counts[i] = q.N
	}
	return &Quantiles{
		N:    middleCount(counts),
		Mean: of(func(q *Quantiles) float64 { return q.Mean }),
		P50:  of(func(q *Quantiles) float64 { return q.P50 }),
		P90:  of(func(q *Quantiles) float64 { return q.P90 }),
		P95:  of(func(q *Quantiles) float64 { return q.P95 }),
		P99:  of(func(q *Quantiles) float64 { return q.P99 }),
		Max:  of(func(q *Quantiles) float64 { return q.Max }),
	}
}

// together is the identity over the calls of all repeats.
func together(repeats []Figures) Identity {
	var all Identity
	for i := range repeats {
		id := &repeats[i].Identity
		all.Checked += id.Checked
		all.Within += id.Within
		all.Outliers = append(all.Outliers, id.Outliers...)
	}
	slices.SortStableFunc(all.Outliers, func(a, b Outlier) int { return cmp.Compare(math.Abs(b.Left), math.Abs(a.Left)) })
	all.Outliers = all.Outliers[:min(len(all.Outliers), maxOutliers)]
	return all
}

// anyDistorted says of all repeats what is true of one: the worst.
func anyDistorted(repeats []Figures) Client {
	c := Client{Delay: middleQuantiles(each(repeats, func(f *Figures) *Quantiles { return f.Client.Delay }))}
	worst := -1
	of := func(i int, text string) string {
		if len(repeats) > 1 && text != "" {
			return fmt.Sprintf("repeat %d: %s", i+1, text)
		}
		return text
	}
	for i := range repeats {
		one := &repeats[i].Client
		if c.Uneven == "" {
			c.Uneven = of(i, one.Uneven)
		}
		if !one.Distorted {
			continue
		}
		c.Distorted = true
		if worst < 0 || delayP99(one) > delayP99(&repeats[worst].Client) {
			worst = i
		}
	}
	if worst >= 0 {
		c.Reason = of(worst, repeats[worst].Client.Reason)
	}
	return c
}

// delayP99 is a client's scheduling delay, in milliseconds, 0 where it is not known.
func delayP99(c *Client) float64 {
	v, _ := p99(c.Delay)
	return v
}

// failures adds up those of all repeats, nil when there are none.
func failures(repeats []Figures) map[endpoint.Kind]int {
	var all map[endpoint.Kind]int
	for i := range repeats {
		for kind, n := range repeats[i].Failures {
			if all == nil {
				all = map[endpoint.Kind]int{}
			}
			all[kind] += n
		}
	}
	return all
}

// spreads says from where to where the headline figures go, nil for one repeat.
func spreads(repeats []Figures) map[string]Spread {
	if len(repeats) < 2 {
		return nil
	}
	all := map[string]Spread{}
	for _, h := range Headlines() {
		var values []float64
		for i := range repeats {
			if v, ok := h.Of(&repeats[i]); ok {
				values = append(values, v)
			}
		}
		if low, high, ok := stats.Range(values); ok {
			all[h.Name] = Spread{Min: low, Max: high}
		}
	}
	return all
}
