package quantity

import (
	"fmt"
	"math/big"
	"strings"
	"unicode/utf8"
)

const (
	maxText     = 64 // bytes of one quantity; more cannot be meant
	maxQuoted   = 16 // characters of the input that an error shows
	maxExponent = 30 // of a number like 1e6, either sign; an int64 has 19 digits
)

// number splits text into a decimal number and the rest, which names the unit.
// The number is digits with at most one point and with single underscores
// between digits; without a unit behind it, it may have an exponent, as in 1e6.
// ok is false when the text does not begin with such a number.
func number(text string) (value *big.Rat, rest string, ok bool) {
	var digits []byte
	point, last := false, byte(0)
	i := 0
scan:
	for ; i < len(text); i++ {
		c := text[i]
		switch {
		case '0' <= c && c <= '9':
			digits = append(digits, c)
		case c == '_' && isDigit(last) && i+1 < len(text) && isDigit(text[i+1]):
		case c == '.' && !point && isDigit(last) && i+1 < len(text) && isDigit(text[i+1]):
			point = true
			digits = append(digits, c)
		default:
			break scan
		}
		last = c
	}
	if len(digits) == 0 {
		return nil, text, false
	}
	value, ok = new(big.Rat).SetString(string(digits))
	rest = text[i:]
	if exponent, is := exponentOf(rest); is && ok {
		if exponent < -maxExponent || exponent > maxExponent {
			return nil, text, false
		}
		scale := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exponent, -exponent))), nil))
		if exponent < 0 {
			scale.Inv(scale)
		}
		value, rest = value.Mul(value, scale), ""
	}
	return value, rest, ok
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// exponentOf reads all of text as an exponent, "e6" or "E+6". A number that is
// too large for it reads as one beyond maxExponent.
func exponentOf(text string) (exponent int, is bool) {
	if len(text) < 2 || (text[0] != 'e' && text[0] != 'E') {
		return 0, false
	}
	text = text[1:]
	negative := text[0] == '-'
	if text[0] == '-' || text[0] == '+' {
		text = text[1:]
	}
	for i := range len(text) {
		if !isDigit(text[i]) {
			return 0, false
		}
		exponent = min(exponent*10+int(text[i]-'0'), maxExponent+1)
	}
	if negative {
		exponent = -exponent
	}
	return exponent, text != ""
}

// whole returns value × unit when that is a whole number within an int64.
func whole(value *big.Rat, unit int64) (n int64, ok bool) {
	product := new(big.Rat).Mul(value, new(big.Rat).SetInt64(unit))
	if !product.IsInt() || !product.Num().IsInt64() {
		return 0, false
	}
	return product.Num().Int64(), true
}

// quote shows input in an error, cut to maxQuoted characters.
func quote(input string) string {
	if utf8.RuneCountInString(input) <= maxQuoted {
		return fmt.Sprintf("%q", input)
	}
	end, n := 0, 0
	for end = range input {
		if n == maxQuoted {
			break
		}
		n++
	}
	return fmt.Sprintf("%q…", input[:end])
}

// trim takes blanks off both ends, so that a quoted value may have them.
func trim(text string) string { return strings.Trim(text, " \t") }
