package dialect

import (
	"strings"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/jsonscan"
)

// Fields that mean the same in every dialect. The first few say nothing about
// whose answer it is; any of the others makes the answer recognised.
const (
	fieldID = iota
	fieldModel
	fieldObject
	fieldType
	fieldCode // of an error that is the event itself
	weak      // the number of the above

	fieldError = iota - 1
	fieldErrorType
	fieldErrorCode
	fieldErrorStatus

	fieldPrompt // tokens, cache included
	fieldInput
	fieldCompletion
	fieldOutput
	fieldTotal
	fieldCached
	fieldCacheWrite
	fieldReasoning

	fieldPromptN // llama.cpp's timings: tokens read, cache excluded
	fieldCacheN
	fieldPredictedN

	fieldQueueMS
	fieldPrefillMS
	fieldDecodeMS
	fieldTotalMS
	fieldQueueS
	fieldPrefillS
	fieldDecodeS

	own // a dialect's first field of its own
)

// places returns the paths of a dialect's answers, in the order of the fields.
func places(d *Dialect) []string {
	usage := d.usage
	if len(usage) == 0 {
		usage = []string{"usage."}
	}
	answer := []string{"", "response."}
	p := make([]string, own, own+len(d.answer))
	p[fieldID] = "id|response.id|message.id|responseId|meta_info.id"
	p[fieldModel] = "model|response.model|message.model|modelVersion"
	if d.array {
		answer = append(answer, "[].")
		p[fieldID] += "|[].responseId"
		p[fieldModel] += "|[].modelVersion"
	}
	p[fieldObject] = "object"
	p[fieldType] = "type"
	p[fieldCode] = "code"
	p[fieldError] = under(answer, "error")
	p[fieldErrorType] = under(answer, "error.type") + "|error_type"
	p[fieldErrorCode] = under(answer, "error.code")
	p[fieldErrorStatus] = under(answer, "error.status", "error.http_status_code")

	stats := "stats." // NIM
	p[fieldPrompt] = under(usage, "prompt_tokens")
	p[fieldInput] = under(usage, "input_tokens") + "|" + stats + "llm_input_token_length"
	p[fieldCompletion] = under(usage, "completion_tokens")
	p[fieldOutput] = under(usage, "output_tokens") + "|" + stats + "llm_output_token_length"
	p[fieldTotal] = under(usage, "total_tokens")
	p[fieldCached] = under(usage, "prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens",
		"cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")
	p[fieldCacheWrite] = under(usage, "cache_creation_input_tokens", "prompt_tokens_details.cache_write_tokens",
		"prompt_tokens_details.cache_creation_tokens", "input_tokens_details.cache_write_tokens")
	p[fieldReasoning] = under(usage, "completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens",
		"output_tokens_details.thinking_tokens", "reasoning_tokens")

	p[fieldPromptN] = under(answer, "timings.prompt_n")
	p[fieldCacheN] = under(answer, "timings.cache_n")
	p[fieldPredictedN] = under(answer, "timings.predicted_n")

	p[fieldQueueMS] = under(answer, "metrics.queue_time_ms") + "|" + stats + "time_in_queue_in_ms"
	// vLLM counts its time to first token from scheduling, as NIM does: it is prefill.
	p[fieldPrefillMS] = under(answer, "timings.prompt_ms", "metrics.time_to_first_token_ms") +
		"|" + stats + "response_tokens.time_to_first_token_in_ms"
	p[fieldDecodeMS] = under(answer, "timings.predicted_ms", "metrics.generation_time_ms")
	p[fieldTotalMS] = stats + "generation_time_in_ms"
	p[fieldQueueS] = under(usage, "queue_time")
	p[fieldPrefillS] = under(usage, "prompt_time")
	p[fieldDecodeS] = under(usage, "completion_time")
	return append(p, d.answer...)
}

// under joins each of the places with each of the names below it.
func under(places []string, names ...string) string {
	var all []string
	for _, p := range places {
		for _, n := range names {
			all = append(all, p+n)
		}
	}
	return strings.Join(all, "|")
}

// sink is a Response as the scanner sees it.
type sink Response

// Value takes what the scanner found.
func (s *sink) Value(v jsonscan.Value) {
	r := (*Response)(s)
	e := &r.ev
	if v.Field >= own {
		if v.Kind != jsonscan.BeginObject && v.Kind != jsonscan.EndObject {
			e.own = true // any object may be an object of ours
		}
		r.d.value(r, v)
		return
	}
	switch v.Field {
	case fieldID:
		if e.id == nil && v.Text() && r.answer.ResponseID == "" {
			e.id = r.keep(v.Raw)
		}
	case fieldModel:
		if e.model == nil && v.Text() && r.answer.ResponseModel == "" {
			e.model = r.keep(v.Raw)
		}
	case fieldObject:
		if v.Kind == jsonscan.String && string(v.Raw) == "error" {
			e.failed = true
			r.rare().bare = true
		}
	case fieldType:
		if v.Kind == jsonscan.String {
			e.kind = r.keep(v.Raw)
		}
	case fieldCode:
		if v.Kind == jsonscan.String || v.Kind == jsonscan.Number {
			r.rare().code = r.keep(v.Raw)
		}
	default:
		r.sharedValue(v)
	}
}

// sharedValue takes a value that makes the event one of any dialect's, and is
// not in the usual event.
func (r *Response) sharedValue(v jsonscan.Value) {
	if v.Kind == jsonscan.Null {
		return
	}
	e, c := &r.ev, r.rare()
	e.own = true
	if n := figure(v.Field); n >= 0 {
		c.figures.take(n, &v)
		return
	}
	scalar := v.Kind == jsonscan.String || v.Kind == jsonscan.Number
	switch v.Field {
	case fieldError:
		e.failed = e.failed || v.Kind == jsonscan.EndObject && !v.Empty || v.Text() || v.Kind == jsonscan.True
	case fieldErrorType:
		if v.Text() {
			c.errorType = r.keep(v.Raw)
		}
	case fieldErrorCode:
		if scalar {
			c.errorCode = r.keep(v.Raw)
		}
	case fieldErrorStatus:
		if scalar {
			c.errorStatus = r.keep(v.Raw)
		}
	case fieldQueueMS:
		last(&c.engine.Queue, &v, 1)
	case fieldPrefillMS:
		last(&c.engine.Prefill, &v, 1)
	case fieldDecodeMS:
		last(&c.engine.Decode, &v, 1)
	case fieldTotalMS:
		last(&c.engine.Total, &v, 1)
	case fieldQueueS:
		last(&c.engine.Queue, &v, 1000)
	case fieldPrefillS:
		last(&c.engine.Prefill, &v, 1000)
	case fieldDecodeS:
		last(&c.engine.Decode, &v, 1000)
	}
}

// last keeps the newest figure of an engine's duration, which is given in
// units of so many milliseconds; what is not one changes nothing.
func last(d *call.Duration, v *jsonscan.Value, unit float64) {
	if f, ok := v.Float(); ok && f >= 0 {
		if ms := call.Milliseconds(f * unit); ms.IsKnown() {
			*d = ms
		}
	}
}
