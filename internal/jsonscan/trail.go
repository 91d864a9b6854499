package jsonscan

// Bounds of a Trail. A document past them is not remembered.
const (
	maxTrail = 1024 // bytes
	maxMarks = 48   // strings, numbers, lists of numbers, and wanted containers' ends
)

// Trail remembers the form of one document: all of its bytes but those inside
// strings and numbers. Documents that a program writes in a row mostly differ
// in nothing else, and to follow the trail of the one before is several times
// quicker than to read each. The zero value remembers nothing.
type Trail struct {
	doc   []byte // the document it was laid by
	marks []mark // in the document's order
	laid  bool   // doc and marks are of one whole document
	over  bool   // the document being read is past the bounds
	idle  uint8  // documents in a row that did not follow; it may run over
	src   []byte // the document being read
	quiet int64  // nothing before this place in it is marked
}

// mark is a place in a document's form where something is reported, or may differ.
type mark struct {
	start, end uint16 // the token in doc; nothing for a container's end
	field      int16  // or none
	kind       Kind
	empty      bool
}

// After giveUp documents in a row that did not follow, a trail is laid by each
// retry-th one only.
const (
	giveUp = 16
	retry  = 32
)

// Lay reads b, a whole document, like a Reset and a Write of s would, and
// remembers its form if it is well-formed.
func (t *Trail) Lay(s *Scanner, shape *Shape, b []byte, h Handler) {
	s.Reset(shape)
	t.idle++
	t.laid, t.over = false, false
	if len(b) > maxTrail || t.idle > giveUp && t.idle%retry != 0 {
		s.Write(b, h)
		return
	}
	if t.marks == nil {
		t.marks = make([]mark, 0, maxMarks/2)
	}
	t.marks, t.src, t.quiet = t.marks[:0], b, 0
	s.trail = t
	s.Write(b, h)
	s.trail, t.src = nil, nil
	if s.state == atEnd && s.err == nil && !t.over {
		t.doc = append(t.doc[:0], b...)
		t.laid = true
	}
}

// Follow reports to h what a Scanner would report of b, if b has the form that
// is remembered; if not it reports nothing and returns false.
func (t *Trail) Follow(b []byte, h Handler) bool {
	if !t.laid {
		return false
	}
	// ends[i] is where token i ends in b; shift is how far b has come apart from doc.
	var ends [maxMarks]int32
	at, from := 0, 0 // in b and in doc
	for i := range t.marks {
		m := &t.marks[i]
		fixed := t.doc[from:m.start]
		to := at + len(fixed)
		if to > len(b) || string(b[at:to]) != string(fixed) {
			return false
		}
		at, from = to, int(m.end)
		switch m.kind {
		case String:
			n := StringEnd(b[at:])
			if n < 0 {
				return false
			}
			at += n
		case Number:
			start := at
			for at < len(b) && numeric[b[at]] {
				at++
			}
			if at == start || !starts[b[start]] {
				return false
			}
		case EndArray:
			if m.field == none {
				n := numbers(b[at:])
				if n < 0 {
					return false
				}
				at += n
			}
		}
		ends[i] = int32(at)
	}
	if string(b[at:]) != string(t.doc[from:]) {
		return false
	}
	t.idle = 0
	at, from = 0, 0
	for i := range t.marks {
		m := &t.marks[i]
		start, end := at+int(m.start)-from, int(ends[i])
		at, from = end, int(m.end)
		if m.field == none {
			continue
		}
		v := Value{Field: int(m.field), Kind: m.kind, Empty: m.empty, Offset: int64(start)}
		if m.kind == String || m.kind == Number {
			v.Raw = b[start:min(end, start+MaxRaw)]
			v.Len = int64(end - start)
		}
		h.Value(v)
	}
	return true
}

// mark notes a place of the document being read, whose bytes are start … end.
func (t *Trail) mark(k Kind, field int16, start, end int64, empty bool) {
	if start < t.quiet {
		return
	}
	if len(t.marks) == maxMarks {
		t.over = true
		return
	}
	t.marks = append(t.marks, mark{start: uint16(start), end: uint16(end), field: field, kind: k, empty: empty})
}

// unwanted notes an array that is not wanted, and begins at start: if there is
// nothing but numbers in it, the next document may have other ones, and more.
func (t *Trail) unwanted(start int64) {
	if start < t.quiet {
		return
	}
	if n := numbers(t.src[start:]); n > 0 {
		t.mark(EndArray, none, start, start+int64(n), false)
		t.quiet = start + int64(n)
	}
}

// numbers returns the length of the array that b begins with, -1 unless it is
// whole and holds only numbers, without white space but for one space after a
// comma.
func numbers(b []byte) int {
	if len(b) < 2 || b[0] != '[' {
		return -1
	}
	if b[1] == ']' {
		return 2
	}
	for i := 1; ; {
		from := i
		for i < len(b) && numeric[b[i]] {
			i++
		}
		if i == from || i == len(b) || !starts[b[from]] {
			return -1
		}
		switch b[i] {
		case ']':
			return i + 1
		case ',':
			if i++; i < len(b) && b[i] == ' ' {
				i++
			}
		default:
			return -1
		}
	}
}

// starts are the bytes that numbers begin with.
var starts = [256]bool{'0': true, '1': true, '2': true, '3': true, '4': true, '5': true, '6': true, '7': true,
	'8': true, '9': true, '-': true}
