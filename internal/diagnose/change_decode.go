package diagnose

import (
	"time"

	"github.com/weirgate/weir/internal/call"
)

// slowTokens finds why tokens come slower: a larger batch, prompts in between, or
// an engine that is slower at the same batch.
func slowTokens(p *pair) []*Finding {
	if p.trends[ofTPOT] != up || p.rerouted {
		return nil
	}
	if p.rows {
		return p.slowTokensOfRows()
	}
	d := &p.decode
	_, share := p.share(ofTPOT, decode)
	if share < Dominant || d.calls == 0 || d.change <= 0 {
		return nil
	}
	part := func(s float64) bool { return s >= Dominant*d.change && s >= Sure*d.within }
	switch {
	case d.known && part(d.batch) && !p.firstUp():
		f := p.bandwidth(call.Inferred, d.batch)
		p.sameBatch(f)
		return []*Finding{f}
	case d.known && part(d.prefill):
		f := p.claim(CodePrefillCompute, call.Inferred, ofTPOT, time.Duration(d.prefill*float64(time.Second)))
		p.sameBatch(f)
		f.evidence("", p.figures("computed_tokens_per_second", "input_tokens_p95")...)
		p.sides(f, false)
		f.Summary = "Prompts that are computed in between hold tokens up: " + p.took(ofTPOT) + f.ofChange() + "."
		f.Next = p.boundPrefill()
		return []*Finding{f}
	case d.blind:
		return p.manyBeside()
	case part(d.residual):
		if d.held >= Dominant*d.change && d.held >= Sure*d.heldWithin {
			return p.promptsHoldUp()
		}
		if p.gapsSteady() {
			return nil // tokens are held up now and then, and no step is slower
		}
		return p.slowerAlike()
	}
	return nil
}

// gapsSteady tells whether the median gap between chunks is known in both windows and
// has not risen: steps take as long as they did, whatever comes between them.
func (p *pair) gapsSteady() bool {
	grown, known := by(inMS(p.b.Gap), inMS(p.a.Gap)).Get()
	return known && grown < Rise
}

// eachHolds is how many times what it was each prompt holds up the tokens of other
// calls, unknown where the calls do not show it. Of the time in which tokens are written,
// the share that prompts hold up goes with how many come and with how long each takes.
func (p *pair) eachHolds() call.Number {
	d := &p.decode
	if d.heldBefore <= 0 || d.held <= 0 || d.held < Sure*d.heldWithin {
		return call.Number{}
	}
	load, known := by(p.b.Prefill, p.a.Prefill).Get()
	if !known {
		load, known = by(p.b.Rate, p.a.Rate).Get()
	}
	if !known || load <= 0 {
		return call.Number{}
	}
	return call.Figure(d.heldAfter / (d.before + d.change) / (d.heldBefore / d.before) / load)
}

// promptsHoldUp is the finding of prompts that hold tokens up for longer, because each
// takes longer or because more come: a queue does not do that.
func (p *pair) promptsHoldUp() []*Finding {
	d := &p.decode
	load, each := p.figure("computed_tokens_per_second"), p.eachHolds()
	code, more := CodeModelSlow, rose(load.before, load.after, 0) && each.Or(0) < Rise
	if more {
		code = CodePrefillCompute
	}
	f := p.claim(code, call.Inferred, ofTPOT, time.Duration(d.held*float64(time.Second)))
	f.pro("tpot_held_ms", InMilliseconds, call.Figure(1000*d.heldAfter), "prompts that are computed in between hold each token up by %s, before by %s",
		spanOf(1000*d.heldAfter), spanOf(1000*d.heldBefore))
	if times, known := each.Get(); known {
		f.pro("tpot_held_ms", NoUnit, each, "for each prompt token that comes that is %s times what it was", plain(times))
	}
	if p.gapsSteady() {
		f.evidence("so tokens come as they did where no prompt is in between", p.figure("icl_p50_ms"))
	} else {
		f.against("so each step may be slower as well", p.figure("icl_p50_ms"))
	}
	f.evidence("", p.figure("ttft_ms"), p.figure("input_tokens"), load)
	p.clocksFine(f)
	p.sides(f, true)
	if more {
		f.Summary = "More prompts are computed in between, and hold tokens up: " + p.took(ofTPOT) + f.ofChange() + "."
		f.Next = p.boundPrefill()
		return []*Finding{f}
	}
	f.Summary = "Prompts take longer, and hold up the tokens of other calls: " + p.took(ofTPOT) + f.ofChange() + "."
	f.Next = "Look at the model and its kernels for prompts (attention backend, quantisation, chunked prefill), at the prefix cache, at what was deployed last, or at a neighbour on the same GPU."
	return []*Finding{f}
}

// bandwidth is the finding of a batch that is larger.
func (p *pair) bandwidth(source call.Source, explained float64) *Finding {
	f := p.claim(CodeDecodeBandwidth, source, ofTPOT, time.Duration(explained*float64(time.Second)))
	f.evidence("", p.figures("tpot_ms", "batch", "running")...)
	if p.firstUp() {
		f.against("so it is not decoding alone", p.figure("ttft_ms"))
	} else {
		f.evidence("hardly more than the steps explain, so calls do not wait", p.figure("ttft_ms"))
	}
	if x, known := p.a.MemoryBandwidth.Get(); known && x >= UnderUsed {
		f.evidence("", p.figure("gpu_memory_bandwidth"))
	} else if known {
		f.against("so there is room", p.figure("gpu_memory_bandwidth"))
	}
	p.demand(f)
	p.clocksFine(f)
	p.sides(f, false)
	f.Summary = "Each step reads the weights and the KV cache of more sequences: " + p.took(ofTPOT) + f.ofChange() + "."
	f.Next = "Add replicas, or have fewer at once; shorter contexts and an fp8 KV cache read less."
	return f
}

// manyBeside is what can be said when more runs beside each call, and the healthy
// window shows no slope for that.
func (p *pair) manyBeside() []*Finding {
	d := &p.decode
	if p.firstUp() || d.grown[besideCalls] < Rise && d.grown[besideContext] < Rise {
		return nil
	}
	source := call.Unattributed
	if p.a.MemoryBandwidth.Or(0) >= UnderUsed {
		source = call.Inferred
	}
	f := p.bandwidth(source, d.change)
	f.con("tpot_residual_ms", NoUnit, call.Number{}, "the healthy window does not show how TPOT goes with the batch: a slower engine, whose batch grows as well, looks the same")
	if source == call.Unattributed {
		f.Summary = "A larger batch may be why tokens come slower: " + p.took(ofTPOT) + "; a slower engine looks the same."
	}
	return []*Finding{f}
}

// slowerAlike is the finding of an engine that is slower at the same batch.
func (p *pair) slowerAlike() []*Finding {
	d := &p.decode
	f := p.claim(CodeDecodeSlower, call.Inferred, ofTPOT, time.Duration(d.residual*float64(time.Second)))
	p.sameBatch(f)
	if l := p.level(ofTPOT, byBatch); l != nil && l.Determined {
		if float64(l.Equal.Or(0)) >= Dominant*d.change*float64(time.Second) {
			f.pro("equal_cells_ms", InMilliseconds, inMS(l.Equal), "%s", l.words(ofTPOT))
		} else {
			f.con("equal_cells_ms", InMilliseconds, inMS(l.Equal), "%s", l.words(ofTPOT))
		}
	}
	for _, c := range p.clocks {
		if c.loss >= ClockDrop {
			f.pro("sm_clock", c.unit, c.after, "%s (%s less)", c.words(), percent(c.loss))
			for _, r := range c.reasons {
				f.pro("clock_reasons", NoUnit, call.Number{}, "held down by %s", clean(r))
			}
		}
	}
	p.clocksFine(f)
	f.evidence("", p.figures("gpu_utilization", "gpu_memory_bandwidth")...)
	if n, known := p.a.Preemptions.Get(); known && n > p.b.Preemptions.Or(0) {
		f.against("lost places slow tokens as well", p.figure("preemptions"))
	}
	if !p.a.Preemptions.IsKnown() && p.a.KVMost.Or(0) > HighCache {
		f.against("sequences may have lost their place, which slows tokens as well", p.figure("kv_use_most"))
	}
	if len(p.clocks) == 0 {
		f.con("sm_clock", NoUnit, call.Number{}, "the GPUs' clocks are not watched: heat or power may be why")
	}
	p.sides(f, true)
	f.Summary = "The engine writes slower at the same batch: " + p.took(ofTPOT) + f.ofChange() + "."
	f.Next = "Look at the GPU and its neighbours: clocks and their reasons (nvidia-smi -q -d PERFORMANCE), another process on it, the engine's own CPU, and what was deployed last."
	return []*Finding{f}
}

// clocksFine adds that clocks are what they were.
func (p *pair) clocksFine(f *Finding) {
	for i := range p.clocks {
		if p.clocks[i].loss >= ClockDrop {
			return
		}
	}
	if len(p.clocks) > 0 {
		c := &p.clocks[0]
		f.pro("sm_clock", c.unit, c.after, "%s: neither heat nor power slows it", c.words())
	}
}

// slowTokensOfRows reads a table, which has no calls.
func (p *pair) slowTokensOfRows() []*Finding {
	if p.firstUp() {
		return nil
	}
	grown, known := by(p.b.InFlight, p.a.InFlight).Get()
	change := p.change[ofTPOT].Change.Or(0).Seconds()
	if known && grown < Rise {
		f := p.claim(CodeDecodeSlower, call.Inferred, ofTPOT, p.change[ofTPOT].Change.Or(0))
		f.evidence("", p.figures("tpot_ms", "ttft_ms", "output_tokens_per_second", "gpu_utilization")...)
		f.evidence("so the batch is as it was", p.figure("calls_in_flight"))
		f.Summary = "The engine writes slower at the same number of calls: " + p.took(ofTPOT) + "."
		f.Next = "Look at the GPU and its neighbours: clocks and their reasons, another process on it."
		return []*Finding{f}
	}
	f := p.bandwidth(call.Inferred, change)
	f.evidence("", p.figures("output_tokens_per_second", "calls_in_flight", "gpu_utilization")...)
	if !known {
		f.con("calls_in_flight", NoUnit, call.Number{}, "how many ran at once is not known: a GPU that is slower at the same batch looks the same")
	}
	return []*Finding{f}
}
