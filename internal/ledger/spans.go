package ledger

import (
	"encoding/json"
	"strings"

	"github.com/weirgate/weir/internal/call"
)

const (
	numSpans  = 27
	numPhases = 11
	phasesAt  = 10 // of the first phase among the spans
)

// spanColumns are the columns of what spans returns, in the same order.
var spanColumns = [numSpans]column{
	colTTFT, colTTFTUpstream, colTTFB, colTTFTVisible, colTPOT, colE2E, colICLP50, colICLMax, colClientRTT, colUpstreamRTT,
	colPhaseUpload, colPhaseQueueGateway, colPhaseConnect, colPhaseUpstreamRTT, colPhaseQueueEngine, colPhaseFrontend,
	colPhasePrefill, colPhaseEngine, colPhaseDecode, colPhaseTail, colPhaseDelivery,
	colEngineQueue, colEngineLoad, colEnginePrefill, colEngineDecode, colEngineTotal, colEngineE2E,
}

// spans returns every duration of a record.
func spans(r *call.Record) [numSpans]*call.Duration {
	t, p, e := &r.Timing, &r.Phases, &r.Engine
	return [numSpans]*call.Duration{
		&t.TTFT, &t.TTFTUpstream, &t.TTFB, &t.TTFTVisible, &t.TPOT, &t.E2E, &t.ICLP50, &t.ICLMax, &t.ClientRTT, &t.UpstreamRTT,
		&p.Upload, &p.QueueGateway, &p.Connect, &p.UpstreamRTT, &p.QueueEngine, &p.Frontend,
		&p.Prefill, &p.Engine, &p.Decode, &p.Tail, &p.Delivery,
		&e.Queue, &e.Load, &e.Prefill, &e.Decode, &e.Total, &e.E2E,
	}
}

// phaseNames are the phases' names, in the order of spans.
var phaseNames = [numPhases]string{"upload", "queue_gateway", "connect", "upstream_rtt", "queue_engine", "frontend",
	"prefill", "engine", "decode", "tail", "delivery"}

func phaseSources(s *call.PhaseSources) [numPhases]*call.Source {
	return [numPhases]*call.Source{&s.Upload, &s.QueueGateway, &s.Connect, &s.UpstreamRTT, &s.QueueEngine, &s.Frontend,
		&s.Prefill, &s.Engine, &s.Decode, &s.Tail, &s.Delivery}
}

// usualSources is what nearly every record says, so that nothing needs to be
// built for it: one span that the engine did not divide.
var usualSources = [...]string{"", "prefill=unattributed", "engine=unattributed"}

// sourcesText names the sources of the known phases that were not measured:
// "queue_engine=engine,prefill=engine".
func sourcesText(r *call.Record) string {
	var all [128]byte // the longest takes 8·23 bytes and is rare
	b := all[:0]
	durations := spans(r)
	for i, src := range phaseSources(&r.PhaseSources) {
		if *src == "" || *src == call.Measured || !durations[phasesAt+i].IsKnown() {
			continue
		}
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = append(b, phaseNames[i]...)
		b = append(b, '=')
		b = append(b, *src...)
	}
	for _, usual := range usualSources {
		if string(b) == usual {
			return usual
		}
	}
	return string(b)
}

// setSources undoes sourcesText. The durations may come before or after.
func setSources(r *call.Record, text string) {
	for part := range strings.SplitSeq(text, ",") {
		name, source, _ := strings.Cut(part, "=")
		for i, src := range phaseSources(&r.PhaseSources) {
			if phaseNames[i] == name {
				*src = call.Source(source)
			}
		}
	}
}

// measuredSources gives each known phase without a source the one that
// sourcesText leaves out. It is called when all columns have been set.
func measuredSources(r *call.Record) {
	durations := spans(r)
	for i, src := range phaseSources(&r.PhaseSources) {
		if *src == "" && durations[phasesAt+i].IsKnown() {
			*src = call.Measured
		}
	}
}

// finishText is the reason itself, or the JSON form of several choices'.
func finishText(f call.Finish) string {
	if !f.Multiple() {
		first := f.First()
		return first[:min(len(first), maxText)]
	}
	b, err := json.Marshal(f)
	if err != nil || len(b) > maxFinish {
		return f.First()
	}
	return string(b)
}

// finishOf undoes finishText.
func finishOf(text string) call.Finish {
	var f call.Finish
	if strings.HasPrefix(text, "{") && f.UnmarshalJSON([]byte(text)) == nil {
		return f
	}
	f = call.Finish{}
	f.Set(0, text)
	return f
}

func degradedText(reasons []call.Degradation) string {
	switch len(reasons) {
	case 0:
		return ""
	case 1:
		return string(reasons[0])
	}
	all := make([]string, len(reasons))
	for i, r := range reasons {
		all[i] = string(r)
	}
	return strings.Join(all, ",")
}

func degradedOf(text string) []call.Degradation {
	var reasons []call.Degradation
	for r := range strings.SplitSeq(text, ",") {
		reasons = append(reasons, call.Degradation(r))
	}
	return reasons
}
