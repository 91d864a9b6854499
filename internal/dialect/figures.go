package dialect

import (
	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/jsonscan"
)

// figures are token counts as an answer names them, before it is known what
// each includes.
type figures struct {
	n [figureCount]call.Count
}

// Indices of figures. The first ones are in the order of the shared fields.
const (
	figPrompt     = fieldPrompt - fieldPrompt
	figInput      = fieldInput - fieldPrompt
	figCompletion = fieldCompletion - fieldPrompt
	figOutput     = fieldOutput - fieldPrompt
	figTotal      = fieldTotal - fieldPrompt
	figCached     = fieldCached - fieldPrompt
	figCacheWrite = fieldCacheWrite - fieldPrompt
	figReasoning  = fieldReasoning - fieldPrompt
	figPromptN    = fieldPromptN - fieldPrompt
	figCacheN     = fieldCacheN - fieldPrompt
	figPredictedN = fieldPredictedN - fieldPrompt
	figureCount   = fieldPredictedN - fieldPrompt + 1
)

// figure returns the index of a shared field's figure, -1 when it is not one.
func figure(field int) int {
	if field < fieldPrompt || field > fieldPredictedN {
		return -1
	}
	return field - fieldPrompt
}

// take sets figure i from a value, if that is a count.
func (f *figures) take(i int, v *jsonscan.Value) {
	if n, ok := v.Count(); ok {
		newest(&f.n[i], call.Known(n), false)
	}
}

// merge brings the figures up to date with those of a later event. In a final
// one a 0 counts even after a positive figure.
func (f *figures) merge(later *figures, final bool) {
	for i := range f.n {
		newest(&f.n[i], later.n[i], final)
	}
}

// newest applies the rule of all counts: the last one wins, but servers that
// send zeros with every event must not undo a figure.
func newest(c *call.Count, later call.Count, final bool) {
	n, known := later.Get()
	if known && (final || n > 0 || c.Or(0) == 0) {
		*c = later
	}
}

// either returns the first of the figures that is known.
func (f *figures) either(i, j int) call.Count {
	if f.n[i].IsKnown() {
		return f.n[i]
	}
	return f.n[j]
}

// tokens is what figures mean.
type tokens struct {
	call.Usage
	// timings: the counts come from the engine's timing block.
	timings bool
}

// openAITokens reads figures in OpenAI's sense: cached tokens are part of the
// prompt, reasoning is part of the completion.
func openAITokens(f *figures) tokens {
	t := tokens{Usage: call.Usage{
		Input:      f.either(figPrompt, figInput),
		Output:     f.either(figCompletion, figOutput),
		Cached:     f.either(figCached, figCacheN),
		CacheWrite: f.n[figCacheWrite],
		Reasoning:  f.n[figReasoning],
	}}
	if !t.Input.IsKnown() && !t.Output.IsKnown() {
		t.fromTimings(f)
		return t
	}
	t.addHidden(f.n[figTotal])
	return t
}

// addHidden accounts for a total that is more than its parts. What is missing
// is cached input where a server leaves that out of its prompt figure, and
// otherwise thinking that it leaves out of its completion figure.
func (t *tokens) addHidden(total call.Count) {
	sum, known := total.Get()
	if !known || !t.Input.IsKnown() || !t.Output.IsKnown() {
		return
	}
	hidden := sum - t.Input.Or(0) - t.Output.Or(0)
	if hidden <= 0 {
		return
	}
	if cache := t.Cached.Plus(t.CacheWrite).Or(0); hidden == cache && t.Reasoning.Or(0) != hidden {
		t.Input = t.Input.Plus(call.Known(hidden))
		return
	}
	t.Output = t.Output.Plus(call.Known(hidden))
	if t.Reasoning.Or(0) == 0 {
		t.Reasoning = call.Known(hidden)
	}
}

// fromTimings takes the counts from llama.cpp's timing block. Without its count
// of cached tokens the input is not known.
func (t *tokens) fromTimings(f *figures) {
	if !f.n[figPredictedN].IsKnown() {
		return
	}
	t.timings = true
	t.Output = f.n[figPredictedN]
	if f.n[figPromptN].IsKnown() && f.n[figCacheN].IsKnown() {
		t.Input = f.n[figPromptN].Plus(f.n[figCacheN])
	}
}

// inputTokens reads the figures of answers that hold no generated tokens: the
// total is the input where nothing else is said.
func inputTokens(f *figures) tokens {
	t := tokens{Usage: call.Usage{
		Input:  f.either(figPrompt, figInput),
		Output: f.either(figCompletion, figOutput),
		Cached: f.n[figCached],
	}}
	if !t.Input.IsKnown() {
		t.Input = f.n[figTotal]
	}
	return t
}

// embeddingTokens is inputTokens with an output that is 0 by definition.
func embeddingTokens(f *figures) tokens {
	t := inputTokens(f)
	if t.Input.IsKnown() {
		t.Output = call.Known(0)
	}
	return t
}
