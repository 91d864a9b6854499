package engine

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/weirgate/weir/internal/call"
)

// Share is a part of a whole, 0–1, that an engine may or may not show. The zero
// value is unknown; a known 0 is a figure. In JSON an unknown Share is left out
// (use the omitzero tag).
type Share struct {
	X     float64
	Known bool
}

// Get returns the share and whether it is known.
func (s Share) Get() (float64, bool) { return s.X, s.Known }

// Number is the share as records have it.
func (s Share) Number() call.Number {
	if !s.Known {
		return call.Number{}
	}
	return call.Figure(s.X)
}

// IsZero reports an unknown Share, so that omitzero leaves it out.
func (s Share) IsZero() bool { return !s.Known }

// MarshalJSON writes the share, and null when it is unknown.
func (s Share) MarshalJSON() ([]byte, error) {
	if !s.Known {
		return []byte("null"), nil
	}
	return json.Marshal(s.X)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Share) UnmarshalJSON(b []byte) error {
	*s = Share{}
	if string(b) == "null" {
		return nil
	}
	var x float64
	if err := json.Unmarshal(b, &x); err != nil {
		return fmt.Errorf("read a share: %w", err)
	}
	if !(x >= 0 && x <= 1) {
		return fmt.Errorf("read a share: %v is not between 0 and 1", x)
	}
	*s = Share{X: x, Known: true}
	return nil
}

// roundoff is how far beyond 0 or 1 arithmetic on the engine's side may carry a
// share; what lies further out is no share.
const roundoff = 1e-6

// shareOf makes a Share of a sample; false if it is none.
func shareOf(v float64) (Share, bool) {
	if !(v >= -roundoff && v <= 1+roundoff) {
		return Share{}, false
	}
	return Share{X: math.Max(0, math.Min(1, v)), Known: true}, true
}
