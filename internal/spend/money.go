package spend

import (
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
)

// Money is an amount of the one currency that a price file names. It is a whole
// number of 10⁻¹⁵ of the currency's unit: prices have nine decimals and are per
// million tokens, so that tokens times price is always whole. The zero value is
// no money. The range is ±1.7·10²³ units of the currency; sums beyond it wrap, and
// no price times a count that fits 63 bits comes near it.
type Money struct {
	hi int64 // two's complement, 128 bits
	lo uint64
}

const (
	// moneyDecimals is how many decimals Money has.
	moneyDecimals = 15
	// priceDecimals is how many decimals a price per million tokens has.
	priceDecimals = 9
)

// times returns n·price, n tokens at a price in 10⁻⁹ per million tokens.
func times(n, price int64) Money {
	hi, lo := bits.Mul64(magnitude(n), magnitude(price))
	m := Money{int64(hi), lo}
	if (n < 0) != (price < 0) {
		return m.negated()
	}
	return m
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

func (m Money) negated() Money {
	lo, borrow := bits.Sub64(0, m.lo, 0)
	hi, _ := bits.Sub64(0, uint64(m.hi), borrow)
	return Money{int64(hi), lo}
}

// Plus returns m + o.
func (m Money) Plus(o Money) Money {
	lo, carry := bits.Add64(m.lo, o.lo, 0)
	hi, _ := bits.Add64(uint64(m.hi), uint64(o.hi), carry)
	return Money{int64(hi), lo}
}

// Minus returns m − o.
func (m Money) Minus(o Money) Money { return m.Plus(o.negated()) }

// Compare returns −1, 0 or 1 as m is less than, equal to or more than o.
func (m Money) Compare(o Money) int {
	switch {
	case m == o:
		return 0
	case m.hi < o.hi || m.hi == o.hi && m.lo < o.lo:
		return -1
	}
	return 1
}

// IsZero tells whether m is no money.
func (m Money) IsZero() bool { return m == Money{} }

// Float returns the nearest float64, for shares and gauges; sums are made of
// Money.
func (m Money) Float() float64 { return m.raw() / 1e15 }

// raw is the whole number that m is, as the nearest float64.
func (m Money) raw() float64 {
	if m.hi < 0 {
		return -m.negated().raw()
	}
	return float64(m.hi)*(1<<64) + float64(m.lo)
}

// String writes the exact amount as a decimal number without closing zeros, such
// as 0.000123.
func (m Money) String() string {
	text := m.fixed(moneyDecimals)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// Rounded writes the amount with this many decimals, from 0 to 15; halves are
// rounded away from zero. It is for people: exact sums are made before.
func (m Money) Rounded(decimals int) string {
	decimals = max(0, min(decimals, moneyDecimals))
	return m.fixed(decimals)
}

func (m Money) fixed(decimals int) string {
	n := m.big()
	negative := n.Sign() < 0
	n.Abs(n)
	if decimals < moneyDecimals {
		unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(moneyDecimals-decimals)), nil)
		n.Add(n, new(big.Int).Rsh(unit, 1)).Quo(n, unit) // a unit is even: its half is whole
	}
	text := n.String()
	if short := decimals + 1 - len(text); short > 0 {
		text = strings.Repeat("0", short) + text
	}
	if decimals > 0 {
		text = text[:len(text)-decimals] + "." + text[len(text)-decimals:]
	}
	if negative && n.Sign() != 0 {
		return "-" + text
	}
	return text
}

func (m Money) big() *big.Int {
	n := new(big.Int).Lsh(big.NewInt(m.hi), 64)
	return n.Add(n, new(big.Int).SetUint64(m.lo))
}

// MarshalJSON writes the exact decimal number.
func (m Money) MarshalJSON() ([]byte, error) { return []byte(m.String()), nil }

// ParseMoney reads an amount: digits, and up to 15 decimals, such as 12.50. It
// must be from 0 to 10¹⁵ units; a sign, an exponent and blanks are errors.
func ParseMoney(text string) (Money, error) {
	n, err := decimal(text, moneyDecimals, 1_000_000_000_000_000)
	if err != nil {
		return Money{}, fmt.Errorf("amount %.40q: %w", text, err)
	}
	words := new(big.Int)
	lo := words.And(n, new(big.Int).SetUint64(^uint64(0))).Uint64()
	return Money{new(big.Int).Rsh(n, 64).Int64(), lo}, nil
}

// moneyOf reads an amount that was kept as a float64 as people wrote it: 0.1 is a
// tenth. Decimals beyond the fifteenth are dropped; what is no amount is no money.
func moneyOf(f float64) Money {
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if point := strings.IndexByte(text, '.'); point >= 0 && len(text) > point+1+moneyDecimals {
		text = text[:point+1+moneyDecimals]
	}
	m, err := ParseMoney(text)
	if err != nil {
		return Money{}
	}
	return m
}

// decimal reads a plain decimal number from 0 to most with up to so many
// decimals, and returns it times ten to their power.
func decimal(text string, decimals int, most int64) (*big.Int, error) {
	if len(text) > 64 {
		return nil, errors.New("it is too long to be a number")
	}
	whole, fraction, point := strings.Cut(text, ".")
	if !digits(whole) || point && !digits(fraction) {
		return nil, errors.New("write a number like 0.25, without a sign or an exponent")
	}
	if fraction = strings.TrimRight(fraction, "0"); len(fraction) > decimals {
		return nil, fmt.Errorf("it has more than %d decimals", decimals)
	}
	n, _ := new(big.Int).SetString(whole+fraction+strings.Repeat("0", decimals-len(fraction)), 10) // digits only
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
	if n.Cmp(limit.Mul(limit, big.NewInt(most))) > 0 {
		return nil, fmt.Errorf("it is more than %d", most)
	}
	return n, nil
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
