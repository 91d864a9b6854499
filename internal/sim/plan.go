package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// pieceKind says what a token of the answer belongs to.
type pieceKind uint8

const (
	pieceText pieceKind = iota
	pieceReasoning
	pieceToolName
	pieceToolArguments
)

// piece is one token of an answer.
type piece struct {
	kind pieceKind
	text string
}

// plan is the answer of one choice, known before its first token is due.
type plan struct {
	seed      uint64
	length    int    // tokens, reasoning included
	reasoning int    // how many of them, from the first
	finish    string // "stop", "length" or "tool_calls"
	stopped   string // the stop string that ended it; "" when none did
	tool      []piece
	toolID    string
	texts     []string // the visible tokens, when a stop string cuts them
}

// planAnswer decides what one choice answers. seed stands for the engine's
// seed, the prompt and the choice; room is what the context has left.
func planAnswer(cfg *Config, a *ask, seed uint64, room int) plan {
	p := plan{seed: seed, finish: "stop"}
	p.length = cfg.OutputMin + int(mix(seed)%uint64(cfg.OutputMax-cfg.OutputMin+1))
	if a.tool != nil {
		p.tool = toolPieces(*a.tool, seed)
		p.toolID = fmt.Sprintf("call_%012x", mix(seed^3)>>16)
		p.length = len(p.tool)
		p.finish = "tool_calls"
	}
	if a.reasoning {
		p.reasoning = 8 + int(mix(seed^1)%41)
		p.length += p.reasoning
	}
	p.length = max(p.length, min(a.minTokens, room))
	most := room
	if a.maxTokens > 0 {
		most = min(most, a.maxTokens)
	}
	if a.ignoreEOS && a.tool == nil || p.length > most {
		p.length, p.finish = most, "length"
	}
	p.reasoning = min(p.reasoning, p.length)
	if len(a.stop) > 0 && a.tool == nil {
		p.cutAtStop(a.stop)
	}
	return p
}

// cutAtStop ends the visible text before the first stop string in it. The
// tokens of the stop string itself are generated, and count, but show nothing.
func (p *plan) cutAtStop(stops []string) {
	var text strings.Builder
	ends := make([]int, 0, p.length-p.reasoning)
	for i := p.reasoning; i < p.length; i++ {
		text.WriteString(p.at(i).text)
		ends = append(ends, text.Len())
	}
	first, found := text.Len(), ""
	for _, stop := range stops {
		if at := strings.Index(text.String(), stop); stop != "" && at >= 0 && at < first {
			first, found = at, stop
		}
	}
	if found == "" {
		return
	}
	last, _ := slices.BinarySearch(ends, first+len(found))
	texts, start := make([]string, last+1), 0
	for i := range texts {
		texts[i] = text.String()[min(start, first):min(ends[i], first)]
		start = ends[i]
	}
	p.texts, p.length, p.finish, p.stopped = texts, p.reasoning+last+1, "stop", found
}

// at returns token i of the answer.
func (p *plan) at(i int) piece {
	switch j := i - p.reasoning; {
	case j < 0:
		return piece{pieceReasoning, word(p.seed^2, i)}
	case p.tool != nil && j < len(p.tool):
		return p.tool[j]
	case p.texts != nil:
		return piece{pieceText, p.texts[j]}
	default:
		return piece{pieceText, word(p.seed, j)}
	}
}

// visible joins the first n tokens of one kind.
func (p *plan) visible(n int, kind pieceKind) string {
	var b strings.Builder
	for i := range min(n, p.length) {
		if t := p.at(i); t.kind == kind {
			b.WriteString(t.text)
		}
	}
	return b.String()
}

// tool is a function that the request offers.
type tool struct {
	name       string
	parameters json.RawMessage // a JSON schema, or nothing
}

// toolPieces calls the tool with a word for each of its parameters.
func toolPieces(t tool, seed uint64) []piece {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	// A schema that cannot be read has no parameters: the call is made without.
	_ = json.Unmarshal(t.parameters, &schema)
	names := slices.Sorted(maps.Keys(schema.Properties))
	pieces := []piece{{pieceToolName, t.name}}
	add := func(text string) { pieces = append(pieces, piece{pieceToolArguments, text}) }
	add("{")
	for i, name := range names[:min(len(names), 16)] {
		if i > 0 {
			add(",")
		}
		add(string(quote(name)) + ":")
		add(string(quote(strings.TrimSpace(word(seed, i*7+1)))))
	}
	add("}")
	return pieces
}
