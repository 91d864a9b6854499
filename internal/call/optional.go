package call

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Count is a number that may be unknown. The zero value is unknown; a known 0
// is a figure. In JSON an unknown Count is left out (use the omitzero tag).
type Count struct {
	n     int64
	known bool
}

// Known returns a Count that is n.
func Known(n int64) Count { return Count{n: n, known: true} }

// Get returns the number and whether it is known.
func (c Count) Get() (int64, bool) { return c.n, c.known }

// Or returns the number, or def when it is unknown.
func (c Count) Or(def int64) int64 {
	if c.known {
		return c.n
	}
	return def
}

// IsKnown tells whether the number is known.
func (c Count) IsKnown() bool { return c.known }

// IsZero reports an unknown Count, so that omitzero leaves it out.
func (c Count) IsZero() bool { return !c.known }

// Plus adds two counts. A known one plus an unknown one is the known one;
// the sum is unknown only when both are.
func (c Count) Plus(d Count) Count {
	return Count{n: c.n + d.n, known: c.known || d.known}
}

// MarshalJSON writes the number, or null when it is unknown.
func (c Count) MarshalJSON() ([]byte, error) {
	if !c.known {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, c.n, 10), nil
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
type Duration struct {
	d     time.Duration
	known bool
}

// Lasting returns a Duration that is d.
func Lasting(d time.Duration) Duration { return Duration{d: d, known: true} }

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
func (d Duration) Get() (time.Duration, bool) { return d.d, d.known }

// Or returns the span, or def when it is unknown.
func (d Duration) Or(def time.Duration) time.Duration {
	if d.known {
		return d.d
	}
	return def
}

// IsKnown tells whether the span is known.
func (d Duration) IsKnown() bool { return d.known }

// IsZero reports an unknown Duration, so that omitzero leaves it out.
func (d Duration) IsZero() bool { return !d.known }

// Minus returns d − e, unknown unless both are known.
func (d Duration) Minus(e Duration) Duration {
	if !d.known || !e.known {
		return Duration{}
	}
	return Lasting(d.d - e.d)
}

// MillisecondsFloat returns the span in milliseconds; 0 when it is unknown.
func (d Duration) MillisecondsFloat() float64 { return float64(d.d) / float64(time.Millisecond) }

// MarshalJSON writes milliseconds, or null when the span is unknown.
func (d Duration) MarshalJSON() ([]byte, error) {
	if !d.known {
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
