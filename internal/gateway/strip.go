package gateway

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	"github.com/weirgate/weir/sse"
)

// stripper keeps the one usage event that the gateway itself asked for from a
// client that did not: the event with an empty choices array and a usage
// object. All other bytes pass, and pass at once until a choice has finished;
// from then on an event that is not whole yet is held, since it may be the one.
type stripper struct {
	event    []byte // the event in progress, as far as it is kept
	sent     int    // how much of event has been forwarded
	out      []byte // what one write forwards; reused
	finished bool   // a finish reason has gone by: the usage event may come
	done     bool   // the usage event was removed
	removed  int64  // bytes of it
}

// maxStrip is the longest event that is held. A usage event is far below it.
const maxStrip = 64 << 10

// begin tells whether there can be such an event in this answer; it takes away
// a Content-Length that would no longer hold.
func (s *stripper) begin(status int, h http.Header) bool {
	if status != http.StatusOK || !isEventStream(h) {
		return false
	}
	if encoded(h) {
		return false
	}
	h.Del("Content-Length")
	return true
}

// write forwards b but for the usage event. When w fails it reports that
// nothing of b was dealt with: the call is over then.
func (s *stripper) write(w io.Writer, b []byte) (int, error) {
	if s.done {
		return w.Write(b)
	}
	s.out = s.out[:0]
	s.event = append(s.event, b...)
	for !s.done {
		end := eventEnd(s.event)
		if end < 0 {
			break
		}
		s.pass(s.event[:end])
		s.event = append(s.event[:0], s.event[end:]...)
		s.sent = 0
	}
	if hold := s.finished && len(s.event) <= maxStrip; s.done || !hold || s.sent > 0 {
		s.out = append(s.out, s.event[s.sent:]...)
		s.sent = len(s.event)
	}
	if s.done {
		s.event, s.sent = nil, 0
	} else if len(s.event) > maxStrip {
		// Too long to be the one: only its end matters, in which a blank line
		// may have begun.
		s.event = append(s.event[:0], s.event[len(s.event)-4:]...)
		s.sent = len(s.event)
	}
	if len(s.out) == 0 {
		return len(b), nil
	}
	if _, err := w.Write(s.out); err != nil {
		return 0, err
	}
	return len(b), nil
}

// pass forwards a whole event, or removes it. Comments within it stay.
func (s *stripper) pass(event []byte) {
	if s.sent > 0 || !isUsageEvent(event) {
		s.finished = s.finished || hasFinish(event)
		s.out = append(s.out, event[s.sent:]...)
		return
	}
	s.done = true
	s.removed = int64(len(event))
	for line := range bytes.Lines(event) {
		if line[0] == ':' {
			s.out = append(s.out, line...)
			s.removed -= int64(len(line))
		}
	}
}

// finish forwards what is still held: an event that never ended.
func (s *stripper) finish(w io.Writer) (int, error) {
	held := s.event[s.sent:]
	s.event, s.sent = nil, 0
	if len(held) == 0 {
		return 0, nil
	}
	return w.Write(held)
}

// eventEnd returns how many bytes of b make its first event, the blank line
// that ends it included; -1 when no blank line has come. Lines end in LF, CR or
// both. An LF that comes after a CR in a later piece counts as an event of its
// own without a field: it passes like any other byte.
func eventEnd(b []byte) int {
	start := 0
	for i := 0; i < len(b); i++ {
		if b[i] != '\n' && b[i] != '\r' {
			next := bytes.IndexAny(b[i:], "\r\n")
			if next < 0 {
				return -1
			}
			i += next
		}
		empty := i == start
		if b[i] == '\r' && i+1 < len(b) && b[i+1] == '\n' {
			i++
		}
		start = i + 1
		if empty {
			return start
		}
	}
	return -1
}

// isUsageEvent tells whether an event has an empty choices array and a usage
// object. Keys are matched exactly.
func isUsageEvent(event []byte) bool {
	if !bytes.Contains(event, []byte(`"usage"`)) || !bytes.Contains(event, []byte(`"choices"`)) {
		return false
	}
	var p sse.Parser
	ev, _, ok := p.Next(event)
	if !ok {
		return false
	}
	var fields map[string]json.RawMessage
	var choices []json.RawMessage
	if json.Unmarshal(ev.Data, &fields) != nil || json.Unmarshal(fields["choices"], &choices) != nil {
		return false
	}
	usage := bytes.TrimSpace(fields["usage"])
	return choices != nil && len(choices) == 0 && len(usage) > 0 && usage[0] == '{'
}

var finishKey = []byte(`"finish_reason"`)

// hasFinish tells whether a choice finishes in the event.
func hasFinish(event []byte) bool {
	for {
		_, after, found := bytes.Cut(event, finishKey)
		if !found {
			return false
		}
		value := bytes.TrimLeft(after, " \t\r\n:")
		if len(value) > 0 && value[0] == '"' {
			return true
		}
		event = after
	}
}
