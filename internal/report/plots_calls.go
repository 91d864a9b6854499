package report

import (
	"math"
	"slices"

	"github.com/weirgate/weir/internal/bench"
)

// track is a load's raw figures, and from when on it stands in the plots over
// time: repeats are set one behind the other there, without the pauses between.
type track struct {
	label   string
	repeats []bench.Raw
	starts  []float64 // of each repeat, seconds
}

// tracksOf are the loads that have raw figures.
func tracksOf(runs []bench.Run) []track {
	var tracks []track
	at := 0.0
	for _, run := range runs {
		t := track{label: named(run.Load)}
		for _, raw := range run.Raw {
			if len(raw.At) == 0 || !(raw.Seconds > 0) || math.IsInf(raw.Seconds, 0) {
				continue
			}
			t.repeats = append(t.repeats, raw)
			t.starts = append(t.starts, at)
			at += raw.Seconds
		}
		if len(t.repeats) > 0 {
			tracks = append(tracks, t)
		}
	}
	return tracks
}

// begins marks where each load begins, when there are several.
func begins(tracks []track) []mark {
	if len(tracks) < 2 {
		return nil
	}
	var m []mark
	for _, t := range tracks {
		m = append(m, mark{t.starts[0], t.label})
	}
	return m
}

// finite tells whether all are figures.
func finite(list ...float32) bool {
	for _, v := range list {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return false
		}
	}
	return true
}

const behind = " Repeats and loads stand one behind the other, the pauses between them left out."

// scatterPlot shows the TTFT of each call over the time at which it was sent.
func scatterPlot(tracks []track) (plot, bool) {
	p := plot{ID: "ttft", Title: "TTFT over time", XAxis: axis{Label: "sent at", Unit: "s"}, YAxis: axis{Label: "TTFT", Unit: "ms"}}
	shown := tracks[:min(len(tracks), maxLoads)]
	calls, sampled := 0, false
	for _, t := range shown {
		for _, raw := range t.repeats {
			calls += len(raw.At)
			sampled = sampled || raw.Of > len(raw.At)
		}
	}
	every := max((calls+maxPoints-1)/maxPoints, 1)
	low, high := math.Inf(1), 0.0
	for _, t := range shown {
		s := series{Label: t.label}
		for i, raw := range t.repeats {
			for j := 0; j < min(len(raw.At), len(raw.TTFT)); j += every {
				if !finite(raw.At[j], raw.TTFT[j]) {
					continue
				}
				s.X = append(s.X, float32(t.starts[i]+float64(raw.At[j])/1000))
				s.Y = append(s.Y, raw.TTFT[j])
				low, high = min(low, float64(raw.TTFT[j])), max(high, float64(raw.TTFT[j]))
			}
		}
		if len(s.X) > 0 {
			p.Series = append(p.Series, s)
		}
	}
	p.YAxis.Log = spread10(low, high)
	p.Marks = begins(shown)
	p.Caption = "One point a call that succeeded, warm-up left out." + behind
	switch {
	case every > 1:
		p.Caption += " Every " + count(every) + "th call is shown."
	case sampled:
		p.Caption += " A sample of the calls is shown."
	}
	p.Caption += leftOut(tracks)
	return p, len(p.Series) > 0
}

// spread10 tells whether values are so far apart that a scale should be logarithmic.
func spread10(low, high float64) bool { return low > 0 && high/low >= 20 }

// tokensPlot shows output tokens per second over time. It is drawn of loads of which all
// calls are there with their tokens.
func tokensPlot(tracks []track) (plot, bool) {
	p := plot{ID: "tokens", Title: "Output tokens per second over time", XAxis: axis{Label: "time", Unit: "s"}, YAxis: axis{Label: "output tokens/s", Unit: "tok/s"}}
	var shown []track
	seconds := 0.0
	for _, t := range tracks {
		whole := func(r bench.Raw) bool {
			return r.Of == len(r.At) && len(r.Output) == len(r.At) && len(r.E2E) == len(r.At) && finite(r.Output...) && finite(r.E2E...) && finite(r.At...)
		}
		if len(shown) < maxLoads && !slices.ContainsFunc(t.repeats, func(r bench.Raw) bool { return !whole(r) }) {
			shown = append(shown, t)
			for _, r := range t.repeats {
				seconds += r.Seconds
			}
		}
	}
	bin := binOf(seconds)
	for i, t := range shown {
		p.Series = append(p.Series, series{Label: t.label, Y: unknowns(len(p.X))})
		row := func(x float64, v float32) {
			p.X = append(p.X, float32(x))
			for k := range p.Series {
				p.Series[k].Y = append(p.Series[k].Y, float32(math.NaN()))
			}
			p.Series[i].Y[len(p.X)-1] = v
		}
		for j, r := range t.repeats {
			sums, width := binned(r, bin)
			for n, sum := range sums {
				row(t.starts[j]+(float64(n)+0.5)*width, float32(sum/width))
			}
			row(t.starts[j]+r.Seconds, float32(math.NaN())) // no line to the next repeat
		}
	}
	p.Marks = begins(shown)
	p.Points = true
	p.Caption = "Output tokens of calls that succeeded, those of a call spread evenly between its first token and its end (its whole time where no first token is known), in steps of about " + tidy(bin) + " s." + behind
	if len(shown) < len(tracks) {
		p.Caption += " Loads of which not all calls with their tokens are known are left out."
	}
	return p, len(p.Series) > 0
}

// unknowns are n figures that are not known.
func unknowns(n int) bench.Series {
	s := make(bench.Series, n)
	for i := range s {
		s[i] = float32(math.NaN())
	}
	return s
}

// binOf is a round number of seconds that makes at most some maxBins/2 of so many.
func binOf(seconds float64) float64 {
	for _, w := range []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600} {
		if seconds/w <= maxBins/2 {
			return w
		}
	}
	return seconds / (maxBins / 2)
}

// binned spreads the output tokens of each call of a repeat evenly from its first
// token to its end, in equal bins of about so many seconds that fill the repeat exactly,
// and says how wide they are.
func binned(r bench.Raw, about float64) (sums []float64, width float64) {
	n := max(int(math.Round(r.Seconds/about)), 1)
	width = r.Seconds / float64(n)
	sums = make([]float64, n)
	for i := range r.At {
		from, to := float64(r.At[i]), float64(r.At[i])+float64(r.E2E[i])
		if i < len(r.TTFT) && finite(r.TTFT[i]) && r.TTFT[i] <= r.E2E[i] {
			from += float64(r.TTFT[i])
		}
		pour(sums, from/1000/width, to/1000/width, float64(r.Output[i]))
	}
	return sums, width
}

// pour spreads an amount evenly between two places in bins.
func pour(bins []float64, from, to, amount float64) {
	last := float64(len(bins))
	from, to = min(max(from, 0), last), min(max(to, 0), last)
	if !(to > from) {
		bins[min(int(from), len(bins)-1)] += amount
		return
	}
	for i := int(from); i < len(bins) && float64(i) < to; i++ {
		bins[i] += amount * (min(to, float64(i+1)) - max(from, float64(i))) / (to - from)
	}
}

// cdfPlot shows of each load which share of its calls stayed below what.
func cdfPlot(id, name string, tracks []track, of func(bench.Raw) bench.Series) (plot, bool) {
	p := plot{ID: id, Title: name + ": share of calls up to", XAxis: axis{Label: name, Unit: "ms"}, YAxis: axis{Label: "share of calls", Unit: "%"}}
	var all [][]float32
	low, high := math.Inf(1), math.Inf(-1)
	for _, t := range tracks[:min(len(tracks), maxLoads)] {
		var values []float32
		for _, r := range t.repeats {
			for _, v := range of(r) {
				if finite(v) {
					values = append(values, v)
				}
			}
		}
		if len(values) == 0 {
			continue
		}
		slices.Sort(values)
		low, high = min(low, float64(values[0])), max(high, float64(values[len(values)-1]))
		all = append(all, values)
		p.Series = append(p.Series, series{Label: t.label})
	}
	if len(all) == 0 {
		return plot{}, false
	}
	p.XAxis.Log = spread10(low, high)
	for i := range cdfPoints + 1 {
		x := float32(high)
		if part := float64(i) / cdfPoints; part < 1 {
			x = float32(low + (high-low)*part)
			if p.XAxis.Log {
				x = float32(low * math.Pow(high/low, part))
			}
		}
		if len(p.X) > 0 && x <= p.X[len(p.X)-1] {
			continue
		}
		p.X = append(p.X, x)
		for j, values := range all {
			upTo, _ := slices.BinarySearchFunc(values, x, func(v, x float32) int {
				if v <= x {
					return -1
				}
				return 1
			})
			p.Series[j].Y = append(p.Series[j].Y, float32(100*float64(upTo)/float64(len(values))))
		}
	}
	p.Caption = "Of all calls of all repeats that succeeded; the tables hold medians of repeats, and may differ a little." + leftOut(tracks)
	return p, true
}
