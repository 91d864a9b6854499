package capacity

// modelConfig is what a model's config.json says of its shape. The field of
// config.json stands behind each; what a model does not have is 0.
type modelConfig struct {
	vocab   int64 // vocab_size, padded as the embedding is
	hidden  int64 // hidden_size
	layers  int64 // num_hidden_layers
	heads   int64 // num_attention_heads
	kvHeads int64 // num_key_value_heads
	headDim int64 // head_dim, else hidden_size / num_attention_heads
	inter   int64 // intermediate_size, of layers that are no mixture of experts
	context int64 // max_position_embeddings
	tied    bool  // tie_word_embeddings: the output head is the embedding

	qkvBias bool  // attention biases of q, k and v
	outBias bool  // and of o, as gpt-oss has
	qkNorm  bool  // norms of queries and keys, one weight for each dimension of a head
	sinks   bool  // one learned attention sink for each head
	norms   int64 // norms a layer; 0 is 2, before attention and before the MLP

	experts     int64 // num_local_experts, num_experts, n_routed_experts
	expertInter int64 // moe_intermediate_size, else intermediate_size
	shared      int64 // n_shared_experts
	dense       int64 // first_k_dense_replace: layers before the mixture begins
	routerBias  bool
	expertBias  bool

	qRank, kvRank, nope, rope, vDim int64 // MLA: q_lora_rank, kv_lora_rank, qk_nope_, qk_rope_ and v_head_dim

	window, windowLayers int64 // sliding_window, and how many of layer_types are sliding

	vision   int64 // parameters beside the language model
	wideAttn bool  // attention stays at 16 bits in the published checkpoint

	dtype Dtype // of the published checkpoint; "" is BF16
}

// params counts the parameters, and how many of them are in matrices that published
// narrow checkpoints store narrowly.
func (c modelConfig) params() (all, matrices int64) {
	attention, attentionRest := c.attention()
	norms := c.norms
	if norms == 0 {
		norms = 2
	}
	mixtures := int64(0)
	if c.experts > 0 {
		mixtures = c.layers - c.dense
	}
	const gateUpDown = 3
	expert := gateUpDown * c.hidden * c.expertInter
	matrices = mixtures*(c.experts+c.shared)*expert + (c.layers-mixtures)*gateUpDown*c.hidden*c.inter
	rest := c.layers*(attentionRest+norms*c.hidden) + c.hidden // the last norm
	if c.wideAttn {
		rest += c.layers * attention
	} else {
		matrices += c.layers * attention
	}
	rest += mixtures * c.hidden * c.experts // routers
	if c.routerBias {
		rest += mixtures * c.experts
	}
	if c.expertBias {
		rest += mixtures * c.experts * (2*c.expertInter + c.hidden)
	}
	rest += c.vocab*c.hidden + c.vision
	if !c.tied {
		rest += c.vocab * c.hidden
	}
	return matrices + rest, matrices
}

// attention counts the parameters of one layer's attention: those in matrices, and
// biases, norms and sinks.
func (c modelConfig) attention() (matrices, rest int64) {
	if c.kvRank > 0 {
		query := c.heads * (c.nope + c.rope)
		if c.qRank > 0 {
			matrices = c.hidden*c.qRank + c.qRank*query
			rest = c.qRank
		} else {
			matrices = c.hidden * query
		}
		matrices += c.hidden*(c.kvRank+c.rope) + c.kvRank*c.heads*(c.nope+c.vDim) + c.heads*c.vDim*c.hidden
		return matrices, rest + c.kvRank
	}
	q, kv := c.heads*c.headDim, c.kvHeads*c.headDim
	matrices = 2*c.hidden*q + 2*c.hidden*kv
	if c.qkvBias {
		rest += q + 2*kv
	}
	if c.outBias {
		rest += c.hidden
	}
	if c.qkNorm {
		rest += 2 * c.headDim
	}
	if c.sinks {
		rest += c.heads
	}
	return matrices, rest
}

// model is what the plan needs of it.
func (c modelConfig) model(name string) Model {
	all, matrices := c.params()
	m := Model{
		Name: name, Params: all, Wide: all - matrices, Layers: c.layers, Hidden: c.hidden, Heads: c.heads,
		WindowLayers: c.windowLayers, Window: c.window, Context: c.context, Dtype: c.dtype, KVDtype: BF16,
	}
	if m.Dtype == "" {
		m.Dtype = BF16
	}
	if c.kvRank > 0 {
		m.KVRank, m.RopeDim = c.kvRank, c.rope
	} else {
		m.KVHeads, m.HeadDim = c.kvHeads, c.headDim
	}
	return m
}
