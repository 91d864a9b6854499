package meter

import (
	"bytes"
	"net/http"
	"strings"
)

// framing is how the answer's bytes are cut into events.
type framing uint8

const (
	undecided   framing = iota
	eventStream         // server-sent events
	lineStream          // one JSON value a line
	document            // one JSON value, an array of events (Gemini), or a transcript as text
	audioStream         // raw audio: every piece is output
	foreign             // none of these: not the dialect's answer
)

// mediaType returns the answer's media type in lower case, without parameters.
func mediaType(h http.Header) string {
	var v string
	if values := h["Content-Type"]; len(values) > 0 {
		v = values[0]
	}
	if i := strings.IndexByte(v, ';'); i >= 0 {
		v = v[:i]
	}
	return strings.ToLower(strings.TrimSpace(v))
}

var byteOrderMark = []byte("\ufeff")

// decide picks the framing from the media type and the first bytes of the body,
// and returns what is to be read. The bytes overrule the type: relays send
// errors as JSON under text/event-stream, and streams under application/json.
// Bytes that do not tell yet are held in m.head until others follow.
func (m *Meter) decide(b []byte) []byte {
	if m.dialect.Audio() && (strings.HasPrefix(m.mediaType, "audio/") || m.mediaType == "application/octet-stream") {
		m.framing = audioStream
		return b
	}
	if m.dialect.PlainText() && m.plainText() {
		m.framing = document
		return b
	}
	if len(m.head) > 0 {
		b = append(m.head, b...)
	}
	if len(b) < len(byteOrderMark) && bytes.HasPrefix(byteOrderMark, b) {
		m.head = append(m.head[:0], b...)
		return nil
	}
	// White space before the body, and a byte order mark, mean nothing in JSON;
	// an event stream may begin with blank lines.
	begin := bytes.TrimPrefix(b, byteOrderMark)
	rest := bytes.TrimLeft(begin, " \t\r\n")
	space := begin[:len(begin)-len(rest)]
	if len(rest) == 0 {
		m.head = shortened(space)
		return nil
	}
	lines := m.dialect.LineDelimited() && m.request.Stream
	switch m.mediaType {
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines", "application/stream+json":
		lines = true
	}
	switch c := rest[0]; {
	case c == '{' && lines:
		m.framing = lineStream
	case c == '{' || c == '[':
		m.framing = document
	case c == '<':
		m.framing = foreign
	case m.mediaType == "text/event-stream":
		m.framing = eventStream
		return begin
	default:
		is, open := looksLikeEvents(rest)
		switch {
		case is:
			m.framing = eventStream
			return begin
		case open:
			m.head = append(shortened(space), rest...)
			return nil
		}
		m.framing = foreign
	}
	return rest
}

// undecidable settles the framing of a body that ended before it told.
func (m *Meter) undecidable() {
	if m.framing == undecided && len(bytes.TrimSpace(m.head)) > 0 && m.mediaType != "text/event-stream" {
		m.framing = foreign
	}
}

// shortened returns white space that means the same at the start of a body: a
// blank line for all of them, one space before what comes next.
func shortened(space []byte) []byte {
	short := make([]byte, 0, 8)
	last := bytes.LastIndexAny(space, "\r\n")
	if last >= 0 {
		short = append(short, '\n')
	}
	if last+1 < len(space) {
		short = append(short, ' ')
	}
	return short
}

// plainText tells whether the answer is text for people, as a transcript asked
// for as text or subtitles is.
func (m *Meter) plainText() bool {
	switch m.mediaType {
	case "text/plain", "text/vtt", "text/srt", "application/x-subrip":
		return true
	}
	return false
}

// looksLikeEvents tells whether a body of another type begins as an event
// stream does, with a comment or a field; open is that more bytes must tell.
func looksLikeEvents(b []byte) (is, open bool) {
	if b[0] == ':' {
		return true, false
	}
	for _, field := range [...]string{"data:", "event:", "id:", "retry:"} {
		n := min(len(field), len(b))
		if string(b[:n]) == field[:n] {
			return n == len(field), n < len(field)
		}
	}
	return false, false
}

// streamed tells whether the answer came as a stream; without an answer,
// whether one was asked for.
func (m *Meter) streamed() bool {
	switch m.framing {
	case eventStream, lineStream, audioStream:
		return true
	case document:
		return m.dialect.StreamsJSON() && m.request.Stream && m.status < 400
	case foreign:
		return false
	}
	if m.status >= 400 {
		return false
	}
	return m.request.Stream || m.mediaType == "text/event-stream"
}
