package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/weirgate/weir/internal/bench"
	"github.com/weirgate/weir/internal/saturation"
)

// What the plots of a page hold at most, so that it stays small and can be read.
const (
	maxLoads  = 24     // loads in one plot
	maxPoints = 12_000 // points of all loads in the scatter
	maxBins   = 600    // of tokens over time
	maxSteps  = 500    // of a ladder or staircase
	cdfPoints = 240
)

// plot is one, as the page's script draws it. Series share X, or have an X each
// (a scatter). The tags are the script's contract.
type plot struct {
	ID      string       `json:"id"`
	Title   string       `json:"-"`
	Caption string       `json:"-"`
	X       bench.Series `json:"x,omitempty"`
	XAxis   axis         `json:"xAxis"`
	YAxis   axis         `json:"yAxis"`
	Y2Axis  *axis        `json:"y2Axis,omitempty"`
	Series  []series     `json:"series"`
	Points  bool         `json:"points,omitempty"` // whether lines show their points
	Bands   []band       `json:"bands,omitempty"`
	Marks   []mark       `json:"marks,omitempty"`
}

type axis struct {
	Label string `json:"label"`
	Unit  string `json:"unit,omitempty"`
	Log   bool   `json:"log,omitempty"`
	Pad   bool   `json:"pad,omitempty"` // leave some room beyond the values
}

type series struct {
	Label string       `json:"label"`
	Scale string       `json:"scale,omitempty"` // y2, or y when empty
	X     bench.Series `json:"x,omitempty"`
	Y     bench.Series `json:"y"`
}

// band is a stretch of x, mark a place on it.
type band struct {
	From  float64 `json:"from"`
	To    float64 `json:"to"`
	Label string  `json:"label"`
}

type mark struct {
	X     float64 `json:"x"`
	Label string  `json:"label"`
}

// mark names a load on the axis, unless it is none.
func (p *plot) mark(x float64, name string) {
	if x > 0 && finite(float32(x)) {
		p.Marks = append(p.Marks, mark{x, name + tidy(x)})
	}
}

// plotsOf are the plots that r has data for.
func plotsOf(r bench.Result) []plot {
	all := []plot{}
	add := func(p plot, drawn bool) {
		if drawn {
			all = append(all, p)
		}
	}
	add(ladderPlot(r.Ladder))
	add(staircasePlot(r.Staircase))
	tracks := tracksOf(r.Runs)
	add(scatterPlot(tracks))
	add(tokensPlot(tracks))
	for _, f := range []struct {
		id, name string
		of       func(bench.Raw) bench.Series
	}{
		{"cdf-ttft", "TTFT", func(r bench.Raw) bench.Series { return r.TTFT }},
		{"cdf-tpot", "TPOT", func(r bench.Raw) bench.Series { return r.TPOT }},
		{"cdf-e2e", "E2E", func(r bench.Raw) bench.Series { return r.E2E }},
	} {
		add(cdfPlot(f.id, f.name, tracks, f.of))
	}
	return all
}

// known is a figure in a series, NaN where it is not known.
func known(v *float64) float32 {
	if v == nil {
		return float32(math.NaN())
	}
	return float32(*v)
}

func anyKnown(s bench.Series) bool {
	return slices.ContainsFunc(s, func(v float32) bool { return !math.IsNaN(float64(v)) })
}

// ladderPlot shows throughput and TTFT over the load, the knee between them.
func ladderPlot(l *bench.Ladder) (plot, bool) {
	if l == nil || len(l.Steps) == 0 {
		return plot{}, false
	}
	steps := slices.Clone(l.Steps[:min(len(l.Steps), maxSteps)])
	slices.SortStableFunc(steps, func(a, b saturation.Step) int { return cmp.Compare(a.Load, b.Load) })
	var x, rate, tpm, wait bench.Series
	for _, s := range steps {
		x = append(x, float32(s.Load))
		rate = append(rate, float32(s.Achieved))
		tpm = append(tpm, known(s.TPM))
		wait = append(wait, known(s.TTFTP95))
	}
	k := l.Knee
	p := plot{ID: "ladder", Title: "Ladder: throughput and waiting by load", X: x, Points: true,
		XAxis:  axis{Label: unitName(k.Unit), Pad: true},
		YAxis:  axis{Label: "throughput", Unit: "tok/min"},
		Series: []series{{Label: "TPM", Y: tpm}}}
	if !anyKnown(tpm) {
		p.YAxis.Unit = "calls/s"
		p.Series = []series{{Label: "calls/s", Y: rate}}
	}
	p.Caption = "Throughput on the left, solid."
	if anyKnown(wait) {
		p.Y2Axis = &axis{Label: "TTFT p95", Unit: "ms"}
		p.Series = append(p.Series, series{Label: "TTFT p95", Scale: "y2", Y: wait})
		p.Caption += " TTFT p95 on the right, dashed."
	}
	if k.Saturated && finite(float32(k.After), float32(k.Before)) {
		p.Bands = []band{{k.After, k.Before, "knee"}}
		p.Caption += " The knee lies in the shaded band, between " + tidy(k.After) + " and " + tidy(k.Before) + "."
	} else {
		p.Caption += " No knee was seen."
	}
	p.mark(k.LastGood, "last good ")
	p.mark(k.Recommended, "recommended ")
	return p, true
}

// staircasePlot shows TTFT over the offered rate, and what it may be.
func staircasePlot(s *bench.Staircase) (plot, bool) {
	if s == nil {
		return plot{}, false
	}
	windows := slices.Clone(s.Windows[:min(len(s.Windows), maxSteps)])
	slices.SortStableFunc(windows, func(a, b saturation.Window) int { return cmp.Compare(a.Rate, b.Rate) })
	var x, wait, bound bench.Series
	for _, w := range windows {
		x = append(x, float32(w.Rate))
		wait = append(wait, known(w.TTFTP99))
		bound = append(bound, float32(0.8*s.Verdict.Objective))
	}
	if !anyKnown(wait) {
		return plot{}, false
	}
	p := plot{ID: "staircase", Title: "Staircase: TTFT p99 by rate", X: x, Points: true,
		XAxis: axis{Label: "rate asked for", Unit: "calls/s", Pad: true}, YAxis: axis{Label: "TTFT p99", Unit: "ms"},
		Series:  []series{{Label: "TTFT p99", Y: wait}, {Label: "80 % of the objective", Y: bound}},
		Caption: "TTFT p99 solid; dashed, the 80 % of its objective that a safe rate keeps."}
	p.mark(s.Verdict.Safe, "safe ")
	p.mark(s.Verdict.Target, "target ")
	return p, true
}

// leftOut says that a plot does not show all loads; "" when it does.
func leftOut(tracks []track) string {
	if n := len(tracks) - maxLoads; n > 0 {
		return " The last " + strconv.Itoa(n) + " loads are left out of the plot."
	}
	return ""
}
