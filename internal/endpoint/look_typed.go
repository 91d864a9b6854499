package endpoint

import "bytes"

// lookResponses looks at an event of the Responses API. It writes one answer,
// so each event of output is of the first.
func lookResponses(name, data []byte) (mark Mark, output int32, whole bool) {
	kind := name // of servers that leave the type to the event's name
	var delta, named bool
	c := objectOf(data)
	for c.next() {
		switch string(c.key) {
		case "type":
			if isText(c.value) {
				kind = c.value[1 : len(c.value)-1]
			}
		case "delta":
			delta = isText(c.value)
		case "item":
			named = hasText(c.value, "name")
		case "usage":
			mark, output = lookUsage(c.value)
		case "response":
			for r := objectOf(c.value); r.next(); {
				if string(r.key) == "usage" {
					m, n := lookUsage(r.value)
					mark, output = mark|m, max(output, n)
				}
			}
		}
	}
	switch string(kind) {
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		mark |= Done
	case "response.output_item.added":
		if named {
			mark |= Tool | First
		}
	}
	if bytes.HasSuffix(kind, []byte("delta")) {
		mark |= Choices | First
		switch {
		case !delta:
		case bytes.Contains(kind, []byte("reasoning")):
			mark |= Reasoning
		case string(kind) == "response.output_text.delta":
			mark |= Text
		case bytes.Contains(kind, []byte("_call")):
			mark |= Tool
		}
	}
	return mark, output, c.ended()
}

// lookMessages looks at an event of the Messages API. It writes one answer, so
// each event of output is of the first.
func lookMessages(name, data []byte) (mark Mark, output int32, whole bool) {
	kind := name
	c := objectOf(data)
	for c.next() {
		switch string(c.key) {
		case "type":
			if isText(c.value) {
				kind = c.value[1 : len(c.value)-1]
			}
		case "delta", "content_block":
			mark |= lookBlock(c.value)
		case "usage":
			m, n := lookUsage(c.value)
			mark, output = mark|m, max(output, n)
		case "message":
			for m := objectOf(c.value); m.next(); {
				if string(m.key) == "usage" {
					u, n := lookUsage(m.value)
					mark, output = mark|u, max(output, n)
				}
			}
		}
	}
	switch string(kind) {
	case "message_stop":
		mark |= Done
	case "content_block_delta":
		mark |= Choices | First
	}
	if mark&(Text|Reasoning|Tool) != 0 {
		mark |= First
	}
	return mark, output, c.ended()
}

// lookBlock looks at a content block, or at a delta of one.
func lookBlock(block []byte) (mark Mark) {
	for c := objectOf(block); c.next(); {
		switch string(c.key) {
		case "text":
			if isText(c.value) {
				mark |= Text
			}
		case "thinking", "data":
			if isText(c.value) {
				mark |= Reasoning
			}
		case "partial_json", "name":
			if isText(c.value) {
				mark |= Tool
			}
		}
	}
	return mark
}
