package endpoint

import "bytes"

// cursor walks over the members of a JSON object, or the elements of an array,
// and holds the bytes of one at a time. It reads no deeper than it is asked to, allocates
// nothing, and is made for documents that are mostly well formed: of others it
// shows what it makes of them, and never passes their end.
type cursor struct {
	b     []byte // what is left of the document, from inside the container
	close byte   // the container's closing bracket
	key   []byte // of a member, still escaped, without its quotes
	value []byte
	begun bool
	whole bool // the closing bracket has been reached
	rest  []byte
}

// objectOf walks over an object; over nothing when doc is none.
func objectOf(doc []byte) cursor { return container(doc, '{', '}') }

// arrayOf walks over an array; over nothing when doc is none.
func arrayOf(doc []byte) cursor { return container(doc, '[', ']') }

func container(doc []byte, open, close byte) cursor {
	doc = space(doc)
	if len(doc) == 0 || doc[0] != open {
		return cursor{}
	}
	return cursor{b: doc[1:], close: close}
}

// next goes on to the next member or element; false when there is none.
func (c *cursor) next() bool {
	b := space(c.b)
	if c.begun && len(b) > 0 && b[0] == ',' {
		b = space(b[1:])
	}
	c.begun = true
	if len(b) == 0 {
		c.b = nil
		return false
	}
	if b[0] == c.close {
		c.whole, c.rest, c.b = true, b[1:], nil
		return false
	}
	if c.close == '}' {
		n := stringEnd(b)
		if n < 0 {
			c.b = nil
			return false
		}
		c.key = b[1 : n-1]
		b = space(b[n:])
		if len(b) == 0 || b[0] != ':' {
			c.b = nil
			return false
		}
		b = space(b[1:])
	}
	n := valueEnd(b)
	if n <= 0 {
		c.b = nil
		return false
	}
	c.value, c.b = b[:n], b[n:]
	return true
}

// ended tells, after the last member, whether the container was closed and
// nothing but white space came after it.
func (c *cursor) ended() bool { return c.whole && len(space(c.rest)) == 0 }

// space returns b without white space at its beginning.
func space(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\n' || b[0] == '\r' || b[0] == '\t') {
		b = b[1:]
	}
	return b
}

// stringEnd returns the length of the string that b begins with, quotes
// included; -1 when it begins with none, or it does not end.
func stringEnd(b []byte) int {
	if len(b) == 0 || b[0] != '"' {
		return -1
	}
	for i := 1; i < len(b); {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		end := i + n
		slashes := 0
		for b[end-1-slashes] == '\\' { // stops at the opening quote
			slashes++
		}
		if slashes%2 == 0 {
			return end + 1
		}
		i = end + 1
	}
	return -1
}

// valueEnd returns the length of the value that b begins with; -1 when it does
// not end. A number or word ends before what cannot be part of it.
func valueEnd(b []byte) int {
	if len(b) == 0 {
		return -1
	}
	switch b[0] {
	case '"':
		return stringEnd(b)
	case '{', '[':
		return containerEnd(b)
	}
	for i, c := range b {
		switch c {
		case ',', '}', ']', ' ', '\n', '\r', '\t', ':', '"', '{', '[':
			return i
		}
	}
	return len(b)
}

// containerEnd returns the length of the object or array that b begins with; -1
// when it does not end. Which kind of bracket closes which is not looked at.
func containerEnd(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			n := stringEnd(b[i:])
			if n < 0 {
				return -1
			}
			i += n - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// isText tells whether a value is a string of at least one character.
func isText(value []byte) bool { return len(value) > 2 && value[0] == '"' }

// isFull tells whether a value is an object or array that is not empty.
func isFull(value []byte) bool {
	if len(value) < 2 || value[0] != '{' && value[0] != '[' {
		return false
	}
	return len(space(value[1:len(value)-1])) > 0
}

// isNull tells whether a value is null.
func isNull(value []byte) bool { return string(value) == "null" }

// count returns a value as a whole number from 0 to 2^31 − 1; false when it is
// none.
func count(value []byte) (int32, bool) {
	if len(value) == 0 || len(value) > 10 {
		return 0, false
	}
	n := int64(0)
	for _, c := range value {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if n > 1<<31-1 {
		return 0, false
	}
	return int32(n), true
}
