package ledger

import (
	"encoding/binary"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/weirgate/weir/internal/call"
)

// The fields of a start or a row are written one after the other, each as
//
//	tag    uvarint: the column's number times 2, plus 1 for text
//	value  text: its length as uvarint, then its bytes; else a zigzag varint
//
// so that a reader can step over columns that it does not know.

const (
	// maxText is the most bytes kept of one text. Names from outside are held
	// to call.MaxName before; this bounds a path.
	maxText = 512
	// maxFinish is the same for the finish reasons of several choices.
	maxFinish = 4096
	// maxTokens is the most tokens believed of one call. It takes 2²⁷ such calls
	// to overflow a sum.
	maxTokens = 1 << 36
)

var errFields = errors.New("fields of a spill entry are cut short")

// value is one field: text in b, or a number in n.
type value struct {
	b []byte
	n int64
}

func (v value) text() string { return string(v.b) }

// appendText leaves an empty text out: it is unknown.
func appendText(b []byte, c column, s string) []byte {
	if s == "" {
		return b
	}
	if len(s) > maxText && c != colFinish && c != colSurroundings {
		s = s[:maxText]
	}
	if !utf8.ValidString(s) {
		// Readers of the database in other languages fail on such text.
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	b = binary.AppendUvarint(b, uint64(c)<<1|1)
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendWhole(b []byte, c column, n int64) []byte {
	b = binary.AppendUvarint(b, uint64(c)<<1)
	return binary.AppendVarint(b, n)
}

func appendBool(b []byte, c column, yes bool) []byte {
	if yes {
		return appendWhole(b, c, 1)
	}
	return appendWhole(b, c, 0)
}

func appendCount(b []byte, c column, n call.Count) []byte {
	if v, known := n.Get(); known {
		return appendWhole(b, c, v)
	}
	return b
}

// appendTokens leaves out what cannot be a number of tokens: an upstream may
// report anything, and sums must not overflow.
func appendTokens(b []byte, c column, n call.Count) []byte {
	if v, known := n.Get(); known && v >= 0 && v <= maxTokens {
		return appendWhole(b, c, v)
	}
	return b
}

func appendSpan(b []byte, c column, d call.Duration) []byte {
	if v, known := d.Get(); known {
		return appendWhole(b, c, int64(v))
	}
	return b
}

// nextField takes one field off b. The column may be one that this version does
// not know.
func nextField(b []byte) (c column, isText bool, v value, rest []byte, err error) {
	tag, n := binary.Uvarint(b)
	if n <= 0 || tag>>1 > 1<<20 {
		return 0, false, v, nil, errFields
	}
	b = b[n:]
	if tag&1 == 0 {
		if v.n, n = binary.Varint(b); n <= 0 {
			return 0, false, v, nil, errFields
		}
		return column(tag >> 1), false, v, b[n:], nil
	}
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return 0, false, v, nil, errFields
	}
	v.b = b[n : n+int(size)]
	return column(tag >> 1), true, v, b[n+int(size):], nil
}

// known tells whether c is a column of this version, and of that kind.
func (c column) known(isText bool) bool {
	return c > 0 && c < colEnd && (columns[c].kind == text) == isText
}

// identity reads what tells the row or start in b apart. Both forms begin with
// the id and the attempt.
func identity(b []byte) (id []byte, attempt int64, err error) {
	c, _, v, b, err := nextField(b)
	if err != nil || c != colID {
		return nil, 0, errFields
	}
	id = v.b
	c, _, v, _, err = nextField(b)
	if err != nil || c != colAttempt {
		return nil, 0, errFields
	}
	return id, v.n, nil
}
