package report

import (
	"github.com/weirgate/weir/internal/bench"
)

// addIdentity says how well the parts of each call add up to the whole, and
// names the calls for which they do not.
func addIdentity(d *document, r bench.Result) {
	if !r.Streamed {
		return
	}
	t := table{columns: []column{{head: "load", left: true}, {head: "checked"}, {head: "within"}, {figure: "within", head: "%"}}}
	out := table{caption: "Calls for which it does not hold, the worst first",
		columns: []column{{head: "load", left: true}, {head: "call", left: true}, {figure: "E2E", head: "ms"}, {figure: "sum", head: "ms"}, {figure: "left over", head: "ms"}}}
	for _, run := range r.Runs {
		i := run.Median.Identity
		if i.Checked == 0 {
			continue
		}
		held := cell{text: percentOf(i.Within, i.Checked), tone: good}
		if i.Within < i.Checked {
			held.tone = warn
		}
		t.rows = append(t.rows, []cell{{text: named(run.Load)}, {text: count(i.Checked)}, {text: count(i.Within)}, held})
		for _, o := range i.Outliers {
			out.rows = append(out.rows, []cell{{text: named(run.Load)}, {text: named(o.ID), id: true}, {text: number(o.E2E)}, {text: number(o.Sum)}, {text: number(o.Left)}})
		}
	}
	if len(t.rows) == 0 {
		return
	}
	d.section("Identity of the parts",
		paragraph("E2E ≈ TTFT + (n − 1)·TPOT holds of a call within 1 % or 5 ms, whichever is more. What is left over is time after the last token."), t, out)
}

// addCompared sets the client's figures beside the gateway's record.
func addCompared(d *document, runs []bench.Run) {
	found := table{columns: []column{{head: "load", left: true}, {head: "calls"}, {figure: "in the", head: "gateway"}, {figure: "tokens", head: "equal"}, {figure: "tokens", head: "differ"}}}
	off := table{caption: "Absolute differences of the two, client and gateway, ms",
		columns: append([]column{{head: "load", left: true}, {head: "figure", left: true}}, quantileColumns...)}
	apart := table{caption: "Calls that differ most",
		columns: []column{{head: "load", left: true}, {head: "call", left: true}, {head: "figure", left: true}, {head: "client", left: true}, {head: "gateway", left: true}}}
	var notes bullets
	for _, run := range runs {
		c := run.Compared
		if c == nil {
			continue
		}
		differ := cell{text: count(c.TokensDiffer), tone: good}
		if c.TokensDiffer > 0 {
			differ.tone = bad
		}
		there := cell{text: count(c.Found)}
		if c.Found < c.Calls {
			there.tone = warn
		}
		found.rows = append(found.rows, []cell{{text: named(run.Load)}, {text: count(c.Calls)}, there, {text: count(c.TokensEqual)}, differ})
		for _, f := range []struct {
			name string
			q    *bench.Quantiles
		}{{"TTFT", c.TTFT}, {"TPOT", c.TPOT}, {"E2E", c.E2E}} {
			off.rows = append(off.rows, append(plainCells(named(run.Load), f.name), described(f.q)...))
		}
		for _, x := range c.Differences {
			apart.rows = append(apart.rows, []cell{{text: named(run.Load)}, {text: named(x.ID), id: true}, {text: named(x.Figure)}, {text: named(x.Client)}, {text: named(x.Gateway)}})
		}
		if c.Note != "" {
			notes = append(notes, named(run.Load)+": "+sentence(c.Note))
		}
	}
	d.section("Side by side with the gateway", found, off, apart, notes)
}

// addThermal sets the first and the last window of a long run side by side.
func addThermal(d *document, runs []bench.Run) {
	var parts []part
	for _, run := range runs {
		th := run.Thermal
		if th == nil {
			continue
		}
		t := table{caption: named(run.Load) + ", windows of " + span(th.Window),
			columns: []column{{head: "figure", left: true}, {head: "first"}, {head: "last"}, {figure: "change", head: "%"}}}
		for _, h := range bench.Headlines() {
			a, hasA := h.Of(&th.First)
			b, hasB := h.Of(&th.Last)
			if !hasA && !hasB {
				continue
			}
			t.rows = append(t.rows, plainCells(h.Title, either(a, hasA), either(b, hasB), change(pointer(a, hasA), pointer(b, hasB))))
		}
		verdict := sentence(th.Verdict)
		if th.Slower {
			verdict = "SLOWER at the end. " + verdict
		}
		parts = append(parts, t, paragraph(verdict))
	}
	d.section("From beginning to end", parts...)
}

func pointer(v float64, known bool) *float64 {
	if !known {
		return nil
	}
	return &v
}

func either(v float64, known bool) string { return maybe(pointer(v, known)) }
