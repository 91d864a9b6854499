package diagnose

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// TextComparison writes a Comparison for people, in lines of less than 80 columns.
func TextComparison(w io.Writer, c Comparison) error {
	out := page{bufio.NewWriter(w)}
	out.comparedHead(&c)
	out.changes(&c)
	out.sides(&c)
	for i := range c.Findings {
		out.line("")
		out.finding(fmt.Sprintf("%d. ", i+1), &c.Findings[i])
	}
	return out.end()
}

// JSONComparison writes a Comparison for programs.
func JSONComparison(w io.Writer, c Comparison) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(c); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}

// stretch says of when a window is.
func stretch(f *Figures) string {
	if f.From.IsZero() {
		return ""
	}
	form := "15:04:05 UTC"
	if f.To.Sub(f.From) >= 24*time.Hour {
		form = "2006-01-02 15:04 UTC"
	}
	return " from " + f.From.UTC().Format("2006-01-02 15:04:05") + " to " + f.To.UTC().Format(form)
}

func (p page) comparedHead(c *Comparison) {
	if c.Before.Calls+c.After.Calls == 0 && c.Before.TTFT.IsKnown() {
		p.line("Comparison of the last row of a table with the first")
	} else {
		p.wrap("", "", "Comparison of "+cardinal(c.After.Calls)+stretch(&c.After))
		p.wrap("  ", "  ", "with "+cardinal(c.Before.Calls)+stretch(&c.Before))
	}
	if c.Odd > 0 {
		p.wrap("  ", "  ", "left out, for their figures cannot be true: "+cardinal(c.Odd))
	}
	if c.Scope != nil {
		p.wrap("  ", "  ", fmt.Sprintf("of %s %s alone, whose siblings have not changed", c.Scope.Dimension, strings.Join(c.Scope.Names, ", ")))
	}
	p.line("")
	p.line(headlines[c.Verdict])
	for _, reason := range c.Reasons {
		p.wrap("  ", "  ", reason)
	}
}

// changes shows how the means changed, phase by phase and on equal cells.
func (p page) changes(c *Comparison) {
	list := [measures]*Change{&c.TTFT, &c.TPOT, &c.E2E}
	if !c.TTFT.Change.IsKnown() && !c.TPOT.Change.IsKnown() && !c.E2E.Change.IsKnown() {
		return
	}
	// row writes a line of the table: for each measure a time and a share, ""
	// where there is none.
	row := func(name string, of func(*Change) (text, share string)) {
		line, there := fmt.Sprintf("  %-14s", name), false
		for _, ch := range list {
			text, share := of(ch)
			line += fmt.Sprintf("%12s%7s", text, share)
			there = there || text != ""
		}
		if there {
			p.line(strings.TrimRight(line, " "))
		}
	}
	whole := func(of func(*Change) call.Duration, write func(time.Duration) string) func(*Change) (string, string) {
		return func(ch *Change) (string, string) {
			if d, known := of(ch).Get(); known {
				return write(d), ""
			}
			return "-", ""
		}
	}
	p.line("")
	p.line(strings.TrimRight(fmt.Sprintf("  %-14s%12s%7s%12s%7s%12s", "on average", "TTFT", "", "TPOT", "", "E2E"), " "))
	row("before", whole(func(ch *Change) call.Duration { return ch.Before.Mean }, span))
	row("now", whole(func(ch *Change) call.Duration { return ch.After.Mean }, span))
	for _, name := range phaseNames {
		row(name, func(ch *Change) (string, string) {
			for i := range ch.Parts {
				part := &ch.Parts[i]
				if d := part.Change.Or(0); part.Phase == name && d != 0 {
					x, known := part.Share.Get()
					if !known {
						return signed(d), ""
					}
					return signed(d), signedPercent(x)
				}
			}
			return "", ""
		})
	}
	row("change", whole(func(ch *Change) call.Duration { return ch.Change }, signed))
	row("mix alone", func(ch *Change) (string, string) {
		return onCells(ch, byShape, func(s *Standard) call.Duration { return s.Mix })
	})
	for level, name := range [levels]string{"equal size", "equal uncached", "equal batch"} {
		row(name, func(ch *Change) (string, string) {
			return onCells(ch, level, func(s *Standard) call.Duration { return s.Equal })
		})
	}
	if len(c.TTFT.Mix)+len(c.TPOT.Mix)+len(c.E2E.Mix) > 0 {
		p.wrap("  ", "  ", "(mix alone: what the sizes of the calls would have changed; equal: the change on cells of equal model, input and output, "+
			"then of equal uncached input too, then of equal batch, with the share of the calls that have equals; ? is too few to tell)")
	}
}

// onCells is a part of a standardisation, and the share of calls in it.
func onCells(ch *Change, level int, of func(*Standard) call.Duration) (text, share string) {
	for i := range ch.Mix {
		s := &ch.Mix[i]
		if len(s.By) != len(levelNames[level]) {
			continue
		}
		share := percent(s.Overlap.Or(0))
		if !s.Determined {
			return "?", share
		}
		return signed(of(s).Or(0)), share
	}
	return "", ""
}

// signedPercent writes a share that may be below 0, which is none of a whole.
func signedPercent(x float64) string {
	if x < 0 {
		return "−" + percent(-x)
	}
	return percent(x)
}

// shownFigures are the figures of the windows that are listed.
var shownFigures = []string{"calls_per_second", "output_tokens_per_second", "computed_tokens_per_second", "input_tokens", "input_tokens_p95", "cached_share",
	"output_tokens", "calls_in_flight", "batch", "running", "waiting", "kv_use", "queue_share", "residual", "preemptions", "max_num_seqs",
	"gpu_utilization", "gpu_memory_bandwidth", "client_rtt_ms", "upstream_rtt_ms"}

func (p page) sides(c *Comparison) {
	const form = "  %-51s%12s%13s"
	both := pair{b: &c.Before, a: &c.After}
	head := false
	for _, name := range shownFigures {
		f := both.figure(name)
		if !f.before.IsKnown() && !f.after.IsKnown() {
			continue
		}
		if !head {
			head = true
			p.line("")
			p.line(fmt.Sprintf(form, "", "before", "now"))
		}
		write := func(n call.Number) string {
			x, known := n.Get()
			if !known {
				return "-"
			}
			return amount(x, f.unit)
		}
		p.line(strings.TrimRight(fmt.Sprintf(form, f.label, write(f.before), write(f.after)), " "))
	}
}
