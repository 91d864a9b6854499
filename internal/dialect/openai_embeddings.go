package dialect

import "github.com/weirgate/weir/internal/jsonscan"

// openai.embeddings: embeddings, and the pooling of vLLM that answers alike.
var _ = register(&Dialect{
	Name:      "openai.embeddings",
	Operation: "embeddings",
	paths:     []string{"embeddings", "invocations"},
	keys:      []string{"input"},
	answer:    []string{"data"},
	value:     func(*Response, jsonscan.Value) {},
	tokens:    embeddingTokens,
	refusal:   openAIRefusal,
})
