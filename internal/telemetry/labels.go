package telemetry

import (
	"sync"
	"unicode/utf8"

	"github.com/weirgate/weir/internal/call"
)

// learnt is a label that learns its values up to a cap. A value once learnt
// stays, so that its series never changes its name.
type learnt struct {
	cap int

	mu   sync.RWMutex // guards seen
	seen map[string]struct{}
}

func newLearnt(n int) *learnt { return &learnt{cap: n, seen: make(map[string]struct{})} }

// label returns v when it has been learnt, or can be now and learn allows it;
// else Other. Text that Prometheus would reject, and with it the whole scrape,
// is never learnt.
func (l *learnt) label(v string, learn bool) string {
	l.mu.RLock()
	_, known := l.seen[v]
	full := len(l.seen) >= l.cap
	l.mu.RUnlock()
	switch {
	case known:
		return v
	case !learn || full || v == "" || v == Other || len(v) > call.MaxName || !utf8.ValidString(v):
		return Other
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.seen[v]; !known {
		if len(l.seen) >= l.cap {
			return Other
		}
		l.seen[v] = struct{}{}
	}
	return v
}

// proven tells whether a call shows that its model exists: it succeeded, or
// an answer with output came. Names that scanners try do neither.
func proven(rec *call.Record) bool {
	return rec.Status >= 200 && rec.Status <= 299 &&
		(rec.Outcome == call.Completed || rec.ContentEvents.Or(0) > 0)
}

// outcomes are the values of the label outcome.
var outcomes = call.Outcomes

func outcomeLabel(o call.Outcome) string {
	for _, known := range outcomes {
		if o == known {
			return string(o)
		}
	}
	return Other
}

// errorTypes are the values of the label error_type beside the empty one: the
// outcomes that are failures.
var errorTypes = [...]call.Outcome{call.UpstreamError, call.Timeout, call.StreamError, call.Truncated, call.Unrecognised,
	call.ReaderStalled, call.GatewayShutdown, call.InternalError, call.Crashed}

// numErrors is how many places errorIndex has.
const numErrors = len(errorTypes) + 2

// errorIndex returns 0 for what is no failure, else one more than the outcome's
// place in errorTypes; the place after the last stands for Other.
func errorIndex(o call.Outcome) int {
	if !o.Failed() {
		return 0
	}
	for i, known := range errorTypes {
		if o == known {
			return i + 1
		}
	}
	return numErrors - 1
}

func errorLabel(i int) string {
	if i == 0 {
		return ""
	}
	return labelAt(errorTypes[:], i-1)
}

// statusClasses are the values of the label status_class, by the status' first digit.
var statusClasses = [...]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx"}

func statusClass(status int) string {
	switch class := status / 100; {
	case status == 0:
		return statusClasses[0]
	case class >= 1 && class <= 5:
		return statusClasses[class]
	}
	return Other
}

// usageSources are the values of the label source of weir_tokens_total.
var usageSources = [...]call.UsageSource{call.UsageReported, call.UsageTimings, call.UsageCounted,
	call.UsagePartial, call.UsageNone}

// usageIndex returns the place of a source in usageSources; the place after
// the last stands for Other.
func usageIndex(s call.UsageSource) int {
	if s == "" {
		s = call.UsageNone
	}
	for i, known := range usageSources {
		if s == known {
			return i
		}
	}
	return len(usageSources)
}

// phaseSources are the values of the label source of weir_phase_seconds.
var phaseSources = [...]call.Source{call.Measured, call.FromEngine, call.Inferred, call.Unattributed}

// phaseSourceIndex returns the place of a source in phaseSources; the place
// after the last stands for Other.
func phaseSourceIndex(s call.Source) int {
	for i, known := range phaseSources {
		if s == known {
			return i
		}
	}
	return len(phaseSources)
}

// labelAt returns the value at i of a fixed set, Other past its end.
func labelAt[T ~string](set []T, i int) string {
	if i < len(set) {
		return string(set[i])
	}
	return Other
}

// kinds are the values of the label kind, in the order of tokenCounts.
var kinds = [numKinds]string{"input", "output", "cached", "cache_write", "reasoning"}

const (
	kindInput  = 0
	kindOutput = 1
	numKinds   = 5
	// numTokenTypes is how many of the kinds, the first, are values of the label
	// token_type: the others are parts of them.
	numTokenTypes = 2
)

func tokenCounts(u *call.Usage) [numKinds]call.Count {
	return [numKinds]call.Count{u.Input, u.Output, u.Cached, u.CacheWrite, u.Reasoning}
}

// phases are the values of the label phase, in the order of phaseSpans.
var phases = [numPhases]string{"upload", "queue_gateway", "connect", "upstream_rtt", "queue_engine",
	"frontend", "prefill", "engine", "decode", "tail", "delivery"}

const numPhases = 11

func phaseSpans(p *call.Phases) [numPhases]call.Duration {
	return [numPhases]call.Duration{p.Upload, p.QueueGateway, p.Connect, p.UpstreamRTT, p.QueueEngine,
		p.Frontend, p.Prefill, p.Engine, p.Decode, p.Tail, p.Delivery}
}

func phaseSourcesOf(p *call.PhaseSources) [numPhases]call.Source {
	return [numPhases]call.Source{p.Upload, p.QueueGateway, p.Connect, p.UpstreamRTT, p.QueueEngine,
		p.Frontend, p.Prefill, p.Engine, p.Decode, p.Tail, p.Delivery}
}
