package dialect

// openai.chat: chat completions of OpenAI and of everyone who speaks like it.
var _ = register(&Dialect{
	Name:      "openai.chat",
	Operation: "chat",
	paths:     []string{"chat/completions", "invocations", ":rawPredict", ":streamRawPredict"},
	keys:      []string{"messages"},
	request:   asked{maxTokens: "max_tokens|max_completion_tokens", n: "n", options: true},
	answer:    choicesAnswer,
	usage:     choicesUsage,
	value:     choicesValue,
	refusal:   openAIRefusal,
})
