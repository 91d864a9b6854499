package quantity

import (
	"encoding/json"
	"fmt"
	"strconv"
)

const countExample = `write it like 200k, 1.5M, 2G or 1_000`

// countUnits are the decimal multiples of a count. b is the billion of people
// who speak of models, g the giga of those who speak of machines.
var countUnits = map[string]int64{"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9, "t": 1e12}

// ParseCount reads a number of things, such as tokens or calls: digits, with a
// decimal point and underscores between digits where wanted, then nothing, an
// exponent (1e6), or one of k, M, G, B and T in either case: 10³, 10⁶, 10⁹, 10⁹ and
// 10¹². One blank may stand before the letter. The result is from 0 to 2⁶³−1.
// Everything else, a sign and a fraction of a thing included, is an error that
// names an example.
func ParseCount(text string) (int64, error) {
	bad := func(why string) (int64, error) {
		return 0, fmt.Errorf("%s is not a count: %s; %s", quote(text), why, countExample)
	}
	if len(text) > maxText {
		return bad("it is too long")
	}
	value, unit, ok := number(trim(text))
	if !ok {
		return bad("it does not begin with a number")
	}
	scale, ok := countUnits[lowerUnit(unit)]
	if !ok {
		return bad("its unit is none of k, M, G, B and T")
	}
	n, ok := whole(value, scale)
	if !ok {
		return bad("it is not a whole number below 2⁶³")
	}
	return n, nil
}

// lowerUnit returns a unit in lower case and without the one blank that may
// stand before it.
func lowerUnit(unit string) string {
	if len(unit) > 1 && unit[0] == ' ' {
		unit = unit[1:]
	}
	lower := []byte(unit)
	for i, c := range lower {
		if 'A' <= c && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	return string(lower)
}

// FormatCount writes a count as ParseCount reads it, exactly: with the largest
// of k, M, G and T for which no more than two decimals are needed (200k, 1.25M),
// and else as plain digits. A negative count, which ParseCount would not read,
// is written as plain digits too.
func FormatCount(n int64) string {
	for _, u := range [...]struct {
		scale int64
		name  string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if n >= u.scale && n%(u.scale/100) == 0 {
			return decimal(n, u.scale) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// decimal writes n/scale, which has at most two decimals, without closing zeros.
func decimal(n, scale int64) string {
	text := strconv.FormatInt(n/scale, 10)
	switch hundredths := n % scale / (scale / 100); {
	case hundredths == 0:
		return text
	case hundredths%10 == 0:
		return text + "." + strconv.FormatInt(hundredths/10, 10)
	default:
		return fmt.Sprintf("%s.%02d", text, hundredths)
	}
}

// Count is a count in a JSON document that people edit. It is read from a number
// (200000, 2e5) or from a string in the form of ParseCount ("200k"). A Count of 0
// is a figure; where it may be missing, use a pointer.
type Count int64

// String returns the count as FormatCount writes it.
func (c Count) String() string { return FormatCount(int64(c)) }

// MarshalJSON writes a string where FormatCount has a unit ("200k"), and else a
// number.
func (c Count) MarshalJSON() ([]byte, error) {
	text := c.String()
	if isDigit(text[len(text)-1]) {
		return []byte(text), nil
	}
	return []byte(strconv.Quote(text)), nil
}

// UnmarshalJSON reads a number or a string. As is the custom, null leaves the
// Count as it was.
func (c *Count) UnmarshalJSON(b []byte) error {
	text := string(b)
	if text == "null" {
		return nil
	}
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &text); err != nil {
			return fmt.Errorf("read count: %w", err)
		}
	}
	n, err := ParseCount(text)
	if err != nil {
		return err
	}
	*c = Count(n)
	return nil
}
