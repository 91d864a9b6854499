package bench

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/weirgate/weir/internal/workload"
)

// notes says what the figures of a repeat do not tell by themselves. It comes
// after figures.
func (t *take) notes(f *Figures) []string {
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if f.Calls == 0 {
		note("all calls were among those left out, so there are no figures")
	}
	if f.WithoutUsage > 0 {
		note("%d of %d calls reported no usage, so token figures are absent; ask for usage in streams, or have the engine send it", f.WithoutUsage, f.Good)
	}
	if f.Undecided > 0 {
		note("goodput leaves out %d calls: a figure that has an objective is not known of them", f.Undecided)
	}
	if f.Held > 0 {
		note("%d calls waited for the bound of %d in flight and went out late; latencies do not hold that wait", f.Held, t.arrivals.Concurrency)
	}
	if t.unsent > 0 {
		note("at least %d calls that were due could not be sent in the time given: the bound of %d in flight held them back", t.unsent, t.arrivals.Concurrency)
	}
	if f.Offered != nil && f.Achieved == nil {
		note("calls took too long beside the time of sending for the achieved rate to be told; send for longer")
	}
	if drawn := t.drawn(f); drawn != "" {
		notes = append(notes, drawn)
	}
	if f.Client.Uneven != "" {
		notes = append(notes, f.Client.Uneven)
	}
	if t.full {
		note("it ended after %d calls, as many as are kept", maxCalls)
	}
	for _, gaps := range []*pool{t.token, t.chunk} {
		if gaps.sampled() {
			note("percentiles of gaps are those of a uniform sample of %d out of %d", len(gaps.values), gaps.seen)
		}
	}
	if t.token.seen > 0 && t.chunk.seen > 0 {
		note("some streams carried running token counts and others none, so there is no figure of gaps")
	}
	return notes
}

// unlucky is the share by which the rate that was drawn may differ from the one
// asked for before that is said: Poisson arrivals of 100 calls stay within it 19
// times of 20.
const unlucky = 0.2

// drawn says that chance made Poisson arrivals far more or less than asked for,
// "" when it did not.
func (t *take) drawn(f *Figures) string {
	rate := t.arrivals.Rate
	if t.arrivals.Shape != workload.Poisson || f.Offered == nil || !(rate > 0) || math.Abs(*f.Offered/rate-1) <= unlucky {
		return ""
	}
	return fmt.Sprintf("%.3g calls a second were asked for and chance drew %.3g: %d calls are too few for Poisson arrivals to come close; send more, or use a constant rate", rate, *f.Offered, f.Calls)
}

// raw keeps of each measured call that succeeded what a later comparison needs,
// of more than limit calls a uniform sample.
func (t *take) raw(limit int) Raw {
	var calls []*point
	for i := range t.points {
		if p := &t.points[i]; p.ok() && !p.discarded {
			calls = append(calls, p)
		}
	}
	r := Raw{Of: len(calls)}
	if len(calls) == 0 {
		return r
	}
	begin, end := t.bounds()
	r.Seconds = (end - begin).Seconds()
	if len(calls) > limit {
		random := rand.New(rand.NewPCG(uint64(len(calls)), 0x726177))
		random.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
		calls = calls[:limit]
		slices.SortFunc(calls, func(a, b *point) int { return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.index, b.index)) })
	}
	for _, p := range calls {
		r.At = append(r.At, milliseconds(p.sent-begin))
		r.E2E = append(r.E2E, milliseconds(p.end-p.sent))
		r.TTFT = append(r.TTFT, seriesOf(p.ttft))
		r.TPOT = append(r.TPOT, seriesOf(p.tpot))
		tokens, output := float32(math.NaN()), float32(math.NaN())
		if p.reported() {
			tokens = float32(p.tokens())
		}
		if p.output >= 0 {
			output = float32(p.output)
		}
		r.Tokens, r.Output = append(r.Tokens, tokens), append(r.Output, output)
	}
	return r
}

func seriesOf(s span) float32 {
	ms, ok := s.milliseconds()
	if !ok {
		return float32(math.NaN())
	}
	return float32(ms)
}
