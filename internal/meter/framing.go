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
	document            // one JSON value, or an array of events (Gemini)
	audioStream         // raw audio: every piece is output
	foreign             // none of these: not the dialect's answer
)

// mediaType returns the answer's media type in lower case, without parameters.
func mediaType(h http.Header) string {
	v := h.Get("Content-Type")
	if i := strings.IndexByte(v, ';'); i >= 0 {
		v = v[:i]
	}
	return strings.ToLower(strings.TrimSpace(v))
}

var byteOrderMark = []byte("\ufeff")

// decide picks the framing from the media type and the first byte of the body,
// and returns what is to be read. The bytes overrule the type: relays send
// errors as JSON under text/event-stream, and streams under application/json.
func (m *Meter) decide(b []byte) []byte {
	if m.dialect.Audio() && (strings.HasPrefix(m.mediaType, "audio/") || m.mediaType == "application/octet-stream") {
		m.framing = audioStream
		return b
	}
	// White space before the body, and a byte order mark, mean nothing in JSON;
	// an event stream may begin with blank lines.
	rest := bytes.TrimLeft(bytes.TrimPrefix(b, byteOrderMark), " \t\r\n")
	if len(rest) == 0 {
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
	case m.mediaType == "text/event-stream", looksLikeEvents(rest):
		m.framing = eventStream
		return b // the parser wants its byte order mark
	default:
		m.framing = foreign
	}
	return rest
}

// looksLikeEvents tells whether a body of another type begins as an event stream does.
func looksLikeEvents(b []byte) bool {
	if b[0] == ':' {
		return true
	}
	for _, field := range []string{"data", "event", "id", "retry"} {
		if n := min(len(field), len(b)); string(b[:n]) == field[:n] {
			return true
		}
	}
	return false
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
