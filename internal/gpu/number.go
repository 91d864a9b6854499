package gpu

import (
	"math"

	"github.com/weirgate/weir/internal/call"
)

// Number is a figure that may be unknown; see call.Number.
type Number = call.Number

// Figure returns a Number that is x; one that is no finite number is unknown.
func Figure(x float64) Number { return call.Figure(x) }

// figureWithin returns x if it lies in [low, high]: what no GPU can show is a
// placeholder of the driver or the exporter, and unknown.
func figureWithin(x, low, high float64) Number {
	if !(x >= low && x <= high) {
		return Number{}
	}
	return Figure(x)
}

// orNaN is the figure for sums that skip what is unknown.
func orNaN(n Number) float64 { return n.Or(math.NaN()) }
