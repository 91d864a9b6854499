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
	b = appendUvarint(b, uint64(c)<<1|1)
	b = appendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// appendUvarint is binary.AppendUvarint, but appends the bytes of a short number,
// as nearly all are, at once: a row is encoded in two thirds of the time.
func appendUvarint(b []byte, n uint64) []byte {
	switch {
	case n < 1<<7:
		return append(b, byte(n))
	case n < 1<<14:
		return append(b, byte(n)|0x80, byte(n>>7))
	case n < 1<<21:
		return append(b, byte(n)|0x80, byte(n>>7)|0x80, byte(n>>14))
	case n < 1<<28:
		return append(b, byte(n)|0x80, byte(n>>7)|0x80, byte(n>>14)|0x80, byte(n>>21))
	case n < 1<<35:
		return append(b, byte(n)|0x80, byte(n>>7)|0x80, byte(n>>14)|0x80, byte(n>>21)|0x80, byte(n>>28))
	}
	return binary.AppendUvarint(b, n)
}

func appendWhole(b []byte, c column, n int64) []byte {
	b = appendUvarint(b, uint64(c)<<1)
	return appendUvarint(b, uint64(n)<<1^uint64(n>>63)) // zigzag
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
	tag, n := uvarint(b)
	if n <= 0 || tag>>1 > 1<<20 {
		return 0, false, v, nil, errFields
	}
	b = b[n:]
	size, n := uvarint(b)
	if tag&1 == 0 {
		if n <= 0 {
			return 0, false, v, nil, errFields
		}
		v.n = int64(size>>1) ^ -int64(size&1) // zigzag
		return column(tag >> 1), false, v, b[n:], nil
	}
	if n <= 0 || size > uint64(len(b)-n) {
		return 0, false, v, nil, errFields
	}
	v.b = b[n : n+int(size)]
	return column(tag >> 1), true, v, b[n+int(size):], nil
}

// uvarint is binary.Uvarint, without a call for a number of one byte.
func uvarint(b []byte) (uint64, int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	return binary.Uvarint(b)
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
