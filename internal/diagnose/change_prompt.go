package diagnose

import (
	"fmt"
	"math"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// level returns a standardisation of a measure's change, nil where there is none.
func (p *pair) level(m measure, level int) *Standard {
	c := p.change[m]
	if c == nil {
		return nil
	}
	for i := range c.Mix {
		if len(c.Mix[i].By) == len(levelNames[level]) {
			return &c.Mix[i]
		}
	}
	return nil
}

// missedCache finds that the prefix cache gives less of equal prompts.
func missedCache(p *pair) []*Finding {
	c := p.figure("cached_share")
	before, known := c.before.Get()
	after, too := c.after.Get()
	m := p.first()
	if !known || !too || before-after < CacheLoss || p.trends[m] != up {
		return nil
	}
	equal, alike := p.cachedOnCells()
	if alike && equal-after < CacheLoss {
		return nil // prompts are others
	}
	was, is := p.means(m, prefill)
	if m == ofTTFT && float64(is) < Rise*float64(was) {
		return nil
	}
	f := p.claim(CodePrefixCache, call.FromEngine, m, is-was)
	f.evidence(fmt.Sprintf("%s points less", plain(100*(before-after))), c)
	if alike {
		f.pro("cached_share", InShare, call.Figure(equal), "prompts of equal length got %s of their tokens from it before", percent(equal))
	} else {
		f.con("cached_share", NoUnit, call.Number{}, "hardly any prompts of equal length to compare with")
	}
	f.pro("phases.prefill_ms", InMilliseconds, call.Figure(milliseconds(is)), "prefill: %s → %s", span(was), span(is))
	f.evidence("", p.figures("computed_tokens", "kv_use_most")...)
	f.con("", NoUnit, call.Number{}, "whether prompts still begin alike is not known: records hold nothing of them")
	p.sides(f, false)
	f.Summary = "The prefix cache gives " + percent(after) + " of the prompt tokens, before " + percent(before) + ", and prefill takes " + signed(is-was) + ": " + p.took(m) + "."
	f.Next = "See what became of the cached prefixes: restarted engines, prefix caching switched off, calls of one conversation that go to another replica (affinity: lb_policy header or cookie in reverse_proxy), a KV cache too small to keep them."
	return []*Finding{f}
}

// cachedOnCells is what the prefix cache gave in the healthy window of prompts as
// long as those of the new one.
func (p *pair) cachedOnCells() (share float64, ok bool) {
	type sums struct{ cached, input [2]float64 }
	cells := make(map[kind]*sums)
	var all [2]float64
	for i, list := range p.list {
		for j := range list {
			s := &list[j]
			n, known := s.uncached.Get()
			k, _ := s.kindOf(byShape)
			if !known || k.inputBy == 0 {
				continue
			}
			k.output, k.outputBy = 0, 0
			if cells[k] == nil {
				cells[k] = new(sums)
			}
			in := float64(s.rec.Input.Or(0))
			cells[k].cached[i] += in - float64(n)
			cells[k].input[i] += in
			all[i] += in
		}
	}
	var got, of float64
	for i := range p.list[1] {
		s := &p.list[1][i]
		k, _ := s.kindOf(byShape)
		k.output, k.outputBy = 0, 0
		if at := cells[k]; at != nil && s.uncached.IsKnown() && at.input[0] > 0 {
			in := float64(s.rec.Input.Or(0))
			of += in
			got += in * at.cached[0] / at.input[0]
		}
	}
	if of < Dominant*all[1] || of == 0 {
		return 0, false
	}
	return got / of, true
}

// otherTraffic finds that calls of another kind came, and are as quick as such
// calls were.
func otherTraffic(p *pair) []*Finding {
	m := p.first()
	if p.trends[m] != up {
		m = ofE2E
		if p.trends[m] != up || p.trends[ofTPOT] == up {
			return nil
		}
	}
	change := p.change[m].Change.Or(0)
	if l := p.level(m, byShape); l != nil && l.Determined && l.Mix.Or(0) > 0 && float64(l.Mix.Or(0)) >= Dominant*float64(change) {
		f := p.claim(CodeTrafficMix, call.Inferred, m, l.Mix.Or(0))
		f.pro("mix_ms", InMilliseconds, inMS(l.Mix), "the healthy window's calls in the new mix would have taken %s", signed(l.Mix.Or(0)))
		if float64(l.Equal.Or(0)) >= (Rise-1)*float64(p.change[m].Before.Mean.Or(0)) {
			f.con("equal_cells_ms", InMilliseconds, inMS(l.Equal), "%s", l.words(m))
		} else {
			f.pro("equal_cells_ms", InMilliseconds, inMS(l.Equal), "%s", l.words(m))
		}
		return p.mixed(f, m)
	}
	// Too few are alike: do prompts take as long for each token as they did?
	fit := &p.prompt
	in := p.figure("input_tokens")
	_, share := p.share(m, prefill)
	if m != ofTTFT || !fit.known || share < Dominant || !rose(in.before, in.after, 0) || fit.grown < Rise {
		return nil
	}
	if fit.perToken > Rise || fit.expected+Sure*fit.within < Dominant*fit.change {
		return nil
	}
	f := p.claim(CodeTrafficMix, call.Inferred, m, time.Duration(min(fit.expected, fit.change)*float64(time.Second)))
	how := "prefill in proportion to tokens"
	if fit.line {
		how = "prefill by tokens, as the healthy window's calls show it,"
	}
	f.pro("prefill_expected_ms", InMilliseconds, call.Figure(1000*fit.expected), "%s would have changed by %s (± %s), and did by %s", how,
		signed(time.Duration(fit.expected*float64(time.Second))), span(time.Duration(2*fit.within*float64(time.Second))), signed(time.Duration(fit.change*float64(time.Second))))
	f.pro("prefill_per_computed_token_ms", NoUnit, call.Figure(fit.perToken), "for each computed token prefill takes %s times what it took", plain(fit.perToken))
	if over := fit.change - fit.expected; over > math.Max((Rise-1)*(fit.before+fit.expected), Sure*fit.within) {
		f.con("prefill_expected_ms", InMilliseconds, call.Figure(1000*over), "%s more than their tokens explain: longer prompts hold each other up", span(time.Duration(over*float64(time.Second))))
	}
	if l := p.level(m, byShape); l != nil {
		f.con("overlap", InShare, l.Overlap, "only %s of the calls have equals in the healthy window", percent(l.Overlap.Or(0)))
	}
	if !fit.exact {
		f.con("cached_share", NoUnit, call.Number{}, "what the prefix cache gave is not known")
	}
	return p.mixed(f, m)
}

func (p *pair) mixed(f *Finding, m measure) []*Finding {
	f.evidence("", p.figures("input_tokens", "input_tokens_p95", "output_tokens")...)
	if grown, _ := p.waits(); grown {
		f.against("so a part of it is waiting", p.figure("waiting"))
	}
	p.sides(f, false)
	f.Summary = "Calls of another kind came: " + p.took(m) + ", of which " + span(f.Time.Or(0)) + " is the mix (" + percent(f.Share.Or(0)) + " of the change). The service is not at fault."
	f.Next = "Nothing to mend. If the longer calls are to stay, judge them by an objective of their own (class, or a filter on input_tokens), and see weir capacity for what they need."
	return []*Finding{f}
}

// slowPrompts finds prefill that takes longer than prompts explain.
func slowPrompts(p *pair) (found []*Finding) {
	if p.rerouted {
		return nil
	}
	m := p.first()
	if m != ofTTFT || !p.firstUp() {
		return nil
	}
	d, share := p.share(m, prefill)
	if share < Dominant {
		return nil
	}
	if grown, _ := p.waits(); grown && p.unsplit(m) && p.a.QueueShare.Or(0) >= 1-QueueShare {
		return nil // it may be a queue
	}
	source := p.sums[1][m].source(prefill)
	if p.unsplit(m) && p.a.Residual.Or(0) > Residual {
		return nil // or the way to the engine
	}
	if before, after, ok := p.loneCalls(); ok {
		f := p.claim(CodeModelSlow, source, m, d)
		if source == call.Unattributed {
			f.Source = call.Inferred // a call that runs alone waits for nobody
		}
		f.pro("lone_prefill_ms", InMilliseconds, call.Figure(1000*after.mean()), "calls of equal size that ran alone: prefill %s → %s (%d and %d calls)",
			spanOf(1000*before.mean()), spanOf(1000*after.mean()), before.calls, after.calls)
		p.clocksFine(f)
		p.sides(f, true)
		f.Summary = "Prompts take longer even for a call that runs alone: " + p.took(m) + f.ofChange() + "."
		f.Next = "Look at the model and its kernels (attention backend, quantisation, tensor parallelism, layers on the CPU), at what was deployed last, or at a neighbour on the same GPU. It is not capacity: more cards do not help."
		return []*Finding{f}
	}
	rate := p.figure("computed_tokens_per_second")
	fit := &p.prompt
	if p.eachHolds().Or(0) >= Rise {
		return nil // not because more come
	}
	if !rose(rate.before, rate.after, 0) || !fit.known || fit.change-fit.expected < math.Max(Sure*fit.within, Dominant*fit.change) {
		return nil
	}
	f := p.claim(CodePrefillCompute, source, m, d)
	f.evidence("", rate)
	f.evidence("", p.figures("input_tokens_p95", "computed_tokens")...)
	f.pro("prefill_expected_ms", InMilliseconds, call.Figure(1000*fit.expected), "by their tokens prompts would have taken %s, and did %s",
		signed(time.Duration(fit.expected*float64(time.Second))), signed(time.Duration(fit.change*float64(time.Second))))
	p.noQueue(f)
	p.sides(f, false)
	f.Summary = "Computing prompts takes " + span(d) + " longer: " + p.took(m) + f.ofChange() + "."
	f.Next = p.boundPrefill()
	return []*Finding{f}
}

// boundPrefill is what to do where prompts take too much of each step.
func (p *pair) boundPrefill() string {
	return "Bound prefill in each step" + p.scene.with(chunkFlags) + ", split prefill from decode, or add replicas."
}

// noQueue adds what gauges say against a queue.
func (p *pair) noQueue(f *Finding) {
	switch grown, read := p.waits(); {
	case grown:
		f.against("so a part of it may be waiting", p.figure("waiting"))
	case read:
		f.evidence("so it is not a queue", p.figure("waiting"))
	case p.unsplit(ofTTFT):
		f.con("waiting", NoUnit, call.Number{}, "the engine tells no queue, and its gauges are not read: a queue looks the same")
	}
}

// loneCalls compares the prefill of calls that ran alone, on equal cells; ok when
// both windows have enough of them and it is longer now than their sizes explain. before
// is what the new window's would have taken, and calls of the healthy one they are judged by.
func (p *pair) loneCalls() (before, after sumOf, ok bool) {
	type cell struct {
		calls           [2]int
		tokens, seconds [2]float64
	}
	type lone struct {
		in *cell
		s  *sample
	}
	cells := make(map[kind]*cell)
	var alone [2][]lone
	for i, list := range p.list {
		for j := range list {
			s := &list[j]
			running, known := s.met.Get()
			later, again := fresh(s.rec.AtFirstToken).Running.Get()
			if !s.has[ofTTFT] || !known || running > FewRunning || again && later > FewRunning+1 || fresh(s.rec.AtDispatch).Waiting.Or(1) > 0 {
				continue
			}
			k, _ := s.kindOf(byUncached)
			if k.inputBy == 0 {
				continue
			}
			k.output, k.outputBy = 0, 0
			if cells[k] == nil {
				cells[k] = new(cell)
			}
			c := cells[k]
			tokens, _, _ := s.computed()
			c.calls[i]++
			c.tokens[i] += tokens
			c.seconds[i] += s.parts[ofTTFT][prefill].Seconds()
			alone[i] = append(alone[i], lone{c, s})
		}
	}
	expected := 0.0
	for i, sum := range [2]*sumOf{&before, &after} {
		for _, l := range alone[i] {
			c, s := l.in, l.s
			if c.calls[1-i] == 0 {
				continue
			}
			var prompt sample
			prompt.has[ofTTFT], prompt.whole[ofTTFT] = true, s.parts[ofTTFT][prefill]
			sum.add(&prompt, ofTTFT)
			if i == 1 {
				// A cell is wide: within it prefill may go with the tokens.
				longer := 1.0
				if tokens, _, known := s.computed(); known && c.tokens[0] > 0 {
					longer = max(tokens/(c.tokens[0]/float64(c.calls[0])), 1)
				}
				expected += c.seconds[0] / float64(c.calls[0]) * longer
			}
		}
	}
	if before.calls < PeerCalls || after.calls < PeerCalls {
		return before, after, false
	}
	longer := after.total.Seconds() >= Rise*expected
	before.total = time.Duration(expected / float64(after.calls) * float64(before.calls) * float64(time.Second))
	return before, after, longer && trendOf(&before, &after, Felt) == up
}
