package estimate

// decoding is an escape or a UTF-8 character of which not all bytes have come.
// The zero value is between characters.
//
// Bytes of text are counted as they come; here only the difference is, between
// an escape and what it stands for.
type decoding struct {
	kind  decodingKind
	need  uint8  // continuation bytes or hexadecimal digits to come
	value uint32 // so far
	high  uint32 // the first half of a surrogate pair, or 0
}

type decodingKind uint8

const (
	between     decodingKind = iota
	inUTF8                   // continuation bytes are missing
	inEscape                 // after a backslash
	inHex                    // in the digits of \uXXXX
	inSurrogate              // after the first half of a pair: the backslash of the second is missing
)

// begin takes a backslash or a byte from 0x80 on.
func (d *decoding) begin(s *Scanner, c byte) {
	switch {
	case c == '\\':
		d.kind = inEscape
	case c&0xe0 == 0xc0:
		d.kind, d.need, d.value = inUTF8, 1, uint32(c&0x1f)
	case c&0xf0 == 0xe0:
		d.kind, d.need, d.value = inUTF8, 2, uint32(c&0x0f)
	case c&0xf8 == 0xf0:
		d.kind, d.need, d.value = inUTF8, 3, uint32(c&0x07)
	default: // a continuation without a beginning
		s.broken()
	}
}

// next takes a byte of what is open, and tells whether it belonged to it.
func (d *decoding) next(s *Scanner, c byte) bool {
	switch {
	case d.kind == inUTF8 && c&0xc0 == 0x80:
		d.value = d.value<<6 | uint32(c&0x3f)
		if d.need--; d.need == 0 {
			d.kind = between
			s.rune(d.value)
		}
		return true
	case d.kind == inSurrogate && c == '\\':
		d.kind = inEscape
		return true
	case d.kind == inHex && hex[c] < 16:
		d.value = d.value<<4 | uint32(hex[c])
		if d.need--; d.need == 0 {
			d.unit(s)
		}
		return true
	case d.kind == inEscape && c == 'u':
		d.kind, d.need, d.value = inHex, 4, 0
		return true
	case d.kind == inEscape && d.high == 0 && c < 0x80:
		d.kind = between
		s.bytes--
		s.char(unescaped[c])
		return true
	case d.kind == inEscape && d.high != 0: // another escape than the pair's second half
		s.broken()
		*d = decoding{kind: inEscape}
		return false
	}
	d.flush(s)
	return false
}

// unit takes the value of a whole \uXXXX, which is one unit of UTF-16.
func (d *decoding) unit(s *Scanner) {
	v, high := d.value, d.high
	*d = decoding{}
	low := v >= 0xdc00 && v < 0xe000
	if high != 0 {
		if low {
			s.bytes += 4 - 12
			s.rune(0x10000 + (high-0xd800)<<10 + (v - 0xdc00))
			return
		}
		s.broken()
	}
	switch {
	case low:
		s.broken()
	case v >= 0xd800 && v < 0xdc00:
		d.kind, d.high = inSurrogate, v
	default:
		s.bytes += size(v) - 6
		s.rune(v)
	}
}

// flush ends what is open before it is whole.
func (d *decoding) flush(s *Scanner) {
	if d.kind != between {
		*d = decoding{}
		s.broken()
	}
}

// size returns how many bytes a character takes in UTF-8, of those that one
// \uXXXX can write.
func size(r uint32) int64 {
	switch {
	case r < 0x80:
		return 1
	case r < 0x800:
		return 2
	}
	return 3
}

// hex are the values of the hexadecimal digits, 16 for other characters.
var hex = func() (of [256]uint8) {
	for c := range of {
		of[c] = 16
	}
	for v, c := range "0123456789abcdef" {
		of[c] = uint8(v)
	}
	for v, c := range "ABCDEF" {
		of[c] = uint8(10 + v)
	}
	return of
}()

// unescaped is what a backslash and the character stand for: the character
// itself but for a few.
var unescaped = func() (of [256]byte) {
	for c := range of {
		of[c] = byte(c)
	}
	of['n'], of['r'], of['t'], of['b'], of['f'] = '\n', '\r', '\t', '\b', '\f'
	return of
}()

// escapedScripts is the script of what a backslash and the byte stand for;
// byteRuns where more bytes must come, and for what no one escapes.
var escapedScripts = func() (of [256]script) {
	for c := range of {
		of[c] = scripts[unescaped[c]]
		switch {
		case c == '\\':
			of[c] = signRun
		case of[c] == smallRun:
			of[c] = byteRuns
		}
	}
	return of
}()
