package otlpin

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weirgate/weir/internal/call"
)

// Names of attributes, as vLLM (vllm/tracing/utils.py) and SGLang
// (python/sglang/srt/observability/trace.py) write them; those of usage also
// under their present names of the conventions
// (https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/).
// Latencies are in seconds.
const (
	attrQueue   = "gen_ai.latency.time_in_queue"
	attrPrefill = "gen_ai.latency.time_in_model_prefill"
	attrDecode  = "gen_ai.latency.time_in_model_decode"
	attrTTFT    = "gen_ai.latency.time_to_first_token"
	attrE2E     = "gen_ai.latency.e2e"

	attrPrompt     = "gen_ai.usage.prompt_tokens"
	attrInput      = "gen_ai.usage.input_tokens"
	attrCompletion = "gen_ai.usage.completion_tokens"
	attrOutput     = "gen_ai.usage.output_tokens"

	attrRequestID     = "gen_ai.request.id"
	attrResponseModel = "gen_ai.response.model"
	attrRequestModel  = "gen_ai.request.model"
)

const (
	// queueStage is the span of SGLang whose duration is the time in the queue.
	queueStage = "prefill_waiting"
	// requestSpan is vLLM's span of a request.
	requestSpan = "llm_request"
	// ownScope is the instrumentation scope of the gateway's own spans, which
	// repeat engines' figures and are no engine's.
	ownScope = "github.com/weirgate/weir"

	maxLatency = 24 * time.Hour // what is longer is a mistake
	maxTokens  = 1 << 40
	maxText    = 128 // bytes kept of a name
	// overlap is how much queue and prefill together may exceed the time to the
	// first token before the queue must be part of prefill: clocks of two processes
	// stand behind the figures.
	overlap = time.Millisecond
)

// value is an attribute's value: text, or a number that is whole where exact.
type value struct {
	text  []byte // nil unless it is text
	whole int64
	real  float64
	kind  valueKind
}

type valueKind uint8

const (
	valueOther valueKind = iota // lists, maps, bytes, booleans
	valueText
	valueWhole
	valueReal
)

// note takes one attribute of a span; attributes without a meaning here are
// passed over.
func (s *seen) note(key []byte, v value) {
	switch string(key) {
	case attrQueue:
		s.Queue = v.seconds()
	case attrPrefill:
		s.Prefill = v.seconds()
	case attrDecode:
		s.Decode = v.seconds()
	case attrTTFT:
		s.TTFT = v.seconds()
	case attrE2E:
		s.E2E = v.seconds()
	case attrPrompt, attrInput:
		s.InputTokens = v.count()
	case attrCompletion, attrOutput:
		s.OutputTokens = v.count()
	case attrRequestID:
		s.RequestID = v.name()
	case attrResponseModel:
		s.Model = v.name()
	case attrRequestModel:
		if s.Model == "" {
			s.Model = v.name()
		}
	}
}

// finish draws the conclusions that need the whole span. scope is the name of
// its instrumentation scope.
func (s *seen) finish(scope, name []byte) {
	if string(scope) == ownScope || strings.HasPrefix(string(scope), ownScope+"/") {
		s.EngineSpan = EngineSpan{TraceID: s.TraceID, SpanID: s.SpanID, ParentID: s.ParentID}
		return
	}
	s.Kind = kindOf(scope, name)
	if string(name) == queueStage && !s.hasFigures() {
		if d := s.End.Sub(s.Start); !s.Start.IsZero() && d >= 0 && d <= maxLatency {
			s.Queue, s.stage = call.Lasting(d), true
		}
		return
	}
	prefill, reported := s.Prefill.Get()
	if !reported {
		return
	}
	// The queue is part of prefill when it is not told apart, and when the two
	// do not fit beside each other into the time to the first token.
	queue, apart := s.Queue.Get()
	ttft, bounded := s.TTFT.Get()
	if apart && (!bounded || queue+prefill <= ttft+overlap) {
		return
	}
	s.PrefillWithQueue, s.Prefill = s.Prefill, call.Duration{}
	s.takeQueueOut()
}

// takeQueueOut tells prefill from the queue in PrefillWithQueue once the queue
// is known. A queue that is longer than both leaves prefill unknown.
func (s *EngineSpan) takeQueueOut() {
	both, known := s.PrefillWithQueue.Get()
	queue, apart := s.Queue.Get()
	if known && apart && queue <= both {
		s.Prefill = call.Lasting(both - queue)
	}
}

// kindOf names the engine by its instrumentation scope (vLLM "vllm.…", SGLang
// "sglang server"), else by the name of its span.
func kindOf(scope, name []byte) string {
	for _, kind := range [...]string{"vllm", "sglang"} {
		if len(scope) >= len(kind) && string(scope[:len(kind)]) == kind {
			return kind
		}
	}
	switch string(name) {
	case requestSpan:
		return "vllm"
	case queueStage:
		return "sglang"
	}
	return ""
}

// number is the value as a float64; NaN is none.
func (v value) number() float64 {
	switch v.kind {
	case valueWhole:
		return float64(v.whole)
	case valueReal:
		return v.real
	case valueText:
		if len(v.text) <= 64 {
			if f, err := strconv.ParseFloat(strings.TrimSpace(string(v.text)), 64); err == nil {
				return f
			}
		}
	}
	return math.NaN()
}

// seconds reads a latency, to the nanosecond.
func (v value) seconds() call.Duration {
	f := v.number()
	if !(f >= 0 && f <= maxLatency.Seconds()) {
		return call.Duration{}
	}
	return call.Lasting(time.Duration(math.Round(f * float64(time.Second))))
}

// count reads a number of tokens.
func (v value) count() call.Count {
	f := v.number()
	if !(f >= 0 && f <= maxTokens) || f != math.Trunc(f) {
		return call.Count{}
	}
	return call.Known(int64(f))
}

// name reads a short text: what is too long is cut between characters, what is no UTF-8
// is left out.
func (v value) name() string {
	switch v.kind {
	case valueWhole:
		return strconv.FormatInt(v.whole, 10)
	case valueText:
	default:
		return ""
	}
	text := v.text
	if len(text) > maxText {
		end := maxText
		for end > maxText-utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	return strings.ToValidUTF8(string(text), "")
}

// unixNano reads nanoseconds since 1970; what time.Time cannot hold is unknown.
func unixNano(nanos uint64) time.Time {
	if nanos == 0 || nanos > math.MaxInt64 {
		return time.Time{}
	}
	return time.Unix(0, int64(nanos)).UTC()
}
