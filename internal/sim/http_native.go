package sim

import (
	"errors"
	"fmt"
)

var (
	sglangAPI = api{parse: parseSGLang, fail: openAIFailure,
		reply: func(x *exchange) reply { return &sglangReply{x: x} }}
	llamaAPI = api{prefix: "cmpl-", parse: parseLlama, fail: openAIFailure,
		reply: func(x *exchange) reply { return &llamaReply{x: x} }}
)

func parseSGLang(cfg *Config, body []byte) (*ask, error) {
	var in struct {
		Text     stringList `json:"text"`
		InputIDs []uint32   `json:"input_ids"`
		Stream   bool       `json:"stream"`
		Sampling struct {
			MaxNewTokens int        `json:"max_new_tokens"`
			MinNewTokens int        `json:"min_new_tokens"`
			IgnoreEOS    bool       `json:"ignore_eos"`
			Stop         stringList `json:"stop"`
			N            int        `json:"n"`
		} `json:"sampling_params"`
	}
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	s := in.Sampling
	if len(in.Text) > 1 || s.N > 1 {
		return nil, errors.New("the simulated /generate gives one answer to one text: send one request for each")
	}
	if s.MaxNewTokens == 0 {
		s.MaxNewTokens = 128 // the API's own default
	}
	list := promptList{texts: in.Text}
	if len(in.InputIDs) > 0 {
		list = promptList{tokens: [][]uint32{in.InputIDs}}
	}
	return &ask{stream: in.Stream, prompts: list.prompts(cfg), maxTokens: s.MaxNewTokens, minTokens: s.MinNewTokens,
		ignoreEOS: s.IgnoreEOS, stop: s.Stop}, nil
}

// sglangReply writes SGLang's /generate, whose text is cumulative.
type sglangReply struct{ x *exchange }

func (o *sglangReply) lead(int) [][]byte { return nil }

func (o *sglangReply) delta(_ int, _ []piece, finish string) [][]byte {
	return [][]byte{event("", o.body(o.x.sent[0], finish))}
}

func (o *sglangReply) body(n int, finish string) []byte {
	x := o.x
	t := x.facts()
	b := fmt.Appendf(nil, `{"text":%s,"output_ids":[`, quote(x.plans[0].visible(n, pieceText)))
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, "%d", mix(x.plans[0].seed+uint64(i))%32000)
	}
	reason := "null"
	switch {
	case finish == "length":
		reason = fmt.Sprintf(`{"type":"length","length":%d}`, n)
	case finish != "" && x.plans[0].stopped != "":
		reason = fmt.Sprintf(`{"type":"stop","matched":%s}`, quote(x.plans[0].stopped))
	case finish != "":
		reason = `{"type":"stop","matched":2}`
	}
	b = fmt.Appendf(b, `],"meta_info":{"id":%s,"finish_reason":%s`, quote(x.id), reason)
	if !x.faults.noUsage {
		b = fmt.Appendf(b, `,"prompt_tokens":%d,"weight_version":"default","completion_tokens":%d,"cached_tokens":%d`, t.Input, n, t.Cached)
	}
	if finish != "" {
		b = append(b, o.times(t)...)
	}
	return append(b, "}}"...)
}

// times are the figures of the last event: seconds and Unix instants.
func (o *sglangReply) times(t Truth) []byte {
	b := fmt.Appendf(nil, `,"e2e_latency":%s`, sec(t.End.Sub(t.Arrival)))
	if !o.x.cfg.PerRequestMetrics {
		return b
	}
	queue, _ := t.Queue()
	decode, _ := t.Decode()
	return fmt.Appendf(b, `,"queue_time":%s,"forward_entry_time":%s,"prefill_finished_time":%s,"request_received_ts":%s,"request_finished_ts":%s,"inference_time":%s,"decode_throughput":%s`,
		sec(queue), stamp(t.Scheduled), stamp(t.FirstToken), stamp(t.Arrival), stamp(t.End), sec(t.End.Sub(t.Scheduled)), rate(t.Output-1, decode))
}

func (o *sglangReply) end() [][]byte { return [][]byte{doneEvent} }

func (o *sglangReply) failed() []byte {
	return event("", fmt.Appendf(nil, `{"error":{"message":%s}}`, quote(faultMessage)))
}

func (o *sglangReply) done() []byte { return doneEvent }

func (o *sglangReply) whole() []byte {
	p := &o.x.plans[0]
	return o.body(p.length, p.finish)
}

func parseLlama(cfg *Config, body []byte) (*ask, error) {
	var in struct {
		Prompt    promptList `json:"prompt"`
		Stream    bool       `json:"stream"`
		NPredict  int        `json:"n_predict"`
		IgnoreEOS bool       `json:"ignore_eos"`
		Stop      stringList `json:"stop"`
	}
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	a := &ask{stream: in.Stream, prompts: in.Prompt.prompts(cfg), maxTokens: max(in.NPredict, 0), ignoreEOS: in.IgnoreEOS, stop: in.Stop}
	if len(a.prompts) > 1 {
		return nil, errors.New("the simulated /completion answers one prompt: send one request for each")
	}
	return a, nil
}

// llamaReply writes llama.cpp's own /completion.
type llamaReply struct {
	x        *exchange
	finished string
}

func (o *llamaReply) lead(int) [][]byte { return nil }

func (o *llamaReply) delta(_ int, tokens []piece, finish string) [][]byte {
	x := o.x
	var writes [][]byte
	for i, t := range tokens {
		n := x.sent[0] - len(tokens) + i + 1
		if t.text != "" {
			writes = append(writes, event("", fmt.Appendf(nil,
				`{"index":0,"content":%s,"tokens":[%d],"stop":false,"id_slot":-1,"tokens_predicted":%d,"tokens_evaluated":%d}`,
				quote(t.text), mix(x.plans[0].seed+uint64(n))%32000, n, len(x.ask.prompts[0]))))
		}
	}
	if finish != "" {
		o.finished = finish
	}
	return writes
}

// last writes the event with the figures, or the whole answer.
func (o *llamaReply) last(text, finish string) []byte {
	x := o.x
	t := x.facts()
	kind := "eos"
	switch {
	case finish == "length":
		kind = "limit"
	case x.plans[0].stopped != "":
		kind = "word"
	}
	b := fmt.Appendf(nil, `{"index":0,"content":%s,"tokens":[],"id_slot":0,"stop":true,"model":%s`, quote(text), quote(x.ask.model))
	if !x.faults.noUsage {
		b = fmt.Appendf(b, `,"tokens_predicted":%d,"tokens_evaluated":%d`, t.Output, t.Input)
	}
	b = fmt.Appendf(b, `,"truncated":false,"stop_type":"%s","stopping_word":%s,"tokens_cached":%d`,
		kind, quote(x.plans[0].stopped), t.Input+t.Output-1)
	if !x.faults.noUsage {
		b = append(append(b, `,"timings":`...), timings(t)...)
	}
	return append(b, '}')
}

func (o *llamaReply) end() [][]byte { return [][]byte{event("", o.last("", o.finished))} }

func (o *llamaReply) failed() []byte {
	return event("", openAIFailure(o.x.e, failure{500, "server_error", faultMessage, 0}))
}

func (o *llamaReply) done() []byte { return doneEvent }

func (o *llamaReply) whole() []byte {
	p := &o.x.plans[0]
	return o.last(p.visible(p.length, pieceText), p.finish)
}
