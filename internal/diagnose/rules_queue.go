package diagnose

import (
	"slices"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// What the queues' findings rest on.
var (
	waitingThen   = &figure{name: "engine_at_dispatch.waiting", unit: InCalls, label: "waiting in the engine when it was sent"}
	noneWaiting   = &figure{name: "engine_at_dispatch.waiting", unit: InCalls, label: "waiting in the engine when it was sent", why: "so a queue would have to have formed after that reading"}
	noneWaited    = &figure{name: "engine_at_dispatch.waiting", unit: InCalls, label: "waiting in the engine when it was sent", why: "so nothing queued there"}
	engineWaited  = &figure{name: "engine_at_dispatch.waiting", unit: InCalls, label: "waiting in the engine too when it was sent", why: "letting more through would move the wait, not end it"}
	waitingLater  = &figure{name: "engine_at_first_token.waiting", unit: InCalls, label: "waiting in the engine at its first token"}
	runningThen   = &figure{name: "engine_at_dispatch.running", unit: InCalls, label: "running in the engine when it was sent"}
	cacheHigh     = &figure{name: "engine_at_dispatch.kv_use", unit: InShare, label: "KV cache in use when it was sent"}
	cacheRoom     = &figure{name: "engine_at_dispatch.kv_use", unit: InShare, label: "KV cache in use when it was sent", why: "so the cap on sequences or the GPU holds calls back, not the cache"}
	queueInferred = &figure{name: "engine.prefill_ms", unit: InMilliseconds, label: "prefill as the engine reports it", why: "the queue is inferred from it, and HTTP and tokenizing lie within"}
	gatewayToo    = &figure{name: "phases.queue_gateway_ms", unit: InMilliseconds, label: "the gateway's own queue before that", why: "not counted here"}
	engineToo     = &figure{name: "phases.queue_engine_ms", unit: InMilliseconds, label: "the engine's queue after that", why: "not counted here"}
	queueUnsplit  = &figure{name: "phases.prefill_ms", unit: InMilliseconds, label: "time to the first token that cannot be split", why: "prefill lies within"}
	clampedToo    = &figure{label: "the engine's figures add up to more than the time that passed", bare: true}
	gpuRoom       = &figure{name: "gpu.utilization", unit: InShare, label: "GPUs busy while it ran"}
	noneWaitsClue = &figure{name: "engine_at_dispatch.waiting", unit: InCalls, label: "waiting in the engine when it was sent", why: "which speaks against a queue"}
	queueLoaded   = &figure{name: "phases.queue_engine_ms", unit: InMilliseconds, label: "the engine's queue, loading included"}
	loadTime      = &figure{name: "engine.load_ms", unit: InMilliseconds, label: "loading the model, as the engine reports it"}
	roomLater     = &figure{name: "engine_at_first_token.kv_use", unit: InShare, label: "KV cache in use at its first token", why: "so the cap on sequences or the GPU holds calls back, not the cache"}
	readBefore    = &figure{name: "engine_at_dispatch.age_ms", unit: InMilliseconds, label: "the reading that shows nothing waiting was taken before it was sent", why: "longer ago than the call before it: it says little, and calls waited at its first token"}
	queuePhase    = &figure{name: "phases.queue_engine_ms", unit: InMilliseconds, label: "the engine's queue"}
)

// queues finds calls that waited in queues, and tells the gateway's own from the
// engine's.
func queues(l *look, s *sheet) {
	own, _ := l.took(queueGateway)
	engines, _ := l.took(queueEngine)
	// An unknown queue adds nothing: the sum then is a lower bound.
	both := own + engines
	if !stands(both, l.queueing(), l.whole) {
		likelyQueue(l, s)
		return
	}
	counts := func(d time.Duration) bool { return d >= Noticeable && 4*d >= both }
	if counts(own) {
		gatewayQueue(l, s, own, engines)
	}
	if !counts(engines) {
		return
	}
	if load, known := l.rec.Engine.Load.Get(); known && load >= Noticeable && 2*load >= engines {
		s.span(CodeModelLoad, call.FromEngine, min(load, engines), l.of, l.whole)
		s.pro(loadTime, milliseconds(load))
		s.pro(queueLoaded, milliseconds(engines))
		return
	}
	s.span(CodeEngineQueue, l.sources[queueEngine], engines, l.of, l.whole)
	noneThen(l, s, noneWaiting)
	gauges(l, s)
	if prefill, known := l.rec.Engine.Prefill.Get(); known && l.sources[queueEngine] == call.Inferred {
		s.con(queueInferred, milliseconds(prefill))
	}
	if own >= Noticeable {
		s.con(gatewayToo, milliseconds(own))
	}
	clamped(l, s)
}

func gatewayQueue(l *look, s *sheet, own, engines time.Duration) {
	s.span(CodeGatewayQueue, l.sources[queueGateway], own, l.of, l.whole)
	then := fresh(l.rec.AtDispatch)
	switch n, known := then.Waiting.Get(); {
	case known && n > 0:
		s.con(engineWaited, float64(n))
	case known:
		s.pro(noneWaited, 0)
	}
	if n, known := then.Running.Get(); known {
		s.pro(runningThen, float64(n))
	}
	if use, known := then.KVUse.Get(); known && use >= HighCache {
		s.con(cacheHigh, use)
	}
	if busy, known := l.rec.GPU.Utilization.Get(); known && l.sampled() && busy < UnderUsed {
		s.pro(gpuRoom, busy)
	}
	if engines >= Noticeable {
		s.con(engineToo, milliseconds(engines))
	}
}

// likelyQueue finds a queue that the engine does not report: calls waited when
// this one was sent, and its first token took long. It is a possibility, since
// prefill lies within the same time.
func likelyQueue(l *look, s *sheet) {
	if besideIdle(l, s) {
		return
	}
	d, known := l.took(prefill)
	n, read := fresh(l.rec.AtDispatch).Waiting.Get()
	if !known || !read || n == 0 || !l.rec.Stream || l.sources[prefill] != call.Unattributed ||
		d < Slow || !stands(d, l.queueing(), l.whole) {
		return
	}
	s.span(CodeEngineQueue, call.Unattributed, d, l.of, l.whole)
	gauges(l, s)
	s.con(queueUnsplit, milliseconds(d))
}

// gauges adds what the engine's gauges say of a queue in it.
func gauges(l *look, s *sheet) {
	then, later := fresh(l.rec.AtDispatch), fresh(l.rec.AtFirstToken)
	if n, known := then.Waiting.Get(); known && n > 0 {
		s.pro(waitingThen, float64(n))
	}
	if n, known := later.Waiting.Get(); known && n > 0 {
		s.pro(waitingLater, float64(n))
	}
	if n, known := then.Running.Get(); known {
		s.pro(runningThen, float64(n))
	}
	if use, known := then.KVUse.Get(); known && use >= HighCache {
		s.pro(cacheHigh, use)
	} else if n, waits := then.Waiting.Get(); known && waits && n > 0 {
		s.pro(cacheRoom, use)
	} else if n, waits := later.Waiting.Get(); waits && n > 0 {
		if use, known := later.KVUse.Get(); known && use < HighCache {
			s.pro(roomLater, use)
		}
	}
}

// noneThen adds that nothing waited when the call was sent, which speaks against
// a queue; unless that reading is older than the call before it, and calls waited
// at the first token: then it says little.
func noneThen(l *look, s *sheet, f *figure) {
	n, known := fresh(l.rec.AtDispatch).Waiting.Get()
	switch {
	case !known || n > 0:
	case l.missed() && l.waitedLater():
		s.con(readBefore, milliseconds(l.rec.AtDispatch.Age.Or(0)))
	default:
		s.con(f, 0)
	}
}

// missed tells whether a call was sent between the reading at dispatch and this
// call, so that the reading cannot show what this one met.
func (l *look) missed() bool {
	gap, known := l.gap.Get()
	return known && l.rec.AtDispatch.Age.Or(0) > gap
}

// waitedLater tells whether calls waited in the engine at the first token.
func (l *look) waitedLater() bool {
	n, known := fresh(l.rec.AtFirstToken).Waiting.Get()
	return known && n > 0
}

// cacheFull finds a KV cache without room while calls wait for it.
func cacheFull(l *look, s *sheet) {
	then := fresh(l.rec.AtDispatch)
	use, known := then.KVUse.Get()
	n, read := then.Waiting.Get()
	if !known || !read || use < FullCache || n == 0 {
		return
	}
	queue, told := l.took(queueEngine)
	if told && queue < Noticeable {
		return // it did not hold this call up
	}
	s.condition(CodeKVCacheFull, l)
	s.pro(cacheHigh, use)
	s.pro(waitingThen, float64(n))
	if n, known := then.Running.Get(); known {
		s.pro(runningThen, float64(n))
	}
	if told {
		s.pro(queuePhase, milliseconds(queue))
	}
}

// clamped adds that the engine's own figures contradict the clock.
func clamped(l *look, s *sheet) {
	if slices.Contains(l.rec.Degraded, call.PhaseClamped) {
		s.con(clampedToo, 0)
	}
}
