package call

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// optional is a number that may be unknown, in one word: a call holds some hundred
// of them, and each line of memory that it does not touch is time saved. It is 0
// when unknown, and else the number with its sign turned over, so that of all
// numbers only the least has no room and counts as the next.
type optional uint64

const sign = 1 << 63

func known(n int64) optional { return optional(uint64(max(n, -math.MaxInt64)) ^ sign) }

func (o optional) get() (n int64, known bool) {
	if o == 0 {
		return 0, false
	}
	return int64(o ^ sign), true
}

// plus adds two. A known one plus an unknown one is the known one.
func (o optional) plus(p optional) optional {
	n, is := o.get()
	m, also := p.get()
	if !is && !also {
		return 0
	}
	return known(n + m)
}

// Count is a number that may be unknown. The zero value is unknown; a known 0
// is a figure. In JSON an unknown Count is left out (use the omitzero tag).
type Count struct{ o optional }

// Known returns a Count that is n.
func Known(n int64) Count { return Count{known(n)} }

// Get returns the number and whether it is known.
func (c Count) Get() (int64, bool) { return c.o.get() }

// Or returns the number, or def when it is unknown.
func (c Count) Or(def int64) int64 {
	if n, known := c.Get(); known {
		return n
	}
	return def
}

// IsKnown tells whether the number is known.
func (c Count) IsKnown() bool { return c.o != 0 }

// IsZero reports an unknown Count, so that omitzero leaves it out.
func (c Count) IsZero() bool { return !c.IsKnown() }

// Plus adds two counts. A known one plus an unknown one is the known one;
// the sum is unknown only when both are.
func (c Count) Plus(d Count) Count {
	return Count{c.o.plus(d.o)}
}

// MarshalJSON writes the number, or null when it is unknown.
func (c Count) MarshalJSON() ([]byte, error) {
	n, known := c.Get()
	if !known {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, n, 10), nil
}

// UnmarshalJSON reads a whole number; null is unknown.
func (c *Count) UnmarshalJSON(b []byte) error {
	*c = Count{}
	if string(b) == "null" {
		return nil
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return fmt.Errorf("read count: %w", err)
	}
	*c = Known(n)
	return nil
}

// Duration is a time span that may be unknown. The zero value is unknown; a
// known 0 is a figure. In JSON it is a number of milliseconds.
type Duration struct{ o optional }

// Lasting returns a Duration that is d.
func Lasting(d time.Duration) Duration { return Duration{known(int64(d))} }

// Milliseconds returns a Duration of ms milliseconds, rounded to a nanosecond.
// Anything that is not a finite number within the range of a Go duration is unknown.
func Milliseconds(ms float64) Duration {
	ns := ms * float64(time.Millisecond)
	if math.IsNaN(ns) || math.Abs(ns) > math.MaxInt64/2 {
		return Duration{}
	}
	return Lasting(time.Duration(math.Round(ns)))
}

// Get returns the span and whether it is known.
func (d Duration) Get() (time.Duration, bool) {
	n, known := d.o.get()
	return time.Duration(n), known
}

// Or returns the span, or def when it is unknown.
func (d Duration) Or(def time.Duration) time.Duration {
	if span, known := d.Get(); known {
		return span
	}
	return def
}

// IsKnown tells whether the span is known.
func (d Duration) IsKnown() bool { return d.o != 0 }

// IsZero reports an unknown Duration, so that omitzero leaves it out.
func (d Duration) IsZero() bool { return !d.IsKnown() }

// Minus returns d − e, unknown unless both are known.
func (d Duration) Minus(e Duration) Duration {
	if !d.IsKnown() || !e.IsKnown() {
		return Duration{}
	}
	return Lasting(d.Or(0) - e.Or(0))
}

// MillisecondsFloat returns the span in milliseconds; 0 when it is unknown.
func (d Duration) MillisecondsFloat() float64 { return float64(d.Or(0)) / float64(time.Millisecond) }

// MarshalJSON writes milliseconds, or null when the span is unknown.
func (d Duration) MarshalJSON() ([]byte, error) {
	if !d.IsKnown() {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, d.MillisecondsFloat(), 'f', -1, 64), nil
}

// UnmarshalJSON reads milliseconds; null is unknown.
func (d *Duration) UnmarshalJSON(b []byte) error {
	*d = Duration{}
	if string(b) == "null" {
		return nil
	}
	var ms float64
	if err := json.Unmarshal(b, &ms); err != nil {
		return fmt.Errorf("read duration in milliseconds: %w", err)
	}
	*d = Milliseconds(ms)
	return nil
}
