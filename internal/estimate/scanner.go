package estimate

import "bytes"

// Scanner counts features of the text in a JSON request body, in one pass and
// without keeping any of it. Its zero value is ready for use. It allocates
// nothing, and is not safe for concurrent use.
//
// It is lenient: JSON that is broken gives some count and never an error.
// What counts as text are all strings that are not object keys, with their
// escapes undone, and the object keys from depth 4 on, which are in the parts
// of messages and in tools. Protocol words such as "role" values are not told
// from text: they come in proportion to what a template adds around a message,
// and a model's weights make up for the difference.
//
// Media are left out of the text and counted; see [Features.Media].
type Scanner struct {
	counts // so far

	// Structure, outside strings.
	containers uint64 // one bit for each open container, the innermost lowest: 1 is an object; deeper than 64 is forgotten
	depth      int    // open containers
	json       bool   // the body began as JSON does
	alien      bool   // the body began otherwise: nothing is looked at
	wantsKey   bool   // the next string is a key
	inNumber   bool   // or another bare word

	// The string being read, if any.
	kind    kind
	escaped bool    // its last byte was an unpaired backslash
	name    keyName // the last key read: what the value after it is for
	parent  keyName // the key of the innermost object
	letters keyText // of the key being read
	decode  decoding
	run     run
	probe   probe
}

// counts are the features while they are counted.
type counts struct {
	n          [numFeatures]int64
	bytes      int64
	blank      int64
	mediaBytes int64
}

// kind is what is done with the bytes of a string.
type kind uint8

const (
	none      kind = iota // outside strings
	plainText             // counted
	keyString             // a key, which is told apart and, when it is deep enough, counted
	unsettled             // counted for now; may yet be a medium
	medium                // left out
)

// deep is the depth from which keys count as text: 1 is the body, 2 and 3 are
// the messages, and what is deeper is shown to the model by most templates.
const deep = 4

// Reset makes the Scanner ready for another body.
func (s *Scanner) Reset() { *s = Scanner{} }

// Features returns what was seen so far.
func (s *Scanner) Features() Features {
	if !s.json {
		return Features{}
	}
	f := Features{bytes: s.bytes, blank: s.blank, mediaBytes: s.mediaBytes, known: true}
	for i, n := range s.n {
		f.x[i] = float64(n)
	}
	f.x[one] = 1
	return f
}

// Write looks at the next bytes of the body, cut anywhere, of which it keeps nothing.
func (s *Scanner) Write(p []byte) {
	for i := 0; i < len(p) && !s.alien; {
		if s.kind == none {
			i = s.structure(p, i)
			continue
		}
		end := s.stringEnd(p, i)
		s.piece(p[i:end])
		if end < len(p) {
			s.end()
			end++
		}
		i = end
	}
}

// structure reads what is outside strings from p[i] on, up to and including
// the quote that begins one, and returns where it stopped.
func (s *Scanner) structure(p []byte, i int) int {
	for ; i < len(p); i++ {
		c := p[i]
		bare := false
		switch c {
		case ' ', '\n', '\r', '\t':
		case '"':
			s.inNumber = false
			if s.alien = !s.json; !s.alien {
				s.begin()
			}
			return i + 1
		case '{', '[':
			s.json = true
			s.depth++
			s.containers <<= 1
			s.wantsKey = c == '{'
			if s.wantsKey {
				s.containers |= 1
				s.parent = s.name
			}
		case '}', ']':
			s.depth = max(s.depth-1, 0)
			s.containers >>= 1
			s.wantsKey = false
		case ',':
			s.wantsKey = s.containers&1 != 0
		case ':':
			s.wantsKey = false
		default:
			if s.alien = !s.json; s.alien {
				return len(p)
			}
			bare = true
			if (c-'0' <= 9 || c == '-') && !s.inNumber {
				s.n[numbers]++
			}
		}
		s.inNumber = bare
	}
	return i
}

// begin enters a string.
func (s *Scanner) begin() {
	s.run = run{}
	s.decode = decoding{}
	if s.wantsKey {
		s.wantsKey = false
		s.kind = keyString
		s.letters = keyText{}
		if s.depth >= deep {
			s.n[keys]++
		}
		return
	}
	s.kind = unsettled
	s.probe.left, s.probe.begun, s.probe.seen = possible(s.name, s.parent), false, 0
	s.n[values]++
}

// stringEnd returns where in p, from i on, the quote is that ends the string;
// len(p) when it is not in p.
func (s *Scanner) stringEnd(p []byte, i int) int {
	if s.escaped {
		i++ // the byte that the piece before escaped
	}
	for i < len(p) {
		q := bytes.IndexByte(p[i:], '"')
		if q < 0 {
			break
		}
		q += i
		if q == i || p[q-1] != '\\' || !oddBackslashes(p[i:q]) {
			s.escaped = false
			return q
		}
		i = q + 1
	}
	s.escaped = oddBackslashes(p[i:])
	return len(p)
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

// piece reads bytes of the string's inside.
func (s *Scanner) piece(p []byte) {
	switch s.kind {
	case keyString:
		s.letters.add(p)
		if s.depth < deep {
			return
		}
	case unsettled:
		if p = s.settle(p); len(p) == 0 {
			return
		}
	case medium:
		s.mediaBytes += int64(len(p))
		return
	}
	s.text(p)
}

// end leaves the string.
func (s *Scanner) end() {
	if s.kind == keyString {
		s.name = s.letters.name()
	}
	s.decode.flush(s)
	s.kind = none
}
