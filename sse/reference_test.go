package sse

import (
	"bytes"
	"strings"
)

// copied is an event that outlives the call that returned it.
type copied struct {
	Type, Data, ID string
	Oversize       bool
}

// reference parses a whole stream the slow way, one step of the standard's
// text after the other ("interpreting an event stream"), with this package's
// four departures from it.
func reference(stream []byte, limit int) []copied {
	s := strings.TrimPrefix(string(stream), "\uFEFF")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	s = strings.ReplaceAll(s, "\r", "\n")
	lines := strings.Split(s, "\n")
	// What follows the last line end is a line only if it is not empty; the
	// end of the stream then closes the event like a blank line.
	if last := len(lines) - 1; lines[last] != "" {
		lines = append(lines, "")
	}

	var events []copied
	var data, typ, id string
	var long bool
	for _, line := range lines {
		if line == "" {
			text := strings.TrimSuffix(data, "\n")
			if text != "" {
				ev := copied{Type: typ, Data: text, ID: id}
				if long || len(text) > limit {
					ev.Data, ev.Oversize = "", true
				}
				events = append(events, ev)
			}
			data, typ, long = "", "", false
			continue
		}
		if line[0] == ':' {
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "data":
			data += value + "\n"
		case "event":
			typ = value
			if len(value) > 256 {
				typ, long = "", true
			}
		case "id":
			if !strings.Contains(value, "\x00") && len(value) <= 256 {
				id = value
			}
		}
	}
	return events
}

// parse feeds the pieces to p and returns all events, the flushed one included.
func parse(p *Parser, pieces ...[]byte) []copied {
	var events []copied
	take := func(ev Event) {
		events = append(events, copied{string(ev.Type), string(ev.Data), string(ev.ID), ev.Oversize})
	}
	for _, piece := range pieces {
		// A copy that is overwritten afterwards shows whoever keeps a piece.
		b := bytes.Clone(piece)
		for rest := b; ; {
			ev, n, ok := p.Next(rest)
			rest = rest[n:]
			if !ok {
				if len(rest) > 0 {
					panic("Next left bytes and returned no event")
				}
				break
			}
			take(ev)
		}
		for i := range b {
			b[i] = '#'
		}
	}
	if ev, ok := p.Flush(); ok {
		take(ev)
	}
	return events
}

// pieces cuts b after every n bytes.
func pieces(b []byte, n int) [][]byte {
	var out [][]byte
	for len(b) > n {
		out, b = append(out, b[:n]), b[n:]
	}
	return append(out, b)
}
