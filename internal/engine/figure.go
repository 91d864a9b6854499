package engine

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	dto "github.com/prometheus/client_model/go"

	"github.com/weirgate/weir/internal/call"
)

// Figure is a whole number that an engine may or may not show. The zero value is
// unknown; a known 0 is a figure. In JSON an unknown Figure is left out (use the
// omitzero tag).
type Figure struct {
	N     int64
	Known bool
	// Within is how far the true number may be from N, because the engine
	// rounds what it prints; 0 is exact. See Counters.
	Within int64
}

// Count is the figure as records have it; what may be rounded counts as it is.
func (f Figure) Count() call.Count {
	if !f.Known {
		return call.Count{}
	}
	return call.Known(f.N)
}

// IsZero reports an unknown Figure, so that omitzero leaves it out.
func (f Figure) IsZero() bool { return !f.Known }

// Get returns the number and whether it is known.
func (f Figure) Get() (int64, bool) { return f.N, f.Known }

// MarshalJSON writes the number where it is exact, else [number, within], and
// null when it is unknown.
func (f Figure) MarshalJSON() ([]byte, error) {
	switch {
	case !f.Known:
		return []byte("null"), nil
	case f.Within == 0:
		return strconv.AppendInt(nil, f.N, 10), nil
	}
	return fmt.Appendf(nil, "[%d,%d]", f.N, f.Within), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (f *Figure) UnmarshalJSON(b []byte) error {
	*f = Figure{}
	if string(b) == "null" {
		return nil
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err == nil {
		*f = exactly(n)
		return nil
	}
	var pair []int64
	if err := json.Unmarshal(b, &pair); err != nil {
		return fmt.Errorf("read a figure: %w", err)
	}
	if len(pair) != 2 || pair[1] < 0 {
		return fmt.Errorf("read a figure: %s is neither a number nor [number, within]", b)
	}
	*f = Figure{N: pair[0], Known: true, Within: pair[1]}
	return nil
}

// Plus adds two figures; the sum is unknown unless both are known, and as
// uncertain as both together.
func (f Figure) Plus(g Figure) Figure {
	if !f.Known || !g.Known {
		return Figure{}
	}
	return Figure{N: f.N + g.N, Known: true, Within: f.Within + g.Within}
}

// Minus is what f grew by since g; unknown unless both are known.
func (f Figure) Minus(g Figure) Figure {
	if !f.Known || !g.Known {
		return Figure{}
	}
	return Figure{N: f.N - g.N, Known: true, Within: f.Within + g.Within}
}

// exactly is a figure that is known to the last unit.
func exactly(n int64) Figure { return Figure{N: n, Known: true} }

// largest is the largest count that a float64 holds together with all below it.
const largest = 1 << 53

// total adds the samples of a family that keep accepts; nil accepts all. A
// family that is not there, or has no such sample, is unknown. rounded says that
// the values were printed with six digits.
func total(families map[string]*dto.MetricFamily, name string, rounded bool, keep func(*dto.Metric) bool) (Figure, error) {
	family := families[name]
	if family == nil {
		return Figure{}, nil
	}
	var sum Figure
	for _, m := range family.Metric {
		if keep != nil && !keep(m) {
			continue
		}
		v := value(m)
		if !(v >= 0 && v <= largest) || v != math.Trunc(v) || sum.N+int64(v) > largest {
			return Figure{}, fmt.Errorf("%s is %v, which is not a count", name, v)
		}
		f := exactly(int64(v))
		if rounded {
			f.Within = sixDigits(f.N)
		}
		f.N, f.Within, f.Known = f.N+sum.N, f.Within+sum.Within, true
		sum = f
	}
	return sum, nil
}

// value is what a sample says, whatever type its family claims: a proxy may drop
// the type.
func value(m *dto.Metric) float64 {
	switch {
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	case m.Untyped != nil:
		return m.Untyped.GetValue()
	}
	return math.NaN()
}

// sixDigits is how far a whole number that was rounded to six significant digits
// and became n may have been from n: half of the sixth digit's unit.
func sixDigits(n int64) int64 {
	unit := int64(1)
	for m := n; m >= 1_000_000; m /= 10 {
		unit *= 10
	}
	return unit / 2
}

// printsSixDigits tells whether all values are such as a C++ stream writes by
// default, with six significant digits. One value with more digits proves that
// the writer does not round.
func printsSixDigits(families map[string]*dto.MetricFamily) bool {
	for _, family := range families {
		for _, m := range family.Metric {
			v := value(m)
			if math.IsNaN(v) {
				continue
			}
			if short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64); err == nil && short != v {
				return false
			}
		}
	}
	return true
}
