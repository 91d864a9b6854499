package dialect

// openai.completions: text completions.
var _ = register(&Dialect{
	Name:      "openai.completions",
	Operation: "text_completion",
	paths:     []string{"v1/completions", "completions", "invocations"},
	keys:      []string{"prompt"},
	request:   asked{maxTokens: "max_tokens", n: "n", bestOf: "best_of", echo: "echo", prompt: "prompt", options: true},
	answer:    choicesAnswer,
	usage:     choicesUsage,
	value:     choicesValue,
	refusal:   openAIRefusal,
})
