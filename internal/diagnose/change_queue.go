package diagnose

import (
	"time"

	"github.com/weirgate/weir/internal/call"
)

// waitingLonger finds what holds a queue that the first token waits in.
func waitingLonger(p *pair) []*Finding {
	if !p.queueing() {
		return saturated(p)
	}
	m := p.first()
	d, _ := p.queueChange()
	f := p.claim("", p.a.QueueSource, m, d)
	f.evidence("", p.figures("queue_ms", "queue_share")...)
	grown, read := p.waits()
	cache, known := p.a.KVUse.Get()
	here, _ := p.share(m, queueGateway)
	full := p.a.AtCap.Or(0) >= QueueShare
	busy := p.figure("gpu_utilization")
	x, sampled := busy.after.Get()
	switch {
	case p.loading() >= d/2 && p.loading() > 0:
		p.named(f, CodeModelLoad, "waits for the model to be loaded", meanings[places[CodeModelLoad]].next(nil))
	case sampled && x < UnderUsed:
		f.evidence("so they had room", busy)
		p.underUsed(f, full)
	case 2*here >= d:
		p.named(f, CodeGatewayQueue, "waits in the gateway's own queue", "See whether the engine has room, by its gauges (GET /weir/engines); if so raise the limits, else add replicas.")
	case read && grown && known && cache > HighCache:
		f.evidence("", p.figures("kv_use")...)
		p.named(f, CodeCapacity, "waits in the engine, whose KV cache is full", "Add replicas, or shed load; a larger KV cache helps as well"+p.scene.with(kvFlags)+".")
		p.lead(f, m, "KV cache above 90 %", p.when(func(r *reading) bool { return r.kv.Or(0) > HighCache }))
	case read && grown && known && cache < HighCache && full && p.trends[ofTPOT] != up:
		p.capped(f)
	case p.trends[ofTPOT] == up && p.flatOutput() && (known || p.a.QueueShare.Or(0) < QueueShare):
		return p.saturation(f)
	default:
		p.queueOnly(f, known, full)
	}
	p.demand(f)
	if read && !grown {
		f.against("so a queue would have to have come and gone between readings", p.figure("waiting"))
	} else {
		f.evidence("", p.figures("waiting", "running")...)
	}
	if f.Source == call.Inferred {
		f.con("queue_source", NoUnit, call.Number{}, "the engine does not tell how long each call waited: it is inferred from the number that wait, or from TTFT and TPOT")
	}
	p.lead(f, m, "calls waiting", p.when(func(r *reading) bool { return r.waiting.Or(0) > 0 }))
	p.sides(f, false)
	return []*Finding{f}
}

// waitedFor is what a measure waits for.
var waitedFor = [measures]string{ofTTFT: "first token", ofE2E: "answer"}

// named gives the finding of a queue its code and words.
func (p *pair) named(f *Finding, code Code, text, next string) {
	m := p.first()
	f.Code, f.Layer = code, changeMeanings[changePlaces[code]].Layer
	f.Summary = "The time to the " + waitedFor[m] + " " + text + ", " + span(f.Time.Or(0)) + " more: " + p.took(m) + f.ofChange() + "."
	f.Next = next
}

// when is since when a condition of the gauges holds in the new window; zero when
// it does not.
func (p *pair) when(holds func(*reading) bool) time.Time {
	at, _ := since(p.read, holds)
	return at
}

// loading is by how much the mean time of loading models grew.
func (p *pair) loading() time.Duration {
	var mean [2]time.Duration
	for i, list := range p.list {
		for j := range list {
			mean[i] += list[j].rec.Engine.Load.Or(0)
		}
		if len(list) > 0 {
			mean[i] /= time.Duration(len(list))
		}
	}
	return mean[1] - mean[0]
}

// demand adds what the calls ask for, where that is more.
func (p *pair) demand(f *Finding) {
	for _, c := range p.figures("calls_per_second", "input_tokens_p95", "output_tokens") {
		if rose(c.before, c.after, 0) {
			f.evidence("so more is asked for", c)
		}
	}
}

func (p *pair) underUsed(f *Finding, full bool) {
	p.named(f, CodeGPUUnderUsed, "waits while the GPUs have room", "Let more in at once: raise the cap on sequences"+p.scene.with(capFlags)+
		", shorten the longest context that is allowed (--max-model-len), give the engine more of the memory (--gpu-memory-utilization 0.85 → 0.95); raise the gateway's own limits if calls wait here.")
	if full {
		f.evidence("so the cap is what keeps calls out", p.figures("at_cap", "max_num_seqs")...)
	}
	if cache, known := p.a.KVUse.Get(); known && cache > HighCache {
		f.evidence("so the cache is what keeps calls out", p.figure("kv_use"))
	}
	if p.trends[ofTPOT] == up {
		f.against("so steps are slower too: the engine's CPU may starve its GPUs", p.figure("tpot_ms"))
	}
	if x, known := p.a.MemoryBandwidth.Get(); known && x >= UnderUsed {
		f.against("so memory is busy, if not the cores", p.figure("gpu_memory_bandwidth"))
	}
}

func (p *pair) capped(f *Finding) {
	p.named(f, CodeAdmissionCap, "waits in the engine, which runs as many as it may", "Raise the cap on sequences"+p.scene.with(capFlags)+"; the KV cache has room.")
	f.evidence("", p.figures("at_cap", "max_num_seqs", "running_while_calls_wait")...)
	f.evidence("so the cache has room", p.figure("kv_use"))
	f.evidence("so steps are not what is slow", p.figure("tpot_ms"))
	if !p.a.MaxSeqs.IsKnown() {
		f.Source = call.Inferred
		f.con("max_num_seqs", NoUnit, call.Number{}, "the engine's cap is not known: it is taken to be what runs while calls wait")
	}
	if x, known := p.a.Utilization.Get(); known && x >= UnderUsed {
		f.against("so more at once will cost some TPOT", p.figure("gpu_utilization"))
	}
}

// queueOnly says queueing, and no more: what holds the queue is not known.
func (p *pair) queueOnly(f *Finding, cacheKnown, full bool) {
	next := "See what holds the queue: "
	if !cacheKnown {
		next += "the engine option of the global block shows KV cache, running and waiting; "
	}
	p.named(f, CodeQueueing, "is spent in queues", next+"send fewer at once, or add replicas; if running stands at the cap and the cache has room, raise it"+p.scene.with(capFlags)+".")
	if !cacheKnown {
		f.con("kv_use", NoUnit, call.Number{}, "the use of the KV cache is not known: whether it, the cap or the GPU holds calls back cannot be told")
	} else {
		f.evidence("", p.figure("kv_use"))
	}
	if full {
		f.evidence("as many ran as may", p.figures("max_num_seqs", "running_while_calls_wait")...)
	}
	f.evidence("", p.figures("ttft_ms", "tpot_ms", "gpu_utilization")...)
}

// flatOutput tells whether the tokens a second have not grown although more is
// asked for. A slower engine fills up as well, so that more calls in flight say
// nothing; in a table they are what was asked for.
func (p *pair) flatOutput() bool {
	out, load := p.figure("output_tokens_per_second"), p.figure("calls_per_second")
	if p.rows {
		load = p.figure("calls_in_flight")
	}
	grown := by(out.before, out.after)
	return grown.IsKnown() && grown.Or(0) < Rise && rose(load.before, load.after, 0)
}

// saturated finds load beyond the knee where queues do not stand out.
func saturated(p *pair) []*Finding {
	if !p.firstUp() || p.trends[ofTPOT] != up || !p.flatOutput() || p.first() != ofTTFT {
		return nil
	}
	return p.saturation(p.claim("", call.Measured, ofTTFT, p.change[ofTTFT].Change.Or(0)))
}

func (p *pair) saturation(f *Finding) []*Finding {
	f.Code, f.Layer = CodeSaturation, changeMeanings[changePlaces[CodeSaturation]].Layer
	f.evidence("", p.figures("ttft_ms", "tpot_ms")...)
	f.evidence("so more load brings no more output", p.figure("output_tokens_per_second"))
	f.evidence("", p.figures("calls_per_second", "calls_in_flight", "batch")...)
	p.sides(f, false)
	f.Summary = "The load is beyond the knee: " + p.took(ofTTFT) + ", " + p.took(ofTPOT) + ", and no more tokens a second."
	f.Next = "Shed load, or scale: fewer at once (limit concurrency here), more replicas."
	return []*Finding{f}
}

// preempted finds sequences that lose their place for want of KV cache.
func preempted(p *pair) []*Finding {
	n, known := p.a.Preemptions.Get()
	if !known || n <= 0 || !p.slower() || p.a.Calls == 0 {
		return nil
	}
	was := float64(p.b.Preemptions.Or(0)) / float64(max(p.b.Calls, 1))
	if float64(n)/float64(p.a.Calls) < Rise*was {
		return nil
	}
	m := p.first()
	if !p.firstUp() {
		m = ofTPOT
		if p.trends[m] != up {
			m = ofE2E
		}
	}
	f := p.claim(CodeKVExhausted, call.FromEngine, m, p.change[m].Change.Or(0))
	f.evidence("each lost place is computed again", p.figure("preemptions"))
	if most, known := p.a.KVMost.Get(); known && most > HighCache {
		f.evidence("", p.figure("kv_use_most"))
	} else if known {
		f.against("as far as readings show: it may fill up in between", p.figure("kv_use_most"))
	}
	f.evidence("", p.figures("waiting", "ttft_ms", "tpot_ms")...)
	f.con("", NoUnit, call.Number{}, "how much of the change is for it is not known: all of it is counted")
	p.lead(f, m, "KV cache above 90 %", p.when(func(r *reading) bool { return r.kv.Or(0) > HighCache }))
	p.sides(f, false)
	f.Summary = "The KV cache ran out: sequences lost their place " + plain(float64(n)) + " times, and calls are slower (" + p.took(m) + ")."
	f.Next = "Run fewer sequences at once" + p.scene.with(capFlags) + ", or give the KV cache more memory" + p.scene.with(kvFlags) + "."
	return []*Finding{f}
}
