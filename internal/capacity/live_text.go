package capacity

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weirgate/weir/internal/call"
)

// liveColumns is how wide the text is at most, but for words longer than that.
const liveColumns = 79

// Text writes a Result for people, in lines of less than 80 columns.
func Text(w io.Writer, r Result) error {
	p := livePage{bufio.NewWriter(w)}
	p.head(&r)
	if len(r.Upstreams) == 0 {
		p.line("")
		p.wrap("", "There are no calls to go by. Send some through the gateway, quiet and busy times alike; or ask for a longer time, another class, model or upstream. weir capacity plan needs no calls.")
	}
	for i := range r.Upstreams {
		p.line("")
		p.upstream(&r, &r.Upstreams[i])
	}
	for i := range r.Fleets {
		p.line("")
		p.fleet(&r.Fleets[i])
	}
	if err := p.w.Flush(); err != nil {
		return fmt.Errorf("write capacity: %w", err)
	}
	return nil
}

// JSON writes a Result for programs.
func JSON(w io.Writer, r Result) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("write capacity: %w", err)
	}
	return nil
}

// livePage writes lines; the first error is kept by the writer until the end.
type livePage struct{ w *bufio.Writer }

func (p livePage) line(text string) { fmt.Fprintln(p.w, text) }

// wrap writes text after a prefix, and what does not fit after an indent of the same width.
func (p livePage) wrap(prefix, text string) {
	indent := strings.Repeat(" ", utf8.RuneCountInString(prefix))
	line, empty := prefix, true
	for word := range strings.FieldsSeq(liveBound.Replace(liveClean(text))) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > liveColumns {
			p.line(strings.ReplaceAll(line, liveBond, " "))
			line, empty = indent, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	p.line(strings.TrimRight(strings.ReplaceAll(line, liveBond, " "), " "))
}

// liveBond stands for a blank at which no line is broken, between a number and its unit;
// liveClean has removed it from what comes from outside.
const liveBond = "\x00"

var liveBound = func() *strings.Replacer {
	var pairs []string
	for _, unit := range []string{"s", "ms", "µs", "%", "calls", "call", "tokens", "sequences", "replicas", "replica", "GPUs"} {
		for digit := '0'; digit <= '9'; digit++ {
			pairs = append(pairs, string(digit)+" "+unit, string(digit)+liveBond+unit)
		}
	}
	return strings.NewReplacer(pairs...)
}()

// liveClean takes out what a terminal might act upon.
func liveClean(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) && r != ' ' {
			return utf8.RuneError
		}
		return r
	}, text)
}

// row writes a figure with its name.
func (p livePage) row(name, format string, args ...any) {
	p.wrap(fmt.Sprintf("  %-13s ", name), fmt.Sprintf(format, args...))
}

func (p livePage) head(r *Result) {
	title := "Capacity from " + liveCalls(r.Calls)
	if r.Calls > 0 {
		form := "15:04:05 UTC"
		if r.To.Sub(r.From) >= 24*time.Hour {
			form = "2006-01-02 15:04:05 UTC"
		}
		title += fmt.Sprintf(" from %s to %s", r.From.UTC().Format("2006-01-02 15:04:05"), r.To.UTC().Format(form))
	}
	p.wrap("", title)
	marks := []string{}
	for _, o := range []struct {
		name     string
		limit    call.Duration
		quantile float64
	}{{"TTFT", r.TTFTObjective, r.TTFTQuantile}, {"TPOT", r.TPOTObjective, r.TPOTQuantile}} {
		if limit, known := o.limit.Get(); known {
			marks = append(marks, fmt.Sprintf("%s p%s of %s (%s %% of %s)", o.name, liveNumber(100*o.quantile),
				liveSpan(call.Lasting(time.Duration(float64(limit)*r.Watermark))), liveNumber(100*r.Watermark), liveSpan(o.limit)))
		}
	}
	if len(marks) == 0 {
		marks = append(marks, "none, for there is no objective")
	}
	of := ""
	if r.Class != "" {
		of = " for class " + r.Class
	}
	p.wrap("", "Watermark"+of+": "+strings.Join(marks, ", "))
}

// titled names an upstream and a model.
func liveTitle(upstream, model string) string {
	if upstream == "" {
		upstream = "an unnamed upstream"
	}
	if model == "" {
		return upstream
	}
	return upstream + ", model " + model
}

func (p livePage) upstream(r *Result, u *Upstream) {
	p.wrap("", liveTitle(u.Upstream, u.Model))
	if u.Label == Refused {
		p.row("refused", "no estimate, from %s of which %d are usable", liveCalls(u.Calls), u.Usable)
	} else {
		p.estimate(r, u)
	}
	for _, reason := range u.Reasons {
		p.row("", "%s", reason)
	}
	if u.Present.IsKnown() {
		text := fmt.Sprintf("%s calls/s", liveFigure(u.Present, ""))
		switch h, known := u.Headroom.Get(); {
		case known && u.Bound != AtLeast:
			text += fmt.Sprintf(", headroom %s %%", liveNumber(100*h))
		case known && h >= 0:
			text += fmt.Sprintf(", headroom at least %s %%", liveNumber(100*h))
		case known:
			text += ", headroom unknown: that is above the lower bound already"
		}
		p.row("now", "%s; on average %s calls/s, at most %s calls/s over %s", text, liveFigure(u.Rate, ""), liveFigure(u.Highest, ""), liveCalls(u.HighestCalls))
	}
	if f := u.Fit; f != nil {
		p.fit(u, f)
	}
	if b := u.Balance; b != nil {
		text := "counted " + liveFigure(b.Counted, " calls in flight")
		if d, known := b.Difference.Get(); known {
			text = fmt.Sprintf("%s calls in flight, %s (%+.1f %%)", liveFigure(b.Law, ""), "counted "+liveFigure(b.Counted, ""), 100*d)
		}
		if b.Alarm {
			text = "ALARM: " + text
		}
		p.row("Little's law", "%s", strings.TrimSpace(text+". "+b.Why))
	}
	if u.Factor.IsKnown() {
		p.row("factor", "%s calls may wait for their first token at once (rate × TTFT p95 × %s)", liveFigure(u.Factor, ""), liveNumber(1+DefaultHeadroom))
	}
	for _, note := range u.Notes {
		p.row("note", "%s", note)
	}
	for _, advice := range u.Advice {
		p.row("next", "%s", advice)
	}
}

// estimate writes the figures of an estimate.
func (p livePage) estimate(r *Result, u *Upstream) {
	if u.Bound == AtLeast {
		p.row("knee", "at least %s calls/s (95 %% confidence), %s", liveFigure(u.Knee, ""), u.Label)
	} else {
		p.row("knee", "about %s calls/s (%s to %s with 95 %% confidence), %s", liveFigure(u.Knee, ""), liveFigure(u.KneeLow, ""), liveFigure(u.KneeHigh, ""), u.Label)
	}
	text := fmt.Sprintf("%s calls in flight, TTFT p%s %s", liveFigure(u.KneeConcurrency, ""), liveNumber(100*r.TTFTQuantile), liveSpan(u.KneeTTFT))
	if u.KneeTPOT.IsKnown() {
		text += fmt.Sprintf(", TPOT p%s %s", liveNumber(100*r.TPOTQuantile), liveSpan(u.KneeTPOT))
	}
	if u.Binds == BindsAssumed {
		text += "; no objective binds there, but the limits that are assumed"
	} else {
		text += "; " + strings.ToUpper(u.Binds) + " binds"
	}
	p.row("there", "%s", text)
	p.row("sustainable", "%s calls/s, which is %s input and %s output tokens/s (%s %% below the knee)",
		liveFigure(u.Sustainable, ""), liveFigure(u.SustainableInput, ""), liveFigure(u.SustainableOutput, ""), liveNumber(100*r.Derate))
}

// fit writes down what calls cost, and how well that fits.
func (p livePage) fit(u *Upstream, f *Fit) {
	limit := func(l UsedLimit, unit string) string {
		n, known := l.Value.Get()
		if !known {
			return "unknown " + unit
		}
		return fmt.Sprintf("%d %s (%s)", n, unit, l.Source)
	}
	if u.Limits.MaxNumSeqs.Value.IsKnown() {
		p.row("engine", "%s, %s, %s in a step", limit(u.Limits.MaxNumSeqs, "sequences"), limit(u.Limits.KVTokens, "KV tokens"), limit(u.Limits.StepTokens, "tokens"))
	}
	p.row("token", "%s + %s for each sequence + %s %% of the time that prompts take", liveSpan(f.Alpha), liveSpan(f.Beta), liveNumber(100*f.Gamma))
	p.row("prompt", "%s for each step + %s µs for each token not cached + %s before it (from: %s)", liveSpan(f.Base), liveNumber(f.PerToken), liveSpan(f.Front), f.Prefill)
	text := fmt.Sprintf("%s with %s to %s sequences; off by %s %% (median) and %s %% (p95)", liveCalls(f.Calls), liveNumber(f.BatchLow), liveNumber(f.BatchHigh),
		liveNumber(100*f.Residual), liveNumber(100*f.ResidualP95))
	if d, known := f.Drift.Get(); known {
		text += fmt.Sprintf(", the busiest third by %+.1f %%", 100*d)
	}
	if f.Batch == "gauges" {
		text += fmt.Sprintf("; by the gauges %s %% of the engine's load comes through here", liveNumber(100*f.Share))
	}
	p.row("fit", "%s", text)
}

func (p livePage) fleet(f *Fleet) {
	name := "All replicas"
	if f.Model != "" {
		name = "Model " + f.Model
	}
	p.wrap("", fmt.Sprintf("%s, %s: %s", name, liveReplicas(int64(f.Replicas)), f.Say))
	p.row("", "%s", f.Why)
	if n, known := f.NeededGPUs.Get(); known {
		p.row("needs", "%d GPUs", n)
	}
	if f.ShrinkBelow.IsKnown() {
		p.row("shrink", "by one replica when the rate stays below %s calls/s", liveFigure(f.ShrinkBelow, ""))
	}
	if f.Target.IsKnown() {
		text := "unknown, for no replica has an estimate"
		if n, known := f.TargetReplicas.Get(); known {
			text = liveReplicas(n)
			if f.Bound == AtLeast {
				text += " at most"
			}
			if g, told := f.TargetGPUs.Get(); told {
				text += fmt.Sprintf(", %d GPUs", g)
			}
		}
		p.row("target", "%s calls/s: %s", liveFigure(f.Target, ""), text)
	}
}
