package dialect

import (
	"bytes"

	"github.com/weirgate/weir/internal/jsonscan"
)

// Places in answers that hold choices, streamed or not: OpenAI's chat and
// completions, and what servers of these add.
const (
	choicesList = own + iota
	choicesOne
	choicesIndex
	choicesText
	choicesThinking
	choicesArguments
	choicesFinish
)

var choicesAnswer = []string{
	choicesList - own:  "choices",
	choicesOne - own:   "choices[]",
	choicesIndex - own: "choices[].index",
	choicesText - own: "choices[].text|" + under([]string{"choices[].delta.", "choices[].message."},
		"content", "refusal", "content[].text", "content[].refusal",
		"tool_calls[].function.name", "tool_calls[].custom.name", "tool_calls[].custom.input", "function_call.name",
		"audio.data", "audio.transcript"),
	choicesThinking - own: under([]string{"choices[].delta.", "choices[].message."},
		"reasoning", "reasoning_content", "content[].thinking", "content[].thinking[].text",
		"reasoning_details[].text", "reasoning_details[].summary", "reasoning_details[].data"),
	// Some servers send arguments as an object rather than as text.
	choicesArguments - own: under([]string{"choices[].delta.", "choices[].message."},
		"tool_calls[].function.arguments", "function_call.arguments"),
	choicesFinish - own: "choices[].finish_reason",
}

// choicesUsage are the places of usage: Groq streams it in an object of its
// own, Moonshot inside the choice.
var choicesUsage = []string{"usage.", "x_groq.usage.", "choices[].usage."}

func choicesValue(r *Response, v jsonscan.Value) {
	e := &r.ev
	switch v.Field {
	case choicesText:
		if r.text(&v) {
			e.choice.visible = true
			e.echoes = r.echo && r.prompt.Begins(unescaped(v.Raw))
		}
	case choicesThinking:
		if r.text(&v) {
			e.choice.reasoning = true
		}
	case choicesIndex:
		if n, ok := v.Count(); ok {
			e.index = int(n)
		}
	case choicesFinish:
		if v.Text() {
			e.finish = r.keep(v.Raw)
		}
	case choicesArguments:
		if r.text(&v) {
			e.choice.visible = true
		} else if v.Kind == jsonscan.EndObject && !v.Empty {
			e.choice.visible = true
			e.texts += 2
		}
	case choicesOne:
		switch v.Kind {
		case jsonscan.BeginObject:
			e.index, e.choice, e.finish = e.choices, content{}, nil
		case jsonscan.EndObject:
			e.choices++
			r.endChoice()
		}
	case choicesList:
		// An empty list marks the event that has the answer's own usage.
		e.total = v.Kind == jsonscan.EndArray && v.Empty
	}
}

// endChoice adds the choice that has been read to its event.
func (r *Response) endChoice() {
	e := &r.ev
	r.finished(e.index, e.finish)
	if e.choice == (content{}) {
		return
	}
	if r.echo && !r.inBody && e.index < 64 {
		bit := uint64(1) << e.index
		if r.echoed&bit == 0 {
			// The first text is the prompt coming back, unless the server does
			// not heed echo and it is something else.
			r.rare().echoed |= bit
			if e.echoes {
				return
			}
		}
	}
	r.wroteIn()
}

// reasoningKind tells whether an event's type is of reasoning.
func reasoningKind(kind []byte) bool { return bytes.Contains(kind, []byte("reasoning")) }
