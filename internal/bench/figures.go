package bench

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirgate/weir/internal/endpoint"
	"github.com/weirgate/weir/internal/stats"
	"github.com/weirgate/weir/internal/workload"
)

// take is what was measured in one repeat.
type take struct {
	arrivals   workload.Arrivals
	objectives Objectives
	step       bool                   // percentiles without interpolation
	id         func(index int) string // of a call
	points     []point                // in the order of their ends, the discarded ones too
	token      *pool                  // gaps between tokens
	chunk      *pool                  // gaps between chunks
	delay      *pool                  // of the client's own timers
	unsent     int                    // calls an open loop had no time to send
	full       bool                   // it ended because no more calls are kept
}

// figures sums a repeat up.
func (t *take) figures() Figures {
	measured := make([]*point, 0, len(t.points))
	for i := range t.points {
		if p := &t.points[i]; !p.discarded {
			measured = append(measured, p)
		}
	}
	begin, end := t.bounds()
	f := t.of(measured, begin, end)
	f.Offered, f.Sent = t.rates(measured, f.Seconds)
	if f.Offered != nil {
		if share, ok := t.answered(); ok {
			achieved := *f.Offered * share
			f.Achieved = &achieved
		}
	}
	f.Gaps, f.GapsOf = t.gaps()
	f.Client = t.client(measured, &f)
	return f
}

// bounds returns the first send and the last end of what was measured.
func (t *take) bounds() (begin, end time.Duration) {
	any := false
	for i := range t.points {
		p := &t.points[i]
		if p.discarded {
			continue
		}
		if !any || p.sent < begin {
			begin = p.sent
		}
		any, end = true, max(end, p.end)
	}
	return begin, end
}

// of sums up calls of a window. What needs more than the calls is left to figures.
func (t *take) of(calls []*point, begin, end time.Duration) Figures {
	f := Figures{Calls: len(calls), Seconds: (end - begin).Seconds()}
	var input, output int64
	var ttft, tpot, itl, e2e, late, inputs, outputs column
	for _, p := range calls {
		if p.held {
			f.Held++
		}
		if p.timed {
			late.add(span(p.late).milliseconds())
		}
		if !p.ok() {
			if f.Failures == nil {
				f.Failures = map[endpoint.Kind]int{}
			}
			f.Failures[p.failed]++
			continue
		}
		f.Good++
		if !p.reported() {
			f.WithoutUsage++
		}
		input, output = input+int64(p.input), output+int64(p.output)
		ttft.add(p.ttft.milliseconds())
		tpot.add(p.tpot.milliseconds())
		itl.add(p.itl.milliseconds())
		e2e.add(p.e2e.milliseconds())
		inputs.add(float64(p.input), p.input >= 0)
		outputs.add(float64(p.output), p.output >= 0)
	}
	if f.Seconds > 0 {
		f.CallsPerSecond = float64(f.Good) / f.Seconds
		if f.Good > 0 && f.WithoutUsage == 0 {
			in, out := float64(input)/f.Seconds, float64(output)/f.Seconds
			total := in + out
			perMinute := total * 60
			f.InputPerSecond, f.OutputPerSecond, f.TotalPerSecond, f.TotalPerMinute = &in, &out, &total, &perMinute
		}
	}
	f.Concurrency, f.Peak = t.concurrency(begin, end)
	f.Goodput, f.Undecided = t.objectives.goodput(calls)
	f.TTFT, f.TPOT, f.ITL, f.E2E = ttft.quantiles(t.step), tpot.quantiles(t.step), itl.quantiles(t.step), e2e.quantiles(t.step)
	f.Late, f.Input, f.Output = late.quantiles(t.step), inputs.quantiles(t.step), outputs.quantiles(t.step)
	f.Identity = t.identity(calls)
	return f
}

// column gathers the known values of one figure.
type column []float64

func (c *column) add(v float64, known bool) {
	if known {
		*c = append(*c, v)
	}
}

func (c column) quantiles(step bool) *Quantiles {
	s, ok := stats.Describe(c, step)
	if !ok {
		return nil
	}
	return &Quantiles{N: s.N, Mean: s.Mean, P50: s.P50, P90: s.P90, P95: s.P95, P99: s.P99, Max: s.Max}
}

// gaps describes the gaps of all calls, if they are all of one kind.
func (t *take) gaps() (*Quantiles, GapsOf) {
	switch {
	case t.token.seen > 0 && t.chunk.seen > 0:
		return nil, ""
	case t.token.seen > 0:
		return t.token.quantiles(), Tokens
	case t.chunk.seen > 0:
		return t.chunk.quantiles(), Chunks
	}
	return nil, ""
}

// rates returns how many calls a second were to be sent, absent in a closed loop,
// and were sent.
//
// In an open loop both are taken from the instants: n arrivals lie in a span of
// n − 1 gaps, or n − g in bursts of g, so that the time after the last one, in
// which calls only end, does not count. A closed loop sends all along.
func (t *take) rates(calls []*point, seconds float64) (offered *float64, sent float64) {
	if t.arrivals.Shape == workload.Closed {
		if seconds > 0 {
			sent = float64(len(calls)) / seconds
		}
		return nil, sent
	}
	due := func(p *point) time.Duration { return p.due }
	if v, ok := t.arrivalRate(calls, due); ok {
		offered = &v
	}
	sent, _ = t.arrivalRate(calls, func(p *point) time.Duration { return p.sent })
	return offered, sent
}

// arrivalRate returns events a second, by when each one was; false when there
// are too few to tell.
func (t *take) arrivalRate(calls []*point, when func(*point) time.Duration) (float64, bool) {
	if len(calls) == 0 {
		return 0, false
	}
	first, last := when(calls[0]), when(calls[0])
	for _, p := range calls {
		first, last = min(first, when(p)), max(last, when(p))
	}
	group := 1
	if t.arrivals.Shape == workload.Burst {
		group = max(t.arrivals.Group, 1)
	}
	if last == first || len(calls) <= group {
		return 0, false
	}
	return float64(len(calls)-group) / (last - first).Seconds(), true
}

// answered returns which share of the calls that were due was answered meanwhile,
// at most 1: counted from as long after the first as the early calls took, when as
// many can end as come, to the last due one. Later calls may take longer, which
// is what is looked for. False when that leaves less than half of the time; the
// discarded calls count as well.
func (t *take) answered() (float64, bool) {
	if len(t.points) < leastEarly {
		return 0, false
	}
	byDue := make([]*point, len(t.points))
	for i := range t.points {
		byDue[i] = &t.points[i]
	}
	slices.SortFunc(byDue, func(a, b *point) int { return cmp.Compare(a.due, b.due) })
	from, to := byDue[0].due, byDue[len(byDue)-1].due
	var took []time.Duration
	for _, p := range byDue[:max(len(byDue)/10, leastEarly)] {
		took = append(took, p.end-p.due)
	}
	slices.Sort(took)
	long := took[len(took)*9/10]
	if long > (to-from)/2 {
		return 0, false
	}
	from += long
	due, ended := 0, 0
	for _, p := range byDue {
		if p.due > from {
			due++
		}
		if p.ok() && p.end > from && p.end <= to {
			ended++
		}
	}
	if due == 0 {
		return 0, false
	}
	return min(float64(ended)/float64(due), 1), true
}

// leastEarly calls tell how long calls take at first.
const leastEarly = 5

// concurrency returns how many calls were in flight between begin and end: the
// mean by time, and the most at once. A call that ends when another is sent is
// not beside it. Discarded and failed calls were in flight as well.
func (t *take) concurrency(begin, end time.Duration) (mean float64, peak int) {
	var sum time.Duration
	starts, ends := make([]time.Duration, 0, len(t.points)), make([]time.Duration, 0, len(t.points))
	for i := range t.points {
		p := &t.points[i]
		from, to := max(p.sent, begin), min(p.end, end)
		if to < from || p.sent > end || p.end < begin {
			continue
		}
		sum += to - from
		starts, ends = append(starts, from), append(ends, to)
	}
	slices.Sort(starts)
	slices.Sort(ends)
	now, done := 0, 0
	for _, at := range starts {
		for ends[done] <= at && done < now {
			done++
		}
		now++
		peak = max(peak, now-done)
	}
	if end > begin {
		mean = sum.Seconds() / (end - begin).Seconds()
	}
	return mean, peak
}

// identityWithin is how far E2E may be from TTFT + (n − 1)·TPOT: 1 % of it or 5 ms,
// whichever is more.
func identityWithin(e2e time.Duration) time.Duration { return max(e2e/100, 5*time.Millisecond) }

// maxOutliers is how many calls are named.
const maxOutliers = 10

// identity checks E2E ≈ TTFT + (n − 1)·TPOT call by call.
func (t *take) identity(calls []*point) Identity {
	var id Identity
	var out []*point
	for _, p := range calls {
		if !p.ok() || p.whole == unknown || p.tail == unknown {
			continue
		}
		id.Checked++
		if away(p) <= identityWithin(time.Duration(p.whole)) {
			id.Within++
			continue
		}
		out = append(out, p)
	}
	slices.SortStableFunc(out, func(a, b *point) int { return cmp.Compare(away(b), away(a)) })
	for _, p := range out[:min(len(out), maxOutliers)] {
		whole, _ := p.whole.milliseconds()
		left, _ := p.tail.milliseconds()
		id.Outliers = append(id.Outliers, Outlier{ID: t.id(int(p.index)), E2E: whole, Sum: whole - left, Left: left})
	}
	return id
}

func away(p *point) time.Duration { return max(time.Duration(p.tail), -time.Duration(p.tail)) }
