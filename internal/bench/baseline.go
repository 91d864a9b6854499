package bench

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/weirgate/weir/internal/stats"
)

// DefaultThreshold is the share by which a figure may change before it counts:
// well beyond what repeats of one setup differ by.
const DefaultThreshold = 0.1

// BaselineOptions steer the comparison with an earlier result.
type BaselineOptions struct {
	// Threshold is the share by which a figure may get worse; 0 is 0.1.
	Threshold float64
	// Force compares results of different setups too.
	Force bool
}

// Change says what became of a figure.
type Change string

// What may become of a figure.
const (
	Regressed Change = "regressed" // the whole interval is worse than the threshold
	Improved  Change = "improved"  // the whole interval is better than the threshold
	Unchanged Change = "unchanged" // the whole interval lies within it
	Uncertain Change = "uncertain" // the interval reaches across a threshold, or is not known
)

// Regression holds a result against an earlier one.
type Regression struct {
	Threshold float64         `json:"threshold"`
	Rows      []RegressionRow `json:"rows"`
	Failed    bool            `json:"failed"` // whether a row has regressed
	Notes     []string        `json:"notes,omitempty"`
}

// RegressionRow is one figure of one load. Base and Now are the medians of the
// repeats; Ratio is Now/Base, Low and High the ends of its interval of 95 %, absent
// when there is too little to tell.
type RegressionRow struct {
	Load    string   `json:"load"`
	Figure  string   `json:"figure"`
	Unit    string   `json:"unit"`
	Base    float64  `json:"base"`
	Now     float64  `json:"now"`
	Ratio   float64  `json:"ratio"`
	Low     *float64 `json:"ratio_low,omitempty"`
	High    *float64 `json:"ratio_high,omitempty"`
	Verdict Change   `json:"verdict"`
	Note    string   `json:"note,omitempty"`
}

// Against holds now against base: TTFT p99, TPOT p99 and throughput of each load.
//
// The noise of a ratio comes from two sides, and the wider one counts: the calls
// of all repeats drawn anew (bootstrap; see stats.Ratio, and for throughput slices of
// time in their place), and the repeats beside each other (stats.MeanRatio), which
// knows of what changes between them. A figure regressed only when all of that
// interval is beyond the threshold; what reaches across it is uncertain and fails
// nothing. So does a change that a distorted client's own delay could explain: of
// TTFT one of no more milliseconds, of TPOT one of no more than the delay makes over the
// tokens of a call, of throughput one of no greater share than the delay has of E2E.
//
// Results that are not of the same channel, API, model, profile, streaming,
// GPUs and loads are refused with an error that lists what differs, unless
// o.Force is set.
func Against(base, now Result, o BaselineOptions) (Regression, error) {
	if o.Threshold == 0 {
		o.Threshold = DefaultThreshold
	}
	if !(o.Threshold > 0 && o.Threshold < 1) {
		return Regression{}, fmt.Errorf("compare with the baseline: a threshold of %v is none; give a share such as 0.1", o.Threshold)
	}
	if base.Version != now.Version {
		return Regression{}, fmt.Errorf("compare with the baseline: it has version %d of the form, this result version %d; measure the baseline anew", base.Version, now.Version)
	}
	pairs, apart := pair(&base, &now)
	apart = append(setup(&base, &now), apart...)
	if len(apart) > 0 && !o.Force {
		return Regression{}, fmt.Errorf("compare with the baseline: the two are of different setups: %s; measure the same, or force the comparison", strings.Join(apart, "; "))
	}
	if len(pairs) == 0 {
		return Regression{}, errors.New("compare with the baseline: the two have no load in common")
	}
	r := Regression{Threshold: o.Threshold, Notes: append(apart, remarks(&base, &now)...)}
	step := now.Environment.Profile.definition() != nil && now.Environment.Profile.definition().steps()
	for _, p := range pairs {
		for _, row := range p.rows(step) {
			row.judge(o.Threshold, row.Figure == throughput)
			if why := p.explained(&row); why != "" && (row.Verdict == Regressed || row.Verdict == Improved) {
				row.Verdict = Uncertain
				row.Note = joined(row.Note, why)
			}
			r.Failed = r.Failed || row.Verdict == Regressed
			r.Rows = append(r.Rows, row)
		}
	}
	return r, nil
}

// judge fills in the verdict. Of throughput more is better.
func (r *RegressionRow) judge(threshold float64, more bool) {
	worse, better := Regressed, Improved
	if more {
		worse, better = better, worse
	}
	switch {
	case r.Low == nil || r.High == nil:
		r.Verdict = Uncertain
		r.Note = joined(r.Note, "there is too little to tell its noise by: send more calls, or repeat it")
	case *r.Low > 1+threshold:
		r.Verdict = worse
	case *r.High < 1-threshold:
		r.Verdict = better
	case *r.Low >= 1-threshold && *r.High <= 1+threshold:
		r.Verdict = Unchanged
	default:
		r.Verdict = Uncertain
		r.Note = joined(r.Note, fmt.Sprintf("its interval reaches across %.3g %%: more calls or repeats would make it narrower", 100*threshold))
	}
}

// loadPair is one load in both results.
type loadPair struct{ base, now *Run }

// explained says how the delay of a distorted client could explain a change, ""
// when it could not, or neither client was distorted.
func (p loadPair) explained(r *RegressionRow) string {
	if !p.base.Median.Client.Distorted && !p.now.Median.Client.Distorted {
		return ""
	}
	delay, ok := max(p.base.worstDelay(), p.now.worstDelay()), p.base.hasDelay() && p.now.hasDelay()
	if !ok {
		return "a client was too slow for a fair figure, by how much is not known"
	}
	change := math.Abs(r.Now - r.Base)
	switch r.Figure {
	case ttftP99:
		if delay > change {
			return fmt.Sprintf("the change is %.3g ms, and the client itself was late by up to %.3g ms (p99)", change, delay)
		}
	case tpotP99:
		tokens, ok := p.least(func(f *Figures) *Quantiles { return f.Output })
		each := delay / (tokens - 1)
		if !ok || !(tokens > 1) {
			each = delay // all of it may fall between two tokens
		}
		if each > change {
			return fmt.Sprintf("the change is %.3g ms a token, and the client itself was late by up to %.3g ms (p99), which is %.3g ms a token", change, delay, each)
		}
	case throughput:
		long, ok := p.least(func(f *Figures) *Quantiles { return f.E2E })
		if ok && delay/long > math.Abs(r.Ratio-1) {
			return fmt.Sprintf("the change is %.3g %%, and the client itself was late by up to %.3g ms (p99), of calls that take %.3g ms", 100*math.Abs(r.Ratio-1), delay, long)
		}
	}
	return ""
}

// least is the lower one of both medians of a figure.
func (p loadPair) least(of func(*Figures) *Quantiles) (float64, bool) {
	a, ok1 := p50(of(&p.base.Median))
	b, ok2 := p50(of(&p.now.Median))
	return min(a, b), ok1 && ok2
}

// worstDelay is the longest scheduling delay at p99 of any repeat, in milliseconds.
func (run *Run) worstDelay() float64 {
	worst := delayP99(&run.Median.Client)
	for i := range run.Repeats {
		worst = max(worst, delayP99(&run.Repeats[i].Client))
	}
	return worst
}

// hasDelay tells whether the scheduling delay is known.
func (run *Run) hasDelay() bool { return run.Median.Client.Delay != nil }

// The names of the figures that are compared.
const (
	ttftP99    = "TTFT p99"
	tpotP99    = "TPOT p99"
	throughput = "throughput"
)

// rows compares the figures that both know.
func (p loadPair) rows(step bool) []RegressionRow {
	quantile := stats.Quantile
	if step {
		quantile = stats.Step
	}
	p99of := func(v []float64) float64 { return quantile(v, 0.99) }
	var rows []RegressionRow
	for _, one := range [...]struct {
		name   string
		of     func(*Figures) *Quantiles
		series func(*Raw) Series
	}{
		{ttftP99, func(f *Figures) *Quantiles { return f.TTFT }, func(r *Raw) Series { return r.TTFT }},
		{tpotP99, func(f *Figures) *Quantiles { return f.TPOT }, func(r *Raw) Series { return r.TPOT }},
	} {
		of := func(f *Figures) (float64, bool) { return p99(one.of(f)) }
		row, ok := p.row(one.name, "ms", of)
		if !ok {
			continue
		}
		a, b := pooled(p.base, one.series), pooled(p.now, one.series)
		row.within(stats.Ratio(a, b, p99of, 1, 0), p.repeats(of))
		if n := min(len(a), len(b)); n < enoughForP99 {
			row.Note = fmt.Sprintf("%d calls are few for a p99; %d would make it firm", n, enoughForP99)
		}
		rows = append(rows, row)
	}
	if row, ok := p.throughput(); ok {
		rows = append(rows, row)
	}
	return rows
}

// enoughForP99 calls leave five beyond it.
const enoughForP99 = 500

// row is a row without an interval; false when a side does not know the figure.
func (p loadPair) row(name, unit string, of func(*Figures) (float64, bool)) (RegressionRow, bool) {
	a, ok1 := of(&p.base.Median)
	b, ok2 := of(&p.now.Median)
	if !ok1 || !ok2 || !(a > 0) {
		return RegressionRow{}, false
	}
	return RegressionRow{Load: p.now.Load, Figure: name, Unit: unit, Base: a, Now: b, Ratio: b / a}, true
}

// repeats compares the repeats' own figures.
func (p loadPair) repeats(of func(*Figures) (float64, bool)) stats.Interval {
	gather := func(run *Run) (all []float64) {
		for i := range run.Repeats {
			if v, ok := of(&run.Repeats[i]); ok {
				all = append(all, v)
			}
		}
		return all
	}
	return stats.MeanRatio(gather(p.base), gather(p.now))
}

// within sets the interval: the ratio itself and all that is known of its noise.
func (r *RegressionRow) within(intervals ...stats.Interval) {
	low, high, some := r.Ratio, r.Ratio, false
	for _, i := range intervals {
		if i.Known() {
			low, high, some = min(low, i.Low), max(high, i.High), true
		}
	}
	if some && !math.IsInf(high, 0) {
		r.Low, r.High = &low, &high
	}
}

// pooled returns the known values of a series, of all repeats.
func pooled(run *Run, of func(*Raw) Series) []float64 {
	var all []float64
	for i := range run.Raw {
		for _, v := range of(&run.Raw[i]) {
			if f := float64(v); !math.IsNaN(f) {
				all = append(all, f)
			}
		}
	}
	return all
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
