package dialect

import (
	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/jsonscan"
)

const (
	geminiElement = own + iota
	geminiCandidate
	geminiIndex
	geminiPart
	geminiText
	geminiThought
	geminiFinish
	geminiBlocked
	geminiPrompt
	geminiTools
	geminiOutput
	geminiThoughts
	geminiCached
)

// gemini.native: Google's API. It streams events when asked with alt=sse, and
// one JSON array otherwise.
var _ = register(&Dialect{
	Name:      "gemini.native",
	Operation: "generate_content",
	paths:     []string{":generateContent", ":streamGenerateContent"},
	keys:      []string{"contents"},
	request: asked{maxTokens: "generationConfig.maxOutputTokens|generation_config.max_output_tokens",
		n: "generationConfig.candidateCount|generation_config.candidate_count"},
	answer: []string{
		geminiElement - own:   "[]",
		geminiCandidate - own: under(geminiRoots, "candidates[]"),
		geminiIndex - own:     under(geminiRoots, "candidates[].index"),
		geminiPart - own:      under(geminiRoots, "candidates[].content.parts[]"),
		geminiText - own: under([]string{"candidates[].content.parts[].", "[].candidates[].content.parts[]."},
			"text", "functionCall.name", "executableCode.code", "inlineData.data"),
		geminiThought - own:  under(geminiRoots, "candidates[].content.parts[].thought"),
		geminiFinish - own:   under(geminiRoots, "candidates[].finishReason"),
		geminiBlocked - own:  under(geminiRoots, "promptFeedback.blockReason"),
		geminiPrompt - own:   under(geminiRoots, "usageMetadata.promptTokenCount"),
		geminiTools - own:    under(geminiRoots, "usageMetadata.toolUsePromptTokenCount"),
		geminiOutput - own:   under(geminiRoots, "usageMetadata.candidatesTokenCount"),
		geminiThoughts - own: under(geminiRoots, "usageMetadata.thoughtsTokenCount"),
		geminiCached - own:   under(geminiRoots, "usageMetadata.cachedContentTokenCount"),
	},
	value:   geminiValue,
	tokens:  geminiTokens,
	array:   true,
	lasting: true, // each candidate has an end of its own
	refusal: statusRefusal("status", geminiStatus),
})

var geminiRoots = []string{"", "[]."}

func geminiValue(r *Response, v jsonscan.Value) {
	e := &r.ev
	switch v.Field {
	case geminiElement:
		if v.Kind == jsonscan.EndObject {
			r.endElement()
		}
	case geminiCandidate:
		switch v.Kind {
		case jsonscan.BeginObject:
			e.index, e.choice, e.finish = e.choices, content{}, nil
		case jsonscan.EndObject:
			e.choices++
			r.finished(e.index, e.finish)
			e.terminal = e.terminal || e.finish != nil
			if e.choice != (content{}) {
				r.wroteIn()
			}
		}
	case geminiIndex:
		if n, ok := v.Count(); ok {
			e.index = int(n)
		}
	case geminiPart:
		if v.Kind == jsonscan.BeginObject {
			e.part = part{}
			return
		}
		e.choice.visible = e.choice.visible || e.part.text && !e.part.thought
		e.choice.reasoning = e.choice.reasoning || e.part.text && e.part.thought
	case geminiText:
		e.part.text = r.text(&v) || e.part.text
	case geminiThought:
		e.part.thought = v.Kind == jsonscan.True
	case geminiFinish:
		if v.Text() {
			e.finish = r.keep(v.Raw)
		}
	case geminiBlocked:
		if v.Text() {
			e.terminal = true
			r.finished(0, r.keep(v.Raw))
		}
	case geminiPrompt:
		r.rare().figures.take(figPrompt, &v)
	case geminiTools:
		r.rare().figures.take(figInput, &v)
	case geminiOutput:
		r.rare().figures.take(figCompletion, &v)
	case geminiThoughts:
		r.rare().figures.take(figReasoning, &v)
	case geminiCached:
		r.rare().figures.take(figCached, &v)
	}
}

// geminiTokens reads figures in Google's sense: thoughts are not part of the
// candidates, nor what tools gave back of the prompt.
func geminiTokens(f *figures) tokens {
	t := tokens{Usage: call.Usage{
		Input:     f.n[figPrompt],
		Output:    f.n[figCompletion].Plus(f.n[figReasoning]),
		Cached:    f.n[figCached],
		Reasoning: f.n[figReasoning],
	}}
	if t.Input.IsKnown() {
		t.Input = t.Input.Plus(f.n[figInput])
	}
	return t
}

func geminiStatus(status int, _ string) string {
	switch status {
	case 401:
		return "UNAUTHENTICATED"
	case 403:
		return "PERMISSION_DENIED"
	case 404:
		return "NOT_FOUND"
	case 429:
		return "RESOURCE_EXHAUSTED"
	case 503:
		return "UNAVAILABLE"
	case 504:
		return "DEADLINE_EXCEEDED"
	}
	if status >= 500 {
		return "INTERNAL"
	}
	return "INVALID_ARGUMENT"
}
