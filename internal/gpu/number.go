package gpu

import (
	"encoding/json"
	"fmt"
	"math"
)

// Number is a figure that may be unknown. The zero value is unknown; a known 0
// is a figure. In JSON an unknown Number is left out (use the omitzero tag).
type Number struct {
	x     float64
	known bool
}

// Figure returns a Number that is x; one that is no finite number is unknown.
func Figure(x float64) Number {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return Number{}
	}
	return Number{x: x, known: true}
}

// figureWithin returns x if it lies in [low, high]: what no GPU can show is a
// placeholder of the driver or the exporter, and unknown.
func figureWithin(x, low, high float64) Number {
	if !(x >= low && x <= high) {
		return Number{}
	}
	return Number{x: x, known: true}
}

// Get returns the figure and whether it is known.
func (n Number) Get() (float64, bool) { return n.x, n.known }

// IsKnown tells whether the figure is known.
func (n Number) IsKnown() bool { return n.known }

// IsZero reports an unknown Number, so that omitzero leaves it out.
func (n Number) IsZero() bool { return !n.known }

// orNaN is the figure for sums that skip what is unknown.
func (n Number) orNaN() float64 {
	if !n.known {
		return math.NaN()
	}
	return n.x
}

// MarshalJSON writes the figure, or null when it is unknown.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.known {
		return []byte("null"), nil
	}
	return json.Marshal(n.x)
}

// UnmarshalJSON reads a number; null is unknown.
func (n *Number) UnmarshalJSON(b []byte) error {
	*n = Number{}
	if string(b) == "null" {
		return nil
	}
	var x float64
	if err := json.Unmarshal(b, &x); err != nil {
		return fmt.Errorf("read a number: %w", err)
	}
	*n = Figure(x)
	return nil
}
