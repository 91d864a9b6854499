package jsonscan

// Kind says what a Value is.
type Kind uint8

const (
	Null Kind = iota
	False
	True
	Number
	String
	BeginObject
	EndObject
	BeginArray
	EndArray
)

// MaxRaw is the number of bytes of a string or number that a Value carries.
const MaxRaw = 1024

// Value is one wanted value, or the beginning or end of a wanted object or array.
type Value struct {
	Field int  // index of its path in Compile
	Kind  Kind // a container is reported at both of its ends
	// Empty tells, at the end of an object or array, that it had no elements.
	Empty bool
	// Raw is a string's inside, still escaped, or a number as written; the
	// first MaxRaw bytes when it is longer. It is valid during the call only.
	Raw []byte
	// Len is the whole length of what Raw holds the beginning of, in bytes.
	Len int64
	// Offset is the place in the document of the value's first byte: of a
	// string the byte after the quote, at the end of a container its bracket.
	Offset int64
}

// Text tells whether the value is a string of at least one character.
func (v *Value) Text() bool { return v.Kind == String && v.Len > 0 }

// Handler takes the wanted values of a document, in the document's order. When
// the document turns out to be malformed, what was reported before stands.
type Handler interface {
	Value(v Value)
}
