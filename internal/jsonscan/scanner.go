package jsonscan

import "errors"

// MaxDepth is how deep objects and arrays may be nested.
const MaxDepth = 512

// What Err returns.
var (
	ErrSyntax = errors.New("malformed JSON")
	ErrDepth  = errors.New("JSON nested deeper than 512")
)

// Scanner follows one document at a time. The zero value must be Reset before
// its first use. It is not safe for concurrent use.
type Scanner struct {
	shape *Shape
	trail *Trail // being laid, or nil
	err   error
	// token holds the beginning of a key or value that a piece of the document
	// broke off; it is made at the first such break and then kept.
	token []byte
	lit   string // rest of a literal that is being read
	start int64  // place of the token's first byte
	pos   int64  // place of the first byte of the piece being read

	depth   int // open containers
	matched int // how many of them, from the outside, are on a wanted path
	state   state
	next    int16 // node of the value that comes next, or none
	litKind Kind
	escaped bool                  // the string's last byte was an unpaired backslash
	empty   bool                  // the innermost container has had no element yet
	objects [MaxDepth / 64]uint64 // which containers are objects
	nodes   [maxPath + 1]int16    // nodes of the matched ones
}

type state uint8

const (
	wantValue state = iota
	wantValueOrEnd
	wantKey
	wantKeyOrEnd
	wantColon
	wantCommaOrEnd
	inKey
	inString
	inNumber
	inLiteral
	atEnd
)

// Reset begins a new document of the given shape.
func (s *Scanner) Reset(shape *Shape) {
	s.shape = shape
	s.err = nil
	s.pos = 0
	s.depth, s.matched = 0, 0
	s.state = wantValue
	s.next = 0
	s.escaped = false
	s.token = s.token[:0]
}

// Offset returns how many bytes have been read, up to the first that is wrong.
func (s *Scanner) Offset() int64 { return s.pos }

// Err returns why the document cannot be read on; nil so far.
func (s *Scanner) Err() error { return s.err }

// Done tells whether one whole document, and nothing after it but white space,
// has been read. A document that is a bare number is whole at its end, which
// only the caller knows.
func (s *Scanner) Done() bool {
	return s.err == nil && (s.state == atEnd || s.state == inNumber && s.depth == 0)
}

// Write reads the next piece of the document and reports to h the wanted values
// that end in it. After an error it does nothing. It keeps no part of b.
func (s *Scanner) Write(b []byte, h Handler) {
	if s.err != nil {
		return
	}
	i := 0
	for i < len(b) {
		if s.state >= inKey && s.state <= inLiteral {
			if i = s.readToken(b, i, h); s.err != nil {
				s.pos += int64(i)
				return
			}
			continue
		}
		c := b[i]
		if c <= ' ' {
			if c == ' ' || c == '\n' || c == '\r' || c == '\t' {
				i++
				continue
			}
			s.fail(i)
			return
		}
		ok := false
		switch s.state {
		case wantCommaOrEnd:
			if c != ',' {
				ok = s.close(c, i, h)
				break
			}
			ok = true
			if s.inObject() {
				s.state = wantKey
			} else {
				s.state = wantValue
				s.next = s.element()
			}
		case wantKeyOrEnd, wantKey:
			if c == '"' {
				s.start = s.pos + int64(i) + 1
				s.state = inKey
				if i = s.readString(b, i+1, h); s.state == wantColon && i < len(b) && b[i] == ':' {
					s.state = wantValue
					i++
				}
				continue
			}
			if s.state == wantKeyOrEnd {
				ok = s.close(c, i, h)
			}
		case wantColon:
			if c == ':' {
				s.state = wantValue
				ok = true
			}
		case wantValueOrEnd:
			if c == ']' {
				ok = s.close(c, i, h)
			} else {
				ok = s.open(c, i, h)
			}
		case wantValue:
			ok = s.open(c, i, h)
		}
		if !ok {
			s.fail(i)
			return
		}
		if s.state != inNumber { // a number begins with the byte that tells it
			i++
		}
	}
	s.pos += int64(i)
}

// readToken reads on in a key or scalar, and returns where it stopped.
func (s *Scanner) readToken(b []byte, i int, h Handler) int {
	switch s.state {
	case inNumber:
		return s.readNumber(b, i, h)
	case inLiteral:
		return s.readLiteral(b, i, h)
	}
	return s.readString(b, i, h)
}

// fail marks the byte at i of the piece as the first that is wrong.
func (s *Scanner) fail(i int) {
	if s.err == nil {
		s.err = ErrSyntax
	}
	s.pos += int64(i)
}

// open begins the value whose first byte is c, at i of the piece.
func (s *Scanner) open(c byte, i int, h Handler) bool {
	s.start = s.pos + int64(i)
	switch c {
	case '"':
		s.start++
		s.state = inString
	case '{':
		return s.push(true, h)
	case '[':
		return s.push(false, h)
	case 't':
		s.literal("rue", True)
	case 'f':
		s.literal("alse", False)
	case 'n':
		s.literal("ull", Null)
	case 'N':
		s.literal("aN", Number)
	case 'I':
		s.literal("nfinity", Number)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		s.state = inNumber
	default:
		return false
	}
	return true
}

func (s *Scanner) literal(rest string, k Kind) {
	s.lit, s.litKind, s.state = rest, k, inLiteral
}

// push enters an object or array.
func (s *Scanner) push(object bool, h Handler) bool {
	if s.depth == MaxDepth {
		s.err = ErrDepth
		return false
	}
	word, bit := s.depth/64, uint64(1)<<(s.depth%64)
	n := s.next
	wanted := s.matched == s.depth && n != none
	if s.trail != nil && !wanted && !object {
		s.trail.unwanted(s.start)
	}
	if wanted {
		s.nodes[s.depth] = n
		s.matched++
		if f := s.shape.nodes[n].field; f != none {
			k := BeginArray
			if object {
				k = BeginObject
			}
			h.Value(Value{Field: int(f), Kind: k, Offset: s.start})
			if s.trail != nil {
				s.trail.mark(k, f, s.start, s.start, false)
			}
		}
	}
	s.depth++
	s.empty = true
	if object {
		s.objects[word] |= bit
		s.state = wantKeyOrEnd
		return true
	}
	s.objects[word] &^= bit
	s.state = wantValueOrEnd
	s.next = s.element()
	return true
}

// close leaves the innermost container if c is its bracket.
func (s *Scanner) close(c byte, i int, h Handler) bool {
	k := EndArray
	switch {
	case s.inObject():
		if c != '}' {
			return false
		}
		k = EndObject
	case c != ']':
		return false
	}
	s.depth--
	if s.matched > s.depth {
		s.matched = s.depth
		if f := s.shape.nodes[s.nodes[s.depth]].field; f != none {
			h.Value(Value{Field: int(f), Kind: k, Empty: s.empty, Offset: s.pos + int64(i)})
			if s.trail != nil {
				s.trail.mark(k, f, s.pos+int64(i), s.pos+int64(i), s.empty)
			}
		}
	}
	s.valueDone()
	return true
}

func (s *Scanner) inObject() bool {
	d := s.depth - 1
	return s.objects[d/64]>>(d%64)&1 != 0
}

// element returns the node of the innermost array's elements.
func (s *Scanner) element() int16 {
	if s.matched < s.depth {
		return none
	}
	return s.shape.nodes[s.nodes[s.depth-1]].elem
}

func (s *Scanner) valueDone() {
	s.empty = false
	if s.depth == 0 {
		s.state = atEnd
		return
	}
	s.state = wantCommaOrEnd
}

// field returns what the scalar being read is wanted as, or none.
func (s *Scanner) field() int16 {
	if s.next == none || s.matched < s.depth {
		return none
	}
	return s.shape.nodes[s.next].field
}
