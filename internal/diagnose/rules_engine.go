package diagnose

import (
	"time"

	"github.com/weirgate/weir/internal/call"
)

// What findings of the engine's own work rest on.
var (
	aloneThen    = &figure{name: "engine_at_dispatch.running", unit: InCalls, label: "running in the engine when it was sent", why: "so it is not for want of capacity"}
	aloneLater   = &figure{name: "engine_at_first_token.running", unit: InCalls, label: "running at its first token, itself included"}
	notReadLater = &figure{label: "no reading of the engine at its first token: others may have come in between", bare: true}
	computedHow  = &figure{name: "computed_tokens", unit: InTokens, label: "prompt computed"}
	computedMost = &figure{name: "computed_tokens", unit: InTokens, label: "prompt computed at most", why: "what was cached is not known"}
	perToken     = &figure{name: "prefill_per_computed_token_ms", unit: InMilliseconds, label: "prefill per computed token"}
	peerMedian   = &figure{name: "window_prefill_median_ms", unit: InMilliseconds, label: "median prefill of calls of its size in this window"}
	peerCount    = &figure{name: "window_prefill_calls", unit: InCalls, label: "of its size in this window"}
	slowByKind   = &figure{label: "a CPU, or a GPU much too small for the model, is this slow by its nature", bare: true}
	clockThen    = &figure{name: "gpu.clock_ratio", unit: InShare, label: "lowest GPU clock, of its maximum"}
	busyThen     = &figure{name: "gpu.utilization", unit: InShare, label: "GPUs busy while it ran"}
	crowdThen    = &figure{name: "engine_at_dispatch.running", unit: InCalls, label: "running in the engine when it was sent", why: "each step was shared with them"}
	crowdLater   = &figure{name: "engine_at_first_token.running", unit: InCalls, label: "running at its first token, itself included", why: "others came and shared the steps"}
	crowdUnknown = &figure{label: "how many ran beside it is not known: a crowded batch looks the same as a slow model", bare: true}
	queueBound   = &figure{name: "queue_engine_at_most_ms", unit: InMilliseconds, label: "the engine's queue at most, by its gauges", why: "taken off; HTTP and tokenizing may lie within the rest"}
	inputTokens  = &figure{name: "input_tokens", unit: InTokens, label: "prompt"}
	tripWithin   = &figure{label: "the round trip to the upstream is not known: it lies within this time", bare: true}
	neverEnded   = &figure{label: "the stream's terminal event never came", bare: true}
	pauseLongest = &figure{name: "icl_max_ms", unit: InMilliseconds, label: "longest pause before that"}
	unsplitNote  = &figure{label: "the engine tells neither queue nor prefill of this call", bare: true}
)

// prefills finds prefill that is slow for the model's or the kernels' sake, and
// prefill that is long without our knowing that.
func prefills(l *look, s *sheet) {
	d, bound, known := l.computing()
	if !known {
		return
	}
	n, exact, counted := l.computed()
	each := time.Duration(0)
	if counted {
		each = d / time.Duration(n)
	}
	slow := d >= Slow && counted && each >= SlowToken
	outlier := l.peers.calls >= PeerCalls && d >= Outlier*l.peers.median && d-l.peers.median >= Noticeable
	alone := l.alone()
	switch {
	case alone && (slow || outlier) && stands(d, Dominant, l.whole):
		s.span(CodePrefillSlow, l.sources[prefill], d, l.of, l.whole)
	case d >= Slow && stands(d, l.queueing(), l.whole):
		s.span(CodePrefillLong, l.sources[prefill], d, l.of, l.whole)
	default:
		return
	}
	if counted && exact {
		s.pro(computedHow, float64(n))
	} else if counted {
		s.pro(computedMost, float64(n))
	}
	if counted {
		s.pro(perToken, milliseconds(d)/float64(n))
	}
	if outlier {
		s.pro(peerMedian, milliseconds(l.peers.median))
		s.pro(peerCount, float64(l.peers.calls))
	}
	running, read := fresh(l.rec.AtDispatch).Running.Get()
	switch {
	case alone:
		s.pro(aloneThen, float64(running))
		if later, read := fresh(l.rec.AtFirstToken).Running.Get(); read {
			s.pro(aloneLater, float64(later))
		} else {
			s.con(notReadLater, 0)
		}
	case read:
		if running > FewRunning {
			s.pro(crowdThen, float64(running))
		}
		if later, read := fresh(l.rec.AtFirstToken).Running.Get(); read && later > FewRunning+1 {
			s.pro(crowdLater, float64(later))
		}
	default:
		s.con(crowdUnknown, 0)
	}
	if slow && alone {
		s.con(slowByKind, 0)
	}
	if bound > 0 {
		s.con(queueBound, milliseconds(bound))
	}
	hardware(l, s)
	clamped(l, s)
}

// computing returns the time of prefill as far as it is known apart from the
// queue, and what was taken off for a queue that gauges bound.
func (l *look) computing() (d, bound time.Duration, known bool) {
	d, known = l.took(prefill)
	if !known {
		return 0, 0, false
	}
	switch l.sources[prefill] {
	case call.FromEngine:
		return d, 0, true
	case call.Inferred:
		bound, known = l.rec.QueueBound.Get()
		return max(d-max(bound, 0), 0), bound, known
	}
	return 0, 0, false
}

// alone tells whether the gauges show that hardly anything ran beside the call.
func (l *look) alone() bool {
	then, read := fresh(l.rec.AtDispatch).Running.Get()
	later, again := fresh(l.rec.AtFirstToken).Running.Get()
	return read && then <= FewRunning && (!again || later <= FewRunning+1)
}

// hardware adds what the GPUs say of slow work.
func hardware(l *look, s *sheet) {
	g := &l.rec.GPU
	if ratio, known := g.ClockRatio.Get(); known && throttled(g) {
		s.pro(clockThen, ratio)
	}
	if busy, known := g.Utilization.Get(); known && l.sampled() {
		s.pro(busyThen, busy)
	}
}

// frontends finds time that the engine spent before its queue.
func frontends(l *look, s *sheet) {
	d, known := l.took(frontend)
	if !known || !stands(d, Large, l.whole) {
		return
	}
	s.span(CodeFrontend, l.sources[frontend], d, l.of, l.whole)
	if n, known := l.rec.Input.Get(); known {
		s.pro(inputTokens, float64(n))
	}
	if n, known := l.rec.BytesIn.Get(); known && n >= LargeBody {
		s.pro(bodyBytes, float64(n))
	}
	if n, known := fresh(l.rec.AtDispatch).Running.Get(); known {
		s.pro(runningThen, float64(n))
	}
	if !l.spans[upstreamRTT].IsKnown() {
		s.con(tripWithin, 0)
	}
	clamped(l, s)
}

// tails finds streams that were not ended when their last token had come.
func tails(l *look, s *sheet) {
	d, known := l.took(tail)
	if !known || !l.split || !stands(d, Large, l.elapsed) {
		return
	}
	s.span(CodeEngineTail, l.sources[tail], d, OfElapsed, l.elapsed)
	if !l.rec.Terminated {
		s.pro(neverEnded, 0)
	}
	if pause, known := l.rec.ICLMax.Get(); known {
		s.pro(pauseLongest, milliseconds(pause))
	}
}

// unsplit finds long waits of which the engine told nothing.
func unsplit(l *look, s *sheet) {
	p := prefill
	if !l.rec.Stream {
		p = engine
	}
	d, known := l.took(p)
	if !known || l.sources[p] != call.Unattributed || d < Slow || !stands(d, Dominant, l.whole) {
		return
	}
	if p == engine {
		n, counted := l.rec.Output.Get()
		if !counted && l.rec.TTFB.IsKnown() {
			return // an answer of unknown length may take any time
		}
		// Without an answer there is nothing that writing can have taken.
		if writing := float64(n) * float64(SlowTPOT); float64(d-Slow) < writing {
			return
		}
	}
	if s.found(CodeEngineQueue) { // it has this time
		return
	}
	s.span(CodeUnattributed, call.Unattributed, d, l.of, l.whole)
	s.pro(unsplitNote, 0)
	noneThen(l, s, noneWaitsClue)
	gauges(l, s)
	hardware(l, s)
}
