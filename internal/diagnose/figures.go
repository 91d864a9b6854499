package diagnose

import (
	"math"
	"slices"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// Figures sum up one window. What nothing tells is unknown. Means are over the
// calls that have the figure, those of gauges over the readings.
type Figures struct {
	From  time.Time `json:"from,omitzero"` // the first call was received
	To    time.Time `json:"to,omitzero"`   // the last one ended
	Calls int       `json:"calls"`

	Rate       call.Number `json:"calls_per_second,omitzero"`           // received
	Prefill    call.Number `json:"computed_tokens_per_second,omitzero"` // prompt tokens that were not cached
	Throughput call.Number `json:"output_tokens_per_second,omitzero"`

	TTFT call.Duration `json:"ttft_ms,omitzero"`
	TPOT call.Duration `json:"tpot_ms,omitzero"`
	E2E  call.Duration `json:"e2e_ms,omitzero"`
	// Gap is the mean of the calls' median gaps between chunks: what holds up a token
	// now and then does not change it, a slower step does.
	Gap call.Duration `json:"icl_p50_ms,omitzero"`
	// Queue is the mean time in queues, the gateway's and the engine's, and
	// QueueShare what that is of TTFT (of E2E where calls have no TTFT), 0–1.
	// QueueSource is inferred where it follows from the number that waits by
	// Little's law, or from TTFT and TPOT alone.
	Queue       call.Duration `json:"queue_ms,omitzero"`
	QueueShare  call.Number   `json:"queue_share,omitzero"`
	QueueSource call.Source   `json:"queue_source,omitempty"`

	Input       call.Number `json:"input_tokens,omitzero"`
	InputP95    call.Number `json:"input_tokens_p95,omitzero"`
	Uncached    call.Number `json:"computed_tokens,omitzero"`
	CachedShare call.Number `json:"cached_share,omitzero"` // of the prompt tokens, 0–1
	Output      call.Number `json:"output_tokens,omitzero"`

	InFlight call.Number `json:"calls_in_flight,omitzero"` // sent upstream and not written whole
	Batch    call.Number `json:"batch,omitzero"`           // calls that were written side by side
	Running  call.Number `json:"running,omitzero"`
	Waiting  call.Number `json:"waiting,omitzero"`
	// KVUse is the median share of the KV cache in use while calls waited, else
	// over all readings, and KVMost the highest, 0–1.
	KVUse  call.Number `json:"kv_use,omitzero"`
	KVMost call.Number `json:"kv_use_most,omitzero"`
	// Residual is the share of the calls in flight here of which the engine knows
	// nothing: neither running nor waiting there.
	Residual call.Number `json:"residual,omitzero"`
	MaxSeqs  call.Count  `json:"max_num_seqs,omitzero"`
	// AtCap is the share of the readings with calls waiting in which as many ran
	// as may: MaxSeqs or, that unknown, as many as ran in most of these, which is
	// Held.
	AtCap       call.Number `json:"at_cap,omitzero"`
	Held        call.Count  `json:"running_while_calls_wait,omitzero"`
	Preemptions call.Count  `json:"preemptions,omitzero"`

	Utilization     call.Number `json:"gpu_utilization,omitzero"`
	MemoryBandwidth call.Number `json:"gpu_memory_bandwidth,omitzero"`
	ClientRTT       call.Number `json:"client_rtt_ms,omitzero"`
	UpstreamRTT     call.Number `json:"upstream_rtt_ms,omitzero"`
}

// numbers gathers a figure of a window.
type numbers []float64

func (n *numbers) count(c call.Count) {
	if v, known := c.Get(); known {
		*n = append(*n, float64(v))
	}
}

func (n *numbers) number(x call.Number) {
	if v, known := x.Get(); known {
		*n = append(*n, v)
	}
}

func (n *numbers) duration(d call.Duration) {
	if v, known := d.Get(); known {
		*n = append(*n, milliseconds(v))
	}
}

func (n numbers) sum() float64 {
	sum := 0.0
	for _, v := range n {
		sum += v
	}
	return sum
}

// mean is unknown of nothing.
func (n numbers) mean() call.Number {
	if len(n) == 0 {
		return call.Number{}
	}
	return call.Figure(n.sum() / float64(len(n)))
}

// quantile is that of the raw values, with linear interpolation (type 7).
func (n numbers) quantile(q float64) call.Number {
	if len(n) == 0 {
		return call.Number{}
	}
	sorted := slices.Sorted(slices.Values(n))
	at := q * float64(len(sorted)-1)
	i := int(math.Floor(at))
	if i+1 >= len(sorted) {
		return call.Figure(sorted[len(sorted)-1])
	}
	return call.Figure(sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i]))
}

// figuresOf sums up the calls of a window, what was watched beside them, and the
// readings of gauges that speak for them.
func figuresOf(list []sample, from time.Time, sums *[measures]sumOf, sig *Signals, read []reading) Figures {
	f := Figures{Calls: len(list), MaxSeqs: sig.MaxSeqs, Preemptions: sig.Preemptions}
	if len(list) == 0 {
		return f
	}
	var input, uncached, output, batch, gaps, clientTrip, upstreamTrip, busy, memory numbers
	var cached, cachedOf float64
	var firstEnd, lastEnd, busyTime time.Duration
	for i := range list {
		s := &list[i]
		rec := s.rec
		if i == 0 || s.ended < firstEnd {
			firstEnd = s.ended
		}
		lastEnd = max(lastEnd, s.ended)
		busyTime += s.working - s.sent
		input.count(rec.Input)
		uncached.count(s.uncached)
		output.count(rec.Output)
		if s.crowded {
			batch = append(batch, s.beside[besideCalls])
		}
		gaps.duration(rec.ICLP50)
		clientTrip.duration(rec.ClientRTT)
		upstreamTrip.duration(rec.UpstreamRTT)
		if rec.GPU.GPUs > 0 && rec.GPU.Samples > 0 {
			busy.number(rec.GPU.Utilization)
			memory.number(rec.GPU.MemoryBandwidth)
		}
		if n, known := s.uncached.Get(); known {
			cached += float64(rec.Input.Or(0) - n)
			cachedOf += float64(rec.Input.Or(0))
		}
	}
	f.From, f.To = from.Add(list[0].received), from.Add(lastEnd)
	f.TTFT, f.TPOT, f.E2E = sums[ofTTFT].amount().Mean, sums[ofTPOT].amount().Mean, sums[ofE2E].amount().Mean
	if ms, known := gaps.mean().Get(); known && 2*len(gaps) > len(list) {
		f.Gap = call.Lasting(time.Duration(ms * float64(time.Millisecond)))
	}
	if between := (list[len(list)-1].received - list[0].received).Seconds(); between > 0 {
		f.Rate = call.Figure(float64(len(list)-1) / between)
		if len(uncached)*2 > len(list) {
			f.Prefill = call.Figure(uncached.sum() / float64(len(uncached)) * f.Rate.Or(0))
		}
	}
	ending := 0.0
	if between := (lastEnd - firstEnd).Seconds(); between > 0 {
		ending = float64(len(list)-1) / between
		if len(output) > 0 {
			f.Throughput = call.Figure(output.sum() / between)
		}
	}
	f.InFlight = sig.InFlight
	if between := (lastEnd - list[0].received).Seconds(); !f.InFlight.IsKnown() && between > 0 {
		f.InFlight = call.Figure(busyTime.Seconds() / between)
	}
	f.Input, f.InputP95, f.Uncached, f.Output = input.mean(), input.quantile(0.95), uncached.mean(), output.mean()
	f.Batch, f.ClientRTT, f.UpstreamRTT = batch.mean(), clientTrip.mean(), upstreamTrip.mean()
	f.CachedShare = sig.CachedShare
	if cachedOf > 0 && 2*len(uncached) >= len(input) {
		f.CachedShare = call.Figure(cached / cachedOf)
	}
	f.Utilization, f.MemoryBandwidth = busy.mean(), memory.mean()
	f.watched(sig)
	f.gauged(read)
	if !f.Residual.IsKnown() && oneEngine(sig) {
		f.Residual = residualFrom(sig.InFlight, f.Running, f.Waiting)
	}
	f.queues(sums, ending)
	return f
}

// watched takes the GPUs' own figures, which cover the window and not only its
// calls.
func (f *Figures) watched(sig *Signals) {
	var busy, memory numbers
	for i := range sig.GPUs {
		busy.number(sig.GPUs[i].Utilization)
		memory.number(sig.GPUs[i].MemoryBandwidth)
	}
	if len(busy) > 0 {
		f.Utilization = busy.mean()
	}
	if len(memory) > 0 {
		f.MemoryBandwidth = memory.mean()
	}
}

// queues says how long calls waited and how that is known. ending is how many calls
// ended a second.
func (f *Figures) queues(sums *[measures]sumOf, ending float64) {
	first := &sums[ofTTFT]
	if first.calls == 0 {
		first = &sums[ofE2E]
	}
	if first.calls == 0 {
		return
	}
	n := time.Duration(first.calls)
	mean := first.total / n
	queue, source := first.parts[queueGateway]/n, call.Measured
	told := first.parts[queueEngine]
	switch {
	case first.source(prefill) != call.Unattributed && first.source(engine) != call.Unattributed:
		queue += told / n
		if told > 0 {
			source = first.source(queueEngine)
		}
	case told > first.parts[prefill]+first.parts[engine]:
		queue, source = queue+told/n, first.source(queueEngine)
	default:
		waiting, read := f.Waiting.Get()
		if !read || ending <= 0 {
			return
		}
		// Little's law: a call waits until as many have left as wait before it.
		// What calls took bounds it.
		hidden := (first.parts[prefill] + first.parts[engine]) / n
		queue += min(time.Duration(waiting/ending*float64(time.Second)), hidden)
		source = call.Inferred
	}
	f.Queue, f.QueueSource = call.Lasting(queue), source
	if mean > 0 {
		f.QueueShare = call.Figure(float64(queue) / float64(mean))
	}
}
