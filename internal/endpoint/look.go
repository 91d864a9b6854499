package endpoint

import (
	"bytes"
	"strings"
)

// form is how the events of an API are built.
type form uint8

const (
	choicesForm   form = iota // chat and completions: an array of choices
	responsesForm             // Responses: a type, and what it is of
	messagesForm              // Messages: a type, and a delta or a block
)

func formOf(dialect string) form {
	switch {
	case strings.HasPrefix(dialect, "anthropic."):
		return messagesForm
	case dialect == "openai.responses":
		return responsesForm
	}
	return choicesForm
}

// look says what an event carries, but for Content, and the running count of
// output tokens in it. name is the event field. Of an event that is not one
// whole JSON object nothing is known.
func (f form) look(name, data []byte) (mark Mark, output int32) {
	if isDone(data) {
		return Done, 0
	}
	whole := false
	switch f {
	case choicesForm:
		mark, output, whole = lookChoices(data)
	case responsesForm:
		mark, output, whole = lookResponses(name, data)
	case messagesForm:
		mark, output, whole = lookMessages(name, data)
	}
	if !whole {
		return 0, 0
	}
	return mark, output
}

// isDone tells whether data is the end mark of OpenAI's streams.
func isDone(data []byte) bool {
	data = space(data)
	return len(data) > 5 && data[0] == '[' && data[1] == 'D' && string(bytes.TrimSpace(data)) == "[DONE]"
}

func lookChoices(data []byte) (mark Mark, output int32, whole bool) {
	c := objectOf(data)
	for c.next() {
		switch string(c.key) {
		case "choices":
			number := int32(0)
			for e := arrayOf(c.value); e.next(); number++ {
				mark |= Choices | lookChoice(e.value, number)
			}
		case "usage":
			if m, n := lookUsage(c.value); m != 0 {
				mark, output = mark|m, max(output, n)
			}
		case "x_groq":
			for g := objectOf(c.value); g.next(); {
				if string(g.key) == "usage" {
					m, n := lookUsage(g.value)
					mark, output = mark|m, max(output, n)
				}
			}
		}
	}
	return mark, output, c.ended()
}

// lookChoice looks at one choice; number is its place, which stands for an
// index that is not given.
func lookChoice(choice []byte, number int32) (mark Mark) {
	for c := objectOf(choice); c.next(); {
		switch string(c.key) {
		case "index":
			if n, ok := count(c.value); ok {
				number = n
			}
		case "text":
			if isText(c.value) {
				mark |= Text
			}
		case "delta", "message":
			mark |= lookDelta(c.value)
		}
	}
	if number == 0 {
		mark |= First
	}
	return mark
}

func lookDelta(delta []byte) (mark Mark) {
	for c := objectOf(delta); c.next(); {
		switch string(c.key) {
		case "content":
			if isText(c.value) {
				mark |= Text
				continue
			}
			for e := arrayOf(c.value); e.next(); {
				mark |= lookPart(e.value)
			}
		case "reasoning", "reasoning_content":
			if isText(c.value) {
				mark |= Reasoning
			}
		case "reasoning_details":
			for e := arrayOf(c.value); e.next(); {
				if hasText(e.value, "text", "summary", "data") {
					mark |= Reasoning
				}
			}
		case "tool_calls":
			for e := arrayOf(c.value); e.next(); {
				for t := objectOf(e.value); t.next(); {
					switch string(t.key) {
					case "function", "custom":
						mark |= lookFunction(t.value)
					}
				}
			}
		case "function_call":
			mark |= lookFunction(c.value)
		}
	}
	return mark
}

// lookPart looks at one part of a content that is an array.
func lookPart(part []byte) (mark Mark) {
	for c := objectOf(part); c.next(); {
		switch string(c.key) {
		case "text":
			if isText(c.value) {
				mark |= Text
			}
		case "thinking":
			if isText(c.value) || isFull(c.value) {
				mark |= Reasoning
			}
		}
	}
	return mark
}

// lookFunction looks at a tool's name and arguments, of which either may come first.
func lookFunction(function []byte) (mark Mark) {
	for c := objectOf(function); c.next(); {
		switch string(c.key) {
		case "name", "input", "arguments":
			if isText(c.value) || isFull(c.value) {
				mark |= Tool
			}
		}
	}
	return mark
}

// hasText tells whether one of an object's members of these names is a string
// of at least one character.
func hasText(object []byte, names ...string) bool {
	for c := objectOf(object); c.next(); {
		for _, n := range names {
			if string(c.key) == n && isText(c.value) {
				return true
			}
		}
	}
	return false
}

// lookUsage looks at a usage object.
func lookUsage(usage []byte) (mark Mark, output int32) {
	if len(usage) == 0 || isNull(usage) {
		return 0, 0
	}
	for c := objectOf(usage); c.next(); {
		switch string(c.key) {
		case "completion_tokens", "output_tokens":
			if n, ok := count(c.value); ok {
				output = max(output, n)
			}
		}
	}
	return Usage, output
}
