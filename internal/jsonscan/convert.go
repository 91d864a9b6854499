package jsonscan

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Unescape appends to dst the text that a string's Raw stands for. What is not
// a good escape, such as one cut off at the end, is left as it is written; a
// lone surrogate becomes U+FFFD. It allocates only to grow dst, and what it
// appends is never longer than raw.
func Unescape(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		if raw[i] != '\\' || i+1 == len(raw) {
			dst = append(dst, raw[i])
			i++
			continue
		}
		switch c := raw[i+1]; c {
		case '"', '\\', '/':
			dst = append(dst, c)
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, ok := hex4(raw[i+2:])
			if !ok {
				dst = append(dst, raw[i])
				i++
				continue
			}
			i += 6
			if utf16.IsSurrogate(r) {
				low, ok := rune(utf8.RuneError), false
				if len(raw) >= i+6 && raw[i] == '\\' && raw[i+1] == 'u' {
					low, ok = hex4(raw[i+2:])
				}
				if r = utf16.DecodeRune(r, low); ok && r != utf8.RuneError {
					i += 6
				}
			}
			dst = utf8.AppendRune(dst, r)
			continue
		default:
			dst = append(dst, raw[i], c)
		}
		i += 2
	}
	return dst
}

// hex4 reads four hexadecimal digits.
func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// maxCount is the largest count taken for one; it is exact as a float.
const maxCount = 1 << 53

// Count returns the value as a whole number from 0 to 2^53. It is lenient
// where careless producers are: 3.0, 1e2 and the string "3" are counts. A
// fraction is cut off. Anything else (null, negative, too large, not a number)
// is not a count.
func (v *Value) Count() (int64, bool) {
	if v.Kind == Number && len(v.Raw) < 16 { // the usual form, without a detour
		n := int64(0)
		for _, c := range v.Raw {
			if c < '0' || c > '9' {
				n = -1
				break
			}
			n = n*10 + int64(c-'0')
		}
		if n >= 0 && len(v.Raw) > 0 {
			return n, true
		}
	}
	f, ok := v.Float()
	if !ok || f < 0 || f > maxCount {
		return 0, false
	}
	return int64(f), true
}

// Float returns the value as a finite number, taken from a number or from a
// string that holds one.
func (v *Value) Float() (float64, bool) {
	if v.Kind != Number && v.Kind != String || v.Len > 64 || len(v.Raw) == 0 {
		return 0, false
	}
	for _, c := range v.Raw {
		if !numeric[c] { // no hexadecimal, no underscore, no Inf
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(string(v.Raw), 64)
	return f, err == nil
}
