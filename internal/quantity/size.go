package quantity

import (
	"fmt"
	"strconv"
)

const sizeExample = `write it like 64MiB (64 × 2²⁰ bytes), 64MB (64 × 10⁶ bytes) or 512`

var sizeUnits = map[string]int64{
	"": 1, "b": 1,
	"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "pb": 1e15, "eb": 1e18,
	"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40, "pib": 1 << 50, "eib": 1 << 60,
}

// ParseSize reads a number of bytes, from 0 to 2⁶³−1: a number as ParseCount has
// it, then nothing or B, or a decimal unit (kB, MB, GB, TB, PB, EB) or a binary
// one (KiB, MiB, GiB, TiB, PiB, EiB) in any case. A bare letter as in 64M is an
// error, since half the programs take it for 10⁶ and half for 2²⁰.
func ParseSize(text string) (int64, error) {
	bad := func(why string) (int64, error) {
		return 0, fmt.Errorf("%s is not a size: %s; %s", quote(text), why, sizeExample)
	}
	if len(text) > maxText {
		return bad("it is too long")
	}
	value, unit, ok := number(trim(text))
	if !ok {
		return bad("it does not begin with a number")
	}
	unit = lowerUnit(unit)
	scale, ok := sizeUnits[unit]
	if _, bare := sizeUnits[unit+"b"]; !ok && bare {
		return bad("it does not say whether its unit is decimal or binary")
	}
	if !ok {
		return bad("its unit is unknown")
	}
	n, ok := whole(value, scale)
	if !ok {
		return bad("it is not a whole number of bytes below 2⁶³")
	}
	return n, nil
}

// FormatSize writes a number of bytes as ParseSize reads it, exactly: in the
// largest unit of which it is a whole multiple, binary (64MiB) or decimal (64MB),
// whichever leaves the smaller number. A negative one is written in bytes.
func FormatSize(n int64) string {
	binary, decimal := n, n
	powers, thousands := 0, 0
	for binary > 0 && binary%1024 == 0 {
		binary /= 1024
		powers++
	}
	for decimal > 0 && decimal%1000 == 0 {
		decimal /= 1000
		thousands++
	}
	switch {
	case powers > 0 && binary <= decimal:
		return strconv.FormatInt(binary, 10) + "KMGTPE"[powers-1:powers] + "iB"
	case thousands > 0:
		return strconv.FormatInt(decimal, 10) + "kMGTPE"[thousands-1:thousands] + "B"
	}
	return strconv.FormatInt(n, 10) + "B"
}
