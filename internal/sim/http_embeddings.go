package sim

import "fmt"

var embeddingsAPI = api{prefix: "embd-", parse: parseEmbeddings, fail: openAIFailure,
	reply: func(x *exchange) reply { return &embeddingsReply{x} }}

// embeddingSize is the number of dimensions of an embedding.
const embeddingSize = 8

func parseEmbeddings(cfg *Config, body []byte) (*ask, error) {
	var in struct {
		Model string     `json:"model"`
		Input promptList `json:"input"`
	}
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	return &ask{model: in.Model, prompts: in.Input.prompts(cfg), embed: true}, nil
}

// embeddingsReply writes embeddings. They come from the seed and the prompt,
// and mean nothing. There is no stream of them.
type embeddingsReply struct{ x *exchange }

func (o *embeddingsReply) lead(int) [][]byte                   { return nil }
func (o *embeddingsReply) delta(int, []piece, string) [][]byte { return nil }
func (o *embeddingsReply) end() [][]byte                       { return nil }
func (o *embeddingsReply) failed() []byte                      { return nil }
func (o *embeddingsReply) done() []byte                        { return nil }

func (o *embeddingsReply) whole() []byte {
	x := o.x
	b := fmt.Appendf(nil, `{"id":%s,"object":"list","created":%d,"model":%s,"data":[`, quote(x.id), x.created, quote(x.ask.model))
	for i, prompt := range x.ask.prompts {
		if i > 0 {
			b = append(b, ',')
		}
		h := hashText(x.cfg.Seed, x.ask.model)
		for _, t := range prompt {
			h = mix(h ^ uint64(t))
		}
		b = fmt.Appendf(b, `{"object":"embedding","index":%d,"embedding":[`, i)
		for d := range embeddingSize {
			if d > 0 {
				b = append(b, ',')
			}
			b = fmt.Appendf(b, "%.4f", float64(int64(mix(h+uint64(d))>>50)-8192)/8192)
		}
		b = append(b, "]}"...)
	}
	b = append(b, ']')
	if !x.faults.noUsage {
		input := x.facts().Input
		b = fmt.Appendf(b, `,"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":0}`, input, input)
	}
	return append(b, '}')
}
