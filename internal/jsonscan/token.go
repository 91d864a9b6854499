package jsonscan

import "bytes"

// StringEnd returns where in b, which begins inside a string, the string's
// closing quote is; -1 when it is not in b.
func StringEnd(b []byte) int {
	for i := 0; ; {
		q := bytes.IndexByte(b[i:], '"')
		if q < 0 {
			return -1
		}
		if q == 0 || b[i+q-1] != '\\' || !oddBackslashes(b[i:i+q]) {
			return i + q
		}
		i += q + 1
	}
}

// oddBackslashes tells whether b ends in an odd number of backslashes: the last
// one then escapes what follows.
func oddBackslashes(b []byte) bool {
	n := len(b)
	for n > 0 && b[n-1] == '\\' {
		n--
	}
	return (len(b)-n)&1 != 0
}

// readString reads on in a key or string from i of the piece, and returns
// where it stopped.
func (s *Scanner) readString(b []byte, i int, h Handler) int {
	from := i
	if s.escaped {
		s.escaped = false
		i++
	}
	q := StringEnd(b[i:])
	if q < 0 {
		s.escaped = oddBackslashes(b[i:])
		if s.state == inKey || s.field() != none {
			s.keep(b[from:])
		}
		return len(b)
	}
	end := i + q
	if s.state == inKey {
		s.next = none
		if s.matched == s.depth {
			n := &s.shape.nodes[s.nodes[s.depth-1]]
			if length := s.pos + int64(end) - s.start; length <= MaxRaw {
				s.next = n.findEscaped(s.raw(b[from:end]))
			}
		}
		s.token = s.token[:0]
		s.state = wantColon
		return end + 1
	}
	f := s.field()
	if s.trail != nil {
		s.trail.mark(String, f, s.start, s.pos+int64(end), false)
	}
	if f != none {
		h.Value(Value{Field: int(f), Kind: String, Raw: s.raw(b[from:end]),
			Len: s.pos + int64(end) - s.start, Offset: s.start})
		s.token = s.token[:0]
	}
	s.valueDone()
	return end + 1
}

// readNumber reads on in a number from i of the piece, and returns where it stopped.
func (s *Scanner) readNumber(b []byte, i int, h Handler) int {
	from := i
	for i < len(b) && numeric[b[i]] {
		i++
	}
	f := s.field()
	if i == len(b) {
		if f != none {
			s.keep(b[from:])
		}
		return i
	}
	length := s.pos + int64(i) - s.start
	if b[i] == 'I' && length == 1 { // -Infinity; a lone digit before it passes too
		s.token = s.token[:0]
		s.literal("Infinity", Number)
		return i
	}
	if s.trail != nil {
		s.trail.mark(Number, f, s.start, s.pos+int64(i), false)
	}
	if f != none {
		h.Value(Value{Field: int(f), Kind: Number, Raw: s.raw(b[from:i]), Len: length, Offset: s.start})
		s.token = s.token[:0]
	}
	s.valueDone()
	return i
}

// numeric are the bytes of numbers.
var numeric = [256]bool{'0': true, '1': true, '2': true, '3': true, '4': true, '5': true, '6': true, '7': true,
	'8': true, '9': true, '.': true, '-': true, '+': true, 'e': true, 'E': true}

// readLiteral reads on in true, false, null and their like.
func (s *Scanner) readLiteral(b []byte, i int, h Handler) int {
	n := min(len(s.lit), len(b)-i)
	if string(b[i:i+n]) != s.lit[:n] {
		for b[i] == s.lit[0] {
			i++
			s.lit = s.lit[1:]
		}
		s.err = ErrSyntax
		return i
	}
	if s.lit = s.lit[n:]; s.lit == "" {
		if f := s.field(); f != none {
			h.Value(Value{Field: int(f), Kind: s.litKind, Offset: s.start})
			if s.trail != nil {
				// Part of the form: only the report is noted.
				s.trail.mark(s.litKind, f, s.start, s.start, false)
			}
		}
		s.valueDone()
	}
	return i + n
}

// keep adds to the beginning of a token that goes on in the next piece.
func (s *Scanner) keep(b []byte) {
	if room := MaxRaw - len(s.token); len(b) > room {
		b = b[:room]
	}
	s.token = append(s.token, b...)
}

// raw returns the whole token of which last is the end, cut to MaxRaw.
func (s *Scanner) raw(last []byte) []byte {
	if len(s.token) > 0 {
		s.keep(last)
		return s.token
	}
	return last[:min(len(last), MaxRaw)]
}

// findEscaped is find for a key as it is written.
func (n *node) findEscaped(raw []byte) int16 {
	if bytes.IndexByte(raw, '\\') < 0 {
		return n.find(raw)
	}
	var room [MaxRaw]byte
	return n.find(Unescape(room[:0], raw))
}
