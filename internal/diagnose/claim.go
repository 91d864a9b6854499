package diagnose

import (
	"fmt"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// claim begins a finding of a comparison that explains a part of a measure's
// change.
func (p *pair) claim(code Code, source call.Source, m measure, explained time.Duration) *Finding {
	f := &Finding{Layer: changeMeanings[changePlaces[code]].Layer, Code: code, Source: source, Of: changesOf[m], Calls: p.a.Calls}
	c := p.change[m]
	if c == nil {
		return f
	}
	f.Calls = c.After.Calls
	change, known := c.Change.Get()
	if !known {
		return f
	}
	explained = max(explained, 0)
	f.Time = call.Lasting(explained)
	if change > 0 {
		f.Share = call.Figure(min(float64(explained)/float64(change), 1))
	}
	return f
}

// condition begins a finding that is no span of time.
func (p *pair) condition(code Code, source call.Source) *Finding {
	return &Finding{Layer: changeMeanings[changePlaces[code]].Layer, Code: code, Source: source, Calls: p.a.Calls}
}

// pro and con add evidence with a figure's value in the new window.
func (f *Finding) pro(figure string, unit Unit, v call.Number, format string, args ...any) {
	f.For = append(f.For, Evidence{Text: fmt.Sprintf(format, args...), Figure: figure, Unit: unit, Value: v})
}

func (f *Finding) con(figure string, unit Unit, v call.Number, format string, args ...any) {
	f.Against = append(f.Against, Evidence{Text: fmt.Sprintf(format, args...), Figure: figure, Unit: unit, Value: v})
}

// compared is a figure in both windows, by its name in the JSON form.
type compared struct {
	figure        string
	label         string
	unit          Unit
	before, after call.Number
}

// arrow writes how a figure changed; "" when it is not known now.
func (c compared) arrow() string {
	after, known := c.after.Get()
	if !known {
		return ""
	}
	before, known := c.before.Get()
	if !known {
		return c.label + ": " + amount(after, c.unit)
	}
	return c.label + ": " + amount(before, c.unit) + " → " + amount(after, c.unit)
}

// evidence adds how figures changed, those that are known; why says what it means.
func (f *Finding) evidence(why string, list ...compared) {
	for _, c := range list {
		if text := c.arrow(); text != "" {
			f.For = append(f.For, Evidence{Text: because(text, why), Figure: c.figure, Value: c.after, Unit: c.unit})
		}
	}
}

// against does the same for what speaks against it.
func (f *Finding) against(why string, list ...compared) {
	for _, c := range list {
		if text := c.arrow(); text != "" {
			f.Against = append(f.Against, Evidence{Text: because(text, why), Figure: c.figure, Value: c.after, Unit: c.unit})
		}
	}
}

func because(text, why string) string {
	if why == "" {
		return text
	}
	return text + ", " + why
}

// figure is one of those that stand as evidence, by its name.
func (p *pair) figure(name string) compared {
	a, b := p.a, p.b
	count := func(c call.Count) call.Number {
		if n, known := c.Get(); known {
			return call.Figure(float64(n))
		}
		return call.Number{}
	}
	switch name {
	case "ttft_ms":
		return compared{name, "TTFT", InMilliseconds, inMS(b.TTFT), inMS(a.TTFT)}
	case "tpot_ms":
		return compared{name, "TPOT", InMilliseconds, inMS(b.TPOT), inMS(a.TPOT)}
	case "icl_p50_ms":
		return compared{name, "median gap between chunks", InMilliseconds, inMS(b.Gap), inMS(a.Gap)}
	case "e2e_ms":
		return compared{name, "E2E", InMilliseconds, inMS(b.E2E), inMS(a.E2E)}
	case "queue_ms":
		return compared{name, "in queues", InMilliseconds, inMS(b.Queue), inMS(a.Queue)}
	case "queue_share":
		return compared{name, "queue share of the time to the first token", InShare, b.QueueShare, a.QueueShare}
	case "calls_per_second":
		return compared{name, "calls a second", InPieces, b.Rate, a.Rate}
	case "computed_tokens_per_second":
		return compared{name, "prompt tokens computed a second", InPieces, b.Prefill, a.Prefill}
	case "output_tokens_per_second":
		return compared{name, "tokens written a second", InPieces, b.Throughput, a.Throughput}
	case "input_tokens":
		return compared{name, "prompt, mean", InTokens, b.Input, a.Input}
	case "input_tokens_p95":
		return compared{name, "prompt, p95", InTokens, b.InputP95, a.InputP95}
	case "computed_tokens":
		return compared{name, "prompt computed, mean", InTokens, b.Uncached, a.Uncached}
	case "cached_share":
		return compared{name, "prompt tokens from the cache", InShare, b.CachedShare, a.CachedShare}
	case "output_tokens":
		return compared{name, "answer, mean", InTokens, b.Output, a.Output}
	case "calls_in_flight":
		return compared{name, "calls in flight", InPieces, b.InFlight, a.InFlight}
	case "batch":
		return compared{name, "calls written side by side", InPieces, b.Batch, a.Batch}
	case "running":
		return compared{name, "running in the engine", InPieces, b.Running, a.Running}
	case "waiting":
		return compared{name, "waiting in the engine", InPieces, b.Waiting, a.Waiting}
	case "kv_use":
		return compared{name, "KV cache in use", InShare, b.KVUse, a.KVUse}
	case "kv_use_most":
		return compared{name, "KV cache in use at most", InShare, b.KVMost, a.KVMost}
	case "residual":
		return compared{name, "calls in flight here, unknown to the engine", InShare, b.Residual, a.Residual}
	case "at_cap":
		return compared{figure: name, label: "readings with calls waiting in which as many ran as may", unit: InShare, after: a.AtCap}
	case "max_num_seqs":
		return compared{figure: name, label: "cap on sequences", unit: InPieces, before: count(b.MaxSeqs), after: count(a.MaxSeqs)}
	case "running_while_calls_wait":
		return compared{name, "running while calls wait", InPieces, count(b.Held), count(a.Held)}
	case "preemptions":
		return compared{name, "preemptions", InPieces, count(b.Preemptions), count(a.Preemptions)}
	case "gpu_utilization":
		return compared{name, "GPUs busy", InShare, b.Utilization, a.Utilization}
	case "gpu_memory_bandwidth":
		return compared{name, "memory bandwidth in use", InShare, b.MemoryBandwidth, a.MemoryBandwidth}
	case "client_rtt_ms":
		return compared{name, "round trip to clients", InMilliseconds, b.ClientRTT, a.ClientRTT}
	case "upstream_rtt_ms":
		return compared{name, "round trip to the upstream", InMilliseconds, b.UpstreamRTT, a.UpstreamRTT}
	}
	return compared{}
}

// figures are several of them.
func (p *pair) figures(names ...string) []compared {
	list := make([]compared, len(names))
	for i, name := range names {
		list[i] = p.figure(name)
	}
	return list
}

// took is the change of a measure in words: "TTFT 85 ms → 1.05 s".
func (p *pair) took(m measure) string {
	c := p.figure(measureNames[m] + "_ms")
	before, known := c.before.Get()
	after, too := c.after.Get()
	if !known || !too {
		return inCapitals[m]
	}
	return inCapitals[m] + " " + spanOf(before) + " → " + spanOf(after)
}

// ofChange is a finding's share in words, such as ": 83 % of the change".
func (f *Finding) ofChange() string {
	share, known := f.Share.Get()
	if !known {
		return ""
	}
	return ": " + percent(share) + " of the change"
}
